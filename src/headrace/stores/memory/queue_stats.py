"""One pass over all jobs, counted by queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain

from headrace.model.job import JobState
from headrace.model.priority import head_start
from headrace.model.stats import QueueStats
from headrace.stores.memory.rows import Finished, Job, QueueSetting
from headrace.stores.memory.state import State

RATE_WINDOW = timedelta(minutes=1)


def queue_stats(state: State) -> list[QueueStats]:
    """Return every queue that has jobs, live workers or a setting, by name."""
    counts: Counter[tuple[str, str]] = Counter()
    oldest: dict[str, datetime] = {}
    since = state.now() - RATE_WINDOW
    for job, final in _all_jobs(state):
        queue = job.spec.queue
        counts[queue, (final.state if final else job.state).value] += 1
        counts[queue, "in"] += job.created_at > since
        counts[queue, "out"] += final is not None and final.finished_at > since
        if final is None and job.state is JobState.READY:
            oldest[queue] = min(_ready_at(job), oldest.get(queue, state.now()))
    for session, row in state.sessions.items():
        counts.update((queue, "workers") for queue in row.new.queues if state.alive(session))
    names = {queue for queue, _ in counts} | set(state.queues)
    return [_stats(state, name, counts, oldest.get(name)) for name in sorted(names)]


def _all_jobs(state: State) -> Iterator[tuple[Job, Finished | None]]:
    return chain(((job, None) for job in state.jobs.values()), ((row.job, row) for row in state.finished.values()))


def _ready_at(job: Job) -> datetime:
    assert job.sort_at is not None
    return job.sort_at + head_start(job.spec.priority)


def _stats(state: State, name: str, counts: Counter[tuple[str, str]], oldest: datetime | None) -> QueueStats:
    setting = state.queues.get(name, QueueSetting())
    by_state = {job_state.value: counts[name, job_state.value] for job_state in JobState}
    return QueueStats(
        name=name,
        oldest_ready_age=None if oldest is None else state.now() - oldest,
        rate_in=counts[name, "in"] / RATE_WINDOW.total_seconds(),
        rate_out=counts[name, "out"] / RATE_WINDOW.total_seconds(),
        live_workers=counts[name, "workers"],
        paused=setting.paused,
        paused_reason=setting.reason,
        closed=setting.closed,
        alarm_size=setting.alarm.size,
        alarm_age=setting.alarm.age,
        estimated=(),
        **by_state,
    )
