"""Each process that makes details is killed once while batches come and go; every batch is looked at afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import asyncpg

from headrace.wiring import migrate
from tests.faults.details_ledger import continued_parts, faults_of, midstream, running_flows
from tests.faults.details_line import DetailsLine
from tests.faults.details_load import Load, Outcome, generate, store_figures
from tests.waiting import wait_until

_LONGEST = timedelta(seconds=180)
#: So often agents are killed until one died between an item and its event: where it is just then is chance.
_TRIES = 5


@dataclass
class Kill:
    """One kill."""

    names: Sequence[str]
    #: Seconds after the begin.
    at: float
    #: How much of what the kill is to hit was at work: parts being written, open streams, running coordinators.
    hit: int | None = None


@dataclass
class Report:
    """What a campaign showed."""

    figures: dict[str, Any] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    started: float = 0.0
    #: Parts that an agent went on with behind items which another had delivered before it died.
    continued: int = 0
    #: What was wrong: with streams, batches, names, records.
    faults: list[str] = field(default_factory=list)
    #: Processes that ended without being killed.
    ended: dict[str, str] = field(default_factory=dict)

    there: set[str] = field(default_factory=set)

    @property
    def killed(self) -> set[str]:
        """Who died."""
        return {name for kill in self.kills for name in kill.names}


def describe(report: Report) -> dict[str, Any]:
    """Return a report as JSON has it."""
    return asdict(report) | {"there": sorted(report.there)}


class Campaign:
    """One run over a line; `each`: batches that end between two kills."""

    def __init__(self, line: DetailsLine, load: Load, victims: Sequence[Sequence[str]], *, each: int) -> None:
        """`victims`: who dies, one after the other; of the names of one entry all die at once."""
        self._line, self._load, self._victims, self._each = line, load, victims, each
        self._client, self._outcome, self._stop = line.client, Outcome(), asyncio.Event()
        self._loading: asyncio.Task[Outcome] | None = None
        self._began = time.monotonic()
        self.report = Report(there={*line.processes, *line.servers})

    async def run(self) -> Report:
        """Kill each victim while batches come and go, let what was begun end, and look at all of it."""
        await migrate(self._line.settings)
        try:
            await self._line.start_all()
            self.report.started = self._now
            self._loading = asyncio.create_task(generate(self._client, self._load, self._stop, self._outcome))
            await self._kill(self._victims[0])
            for names in self._victims[1:]:
                await self._until_delivered()
                await self._kill(names)
            # What is under way now still has to come through all of them.
            self._stop.set()
            await asyncio.wait_for(self._loading, _LONGEST.total_seconds())
            await self._look()
        finally:
            self._line.end()
        return self.report

    @property
    def _now(self) -> float:
        return round(time.monotonic() - self._began, 1)

    async def _until_delivered(self) -> None:
        """Wait until so many more batches have come to their end: what is killed next is at work."""
        due = len(self._outcome.journeys) + self._each

        def delivered() -> bool:
            self._check_load()
            return len(self._outcome.journeys) >= due

        await wait_until(delivered, _LONGEST, message=f"{due} batches to end")

    def _check_load(self) -> None:
        """Raise what a client stumbled over: without them nothing that is waited for comes."""
        if self._loading is not None and self._loading.done():
            self._loading.result()

    async def _kill(self, names: Sequence[str]) -> None:
        # Of agents all have to die: what one writes is not gone on with while it lives.
        midway = names[0] == "agent" and {name for name in self._line.processes if "agent" in name} <= {*names}
        for _ in range(_TRIES):
            # Before it is known who is at work: from then to the kill no time may be lost, or it hits nobody.
            continued = continued_parts(self._line.provider)
            hit = await self._at_work(names[0])
            self.report.kills.append(Kill(names, self._now, hit))
            if "redis" in names:
                assert self._line.redis is not None
                self._line.redis.call("FLUSHALL")
            await asyncio.gather(*(self._line.kill(name) for name in names))
            if not midway or await self._continued(continued):
                return
        raise AssertionError(f"{names} died {_TRIES} times, and not once between an item and its event")

    async def _continued(self, before: int) -> bool:
        """Whether a part is gone on with that was cut off: said when one is, or when its batch must have ended."""
        due = len(self._outcome.journeys) + 2 * self._load.clients

        def told() -> bool:
            self._check_load()
            return continued_parts(self._line.provider) > before or len(self._outcome.journeys) >= due

        await wait_until(told, _LONGEST, message="a part to be gone on with, or the batches to end")
        return continued_parts(self._line.provider) > before

    async def _at_work(self, name: str) -> int | None:
        """Wait until a kill hits what it is to hit, and return how much of it."""
        looks: dict[str, Callable[[asyncpg.Connection], Awaitable[int]]] = {
            "agent": midstream, "worker": running_flows, "service": self._streaming,
        }  # fmt: skip
        if name not in looks:
            return None
        connection = await asyncpg.connect(self._line.postgres.dsn)

        async def at_work() -> int:
            self._check_load()
            return await looks[name](connection)

        try:
            return await wait_until(at_work, _LONGEST, message=f"{name} to be at work")
        finally:
            await connection.close()

    async def _streaming(self, connection: asyncpg.Connection) -> int:
        open_now = self._client.streaming
        # Of one alone the end may have come, and not been read yet.
        return open_now if open_now > 1 else 0

    async def _look(self) -> None:
        report, outcome = self.report, self._outcome
        report.ended = self._line.ended
        report.continued = continued_parts(self._line.provider)
        report.figures = outcome.summary() | await store_figures(self._line.postgres.dsn)
        report.faults = [*outcome.faults, *outcome.doubled]
        report.faults += await faults_of(self._line.postgres.dsn, outcome.journeys)
