"""The machine: all rules, what has to hold after each of them, and that everything comes to an end."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from uuid import UUID, uuid4

from hypothesis.stateful import initialize, invariant

from headrace.model.batch import BatchState
from headrace.model.job import Claim, Completion, JobState, JobView
from tests.machine.batches import UNSEALED
from tests.machine.gates import Gates
from tests.machine.world import ALL, GATES, LEASE, QUEUES, SECOND, first_callback, look


class Core(Gates):
    """Operations of submitters, workers, operators and sweeps, with what has to stay true between them."""

    @initialize()
    def open(self) -> None:
        """Begin with empty stores, one worker and one leader."""
        self.begin()
        self.start_worker()
        self.lead(0)

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
        """No job is lost, none is there twice, and the counts are those of the rows."""
        assert len({job.id for job in jobs}) == len(jobs)
        assert set(self.seen) <= {job.id for job in jobs}
        counted: Counter[str] = Counter()
        for queue in look(self.memory.inspect.queue_stats()):
            counted.update({state.value: getattr(queue, state.value) for state in JobState})
        assert +counted == Counter(job.state.value for job in jobs)

    def final_rows_stand_and_attempts_never_fall(self, jobs: list[JobView]) -> None:
        """Nothing writes to what ended, and the fence only rises."""
        for job in jobs:
            was = self.seen.get(job.id)
            if was is not None:
                assert job == was or not was.state.final
                assert job.attempt >= was.attempt
                assert (job.failures, job.crashes) >= (was.failures, 0)
                assert job.failures <= job.max_attempts
            self.seen[job.id] = job

    def sessions_use_as_many_slots_as_their_running_jobs(self, jobs: list[JobView]) -> None:
        """What a session uses is what runs under it; sessions whose rows are gone are rescued from."""
        running = Counter(job.session for job in jobs if job.state is JobState.RUNNING)
        sessions = {view.id: view.running for view in look(self.memory.inspect.list_sessions())}
        assert sessions == {session: running[session] for session in sessions}
        assert set(running) <= set(self.workers)

    def waiting_and_finished_jobs_are_held_by_nobody(self, jobs: list[JobView]) -> None:
        """Only what runs has a holder, and only what ended has an end."""
        for job in jobs:
            assert (job.finished_at is not None) == job.state.final
            if job.state in (JobState.READY, JobState.SCHEDULED):
                assert (job.session, job.started_at) == (None, None)
            attempts = [record.attempt for record in look(self.memory.inspect.get_attempts(job.id))]
            assert attempts == sorted(set(attempts))
            assert all(attempt <= job.attempt for attempt in attempts)

    def steps_stand(self) -> None:
        """What was stored for a job reads the same ever after."""
        for (job_id, name), value in self.steps.items():
            assert look(self.memory.jobs.load_steps(job_id))[name] == value

    def batches_add_up_and_fire_once_per_close(self, jobs: list[JobView]) -> None:
        """Items are counted once, and there are as many callbacks as closes."""
        callbacks = Counter(job.args["args"][0] for job in jobs if first_callback(job))
        for batch_id in self.batches:
            if batch_id not in self.thinned:
                self.batch_adds_up(batch_id)
            closings = self.closings[batch_id] if batch_id in self.announced else 0
            assert callbacks[str(batch_id)] == closings

    def batch_adds_up(self, batch_id: object) -> None:
        """Every item is in one state; those of a closed batch are done."""
        progress = look(self.memory.inspect.batch_progress(batch_id))  # type: ignore[arg-type]
        items = self.lengths[batch_id]  # type: ignore[index]
        assert progress.done + progress.running + progress.waiting == items
        assert progress.total in (None, items)
        if self.batch_state(batch_id) is BatchState.CLOSED:  # type: ignore[arg-type]
            assert progress.done == items == progress.total

    def teardown(self) -> None:
        """When faults stop, everything comes to an end: no job waits for ever, no batch stays open."""
        if not hasattr(self, "patches"):
            return
        try:
            self.come_to_an_end()
        finally:
            self.patches.undo()
            self.close_stores()

    def come_to_an_end(self) -> None:
        """Let everything go on without faults, and look whether it ends."""
        for queue in (*QUEUES, *GATES):
            self.run(self.stores.control.set_queue_paused(queue, paused=False))
        self.open_gates()
        for batch_id in self.batches:
            self.run(self.stores.batches.resume_batch(batch_id))
            self.run(self.stores.batches.settle_paused(batch_id, limit=ALL))
            if self.batch_state(batch_id) in UNSEALED:
                self.run(self.stores.batches.seal_batch(batch_id, total=self.lengths[batch_id]))
        for _ in range(3):
            self.clock.advance(60 * SECOND)
            self.work_off()
        assert all(job.state.final for job in self.jobs())
        assert {self.batch_state(batch_id) for batch_id in self.batches} <= {BatchState.CLOSED}
        self.batches_add_up_and_fire_once_per_close(self.jobs())

    def work_off(self) -> None:
        """Do once what workers and the leader do all the time."""
        self.run(self.stores.jobs.rescue_jobs(limit=ALL))
        self.run(self.stores.jobs.stage_jobs(limit=ALL))
        self.start_worker()
        session = self.workers[-1]
        for queue in (*QUEUES, "callbacks"):
            jobs = self.run(self.stores.jobs.claim_jobs(Claim(session, queue, ALL)))
            done = [Completion(job.id, job.attempt, JobState.SUCCEEDED) for job in jobs]
            assert len(self.run(self.stores.jobs.complete_jobs(session, done))) == len(jobs)
        self._work_off_gates(session)
        term = self.run(self.stores.sessions.lead(uuid4(), lease=LEASE))
        assert term is not None
        sweep = self.stores.batches.sweep_batches(term=term, seal_timeout=timedelta(seconds=12), limit=ALL)
        self.note_closed(self.run(sweep))

    def _work_off_gates(self, session: UUID) -> None:
        """Admit and end until nothing more passes: one job of a key, or one probe, makes room for the next."""
        for queue in GATES:
            while True:
                admitted = self.run(self.gate.admit_jobs(Claim(session, queue, ALL)))
                jobs = admitted.jobs if admitted.gated else self.run(
                    self.stores.jobs.claim_jobs(Claim(session, queue, ALL))
                )  # fmt: skip
                if not jobs:
                    break
                done = [Completion(job.id, job.attempt, JobState.SUCCEEDED) for job in jobs]
                assert len(self.run(self.stores.jobs.complete_jobs(session, done))) == len(jobs)
