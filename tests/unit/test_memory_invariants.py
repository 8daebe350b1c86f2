"""After any sequence of operations, in any order and from anyone, the invariants of the core hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.model.batch import BatchState, ClosePolicy, NewBatch, Slice
from headrace.model.errors import ConflictError, FenceLostError, InvalidInputError
from headrace.model.job import Claim, ClaimedJob, Completion, JobSpec, JobState, JobView, NewJob
from headrace.model.session import LeaderTerm, NewSession, ProcessId
from headrace.stores.memory import endings, open_memory_stores
from headrace.testing.clock import FakeClock

T = TypeVar("T")
ALL = 1_000_000
SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=12)
ARGS = '{"args":[],"kwargs":{}}'
KEYS = ("red", "blue")
QUEUES = ("left", "right")
CALLBACK = JobSpec("callback", "callbacks")

#: Most of the work meets in one queue, under few keys: that is where operations get into each other's way.
queues = st.sampled_from(["left", "left", "left", "right"])
specs = st.builds(
    JobSpec,
    task=st.just("work"),
    queue=queues,
    priority=st.sampled_from([0, 5, 9]),
    max_attempts=st.integers(1, 3),
    timeout=st.sampled_from([None, 5 * SECOND]),
    at_most_once=st.booleans(),
    limit_key=st.sampled_from([None, None, *KEYS]),
)
counts = st.integers(1, 4)
some = st.integers(0, 10_000)
delays = st.sampled_from([0, 0, 3, 30]).map(lambda seconds: timedelta(seconds=seconds))


def run(verb: Coroutine[Any, Any, T]) -> T:
    """Run a verb of the memory store to its end; it is atomic, so it never suspends."""
    try:
        verb.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("a verb of the memory store gave way in the middle")


class Core(RuleBasedStateMachine):
    """Operations of submitters, workers, operators and sweeps, with what has to stay true between them."""

    @initialize()
    def open(self) -> None:
        """Begin with empty stores, one worker and one leader."""
        self.clock = FakeClock()
        self.stores = open_memory_stores(self.clock)
        self.workers: list[UUID] = []
        self.held: list[tuple[UUID, ClaimedJob]] = []
        self.seen: dict[UUID, JobView] = {}
        self.keys: dict[str, tuple[UUID, str]] = {}
        self.steps: dict[tuple[UUID, str], str] = {}
        self.batches: list[UUID] = []
        self.closings: Counter[UUID] = Counter()
        self.announced: set[UUID] = set()
        self.paused: set[str] = set()
        self.caps: dict[str, int] = {}
        self.terms: list[LeaderTerm] = []
        self.start_worker()
        self.lead(0)
        self.cap("red", 1)

    # What is looked at

    def jobs(self) -> list[JobView]:
        return run(self.stores.inspect.list_jobs(limit=ALL))

    def job(self, job_id: UUID) -> JobView:
        view = run(self.stores.inspect.get_job(job_id))
        assert view is not None
        return view

    def snapshot(self) -> list[Any]:
        """Return everything that can be read of the stores."""
        read = self.stores.inspect
        jobs = self.jobs()
        return [
            jobs,
            [(run(read.get_attempts(job.id)), run(self.stores.jobs.load_steps(job.id))) for job in jobs],
            [(run(read.get_batch(batch_id)), run(read.batch_progress(batch_id))) for batch_id in self.batches],
            run(read.queue_stats()),
            run(read.list_sessions()),
        ]

    def running(self) -> Counter[str | None]:
        state = self.stores.jobs._state  # type: ignore[attr-defined]
        return Counter(job.spec.limit_key for job in state.jobs.values() if job.state is JobState.RUNNING)

    def alive(self, session: UUID) -> bool:
        return any(view.id == session and view.alive for view in run(self.stores.inspect.list_sessions()))

    # Submitters

    @rule(spec=specs, count=counts, delay=delays)
    def insert(self, spec: JobSpec, count: int, delay: timedelta) -> None:
        run_at = self.clock.now() + delay if delay else None
        new = [NewJob(spec, ARGS, run_at=run_at) for _ in range(count)]
        assert run(self.stores.jobs.insert_jobs(new)) == [job.id for job in new]
        assert {job.id for job in new} <= {job.id for job in self.jobs()}
        again = self.snapshot()
        run(self.stores.jobs.insert_jobs(new, retrying=True))
        assert self.snapshot() == again

    @rule(key=st.sampled_from("ab"), body=st.sampled_from("xy"))
    def insert_keyed(self, key: str, body: str) -> None:
        new = NewJob(JobSpec("keyed", "left"), ARGS, key=key, body_hash=body)
        known_id, known_body = self.keys.setdefault(key, (new.id, body))
        before = self.snapshot()
        if body != known_body:
            with pytest.raises(ConflictError):
                run(self.stores.jobs.insert_jobs([NewJob(JobSpec("keyed"), ARGS), new]))
            assert self.snapshot() == before
        else:
            assert run(self.stores.jobs.insert_jobs([new])) == [known_id]

    @rule(spec=specs, count=st.integers(0, 4), limit=st.sampled_from([None, 0, 1]), callback=st.booleans())
    def submit(self, spec: JobSpec, count: int, limit: int | None, callback: bool) -> None:
        new = NewBatch(spec, policy=ClosePolicy(limit), on_close=CALLBACK if callback else None)
        self.batches.append(run(self.stores.batches.create_batch(new, [ARGS] * count)))
        self.closings[new.id] += count == 0
        if callback:
            self.announced.add(new.id)

    @rule(spec=specs)
    def open_batch(self, spec: JobSpec) -> None:
        self.batches.append(run(self.stores.batches.create_batch(NewBatch(spec, on_close=CALLBACK), None)))
        self.announced.add(self.batches[-1])

    @precondition(lambda self: self.batches)
    @rule(which=some, count=counts, seal=st.booleans())
    def stream(self, which: int, count: int, seal: bool) -> None:
        batch_id = self.batches[which % len(self.batches)]
        first = len(run(self.stores.inspect.batch_args(batch_id)))
        part = Slice(batch_id, first, (ARGS,) * count, "hash")
        try:
            assert run(self.stores.batches.append_slice(part))
        except ConflictError:
            assert self.batch_state(batch_id) not in (BatchState.OPEN, BatchState.ABANDONED)
            return
        assert not run(self.stores.batches.append_slice(part))
        if seal:
            run(self.stores.batches.seal_batch(batch_id, total=first + count))

    def batch_state(self, batch_id: UUID) -> BatchState:
        view = run(self.stores.inspect.get_batch(batch_id))
        assert view is not None
        return view.state

    @precondition(lambda self: self.batches)
    @rule(which=some, how=st.sampled_from(["reopen", "retry", "cancel", "settle"]), limit=counts)
    def steer_batch(self, which: int, how: str, limit: int) -> None:
        batch_id, batches = self.batches[-1 - which % min(len(self.batches), 3)], self.stores.batches
        before = self.snapshot()
        try:
            match how:
                case "reopen":
                    run(batches.reopen_batch(batch_id, key=str(which % 3)))
                case "retry":
                    run(batches.retry_failed(batch_id))
                case "cancel":
                    run(batches.cancel_batch(batch_id))
                    self.claim_as_a_live_worker("left", 8, twice=False)
                case _:
                    run(batches.settle_cancelled(batch_id, limit=limit))
        except ConflictError:
            assert self.snapshot() == before

    @rule()
    def close_batches(self) -> None:
        self.note_closed(run(self.stores.batches.close_batches(self.batches)))
        for batch_id in self.batches:
            progress = run(self.stores.inspect.batch_progress(batch_id))
            if self.batch_state(batch_id) in (BatchState.SEALED, BatchState.CANCELLING):
                assert progress.running + progress.waiting > 0

    def note_closed(self, closed: list[Any]) -> None:
        self.closings.update(batch.id for batch in closed)

    # Workers

    @rule()
    def start_worker(self) -> None:
        session = NewSession(ProcessId("host", len(self.workers), 0), "host", dict.fromkeys(QUEUES, 5), LEASE)
        run(self.stores.sessions.register_session(session))
        self.workers.append(session.id)

    @rule(which=some, how=st.sampled_from(["renew", "renew", "close", "expire"]))
    def live_or_die(self, which: int, how: str) -> None:
        session, sessions = self.workers[which % len(self.workers)], self.stores.sessions
        alive = self.alive(session)
        match how:
            case "renew":
                assert run(sessions.renew_session(session, lease=LEASE, stats={})).alive == alive
            case "close":
                run(sessions.close_session(session))
            case _:
                run(sessions.expire_sessions([session]))
        assert self.alive(session) == (alive and how == "renew")

    @rule(which=some, queue=queues, limit=counts, keyed=st.sampled_from([True, True, False]))
    def claim_as_anyone(self, which: int, queue: str, limit: int, keyed: bool) -> None:
        self.claim(self.workers[which % len(self.workers)], queue, limit, keyed=keyed)

    @rule(queue=queues, limit=st.integers(2, 8), twice=st.booleans())
    def claim_as_a_live_worker(self, queue: str, limit: int, twice: bool) -> None:
        if not self.alive(self.workers[-1]):
            self.start_worker()
        for _ in range(1 + twice):
            self.claim(self.workers[-1], queue, limit, keyed=True)

    def claim(self, session: UUID, queue: str, limit: int, *, keyed: bool) -> None:
        before = self.running()
        views = {job.id: job for job in self.jobs()}
        claimed = run(self.stores.jobs.claim_jobs(Claim(session, queue, limit, KEYS if keyed else ())))
        assert len(claimed) <= limit
        assert not claimed or (self.alive(session) and queue not in self.paused)
        for job in claimed:
            was = views[job.id]
            assert (was.state, was.queue, job.attempt) == (JobState.READY, queue, was.attempt + 1)
            assert was.run_at is None or was.run_at <= self.clock.now()
            assert was.batch_id is None or self.batch_state(was.batch_id) is not BatchState.CANCELLING
            self.held.append((session, job))
        for key, used in self.running().items():
            if key in self.caps and used != before[key]:
                assert used <= self.caps[key]

    @precondition(lambda self: self.held)
    @rule(
        which=some,
        state=st.sampled_from([state for state in JobState if state is not JobState.PARKED]),
        delay=delays,
        crash=st.sampled_from([None, None, False, True]),
        forged=st.sampled_from(["", "", "", "session", "attempt"]),
    )
    def complete(self, which: int, state: JobState, delay: timedelta, crash: bool | None, forged: str = "") -> None:
        """End an attempt, of now or of long ago; `crash` is None, or whether the crash came after progress."""
        session, job = self.held[-1 - which % min(len(self.held), 12)]
        session = uuid4() if forged == "session" else session
        job = replace(job, attempt=job.attempt + which % 3 - 1) if forged == "attempt" else job
        now = self.job(job.id)
        owned = (now.state, now.attempt, now.session) == (JobState.RUNNING, job.attempt, session)
        before = None if owned else self.snapshot()
        charged = crash is None and not state.final
        if charged and job.failures + 1 >= job.max_attempts:
            state = JobState.FAILED
        done = Completion(
            job.id, job.attempt, state, result="1", delay=delay, charged=charged,
            lone_crash=crash is not None, progressed=bool(crash),
        )  # fmt: skip
        assert run(self.stores.jobs.complete_jobs(session, [done, done])) == ([job.id] if owned else [])
        assert owned or self.snapshot() == before

    @rule(
        states=st.lists(st.sampled_from([JobState.SUCCEEDED, JobState.FAILED]), min_size=1, max_size=4),
        retry=st.booleans(),
    )
    def finish_a_round(self, states: list[JobState], retry: bool) -> None:
        """Submit an urgent batch, end what a worker claims then, close what is done; perhaps retry the failures."""
        self.submit(JobSpec("work", "left", priority=0), len(states), None, callback=True)
        before = len(self.held)
        self.claim_as_a_live_worker("left", len(states), twice=False)
        for (session, job), state in zip(self.held[before:], states, strict=False):
            done = Completion(job.id, job.attempt, state, charged=state is JobState.FAILED)
            assert run(self.stores.jobs.complete_jobs(session, [done])) == [job.id]
        self.close_batches()
        for batch_id in self.batches[-3:] if retry else ():
            with suppress(ConflictError):
                run(self.stores.batches.retry_failed(batch_id))

    @precondition(lambda self: self.held)
    @rule(which=some, name=st.sampled_from("st"), value=st.integers(0, 3).map(str))
    def save_step(self, which: int, name: str, value: str) -> None:
        session, job = self.held[which % len(self.held)]
        now = self.job(job.id)
        call = self.stores.jobs.save_step(job.id, attempt=job.attempt, session=session, name=name, value=value)
        if (now.state, now.attempt, now.session) != (JobState.RUNNING, job.attempt, session):
            with pytest.raises(FenceLostError):
                run(call)
            return
        assert run(call) == self.steps.setdefault((job.id, name), value)

    # Operators and sweeps

    @precondition(lambda self: self.seen)
    @rule(which=some, retry=st.booleans())
    def steer_job(self, which: int, retry: bool) -> None:
        job_id = sorted(self.seen)[which % len(self.seen)]
        if not retry:
            run(self.stores.control.cancel_job(job_id))
            return
        before = self.snapshot()
        try:
            new = run(self.stores.control.retry_job(job_id))
            assert run(self.stores.control.retry_job(job_id)) == new
            assert self.job(new).retry_of == job_id
        except (InvalidInputError, ConflictError):
            assert self.snapshot() == before

    @rule(queue=queues, paused=st.sampled_from([True, False, False]))
    def pause(self, queue: str, paused: bool) -> None:
        run(self.stores.control.set_queue_paused(queue, paused=paused))
        self.paused = self.paused | {queue} if paused else self.paused - {queue}
        if paused:
            self.claim_as_a_live_worker(queue, 1, twice=False)

    @rule(key=st.sampled_from(KEYS), cap=st.integers(0, 3))
    def cap(self, key: str, cap: int) -> None:
        run(self.stores.control.set_caps({key: cap}))
        self.caps[key] = cap

    @rule(seconds=st.sampled_from([0.5, 2, 2, 6, 13, 40]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    @rule(limit=counts)
    def stage(self, limit: int) -> None:
        run(self.stores.jobs.stage_jobs(limit=limit))

    @rule()
    def rescue(self) -> None:
        run(self.stores.jobs.rescue_jobs(limit=ALL))
        alive = {view.id for view in run(self.stores.inspect.list_sessions()) if view.alive}
        assert all(job.session in alive for job in self.jobs() if job.state is JobState.RUNNING)

    @rule(which=some, again=st.booleans())
    def lead(self, which: int, again: bool = False) -> None:
        session = self.workers[which % len(self.workers)]
        if again and self.terms:
            run(self.stores.sessions.resign(self.terms[which % len(self.terms)]))
        term = run(self.stores.sessions.lead(session, lease=LEASE))
        if term is not None:
            assert not self.terms or term.term >= self.terms[-1].term
            assert term in self.terms or term.term not in {old.term for old in self.terms}
            self.terms.append(term)

    @rule(which=some, overdue=st.booleans())
    def sweep(self, which: int, overdue: bool) -> None:
        """Sweep as the leader of now, or of a term that is over and may do nothing."""
        term, before = self.terms[which % len(self.terms)], self.snapshot()
        if overdue:
            run(self.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=ALL, term=term))
        else:
            self.note_closed(
                run(self.stores.batches.sweep_batches(term=term, seal_timeout=30 * SECOND, limit=ALL))
            )  # fmt: skip
        assert term == self.terms[-1] or self.snapshot() == before

    # What has to hold

    @invariant()
    def everything_adds_up(self) -> None:
        """Check all invariants over one reading of the jobs."""
        jobs = self.jobs()
        self.every_accepted_job_is_in_one_state(jobs)
        self.final_rows_stand_and_attempts_never_fall(jobs)
        self.sessions_use_as_many_slots_as_their_running_jobs(jobs)
        self.waiting_and_finished_jobs_are_held_by_nobody(jobs)
        self.steps_stand()
        self.batches_add_up_and_fire_once_per_close(jobs)

    def every_accepted_job_is_in_one_state(self, jobs: list[JobView]) -> None:
        assert len({job.id for job in jobs}) == len(jobs)
        assert set(self.seen) <= {job.id for job in jobs}
        counted: Counter[str] = Counter()
        for queue in run(self.stores.inspect.queue_stats()):
            counted.update({state.value: getattr(queue, state.value) for state in JobState})
        assert +counted == Counter(job.state.value for job in jobs)

    def final_rows_stand_and_attempts_never_fall(self, jobs: list[JobView]) -> None:
        for job in jobs:
            was = self.seen.get(job.id)
            if was is not None:
                assert job == was or not was.state.final
                assert job.attempt >= was.attempt
                assert (job.failures, job.crashes) >= (was.failures, 0)
                assert job.failures <= job.max_attempts
            self.seen[job.id] = job

    def sessions_use_as_many_slots_as_their_running_jobs(self, jobs: list[JobView]) -> None:
        running = Counter(job.session for job in jobs if job.state is JobState.RUNNING)
        sessions = {view.id: view.running for view in run(self.stores.inspect.list_sessions())}
        assert sessions == {session: running[session] for session in sessions}
        assert set(running) <= set(sessions)

    def waiting_and_finished_jobs_are_held_by_nobody(self, jobs: list[JobView]) -> None:
        for job in jobs:
            assert (job.finished_at is not None) == job.state.final
            if job.state in (JobState.READY, JobState.SCHEDULED):
                assert (job.session, job.started_at) == (None, None)
            attempts = [record.attempt for record in run(self.stores.inspect.get_attempts(job.id))]
            assert attempts == sorted(set(attempts))
            assert all(attempt <= job.attempt for attempt in attempts)

    def steps_stand(self) -> None:
        for (job_id, name), value in self.steps.items():
            assert run(self.stores.jobs.load_steps(job_id))[name] == value

    def batches_add_up_and_fire_once_per_close(self, jobs: list[JobView]) -> None:
        # A callback that somebody retries by hand is a job of theirs, not a second callback of the close.
        callbacks = Counter(job.args["args"][0] for job in jobs if job.task == "callback" and job.retry_of is None)
        for batch_id in self.batches:
            progress = run(self.stores.inspect.batch_progress(batch_id))
            items = len(run(self.stores.inspect.batch_args(batch_id)))
            assert progress.done + progress.running + progress.waiting == items
            assert progress.total in (None, items)
            if self.batch_state(batch_id) is BatchState.CLOSED:
                assert progress.done == items == progress.total
            assert callbacks[str(batch_id)] == (self.closings[batch_id] if batch_id in self.announced else 0)

    def teardown(self) -> None:
        """When faults stop, everything comes to an end: no job waits for ever, no batch stays open."""
        if not hasattr(self, "stores"):
            return
        for queue in QUEUES:
            run(self.stores.control.set_queue_paused(queue, paused=False))
        run(self.stores.control.set_caps(dict.fromkeys(KEYS, ALL)))
        for batch_id in self.batches:
            if self.batch_state(batch_id) in (BatchState.OPEN, BatchState.ABANDONED):
                total = len(run(self.stores.inspect.batch_args(batch_id)))
                run(self.stores.batches.seal_batch(batch_id, total=total))
        for _ in range(3):
            self.clock.advance(60 * SECOND)
            self.work_off()
        assert all(job.state.final for job in self.jobs())
        assert {self.batch_state(batch_id) for batch_id in self.batches} <= {BatchState.CLOSED}
        self.batches_add_up_and_fire_once_per_close(self.jobs())

    def work_off(self) -> None:
        run(self.stores.jobs.rescue_jobs(limit=ALL))
        run(self.stores.jobs.stage_jobs(limit=ALL))
        self.start_worker()
        session = self.workers[-1]
        for queue in (*QUEUES, "callbacks"):
            jobs = run(self.stores.jobs.claim_jobs(Claim(session, queue, ALL, KEYS)))
            done = [Completion(job.id, job.attempt, JobState.SUCCEEDED) for job in jobs]
            assert len(run(self.stores.jobs.complete_jobs(session, done))) == len(jobs)
        term = run(self.stores.sessions.lead(uuid4(), lease=LEASE))
        assert term is not None
        self.note_closed(run(self.stores.batches.sweep_batches(term=term, seal_timeout=LEASE, limit=ALL)))


Core.TestCase.settings = settings(max_examples=70, stateful_step_count=40, database=None)


class TestInvariants(Core.TestCase):  # type: ignore[misc,name-defined]
    """Random operations keep the invariants, and the core comes to rest when they stop."""


def test_a_missing_fence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine can fail: where any session may end an attempt, a stale completion breaks a rule."""
    monkeypatch.setattr(endings, "owned_job", lambda state, job_id, attempt, session: state.running.get(job_id))
    machine = Core()
    machine.open()
    machine.insert(JobSpec("work", "left"), 1, timedelta())
    machine.claim(machine.workers[0], "left", 1, keyed=False)
    _, job = machine.held[0]
    machine.held[0] = (uuid4(), job)

    with pytest.raises(AssertionError):
        machine.complete(0, JobState.SUCCEEDED, timedelta(), None)
