"""The inspect port on Redis: read models for handles, the command line and the service."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from headrace.model.attempt_log import AttemptLog, decode_log
from headrace.model.backlog import QueueState
from headrace.model.batch import BatchItem, BatchView, ItemPage, Progress
from headrace.model.capability import Capability
from headrace.model.dead_letter import DeadLetter, DeadLetterPage, FailedAt
from headrace.model.errors import InvalidInputError
from headrace.model.item_states import BatchStates
from headrace.model.job import AttemptRecord, JobState, JobView, Made
from headrace.model.session import SessionView
from headrace.model.stats import QueueStats, StoreInfo
from headrace.ports.clock import Clock
from headrace.stores.redis import item_states
from headrace.stores.redis.batch_store import no_batch
from headrace.stores.redis.checks import ServerFacts, read_facts
from headrace.stores.redis.connection import Server
from headrace.stores.redis.control_store import RedisControlStore
from headrace.stores.redis.epoch import LAYOUT, read_identity
from headrace.stores.redis.listing import Wanted, before_words, find_jobs
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import instant, micros, parse_id, span
from headrace.stores.redis.views import (
    attempt_record,
    batch_item,
    batch_view,
    dead_letter,
    fields,
    final_attempt,
    job_view,
    session_view,
)

#: What one script reads at most: rows of fixed size, and rows with texts of the caller's.
PAGE, TEXTS = 500, 200
RATE_WINDOW = timedelta(minutes=1)
_CURSOR = re.compile(r"[0-9]{1,15}")


class RedisInspect:
    """Reads only. `listening` tells whether hints are heard, `clock` replaces the server's, for tests."""

    def __init__(
        self, namespace: Namespace, server: Server, *, listening: Callable[[], bool], clock: Clock | None = None
    ) -> None:
        self._namespace, self._server, self._listening, self._clock = namespace, server, listening, clock

    async def get_job(self, job_id: UUID) -> JobView | None:
        """Return a job, finished or not."""
        jobs = await self._read_jobs([job_id.hex])
        return jobs[0] if jobs else None

    async def get_attempts(self, job_id: UUID) -> list[AttemptRecord]:
        """Return the ended attempts of a job, oldest first, the final one included."""
        records = [attempt_record(text) for text in await self._namespace.run("get_attempts", job_id.hex)]
        job = await self.get_job(job_id)
        last = None if job is None else final_attempt(job)
        return records if last is None else [*records, last]

    async def attempt_logs(self, job_id: UUID) -> list[AttemptLog]:
        """Return what was logged in the attempts of a job, oldest first."""
        kept = fields(await self._namespace.run("get_attempt_logs", job_id.hex))
        return sorted((decode_log(int(each), text) for each, text in kept.items()), key=lambda log: log.attempt)

    async def final_jobs(self, job_ids: Sequence[UUID]) -> dict[UUID, JobView]:
        """Return those of `job_ids` that are final."""
        jobs = await self._read_jobs([job_id.hex for job_id in job_ids], "final")
        return {job.id: job for job in jobs}

    async def _read_jobs(self, ids: Sequence[str], how: str = "") -> list[JobView]:
        """Return those of `ids` that exist; `how`: "final" for final ones only, "brief" without what may be large."""
        jobs: list[JobView] = []
        place = 0
        while place < len(ids):
            page = ids[place : place + TEXTS]
            seen, rows = await self._namespace.run("read_jobs", how, *page)
            jobs += [job_view(job_id, fields(row), brief=how == "brief") for job_id, row in rows]
            place += seen
        return jobs

    async def known_jobs(self, job_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Return those of `job_ids` that exist in any state."""
        known: list[str] = []
        for start in range(0, len(job_ids), PAGE):
            known += await self._namespace.run("known_jobs", *(each.hex for each in job_ids[start : start + PAGE]))
        return frozenset(map(parse_id, known))

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
        ids = await find_jobs(self._namespace, Wanted(state, queue, task, batch_id, before), limit=limit)
        # Between finding and reading a job may have moved on.
        return [
            job
            for job in await self._read_jobs(ids, "brief" if brief else "")
            if state in (None, job.state) and queue in (None, job.queue) and batch_id in (None, job.batch_id)
            if task in (None, job.task)
        ]

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
        place = ("", "") if before is None else (str(micros(before[0])), before[1].hex)
        words = (queue or "", task or "", "" if within is None else span(within), *place, limit)
        looked_at, last_at, last_id, rows = await self._namespace.run("dead_letters", *words)
        letters = tuple(dead_letter(*row) for row in rows)
        return DeadLetterPage(letters, looked_at, (instant(last_at), parse_id(last_id)) if looked_at == limit else None)

    async def queue_stats(self) -> list[QueueStats]:
        """Return every queue that has jobs, live workers or a setting, by name. All figures are counts."""
        names, sessions = await self._namespace.run("list_queues")
        workers = Counter(name for queues in sessions for name in json.loads(queues))
        states = await RedisControlStore(self._namespace).queue_states()
        wanted = sorted({*names, *workers, *states})
        now, stats = await self._now(), []
        for start in range(0, len(wanted), PAGE):
            page = wanted[start : start + PAGE]
            for row in await self._namespace.run("queue_stats", span(RATE_WINDOW), *page):
                name = row[0]
                stats.append(_stats(row, now, workers[name], states.get(name, QueueState())))
        return stats

    async def waiting_jobs(self, queue: str, *, at_most: int) -> int:
        """Count the ready and scheduled jobs of a queue, no further than `at_most`."""
        scheduled, ready, *_ = await self._namespace.run("live_jobs", queue)
        return min(at_most, int(scheduled + ready))

    async def live_jobs(self, queue: str) -> dict[JobState, int]:
        """Count the jobs of a queue that are not final, by state."""
        counts = await self._namespace.run("live_jobs", queue)
        states = (JobState.SCHEDULED, JobState.READY, JobState.RUNNING, JobState.PARKED)
        return {state: count for state, count in zip(states, counts, strict=True) if count}

    async def list_sessions(self) -> list[SessionView]:
        """Return sessions, live ones first, then by age."""
        views: list[SessionView] = []
        while True:
            rows = await self._namespace.run("list_sessions", len(views), PAGE)
            views += map(session_view, rows)
            if len(rows) < PAGE:
                return sorted(views, key=lambda view: (not view.alive, view.started_at))

    async def get_batch(self, batch_id: UUID) -> BatchView | None:
        """Return a batch."""
        batches = await self._read_batches([batch_id.hex])
        return batches[0] if batches else None

    async def find_batch(self, task: str, key: str) -> BatchView | None:
        """Return the batch that was submitted under `key` for `task`."""
        found = await self._namespace.run("find_batch", task, key)
        return None if found is None else await self.get_batch(parse_id(found))

    async def list_batches(self, *, before: Made | None = None, limit: int = 50) -> list[BatchView]:
        """Return batches, newest first, from those made before `before`."""
        batches: list[BatchView] = []
        words, place = before_words(before), 0
        while len(batches) < limit:
            ids = await self._namespace.run("list_batches", *words, place, min(PAGE, limit))
            found = await self._read_batches(ids)
            batches += [view for view in found if before is None or (view.created_at, view.id) < before]
            place += len(ids)
            if not ids:
                break
        return batches[:limit]

    async def _read_batches(self, ids: Sequence[str]) -> list[BatchView]:
        rows = await self._namespace.run("read_batches", *ids)
        return [batch_view(batch_id, fields(row)) for batch_id, row in rows]

    async def batch_progress(self, batch_id: UUID) -> Progress:
        """Count a batch's items by state. Raises NotFoundError."""
        counts = await self._namespace.run("batch_progress", batch_id.hex)
        if counts is None:
            raise no_batch(batch_id)
        total, *rest = counts
        return Progress(None if total < 0 else total, *rest)

    async def read_items(self, batch_id: UUID, *, cursor: str, limit: int) -> ItemPage:
        """Return finished items after `cursor` ("" for the start) in the order they were recorded."""
        if cursor and not _CURSOR.fullmatch(cursor, endpos=len(cursor)):
            raise InvalidInputError("cursor", "must be one that an earlier page gave", cursor)
        items: list[BatchItem] = []
        while len(items) < limit:
            page = min(TEXTS, limit - len(items))
            rows = await self._namespace.run("read_items", batch_id.hex, cursor or "0", page)
            items += map(batch_item, rows)
            cursor = items[-1].cursor if items else cursor
            if not rows:
                break
        return ItemPage(tuple(items), cursor)

    async def batch_args(self, batch_id: UUID) -> dict[int, str]:
        """Return the argument text of each item of a batch by ordinal."""
        return await item_states.batch_args(self._namespace, batch_id)

    async def batch_states(self, batch_id: UUID, *, first: int, limit: int) -> BatchStates:
        """Return what the items of a batch are from ordinal `first` on."""
        return await item_states.batch_states(self._namespace, batch_id, first=first, limit=limit)

    async def item_jobs(self, batch_id: UUID, ordinal: int, *, limit: int) -> list[JobView]:
        """Return the tries of one item of a batch, the newest first."""
        tries = await self._read_jobs(await item_states.item_jobs(self._namespace, batch_id, ordinal))
        return sorted(tries, key=lambda job: (job.created_at, job.id), reverse=True)[:limit]

    async def batch_dead_letters(self, batch_id: UUID, *, limit: int) -> list[DeadLetter]:
        """Return items of a batch that failed and were not retried, the newest first."""
        return await item_states.batch_dead_letters(self._namespace, batch_id, limit=limit)

    async def _now(self) -> datetime:
        if self._clock is not None:
            return self._clock.now()
        seconds, micros = await self._server.call("TIME", read=True)
        return datetime.fromtimestamp(int(seconds), UTC) + timedelta(microseconds=int(micros))

    async def store_info(self) -> StoreInfo:
        """Say what the server is and what it guarantees as it is set up now."""
        facts, identity = await read_facts(self._server), await read_identity(self._server)
        epoch = "no epoch" if identity is None else f"epoch {identity.epoch[:8]} of {identity.created_at:%Y-%m-%d}"
        return StoreInfo(
            kind="redis",
            version=f"{facts.version} ({facts.name})",
            schema_version=LAYOUT,
            durable=facts.aof and facts.fsync == "always",
            notes=(*_notes(facts), f"namespace {self._namespace.root}, {epoch}"),
            now=await self._now(),
            capabilities=_capabilities(facts, hears=self._listening()),
        )


def _stats(row: Sequence[str], now: datetime, workers: int, state: QueueState) -> QueueStats:
    name, *counts = row
    scheduled, ready, running, parked, succeeded, failed, cancelled, came, went = map(int, counts[:9])
    since = counts[9]
    return QueueStats(
        name=name,
        scheduled=scheduled,
        ready=ready,
        running=running,
        parked=parked,
        succeeded=succeeded,
        failed=failed,
        cancelled=cancelled,
        oldest_ready_age=max(now - instant(since), timedelta()) if since else None,
        rate_in=came / RATE_WINDOW.total_seconds(),
        rate_out=went / RATE_WINDOW.total_seconds(),
        live_workers=workers,
        paused=state.paused,
        paused_reason=state.paused_reason,
        closed=state.closed,
        alarm_size=state.alarm.size,
        alarm_age=state.alarm.age,
    )


def _notes(facts: ServerFacts) -> list[str]:
    fsync = {
        "always": "appendfsync always",
        "everysec": "appendfsync everysec: a crash of the machine, or the server's while the disk stalls, can lose 2 s",
        "no": "appendfsync no: a crash of the machine can lose what the system had not yet written, half a minute",
    }
    notes = ["append-only file on" if facts.aof else "no append-only file: a restart loses every job"]
    if facts.aof:
        notes.append(fsync.get(facts.fsync, "appendfsync unknown: the server does not tell"))
    memory = f"{facts.used_memory / facts.maxmemory:.0%} of maxmemory used" if facts.maxmemory else "no maxmemory set"
    followers = "a failover can lose accepted jobs" if facts.replicas else "no replica: no failover"
    return [*notes, f"{memory}, maxmemory-policy {facts.eviction}", f"replication is asynchronous: {followers}"]


def _capabilities(facts: ServerFacts, *, hears: bool) -> frozenset[Capability]:
    has = {
        Capability.SHARED: True,
        Capability.SURVIVES_PROCESSES: True,
        Capability.SURVIVES_SERVER: facts.aof,
        Capability.SURVIVES_MACHINE: facts.aof and facts.fsync == "always",
        Capability.HINTS: hears,
    }
    return frozenset(capability for capability, held in has.items() if held)
