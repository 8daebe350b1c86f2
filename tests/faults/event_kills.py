"""Each process that events pass through is killed once under load; what came of every event is counted afterwards."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg

from headrace import App
from headrace.model.job import JobSpec, NewJob
from headrace.wiring import migrate
from tests.faults.event_app import TABLES, answer_of
from tests.faults.event_line import PROCESSES, Line
from tests.faults.event_load import Load
from tests.faults.event_suspensions import Suspensions
from tests.waiting import wait_until

#: Seconds between two looks at the effects, and how many of them are noted.
_LOOK_SECONDS, _NOTED = 0.2, 50
#: The relay is the last: who takes over from it waits for the end of its term, and meanwhile nothing would flow.
VICTIMS = ("agent", "callback", "redis", "broker", "postgres", "relay")


@dataclass
class Report:
    """What a campaign showed."""

    events: int = 0
    asked: int = 0
    seconds: float = 0.0
    #: When what was over, seconds after the begin.
    marks: dict[str, float] = field(default_factory=dict)
    #: Flow runs that suspended themselves, and those of them that were completed.
    flows: int = 0
    flows_resumed: int = 0
    #: What was killed, and how many events had no effect yet just then.
    kills: dict[str, int] = field(default_factory=dict)
    #: How many had got theirs since the kill before: what died was at work.
    flowed: dict[str, int] = field(default_factory=dict)
    #: Events that were committed and had no effect, several, or one though they were rolled back.
    lost: int = 0
    doubled: int = 0
    ghosts: int = 0
    #: Keys whose effects, or answers, are not in the order of their events.
    disordered: list[str] = field(default_factory=list)
    #: Jobs and flow runs that waited and did not end as they had to.
    wrong: list[str] = field(default_factory=list)
    #: Writers that committed long after others whose events had left, and those of them that were missed.
    late: int = 0
    late_missed: int = 0
    #: What the outbox holds at the end.
    left: int = 0
    #: Processes that ended without being killed, with the end of what they said.
    ended: dict[str, str] = field(default_factory=dict)
    dead_letters: int = 0
    #: How many effects there were at each look, some seconds apart: whether the line was slow, or stood still.
    effects: list[int] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether every promise was kept."""
        faults = self.lost + self.doubled + self.ghosts + self.late_missed + self.left + len(self.ended)
        faults += self.flows - self.flows_resumed
        return (
            not faults and not self.disordered and not self.wrong and all((*self.kills.values(), *self.flowed.values()))
        )


def describe(report: Report) -> dict[str, Any]:
    """Return a report as JSON has it."""
    return {**asdict(report), "clean": report.clean}


@dataclass(frozen=True)
class Plan:
    """How much is written, and who dies meanwhile."""

    keys: int
    #: Events of a key between two kills, at least.
    between: int
    asks: int
    #: Seconds between two events of a key.
    pause: float
    #: Events that may be without an effect until more are written.
    ahead: int
    victims: Sequence[str] = VICTIMS
    #: Writers that commit late keep their transactions open for up to so long.
    open_seconds: float = 4.0
    #: How long peace is waited for.
    longest: float = 120.0


