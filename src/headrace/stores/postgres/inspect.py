"""The inspect port on PostgreSQL: read models for handles, the command line and the service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from uuid import UUID

from headrace.model.attempt_log import AttemptLog, decode_log
from headrace.model.batch import BatchView, ItemPage, Progress
from headrace.model.capability import Capability
from headrace.model.dead_letter import DeadLetter, DeadLetterPage, FailedAt
from headrace.model.item_states import BatchStates
from headrace.model.job import AttemptRecord, JobState, JobView, Made
from headrace.model.session import SessionView
from headrace.model.stats import QueueStats, StoreInfo
from headrace.stores.postgres import figures, item_states, items
from headrace.stores.postgres.database import Database, Row
from headrace.stores.postgres.rounds import no_batch
from headrace.stores.postgres.rows import attempt_record, batch_view, dead_letter, job_view, session_view

#: Rows by id among which jobs of a state or queue are looked for.
WALK = 5_000

#: The clocks of those who submit differ by less.
CLOCK_SKEW = timedelta(seconds=5)
LAST_ID = UUID(int=2**128 - 1)


class PostgresInspect:
    """Reads only. `notes` are what `store_info` says besides what the server tells, `hears` whether hints are heard."""

    def __init__(self, database: Database, notes: Sequence[str] = (), *, hears: Callable[[], bool]) -> None:
        self._database, self._notes, self._hears = database, tuple(notes), hears

    async def get_job(self, job_id: UUID) -> JobView | None:
        """Return a job, finished or not."""
        row = await self._database.fetch_one("get_job", job_id=job_id)
        return None if row is None else job_view(row)

    async def get_attempts(self, job_id: UUID) -> list[AttemptRecord]:
        """Return the ended attempts of a job, oldest first, the final one included."""
        return [attempt_record(row) for row in await self._database.fetch("get_attempts", job_id=job_id)]

    async def attempt_logs(self, job_id: UUID) -> list[AttemptLog]:
        """Return what was logged in the attempts of a job, oldest first."""
        rows = await self._database.fetch("get_attempt_logs", job_id=job_id)
        return [decode_log(row["attempt"], row["log"]) for row in rows]

    async def final_jobs(self, job_ids: Sequence[UUID]) -> dict[UUID, JobView]:
        """Return those of `job_ids` that are final."""
        rows = await self._database.fetch("final_jobs", job_ids=list(job_ids))
        return {row["id"]: job_view(row) for row in rows}

    async def known_jobs(self, job_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Return those of `job_ids` that exist in any state."""
        return frozenset(row["id"] for row in await self._database.fetch("known_jobs", job_ids=list(job_ids)))

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
        wanted = {"state": state, "queue": queue, "task": task, "limit": limit, "brief": brief, **_before(before)}
        if batch_id is None:
            rows = await self._database.fetch("list_jobs", walk=WALK, **wanted)
        else:
            rows = await self._database.fetch("list_batch_jobs", batch_id=batch_id, **wanted)
        return [job_view(row, brief=brief) for row in rows]

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
        before_at, before_id = before or (None, None)
        rows = await self._database.fetch(
            "dead_letters", queue=queue, task=task, within=within, before_at=before_at, before_id=before_id, limit=limit
        )
        last = rows[-1] if len(rows) == limit else None
        return DeadLetterPage(
            letters=tuple(dead_letter(row) for row in rows if row["dead"]),
            looked_at=len(rows),
            before=None if last is None else (last["finished_at"], last["id"]),
        )

    async def queue_stats(self) -> list[QueueStats]:
        """Return every queue that has jobs, live workers or a setting, by name."""
        return await figures.queue_stats(self._database)

    async def waiting_jobs(self, queue: str, *, at_most: int) -> int:
        """Count the ready and scheduled jobs of a queue, no further than `at_most`."""
        row = await self._database.fetch_one("waiting_jobs", queue=queue, at_most=at_most)
        assert row is not None
        return int(row["waiting"])

    async def live_jobs(self, queue: str) -> dict[JobState, int]:
        """Count the jobs of a queue that are not final, by state."""
        rows = await self._database.fetch("live_jobs", queue=queue)
        return {JobState(row["state"]): row["jobs"] for row in rows}

    async def list_sessions(self) -> list[SessionView]:
        """Return sessions, live ones first."""
        pages = await self._database.fetch_one("count_pages")
        assert pages is not None
        rows = await self._database.fetch("list_sessions", pages=pages["jobs"], most=figures.COUNTED_PAGES)
        return [session_view(row) for row in rows]

    async def get_batch(self, batch_id: UUID) -> BatchView | None:
        """Return a batch."""
        row = await self._database.fetch_one("get_batch", batch_id=batch_id)
        return None if row is None else batch_view(row)

    async def find_batch(self, task: str, key: str) -> BatchView | None:
        """Return the batch that was submitted under `key` for `task`."""
        row = await self._database.fetch_one("find_batch", scope=f"batch:{task}", key=key)
        return None if row is None else batch_view(row)

    async def list_batches(self, *, before: Made | None = None, limit: int = 50) -> list[BatchView]:
        """Return batches, newest first, from those made before `before`."""
        return [batch_view(row) for row in await self._database.fetch("list_batches", limit=limit, **_before(before))]

    async def batch_progress(self, batch_id: UUID) -> Progress:
        """Count a batch's items by state. Raises NotFoundError."""
        row = await self._database.fetch_one("batch_progress", batch_id=batch_id)
        if row is None:
            raise no_batch(batch_id)
        return Progress(**dict(row))

    async def read_items(self, batch_id: UUID, *, cursor: str, limit: int) -> ItemPage:
        """Return finished items after `cursor` ("" for the start) in the order they were recorded."""
        return await items.read_items(self._database, batch_id, cursor=cursor, limit=limit)

    async def batch_args(self, batch_id: UUID) -> dict[int, str]:
        """Return the argument text of each item of a batch by ordinal."""
        rows = await self._database.fetch("batch_args", batch_id=batch_id)
        return {row["ordinal"]: row["args"] for row in rows}

    async def batch_states(self, batch_id: UUID, *, first: int, limit: int) -> BatchStates:
        """Return what the items of a batch are from ordinal `first` on."""
        return await item_states.batch_states(self._database, batch_id, first=first, limit=limit)

    async def item_jobs(self, batch_id: UUID, ordinal: int, *, limit: int) -> list[JobView]:
        """Return the tries of one item of a batch, the newest first."""
        rows = await self._database.fetch("list_item_jobs", batch_id=batch_id, ordinal=ordinal, limit=limit)
        return [job_view(row) for row in rows]

    async def batch_dead_letters(self, batch_id: UUID, *, limit: int) -> list[DeadLetter]:
        """Return the newest items of a batch that failed and were not retried."""
        rows = await self._database.fetch("batch_dead_letters", batch_id=batch_id, limit=limit)
        if not rows and await self.get_batch(batch_id) is None:
            raise no_batch(batch_id)
        return [dead_letter(row) for row in rows]

    async def store_info(self) -> StoreInfo:
        """Say what the store is and what it guarantees."""
        row = await self._database.fetch_one("store_info")
        assert row is not None
        durable = row["fsync"] and row["full_page_writes"] and row["synchronous_commit"] not in ("off", "local")
        return StoreInfo(
            kind="postgresql",
            version=row["version"],
            schema_version=row["schema_version"],
            durable=durable,
            notes=(
                f"fsync {'on' if row['fsync'] else 'off: a crash of the machine can lose accepted jobs'}",
                f"synchronous_commit {row['synchronous_commit']}",
                *self._notes,
            ),
            now=row["now"],
            capabilities=self._capabilities(row, durable=durable),
        )

    def _capabilities(self, row: Row, *, durable: bool) -> frozenset[Capability]:
        depends = {
            # Without a synchronous commit the server process holds what it has not yet written.
            Capability.SURVIVES_SERVER: row["synchronous_commit"] != "off",
            Capability.SURVIVES_MACHINE: durable,
            Capability.SURVIVES_FAILOVER: durable and row["synchronous_standby"],
            Capability.HINTS: self._hears(),
        }
        return frozenset(capability for capability in Capability if depends.get(capability, True))


def _before(place: Made | None) -> dict[str, object]:
    """Return a place in a list, and the last id that can be as old: ids begin with milliseconds."""
    if place is None:
        return {"before_at": None, "before_id": None, "top": LAST_ID}
    made_at, last = place
    top = UUID(int=min(last.int + (CLOCK_SKEW // timedelta(milliseconds=1) << 80), LAST_ID.int))
    return {"before_at": made_at, "before_id": last, "top": top}
