"""The sweeps over running jobs: taking back those of ended sessions, ending those beyond their time.

Running rows have no index (it would cost every job 10 to 20 %), so a sweep reads ranges of the table's pages. No
statement reads more than `SLICE` of them, whatever the size of the table. While no session has ended, each sweep only
patrols the next few pages: the net under rows that no search can know of, such as those of a session that is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace.model import crashes
from headrace.model.farm import BEGUN
from headrace.model.session import LeaderTerm
from headrace.model.stats import Rescued
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.rows import encode_error
from headrace.stores.postgres.terms import term_values

#: What the sweeps say of attempts.
ERRORS = {
    "rescue_jobs": {
        "error": encode_error(crashes.WORKER_LOST), "begun": BEGUN, "begun_error": encode_error(crashes.EXECUTOR_LOST),
    },
    "fail_overdue_jobs": {"error": encode_error(crashes.OVERDUE)},
}  # fmt: skip

#: Pages of 8 KiB that one statement reads: about 90,000 rows, 10 ms.
SLICE = 2_000
#: Pages that a sweep without a reason reads.
PATROL = 100
#: A session is swept clean only this long after its end: claims that saw it alive may commit late.
SWEPT_AFTER = timedelta(minutes=1)


@dataclass(slots=True)
class _Search:
    """A search through the whole table, which may take several sweeps when it finds much."""

    began_at: datetime
    page: int = 0


class Sweeper:
    """Remembers how far the searches of this process are."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._search: _Search | None = None
        self._patrol = self._overdue = 0

    async def rescue(self, *, limit: int) -> Rescued:
        """Do what `JobStore.rescue_jobs` promises."""
        found = await self._database.fetch_one("find_ended")
        assert found is not None
        if self._search is None and found["due"]:
            self._search = _Search(found["began_at"])
        if self._search is not None:
            return rescued(await self._continue(self._search, found["pages"], limit))
        rows, self._patrol = await self._sweep_from(self._patrol, found["pages"], PATROL, "rescue_jobs", limit=limit)
        return rescued(rows)

    async def fail_overdue(self, *, grace: timedelta, limit: int, term: LeaderTerm) -> Rescued:
        """Do what `JobStore.fail_overdue_jobs` promises, for the next slice of the table."""
        pages = await self._database.fetch_one("count_pages")
        assert pages is not None
        rows, self._overdue = await self._sweep_from(
            self._overdue, pages["jobs"], SLICE, "fail_overdue_jobs",
            limit=limit, grace=grace, **term_values(term),
        )  # fmt: skip
        return rescued(rows)

    async def _continue(self, search: _Search, pages: int, limit: int) -> list[Any]:
        """Go on with a search until it is through, or has found `limit` rows and must go on later."""
        rows: list[Any] = []
        while (page := search.page) < pages:
            rows += await self._slice("rescue_jobs", page, page + SLICE, limit=limit - len(rows))
            if len(rows) >= limit:
                return rows
            # Workers of one process share this search: neither may make it skip a slice.
            search.page = max(search.page, page + SLICE)
        await self._database.fetch("mark_swept", began_at=search.began_at, after=SWEPT_AFTER)
        if self._search is search:
            self._search = None
        return rows

    async def _sweep_from(
        self, page: int, pages: int, count: int, name: str, *, limit: int, **values: Any
    ) -> tuple[list[Any], int]:
        """Sweep `count` pages from `page` on; return the rows and where to go on."""
        start = page if page < pages else 0
        rows = await self._slice(name, start, start + count, limit=limit, **values)
        return rows, start if len(rows) >= limit else start + count

    async def _slice(self, name: str, first: int, end: int, **values: Any) -> list[Any]:
        return await self._database.fetch(name, first_page=first, end_page=end, **ERRORS[name], **values)


def rescued(rows: Sequence[Any]) -> Rescued:
    """Return what a sweep did; each row says the verdict on one job."""
    released = [row for row in rows if row["verdict"] == "ready"]
    ended = [row for row in rows if row["verdict"] != "ready"]
    return Rescued(
        released=tuple(row["id"] for row in released),
        failed=tuple(row["id"] for row in ended if row["verdict"] == "failed"),
        queues=frozenset(row["queue"] for row in released),
        batches=frozenset(row["batch_id"] for row in ended if row["batch_id"] is not None),
    )
