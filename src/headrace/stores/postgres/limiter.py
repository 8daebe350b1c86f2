"""Token buckets in PostgreSQL: those of the gate, for calls that are not jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

from headrace.model.admission import LimitKind
from headrace.model.limits import Level, Rate
from headrace.ports.limiter import Taken
from headrace.stores.postgres.admission import declare_rates
from headrace.stores.postgres.database import Database


class PostgresLimiter:
    """`ports.limiter.Limiter`; each verb is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def declare(self, rates: Mapping[str, Rate]) -> None:
        """Set rates; a bucket that was not known starts empty."""
        await declare_rates(self._database, rates, empty=True)

    async def take(
        self, wanted: Mapping[str, float], *, some: bool = False, least: Mapping[str, float] | None = None
    ) -> Taken:
        """Take all, or of each what is there."""
        names = sorted(wanted)
        units = [wanted[name] for name in names]
        leasts = [(least or {}).get(name, 0.0) for name in names]
        rows = await self._database.fetch("take_units", names=names, units=units, leasts=leasts, some=some)
        unknown = frozenset(names) - {row["name"] for row in rows}
        waits = [row["wait"] for row in rows if row["wait"]]
        wait = (min if some else max)(waits, default=timedelta())
        nothing = not some and (wait > timedelta() or unknown)
        return Taken({} if nothing else {row["name"]: row["units"] for row in rows}, wait, unknown)

    async def give_back(self, units: Mapping[str, float]) -> None:
        """Return units; those of unknown buckets are dropped."""
        names = sorted(units)
        await self._database.fetch("give_units", names=names, units=[units[name] for name in names])

    async def close_bucket(self, name: str, wait: timedelta) -> None:
        """Let nothing pass for some time."""
        await self._database.fetch("close_bucket", name=name, wait=wait)

    async def open_bucket(self, name: str) -> None:
        """End a closing."""
        await self._database.fetch("open_bucket", name=name)

    async def forget(self, name: str) -> None:
        """Remove a bucket."""
        await self._database.fetch("forget_limit", name=name, kinds=[LimitKind.RATE])

    async def levels(self, names: Collection[str]) -> Mapping[str, Level]:
        """Return how buckets stand."""
        rows = await self._database.fetch("read_levels", names=sorted(names))
        return {row["name"]: Level(row["level"], row["closed"]) for row in rows}
