"""Rules of what is set and counted of queues: their intake, their alarms, what waits in them and what failed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from headrace.model.backlog import NO_ALARM, Alarm, QueueState
from headrace.model.dead_letter import DeadLetter, FailedAt
from headrace.model.job import JobState
from tests.machine.operators import Operators
from tests.machine.world import GATES, QUEUES, SECOND, counts, look

ALARMS = (NO_ALARM, Alarm(2), Alarm(age=3 * SECOND), Alarm(1, 6 * SECOND))
every_queue = st.sampled_from([*QUEUES, *GATES])


class Backlogs(Operators):
    """Intakes close and open, alarms are set, and counts are those of the rows."""

    def begin(self) -> None:
        """Begin with nothing set of any queue."""
        super().begin()
        #: What was set of each queue, but for its pause.
        self.settings: dict[str, QueueState] = {}

    @rule(queue=every_queue, closed=st.booleans())
    def close_intake(self, queue: str, closed: bool) -> None:
        """Close the intake of a queue or open it: who enqueues asks, the store goes on taking jobs."""
        self.run(self.stores.control.set_queue_closed(queue, closed=closed))
        self.settings[queue] = replace(self.settings.get(queue, QueueState()), closed=closed)

    @rule(alarms=st.dictionaries(every_queue, st.sampled_from(ALARMS), max_size=2))
    def set_alarms(self, alarms: dict[str, Alarm]) -> None:
        """Set alarms; queues that are not named keep theirs."""
        self.run(self.stores.control.set_alarms(alarms))
        for queue, alarm in alarms.items():
            self.settings[queue] = replace(self.settings.get(queue, QueueState()), alarm=alarm)

    @rule()
    def read_settings(self) -> None:
        """Read what is set of queues, as those who enqueue do."""
        self.run(self.stores.control.queue_states())

    @invariant()
    def settings_stand(self) -> None:
        """Closing, pausing and alarms are apart, and nothing else that happens changes them."""
        states = look(self.memory.control.queue_states())
        for queue in (*QUEUES, *GATES):
            wanted = replace(self.settings.get(queue, QueueState()), paused=queue in self.paused)
            assert replace(states.get(queue, QueueState()), paused_reason=None) == wanted

    @rule(queue=every_queue, at_most=st.sampled_from([0, 1, 3, 1_000]))
    def count_backlog(self, queue: str, at_most: int) -> None:
        """Count what waits of a queue, up to a bound, and what is not final: as many as there are rows."""
        rows = Counter(job.state for job in self.jobs() if job.queue == queue and not job.state.final)
        waiting = rows[JobState.READY] + rows[JobState.SCHEDULED]
        assert self.run(self.stores.inspect.waiting_jobs(queue, at_most=at_most)) == min(waiting, at_most)
        assert +Counter(self.run(self.stores.inspect.live_jobs(queue))) == rows

    @rule(limit=counts, task=st.sampled_from([None, "work", "gated"]), within=st.sampled_from([None, 6 * SECOND]))
    def page_dead_letters(self, limit: int, task: str | None, within: timedelta | None) -> None:
        """Read the dead letters of all queues page by page: each failed job that was not retried once, newest first."""
        since = None if within is None else self.clock.now() - within
        letters: list[DeadLetter] = []
        before: FailedAt | None = None
        while True:
            page = self.run(self.stores.inspect.dead_letters(task=task, within=within, before=before, limit=limit))
            letters += page.letters
            if page.before is None:
                break
            assert before is None or page.before < before
            before = page.before
        jobs = self.jobs()
        retried = {job.retry_of for job in jobs}
        dead = [job for job in jobs if job.state is JobState.FAILED and job.id not in retried]
        dead = [job for job in dead if task in (None, job.task)]
        wanted = {job.id for job in dead if since is None or (job.finished_at and job.finished_at >= since)}
        assert {letter.id for letter in letters} == wanted
        places = [(letter.finished_at, letter.id) for letter in letters]
        assert places == sorted(set(places), reverse=True)
