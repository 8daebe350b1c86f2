"""Rules of workers: live ones, dead ones, and some that never were."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from headrace.model.errors import ConflictError, FenceLostError
from headrace.model.job import Claim, Completion, JobError, JobSpec, JobState
from headrace.model.session import NewSession, ProcessId
from tests.machine.batches import Batches
from tests.machine.world import CALLBACKS, GATES, LEASE, QUEUES, counts, delays, look, queues, some


class Workers(Batches):
    """Sessions begin and end, jobs are claimed and ended, each under its fence."""

    @rule()
    def start_worker(self) -> None:
        """Register a session; a late duplicate of that changes nothing."""
        number = len(self.workers)
        process = ProcessId("host" if number % 3 else "other", number, 0)
        new = NewSession(process, "host", dict.fromkeys((*QUEUES, *GATES), 5), LEASE, UUID(int=number + 1))
        self.run(self.stores.sessions.register_session(new))
        self.run(self.stores.sessions.register_session(replace(new, lease=2 * LEASE)))
        self.workers.append(new.id)

    @rule(which=some, how=st.sampled_from(["renew", "renew", "close", "expire"]))
    def live_or_die(self, which: int, how: str) -> None:
        """Renew a session or end it; one that has ended stays so."""
        session, sessions = self.workers[which % len(self.workers)], self.stores.sessions
        alive = self.alive(session)
        match how:
            case "renew":
                renewal = self.run(sessions.renew_session(session, lease=LEASE, stats={"busy": which % 3}))
                assert renewal.alive == alive
                assert alive or not renewal.cancel_jobs
            case "close":
                self.run(sessions.close_session(session))
            case _:
                self.run(sessions.expire_sessions([session, uuid4(), session]))
        assert self.alive(session) == (alive and how == "renew")
        self.run(sessions.sessions_on("host"))

    @rule(which=some, queue=queues, limit=counts)
    def claim_as_anyone(self, which: int, queue: str, limit: int) -> None:
        """Claim as a session that may be dead."""
        self.claim(self.workers[which % len(self.workers)], queue, limit)

    @rule(queue=queues, limit=st.integers(2, 8), twice=st.booleans())
    def claim_as_a_live_worker(self, queue: str, limit: int, twice: bool) -> None:
        """Claim as a session that lives, so that work goes on; the answer may have been lost."""
        if not self.alive(self.workers[-1]):
            self.start_worker()
        for _ in range(1 + twice):
            self.claim(self.workers[-1], queue, limit)

    def look_at_claims(self, queue: str, limit: int) -> None:
        """Claim right after something that stops claims."""
        self.claim_as_a_live_worker(queue, limit, twice=False)

    def claim(self, session: UUID, queue: str, limit: int) -> None:
        """Claim, and check whether each job might run now."""
        views = {job.id: job for job in self.jobs()}
        claimed = self.run(self.stores.jobs.claim_jobs(Claim(session, queue, limit)))
        assert len(claimed) <= limit
        assert not claimed or (self.alive(session) and queue not in self.paused)
        for job in claimed:
            was = views[job.id]
            assert (was.state, was.queue, job.attempt) == (JobState.READY, queue, was.attempt + 1)
            assert was.run_at is None or was.run_at <= self.clock.now()
            assert was.batch_id is None or self.may_start(was.batch_id)
            self.held.append((session, job))
        held = self.run(self.stores.jobs.claimed_jobs(session, queue=queue))
        assert [job for job in held if job in claimed] == claimed

    @precondition(lambda self: self.held)
    @rule(
        which=some,
        state=st.sampled_from([state for state in JobState if state is not JobState.PARKED]),
        delay=delays,
        crash=st.sampled_from([None, None, None, False, True]),
        charged=st.sampled_from([True, True, False]),
        forged=st.sampled_from(["", "", "", "session", "attempt"]),
    )
    def complete(
        self,
        which: int,
        state: JobState,
        delay: timedelta,
        crash: bool | None,
        charged: bool = False,
        forged: str = "",
    ) -> None:
        """End an attempt, of now or of long ago; `crash` is None, or whether the crash came after progress."""
        session, job = self.held[-1 - which % min(len(self.held), 12)]
        session = uuid4() if forged == "session" else session
        job = replace(job, attempt=job.attempt + which % 3 - 1) if forged == "attempt" else job
        owned = self.owns(session, job.id, job.attempt)
        before = None if owned else self.snapshot()
        charged = charged and crash is None and state not in (JobState.SUCCEEDED, JobState.CANCELLED)
        if charged and job.failures + 1 >= job.max_attempts:
            state = JobState.FAILED
        error = None if state is JobState.SUCCEEDED else JobError("ValueError", "no", "line 1")
        done = Completion(
            job.id, job.attempt, state, result="1" if error is None else None, error=error, delay=delay,
            charged=charged, lone_crash=crash is not None, progressed=bool(crash), usage='{"calls":1}',
        )  # fmt: skip
        assert self.run(self.stores.jobs.complete_jobs(session, [done, done])) == ([job.id] if owned else [])
        assert owned or self.snapshot() == before

    @precondition(lambda self: self.held)
    @rule(states=st.lists(st.sampled_from(JobState), min_size=2, max_size=8), delay=delays)
    def complete_many(self, states: list[JobState], delay: timedelta) -> None:
        """End the last attempts of a session in one call, finals and others together; those that lost are left out."""
        session = self.held[-1][0]
        jobs = {job.id: job for held_by, job in self.held[-len(states) :] if held_by == session}
        pairs = list(zip(jobs.values(), (state for state in states if state is not JobState.PARKED), strict=False))
        owned = [job.id for job, _ in pairs if self.owns(session, job.id, job.attempt)]
        done = [Completion(job.id, job.attempt, state, delay=delay) for job, state in pairs]
        assert sorted(self.run(self.stores.jobs.complete_jobs(session, done))) == sorted(owned)

    @precondition(lambda self: self.held)
    @rule(count=counts, state=st.sampled_from([JobState.SUCCEEDED, JobState.FAILED]), queue=queues, limit=counts)
    def exchange(self, count: int, state: JobState, queue: str, limit: int) -> None:
        """End the last attempts of a session and claim in one call: what ended is not claimed, a dead one gets none."""
        session = self.held[-1][0]
        jobs = {job.id: job for held_by, job in self.held[-count:] if held_by == session}
        owned = [job.id for job in jobs.values() if self.owns(session, job.id, job.attempt)]
        done = [Completion(job.id, job.attempt, state) for job in jobs.values()]
        views = {job.id: job for job in self.jobs()}
        ended, claimed = self.run(self.stores.jobs.exchange_jobs(session, done, Claim(session, queue, limit)))
        assert sorted(ended) == sorted(owned)
        assert not claimed or (self.alive(session) and queue not in self.paused)
        for job in claimed:
            was = views[job.id]
            assert (was.state, was.queue, job.attempt) == (JobState.READY, queue, was.attempt + 1)
            self.held.append((session, job))

    @rule(
        states=st.lists(st.sampled_from([JobState.SUCCEEDED, JobState.FAILED]), min_size=1, max_size=4),
        retry=st.booleans(),
    )
    def finish_a_round(self, states: list[JobState], retry: bool) -> None:
        """Submit an urgent batch, end what a worker claims then, close what is done; perhaps retry the failures."""
        self.submit(JobSpec("work", "left", priority=0), len(states), None, CALLBACKS[0], timedelta())
        before = len(self.held)
        self.claim_as_a_live_worker("left", len(states), twice=False)
        for (session, job), state in zip(self.held[before:], states, strict=False):
            done = Completion(job.id, job.attempt, state, charged=state is JobState.FAILED)
            assert self.run(self.stores.jobs.complete_jobs(session, [done])) == [job.id]
        self.close_batches()
        for batch_id in self.batches[-3:] if retry else ():
            with suppress(ConflictError):
                self.run(self.stores.batches.retry_failed(batch_id))

    @precondition(lambda self: self.held)
    @rule(which=some, name=st.sampled_from("st"), value=st.integers(0, 3).map(str), forged=st.sampled_from([0, 0, 1]))
    def save_step(self, which: int, name: str, value: str, forged: int) -> None:
        """Store a step as the attempt of now, of long ago or of nobody: once, and only under the fence."""
        session, job = self.held[-1 - which % min(len(self.held), 12)]
        attempt = job.attempt + forged * (which % 3 - 1)
        call = self.stores.jobs.save_step(job.id, attempt=attempt, session=session, name=name, value=value)
        if not self.owns(session, job.id, attempt):
            with pytest.raises(FenceLostError):
                self.run(call)
            return
        assert self.run(call) == self.steps.setdefault((job.id, name), value)
        assert look(self.memory.jobs.load_steps(job.id))[name] == self.steps[job.id, name]
