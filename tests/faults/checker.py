"""The verdict over a site after its faults: set algebra over the tables and the log of effects.

It reads the tables themselves, by a connection and statements of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tests.faults.site import Site


@dataclass(frozen=True)
class Verdict:
    """What went wrong; all of it must be empty."""

    #: acknowledged and nowhere to be found
    lost: frozenset[UUID]
    #: acknowledged and not final
    stuck: frozenset[UUID]
    #: in both tables at once
    twice_final: frozenset[UUID]
    #: batches whose rounds and callbacks are not as many
    callbacks: dict[UUID, tuple[int, int]]
    #: ordinals of a batch that are there twice, or not at all
    items: dict[UUID, tuple[int, int]]

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.lost or self.stuck or self.twice_final or self.callbacks or self.items)


async def check(site: Site, acknowledged: Iterable[UUID] = ()) -> Verdict:
    """Return the verdict over every job of the site, those `acknowledged` to a submitter in particular."""
    connection = await asyncpg.connect(site.server.dsn)
    try:
        await connection.execute(f'SET search_path TO "{site.schema}"')
        live = {row["id"] for row in await connection.fetch("SELECT id FROM jobs")}
        final = Counter(row["id"] for row in await connection.fetch("SELECT id FROM finished_jobs"))
        return Verdict(
            lost=frozenset(acknowledged) - live - set(final),
            stuck=frozenset(live),
            twice_final=frozenset(key for key, count in final.items() if count > 1 or key in live),
            callbacks=await _callbacks(connection),
            items=await _items(connection),
        )
    finally:
        await connection.close()


async def _callbacks(connection: asyncpg.Connection) -> dict[UUID, tuple[int, int]]:
    batches = await connection.fetch("SELECT id, round, state FROM batches WHERE on_close IS NOT NULL")
    calls = Counter(
        row["batch"] for row in await connection.fetch(
            "SELECT args -> 'args' ->> 0 AS batch FROM finished_jobs WHERE task = 'report'"
        )
    )  # fmt: skip
    closed = {row["id"]: row["round"] if row["state"] == "closed" else row["round"] - 1 for row in batches}
    return {key: (rounds, calls[str(key)]) for key, rounds in closed.items() if rounds != calls[str(key)]}


async def _items(connection: asyncpg.Connection) -> dict[UUID, tuple[int, int]]:
    rows = await connection.fetch(
        "SELECT b.id, b.total, (SELECT count(*) FROM finished_jobs f WHERE f.batch_id = b.id AND f.retry_of IS NULL)"
        " AS jobs, (SELECT count(DISTINCT ordinal) FROM finished_jobs f WHERE f.batch_id = b.id) AS ordinals"
        " FROM batches b WHERE b.state = 'closed'"
    )
    return {
        row["id"]: (row["jobs"], row["ordinals"]) for row in rows if not row["jobs"] == row["ordinals"] == row["total"]
    }
