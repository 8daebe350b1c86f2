"""Read models from memory."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from heapq import nlargest
from itertools import chain, islice
from operator import attrgetter
from uuid import UUID

from headrace.model.attempt_log import AttemptLog, decode_log
from headrace.model.batch import BatchView, ItemPage, Progress
from headrace.model.capability import Capability
from headrace.model.dead_letter import DeadLetter, DeadLetterPage, FailedAt
from headrace.model.errors import InvalidInputError
from headrace.model.item_states import BatchStates
from headrace.model.job import AttemptRecord, JobState, JobView, Made
from headrace.model.session import SessionView
from headrace.model.stats import QueueStats, StoreInfo
from headrace.stores.memory import item_states
from headrace.stores.memory.batches import find_batch, key_scope
from headrace.stores.memory.closing import UNSTARTED
from headrace.stores.memory.intake import known_key
from headrace.stores.memory.queue_stats import queue_stats
from headrace.stores.memory.rows import Finished, Job
from headrace.stores.memory.state import State, atomic
from headrace.stores.memory.views import (
    batch_item,
    batch_view,
    dead_letter,
    failed_at,
    final_attempt,
    job_view,
    session_view,
)

_WAITING = (JobState.READY, JobState.SCHEDULED)
_CURSOR = re.compile(r"[0-9]{1,19}")


class MemoryInspect:
    """`ports.inspect.Inspect` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state

    def _row(self, job_id: UUID) -> Job | Finished | None:
        return self._state.jobs.get(job_id) or self._state.finished.get(job_id)

    @atomic
    async def get_job(self, job_id: UUID) -> JobView | None:
        """Return a job."""
        row = self._row(job_id)
        return None if row is None else job_view(row)

    @atomic
    async def get_attempts(self, job_id: UUID) -> list[AttemptRecord]:
        """Return the ended attempts of a job."""
        row = self._state.finished.get(job_id)
        last = None if row is None else final_attempt(row)
        return [*self._state.attempts.get(job_id, ()), *([] if last is None else [last])]

    @atomic
    async def attempt_logs(self, job_id: UUID) -> list[AttemptLog]:
        """Return what was logged in the attempts of a job."""
        return [decode_log(*kept) for kept in sorted(self._state.logs.get(job_id, {}).items())]

    @atomic
    async def final_jobs(self, job_ids: Sequence[UUID]) -> dict[UUID, JobView]:
        """Return those jobs that are final."""
        rows = (self._state.finished.get(job_id) for job_id in job_ids)
        return {row.job.id: job_view(row) for row in rows if row is not None}

    @atomic
    async def known_jobs(self, job_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Return those ids that exist."""
        return frozenset(job_id for job_id in job_ids if self._row(job_id) is not None)

    @atomic
    async def list_jobs(  # noqa: PLR0913 - keyword-only
        self,
        *,
        state: JobState | None = None,
        queue: str | None = None,
        task: str | None = None,
        batch_id: UUID | None = None,
        before: Made | None = None,
        limit: int = 50,
        brief: bool = False,
    ) -> list[JobView]:
        """Return jobs, newest first, from those made before `before`."""
        rows: Iterator[Job | Finished] = chain(self._state.jobs.values(), self._state.finished.values())
        chosen = (
            row
            for row in rows
            if (state is None or row.state is state)
            and (queue is None or _job(row).spec.queue == queue)
            and (task is None or _job(row).spec.task == task)
            and (batch_id is None or _job(row).batch_id == batch_id)
            and (before is None or (_job(row).created_at, _job(row).id) < before)
        )
        newest = nlargest(limit, chosen, key=lambda row: (_job(row).created_at, _job(row).id))
        return [job_view(row, brief=brief) for row in newest]

    @atomic
    async def dead_letters(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        within: timedelta | None = None,
        before: FailedAt | None = None,
        limit: int = 500,
    ) -> DeadLetterPage:
        """Return failed jobs that were not retried, newest first."""
        since = None if within is None else self._state.now() - within
        failed = (
            row
            for row in self._state.finished.values()
            if row.state is JobState.FAILED
            and (queue is None or row.job.spec.queue == queue)
            and (since is None or row.finished_at >= since)
            and (before is None or failed_at(row) < before)
        )
        rows = nlargest(limit, failed, key=failed_at)
        wanted = (row for row in rows if task in (None, row.job.spec.task) and row.job.id not in self._state.retries)
        return DeadLetterPage(
            letters=tuple(map(dead_letter, wanted)),
            looked_at=len(rows),
            before=failed_at(rows[-1]) if len(rows) == limit else None,
        )

    @atomic
    async def queue_stats(self) -> list[QueueStats]:
        """Return the queues."""
        return queue_stats(self._state)

    @atomic
    async def waiting_jobs(self, queue: str, *, at_most: int) -> int:
        """Count what waits of a queue, up to a bound."""
        waiting = (job for job in self._state.jobs.values() if job.spec.queue == queue and job.state in _WAITING)
        return sum(1 for _ in islice(waiting, at_most))

    @atomic
    async def live_jobs(self, queue: str) -> dict[JobState, int]:
        """Count what is not final of a queue."""
        return dict(Counter(job.state for job in self._state.jobs.values() if job.spec.queue == queue))

    @atomic
    async def list_sessions(self) -> list[SessionView]:
        """Return sessions, live ones first, then by age."""
        running = Counter(job.session for job in self._state.running.values())
        views = [
            session_view(row, alive=self._state.alive(session), running=running[session])
            for session, row in self._state.sessions.items()
        ]
        return sorted(views, key=lambda view: (not view.alive, view.started_at))

    @atomic
    async def get_batch(self, batch_id: UUID) -> BatchView | None:
        """Return a batch."""
        batch = self._state.batches.get(batch_id)
        return None if batch is None else batch_view(batch)

    @atomic
    async def find_batch(self, task: str, key: str) -> BatchView | None:
        """Return the batch of a key."""
        stored = known_key(self._state, key_scope(task), key)
        return None if stored is None else batch_view(self._state.batches[stored.id])

    @atomic
    async def list_batches(self, *, before: Made | None = None, limit: int = 50) -> list[BatchView]:
        """Return batches, newest first, from those made before `before`."""
        views = map(batch_view, self._state.batches.values())
        older = (view for view in views if before is None or (view.created_at, view.id) < before)
        return nlargest(limit, older, key=attrgetter("created_at", "id"))

    @atomic
    async def batch_progress(self, batch_id: UUID) -> Progress:
        """Count a batch's items."""
        batch = find_batch(self._state, batch_id)
        live = Counter(job.state for job in batch.live.values())
        return Progress(
            total=batch.total,
            succeeded=batch.counts[JobState.SUCCEEDED],
            failed=batch.counts[JobState.FAILED],
            cancelled=batch.counts[JobState.CANCELLED],
            running=live[JobState.RUNNING],
            waiting=sum(live[state] for state in UNSTARTED),
        )

    @atomic
    async def read_items(self, batch_id: UUID, *, cursor: str, limit: int) -> ItemPage:
        """Return finished items in the order of their commits."""
        if cursor and not _CURSOR.fullmatch(cursor):
            raise InvalidInputError("cursor", "must be one that an earlier page gave", cursor)
        batch = self._state.batches.get(batch_id)
        if batch is None:
            return ItemPage((), cursor)
        start = bisect_right(batch.ended, int(cursor or 0), key=attrgetter("commit"))
        rows = batch.ended[start : start + limit]
        items = tuple(batch_item(row, retried=row.job.id in self._state.retries) for row in rows)
        return ItemPage(items, items[-1].cursor if items else cursor)

    @atomic
    async def batch_args(self, batch_id: UUID) -> dict[int, str]:
        """Return the arguments of a batch by ordinal."""
        batch = self._state.batches.get(batch_id)
        jobs = [] if batch is None else [*(row.job for row in batch.ended), *batch.live.values()]
        return {job.ordinal: job.args for job in jobs if job.ordinal is not None}

    @atomic
    async def batch_states(self, batch_id: UUID, *, first: int, limit: int) -> BatchStates:
        """Return what the items of a batch are."""
        return item_states.batch_states(self._state, batch_id, first=first, limit=limit)

    @atomic
    async def item_jobs(self, batch_id: UUID, ordinal: int, *, limit: int) -> list[JobView]:
        """Return the tries of one item of a batch."""
        return item_states.item_jobs(self._state, batch_id, ordinal, limit=limit)

    @atomic
    async def batch_dead_letters(self, batch_id: UUID, *, limit: int) -> list[DeadLetter]:
        """Return items of a batch that failed."""
        return item_states.batch_dead_letters(self._state, batch_id, limit=limit)

    @atomic
    async def store_info(self) -> StoreInfo:
        """Say what this store is."""
        return StoreInfo(
            kind="memory",
            version="1",
            schema_version=1,
            durable=False,
            notes=("nothing survives this process", "other processes cannot see it"),
            now=self._state.now(),
            capabilities=frozenset({Capability.HINTS}),
        )


def _job(row: Job | Finished) -> Job:
    return row.job if isinstance(row, Finished) else row