class Campaign:
    """One run over a line."""

    def __init__(self, line: Line, plan: Plan) -> None:
        """Nothing is started yet."""
        self._line, self._plan = line, plan
        self._app = App(settings=line.settings)
        self._load = Load(line, self._app)
        self._flows = Suspensions(line, plan.victims)
        self._jobs: list[UUID] = []
        self._began = time.monotonic()
        self.report = Report(asked=plan.asks)

    def _mark(self, what: str) -> None:
        self.report.marks[what] = round(time.monotonic() - self._began, 1)

    async def run(self) -> Report:
        """Write events while each victim is killed once, wait for peace, and count."""
        async with AsyncExitStack() as stack:
            stack.callback(self._line.end)
            await self._start(stack)
            watching = asyncio.create_task(self._watch())
            stack.callback(watching.cancel)
            await self._flows.suspend()
            self._mark("flows suspended")
            await self._kill_under_load()
            await self._peace()
            self.report.seconds = round(time.monotonic() - self._began, 1)
            gone = [name for name, process in self._line.running.items() if process.poll() is not None]
            self.report.ended = {name: self._line.log_of(name) for name in gone}
            await _count(self._line, self._app, self._load, self.report)
        self.report.wrong += self._flows.wrong()
        return self.report

    async def _start(self, stack: AsyncExitStack) -> None:
        connection = await asyncpg.connect(self._line.postgres.dsn)
        await connection.execute(TABLES)
        await connection.close()
        await migrate(self._line.settings)
        await stack.enter_async_context(self._app)
        for name in PROCESSES:
            self._line.start(name)
        spec = JobSpec("ask", "ask", max_attempts=10)
        asked = [json.dumps({"args": [number], "kwargs": {}}) for number in range(self._plan.asks)]
        self._jobs = await self._app.runtime.stores.jobs.insert_jobs([NewJob(spec, args) for args in asked])
        await asyncio.gather(*(self._line.wait_until_started(name) for name in PROCESSES))
        self._mark("started")

    async def _kill_under_load(self) -> None:
        plan, load = self._plan, self._load
        writers = [load.write(f"key-{number}", plan.pause) for number in range(plan.keys)]
        writers += [
            load.write_late(f"late-{number}", plan.open_seconds * (1 + number % 4) / 4, commit=number % 4 != 3)
            for number in range(plan.keys)
        ]
        writing = asyncio.gather(*writers)
        for name in plan.victims:
            await self._flow(name)
            await self._kill(name)
        load.ended.set()
        load.room.set()
        await writing
        self.report.events = len(load.committed)
        self._mark("written")

    async def _watch(self) -> None:
        """Note the effects as they come, and let the writers wait while they are too far ahead of them."""
        for look in count():
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                effects = await self._line.rows("effects")
                far_ahead = len(self._load.committed) - effects >= self._plan.ahead
                (self._load.room.clear if far_ahead and not self._load.ended.is_set() else self._load.room.set)()
                if look % _NOTED == 0:
                    self.report.effects.append(effects)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _flow(self, name: str) -> None:
        """Wait until events were written and had effects since the last kill, and some have none yet."""
        before, begin = await self._line.rows("effects"), len(self._load.committed)
        due = self._plan.keys * self._plan.between

        async def flowed() -> bool:
            self.report.flowed[name] = await self._line.rows("effects") - before
            self.report.kills[name] = len(self._load.committed) - before - self.report.flowed[name]
            enough = self.report.flowed[name] >= due and len(self._load.committed) - begin >= due
            return enough and self.report.kills[name] > 0

        await wait_until(flowed, timedelta(seconds=180), message=f"events to flow before {name} is killed")

    async def _kill(self, name: str) -> None:
        self._flows.answer(name)
        if name == "redis":
            self._line.redis.call("FLUSHALL")
        await self._line.kill(name)
        self._mark(f"{name} killed")

    async def _peace(self) -> None:
        """Wait until everything has come to its end; what has not is found by the count."""
        report = self.report
        poisoned = sum(number % 10 == 7 for number in range(report.asked))
        wanted = report.events + report.asked - poisoned + len(self._flows)
        deadline = time.monotonic() + self._plan.longest
        while time.monotonic() < deadline:
            final = await self._app.runtime.stores.inspect.final_jobs(self._jobs)
            stats = await self._app.event_stores.outbox.outbox_stats()
            if len(final) == len(self._jobs) and not stats.waiting and await self._line.rows("heard") >= wanted:
                break
            await asyncio.sleep(0.2)
        self._mark("peace")
        report.flows, report.flows_resumed = len(self._flows), await self._flows.resumed()


async def _count(line: Line, app: App, load: Load, report: Report) -> None:
    connection = await asyncpg.connect(line.postgres.dsn)
    effects = await connection.fetch("SELECT event_id, key, seq FROM effects ORDER BY n")
    heard = await connection.fetch("SELECT event_id, key, seq FROM heard ORDER BY n")
    finished = await connection.fetch(
        "SELECT args, state, result, error FROM headrace.finished_jobs WHERE task = 'ask'"
    )
    await connection.close()
    times = Counter(row["event_id"] for row in effects)
    report.lost = sum(times[event_id] == 0 for event_id in load.committed.values())
    report.doubled = sum(found > 1 for found in times.values())
    report.ghosts = sum(event_id in times for event_id in load.rolled_back)
    report.late, report.late_missed = len(load.late), sum(event_id not in times for event_id in load.late)
    answers = Counter((row["key"], row["seq"]) for row in heard)
    report.doubled += sum(found > 1 for found in answers.values())
    for table, rows in (("effects", effects), ("heard", heard)):
        report.disordered += [f"{table} of {key}: {found[:9]}" for key, found in _disorder(rows)]
    report.wrong = _wrong(finished, report.asked)
    stats = await app.event_stores.outbox.outbox_stats()
    report.left = stats.waiting + stats.held + stats.parked
    report.dead_letters = sum(number % 10 == 7 for number in range(report.asked))


def _disorder(rows: Sequence[Any]) -> list[tuple[str, list[int]]]:
    by_key: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_key[row["key"]].append(row["seq"])
    return [(key, found) for key, found in by_key.items() if found != sorted(found)]


def _wrong(finished: Sequence[Any], asked: int) -> list[str]:
    found: dict[int, Any] = {}
    for row in finished:
        [number] = json.loads(row["args"])["args"]
        found[number] = json.loads(row["result"]) if row["state"] == "succeeded" else row["error"]
    return [f"{number}: {found.get(number)!r}" for number in range(asked) if found.get(number) != answer_of(number)]
