"""Each process that events pass through is killed once under load; what came of every event is counted afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from headrace import App, HeadraceError
from headrace.model.event import Outgoing
from headrace.settings import load_settings
from headrace.wiring import migrate
from tests.backends.kafka import KafkaBroker
from tests.backends.server import PostgresServer, die_with_parent
from tests.backends.valkey import ValkeyServer
from tests.faults.event_app import ASKED, TABLES, answer_of
from tests.faults.site import ROOT
from tests.waiting import wait_until

APP = "tests.faults.event_app:app"
#: The processes of the line, by name, and how they are started.
PROCESSES: Mapping[str, Sequence[str]] = {
    "relay": ("relay",),
    "agent": ("agent", APP),
    "other agent": ("agent", APP),
    "callback": ("callback",),
    "worker": ("worker", APP),
}
VICTIMS = ("relay", "agent", "callback", "redis", "broker", "postgres")
#: A server that was killed is away for so long.
AWAY_SECONDS = 1.0
QUIET = {"HEADRACE_WORKER_RELAY_ENABLED": "0", "HEADRACE_WORKER_AGENTS_ENABLED": "0"}


@dataclass
class Report:
    """What a campaign showed."""

    events: int = 0
    asked: int = 0
    seconds: float = 0.0
    #: What was killed, and how many events had no effect yet just then.
    kills: dict[str, int] = field(default_factory=dict)
    #: Events that were committed and had no effect, several, or one though they were rolled back.
    lost: int = 0
    doubled: int = 0
    ghosts: int = 0
    #: Keys whose effects, or answers, are not in the order of their events.
    disordered: list[str] = field(default_factory=list)
    #: Jobs that waited and did not end as they had to.
    wrong: list[str] = field(default_factory=list)
    #: Writers that committed long after others whose events had left, and those of them that were missed.
    late: int = 0
    late_missed: int = 0
    #: What the outbox holds at the end.
    left: int = 0
    #: Processes that ended without being killed, with the end of what they said.
    ended: dict[str, str] = field(default_factory=dict)
    dead_letters: int = 0

    @property
    def clean(self) -> bool:
        """Whether every promise was kept."""
        faults = self.lost + self.doubled + self.ghosts + self.late_missed + self.left + len(self.ended)
        return not faults and not self.disordered and not self.wrong and all(self.kills.values())


def describe(report: Report) -> dict[str, Any]:
    """Return a report as JSON has it."""
    return {**asdict(report), "clean": report.clean}


@dataclass
class Line:
    """The servers and processes of a campaign."""

    postgres: PostgresServer
    redis: ValkeyServer
    broker: KafkaBroker | None
    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What the processes are told."""
        bus = {"HEADRACE_EVENTS_BUS": "store"}
        if self.broker is not None:
            bus = {
                "HEADRACE_EVENTS_BUS": "kafka", "HEADRACE_EVENTS_KAFKA_SERVERS": self.broker.servers,
                "HEADRACE_EVENTS_KAFKA_SESSION_TIMEOUT": "6s",
            }  # fmt: skip
        return {
            "HEADRACE_URL": self.postgres.dsn, "HEADRACE_LIMITS_URL": self.redis.url,
            "HEADRACE_DIRECTORY": str(self.folder), "HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "3s",
            "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "750ms", "HEADRACE_WORKER_CALLBACK_ENABLED": "0", **QUIET, **bus,
        }  # fmt: skip

    def start(self, name: str) -> None:
        """Start a process; what it says goes to a file of its name."""
        command = [sys.executable, "-m", "headrace", *PROCESSES[name], "--json"]
        environment = {**os.environ, **self.environment, "PYTHONPATH": str(ROOT)}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )  # fmt: skip

    async def kill(self, name: str) -> None:
        """Kill a process or server as a power cut does, and start it again a little later."""
        servers: dict[str, Any] = {"redis": self.redis, "postgres": self.postgres, "broker": self.broker}
        if name in servers:
            server = servers[name]
            await asyncio.to_thread(server.stop, signal.SIGQUIT if name == "postgres" else signal.SIGKILL)
            await asyncio.sleep(AWAY_SECONDS)
            await asyncio.to_thread(server.start)
            return
        self.running[name].kill()
        self.running[name].wait(10)
        self.start(name)
        await self.wait_until_started(name)

    async def wait_until_started(self, name: str) -> None:
        """Wait until a process works: one that cannot reach its store when it starts ends again."""
        pid = self.running[name].pid

        def started() -> bool:
            assert self.running[name].poll() is None, self.log_of(name)
            return any(f'"pid": {pid}' in line and '"started"' in line for line in self.log_of(name).splitlines())

        await wait_until(started, message=f"{name} to start")

    def end(self) -> None:
        """End every process."""
        for process in self.running.values():
            process.kill()
            process.wait(10)

    def log_of(self, name: str) -> str:
        """Return the end of what a process said."""
        return (self.folder / f"{name}.log").read_text()[-3_000:]


