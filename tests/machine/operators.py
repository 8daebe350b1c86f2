"""Rules of operators, of the leader, of the sweeps that every worker does, and of time."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from headrace.model.batch import Slice
from headrace.model.errors import ConflictError, FenceLostError, InvalidInputError, NotFoundError
from headrace.model.job import CancelAnswer, Claim, Completion, JobState
from headrace.model.llm import Answer, StoredAnswer
from headrace.model.session import LeaderTerm
from headrace.model.stats import Pruned, Retention
from tests.machine.workers import Workers
from tests.machine.world import ALL, ARGS, LEASE, SECOND, counts, look, queues, some

#: Short, so that waits of seconds pass them; some waits end exactly with them.
CHANGED = '{"args":["changed"],"kwargs":{}}'
RETENTION = Retention(*(seconds * SECOND for seconds in (12, 18, 6, 24)))


class Operators(Workers):
    """Jobs are steered one by one, queues paused, time passes, and sweeps go round."""

    @precondition(lambda self: self.seen)
    @rule(which=some, retry=st.booleans())
    def steer_job(self, which: int, retry: bool) -> None:
        """Cancel a job, or retry it: once, whoever asks again."""
        job_id = sorted(self.seen)[which % len(self.seen)]
        if not retry:
            was = self.job(job_id).state
            answer = self.run(self.stores.control.cancel_job(job_id))
            assert (answer is CancelAnswer.ALREADY_FINAL) == was.final
            return
        before = self.snapshot()
        try:
            new = self.run(self.stores.control.retry_job(job_id))
            assert self.run(self.stores.control.retry_job(job_id)) == new
            assert self.job(new).retry_of == job_id
        except (InvalidInputError, ConflictError):
            assert self.snapshot() == before

    @rule(queue=queues, limit=counts)
    def retry_queue(self, queue: str, limit: int) -> None:
        """Retry the dead letters of a queue, the oldest first."""
        made = self.run(self.stores.control.retry_queue(queue, limit=limit))
        assert len(made) <= limit
        dead = [self.job(self.job(new).retry_of or new) for new in made]
        assert all((job.state, job.queue) == (JobState.FAILED, queue) for job in dead)

    @rule(queue=queues, limit=counts, text=st.sampled_from([None, CHANGED]))
    def redrive(self, queue: str, limit: int, text: str | None) -> None:
        """Look at the dead letters of a queue and run them again, perhaps with other arguments, each once."""
        page = self.run(self.stores.inspect.dead_letters(queue=queue, limit=limit))
        assert len(page.letters) <= page.looked_at <= limit
        asked = dict.fromkeys([letter.id for letter in page.letters], text)
        made = self.run(self.stores.control.retry_jobs(asked))
        assert all(self.job(new).retry_of == old for old, new in made.items())
        assert not self.run(self.stores.control.retry_jobs(dict.fromkeys(made)))

    @rule(queue=queues, paused=st.sampled_from([True, False, False]))
    def pause(self, queue: str, paused: bool) -> None:
        """Pause a queue or resume it."""
        self.run(self.stores.control.set_queue_paused(queue, paused=paused, reason="upgrade"))
        self.paused = self.paused | {queue} if paused else self.paused - {queue}
        if paused:
            self.claim_as_a_live_worker(queue, 1, twice=False)

    # The waits add up to leases, delays, timeouts and retentions, so that sweeps meet the very instants of their ends.
    @rule(seconds=st.sampled_from([0.5, 1, 2, 3, 3, 6, 12, 40]))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(timedelta(seconds=seconds))

    @rule(limit=counts)
    def stage(self, limit: int) -> None:
        """Move what is due to ready."""
        self.run(self.stores.jobs.stage_jobs(limit=limit))

    @rule()
    def rescue(self) -> None:
        """Take back what ran under dead sessions; then nothing does."""
        self.run(self.stores.jobs.rescue_jobs(limit=ALL))
        alive = {view.id for view in look(self.memory.inspect.list_sessions()) if view.alive}
        assert all(job.session in alive for job in self.jobs() if job.state is JobState.RUNNING)

    @rule(which=some, again=st.booleans())
    def lead(self, which: int, again: bool = False) -> None:
        """Ask for leadership, perhaps after somebody resigned; terms never come again."""
        session = self.workers[which % len(self.workers)]
        if again and self.terms:
            self.run(self.stores.sessions.resign(self.terms[which % len(self.terms)]))
        term = self.run(self.stores.sessions.lead(session, lease=LEASE))
        if term is not None:
            assert not self.terms or term.term >= self.terms[-1].term
            assert term in self.terms or term.term not in {old.term for old in self.terms}
            self.terms.append(term)

    @rule(which=some, what=st.sampled_from(["overdue", "batches", "prune"]))
    def sweep(self, which: int, what: str) -> None:
        """Sweep as the leader of now, or of a term that is over and may do nothing."""
        term = self.terms[-1 - which % min(len(self.terms), 3)]
        before, jobs = self.snapshot(), self.stores.jobs
        match what:
            case "overdue":
                self.run(jobs.fail_overdue_jobs(grace=SECOND, limit=ALL, term=term))
            case "batches":
                sweep = self.stores.batches.sweep_batches(term=term, seal_timeout=30 * SECOND, limit=ALL)
                self.note_closed(self.run(sweep))
            case _:
                self.note_pruned(self.run(jobs.prune_jobs(RETENTION, limit=ALL, term=term)))
        assert term == self.terms[-1] or self.snapshot() == before

    @rule(
        limit=st.sampled_from([1, 3, ALL]),
        queue=st.sampled_from([None, None, "left"]),
        later=st.sampled_from([0, 0, 6, 86_400, 8 * 86_400]),
    )
    def prune(self, limit: int, queue: str | None, later: int) -> None:
        """Prune as an operator, perhaps days later; what is not final stays."""
        self.clock.advance(timedelta(seconds=later))
        live = {job.id for job in self.jobs() if not job.state.final}
        self.note_pruned(self.run(self.stores.jobs.prune_jobs(RETENTION, limit=limit, queue=queue)))
        assert live <= {job.id for job in self.jobs()}

    def note_pruned(self, pruned: Pruned) -> None:
        """Forget what went; answers are kept as long as their retention."""
        self.forget_what_went()
        if pruned.removed.get("answers"):
            old = self.clock.now() - RETENTION.kept_answers
            gone = {key for key in self.answers if look(self.memory.memo.load_answer(key)) is None}
            assert all(self.answers.pop(key)[1] <= old for key in gone)

    @rule(key=st.sampled_from("0123"), text=st.sampled_from(["yes", "no"]))
    def remember(self, key: str, text: str) -> None:
        """Store a paid answer: the first one stands, whoever brings another."""
        answer = StoredAnswer("p", Answer(text=text, model="m"))
        stored = self.run(self.stores.memo.store_answer(key * 64, answer))
        stands, _ = self.answers.setdefault(key * 64, (answer, self.clock.now()))
        assert stored == self.run(self.stores.memo.load_answer(key * 64)) == stands

    @rule()
    def ask_for_what_never_was(self) -> None:
        """Name jobs, batches, sessions and terms that nobody made: an error or nothing, and nothing changes."""
        none, jobs, batches, sessions = uuid4(), self.stores.jobs, self.stores.batches, self.stores.sessions
        before = self.snapshot()
        refused = [
            self.stores.control.cancel_job(none), self.stores.control.retry_job(none),
            batches.append_slice(Slice(none, 0, (ARGS,), "hash")), batches.seal_batch(none, total=0),
            batches.reopen_batch(none, key="0"), batches.retry_failed(none), batches.cancel_batch(none),
            batches.settle_cancelled(none, limit=1), self.stores.inspect.batch_progress(none),
        ]  # fmt: skip
        for call in refused:
            with pytest.raises(NotFoundError):
                self.run(call)
        with pytest.raises(FenceLostError):
            self.run(jobs.save_step(none, attempt=1, session=self.workers[0], name="s", value="1"))
        assert self.run(jobs.complete_jobs(self.workers[0], [Completion(none, 1, JobState.SUCCEEDED)])) == []
        assert self.run(jobs.claim_jobs(Claim(none, "left", 5))) == []
        assert self.run(batches.close_batches([none])) == []
        assert not self.run(sessions.renew_session(none, lease=LEASE, stats={})).alive
        self._sweep_under(LeaderTerm(none, 1))
        self._read(none)
        assert self.snapshot() == before

    def _sweep_under(self, term: LeaderTerm) -> None:
        """Do all that a leader does under a term that was never given."""
        self.run(self.stores.jobs.fail_overdue_jobs(grace=-ALL * SECOND, limit=ALL, term=term))
        self.run(self.stores.batches.sweep_batches(term=term, seal_timeout=timedelta(), limit=ALL))
        everything = Retention(timedelta(), timedelta(), timedelta(), timedelta())
        self.run(self.stores.jobs.prune_jobs(everything, limit=ALL, term=term))
        self.run(self.stores.sessions.resign(term))
        self.run(self.stores.sessions.close_session(term.session))

    def _read(self, none: UUID) -> None:
        read = self.stores.inspect
        assert self.run(read.get_job(none)) is None
        assert self.run(read.get_batch(none)) is None
        assert self.run(read.get_attempts(none)) == []
        assert self.run(read.list_jobs(batch_id=none)) == []
        assert self.run(read.find_batch("work", "nobody's")) is None
        assert not self.run(read.read_items(none, cursor="", limit=5)).items
        assert not self.run(self.stores.jobs.load_steps(none)) and not self.run(read.batch_args(none))
        known = sorted(self.seen)[:5]
        assert self.run(read.known_jobs([none, *known])) == frozenset(known)
        assert none not in self.run(read.final_jobs([none, *known]))