class Load:
    """Writers of events, each in the order of its key; and what they committed."""

    def __init__(self, line: Line, app: App, report: Report) -> None:
        self._line, self._app, self._report = line, app, report
        #: Id by key and number, of events that were committed.
        self.committed: dict[tuple[str, int], str] = {}
        self.rolled_back: list[str] = []
        self.late: list[str] = []

    def _make(self, key: str, seq: int) -> Outgoing:
        return self._app.emission.make(ASKED, {"seq": seq}, {"aggregate_id": key, "correlation_id": f"{key}-{seq}"})

    async def write(self, key: str, count: int, pause: float) -> None:
        """Emit events of a key, one after another; an answer that is lost is asked for again."""
        for seq in range(count):
            made = self._make(key, seq)
            await self._until_done(lambda made=made: self._app.event_stores.outbox.insert_events([made]))
            self.committed[key, seq] = str(made.id if made.event is None else made.event.id)
            await asyncio.sleep(pause)

    async def write_late(self, key: str, seconds: float, *, commit: bool) -> None:
        """Emit in a transaction that stays open while others are published, then commit or roll back."""
        made = self._make(key, 0)
        assert made.event is not None
        try:
            connection = await asyncpg.connect(self._line.postgres.dsn)
            transaction = connection.transaction()
            await transaction.start()
            await self._app.emit_on(connection, [made])
            await asyncio.sleep(seconds)
            await (transaction.commit() if commit else transaction.rollback())
            await connection.close()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, HeadraceError):
            # The server died meanwhile: what became of it is looked up.
            commit = await self._is_there(made.event.id)
        if commit:
            self.committed[key, 0] = made.event.id
            self.late.append(made.event.id)
        else:
            self.rolled_back.append(made.event.id)

    async def _is_there(self, event_id: str) -> bool:
        async def look() -> bool:
            connection = await asyncpg.connect(self._line.postgres.dsn)
            try:
                return bool(await connection.fetchval("SELECT 1 FROM headrace.events WHERE id = $1", UUID(event_id)))
            finally:
                await connection.close()

        return await self._until_done(look)

    async def _until_done(self, work: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await work()
            except (HeadraceError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(0.1)


async def run(
    line: Line, *, keys: int, per_key: int, asks: int, pause: float = 0.02, victims: Sequence[str] = VICTIMS,
    longest: float = 120.0,
) -> Report:  # fmt: skip
    """Write events while each of `victims` is killed once, wait for peace, and count."""
    report = Report(asked=asks)
    connection = await asyncpg.connect(line.postgres.dsn)
    await connection.execute(TABLES)
    await connection.close()
    settings = load_settings(environ=line.environment, file=line.folder / "none.toml")
    await migrate(settings)
    app = App(settings=settings)
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        stack.callback(line.end)
        await stack.enter_async_context(app)
        for name in PROCESSES:
            line.start(name)
        await asyncio.gather(*(line.wait_until_started(name) for name in PROCESSES))
        load = Load(line, app, report)
        handles = await _ask(app, asks)
        writers = [asyncio.create_task(load.write(f"key-{number}", per_key, pause)) for number in range(keys)]
        lates = [
            asyncio.create_task(load.write_late(f"late-{number}", 1.0 + number % 4, commit=number % 4 != 3))
            for number in range(keys)
        ]
        await _kill_all(line, load, report, victims, keys * per_key)
        await asyncio.gather(*writers, *lates)
        report.events = len(load.committed)
        await _peace(line, app, load, report, handles, longest)
        report.seconds = time.monotonic() - began
        gone = [name for name, process in line.running.items() if process.poll() is not None]
        report.ended = {name: line.log_of(name) for name in gone}
        await _count(line, app, load, report)
    return report


async def _ask(app: App, asks: int) -> list[UUID]:
    from headrace.model.job import JobSpec, NewJob

    spec = JobSpec("ask", "ask", max_attempts=10)
    jobs = [NewJob(spec, json.dumps({"args": [number], "kwargs": {}})) for number in range(asks)]
    return await app.runtime.stores.jobs.insert_jobs(jobs)


async def _kill_all(line: Line, load: Load, report: Report, victims: Sequence[str], total: int) -> None:
    """Kill each victim at its part of the work."""
    for turn, name in enumerate(victims):
        part = (turn + 1) / (len(victims) + 2)
        await wait_until(lambda part=part: len(load.committed) >= part * total, message=f"load before {name} is killed")
        report.kills[name] = len(load.committed) - await _rows(line, "effects")
        if name == "redis":
            line.redis.call("FLUSHALL")
        await line.kill(name)


async def _rows(line: Line, table: str) -> int:
    connection = await asyncpg.connect(line.postgres.dsn)
    try:
        return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))
    finally:
        await connection.close()


async def _peace(line: Line, app: App, load: Load, report: Report, handles: Sequence[UUID], longest: float) -> None:
    """Wait until everything has come to its end; what has not is found by the count."""
    poisoned = sum(number % 10 == 7 for number in range(report.asked))
    wanted = report.events + report.asked - poisoned
    deadline = time.monotonic() + longest
    while time.monotonic() < deadline:
        final = await app.runtime.stores.inspect.final_jobs(handles)
        stats = await app.event_stores.outbox.outbox_stats()
        if len(final) == len(handles) and not stats.waiting and await _rows(line, "heard") >= wanted:
            return
        await asyncio.sleep(0.2)


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
    report.doubled = sum(count > 1 for count in times.values())
    report.ghosts = sum(event_id in times for event_id in load.rolled_back)
    report.late, report.late_missed = len(load.late), sum(event_id not in times for event_id in load.late)
    answers = Counter((row["key"], row["seq"]) for row in heard)
    report.doubled += sum(count > 1 for count in answers.values())
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
