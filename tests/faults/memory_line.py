"""Memory as a whole: tables on a real PostgreSQL, a scripted model with a log, and processes that do the work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import asyncpg

from headrace.apps.memory.means import TABLES
from headrace.apps.memory.memory import Memory
from headrace.apps.memory.tables.values import NewBlob
from headrace.settings import load_settings
from headrace.testing.provider import ProviderProcess
from tests.backends.postgres import new_schema_name
from tests.backends.server import PostgresServer, shared_server
from tests.faults.site import LIMITS, ROOT, WorkerProcess
from tests.unit.memory_world import settled
from tests.waiting import wait_until

MODEL = "headrace.apps.memory.samples.model:answer"
#: Tokens above which a buffer is full: the least there may be.
FULL = 64
MEMORY = {
    "buffer_tokens": str(FULL), "lease": "5s", "sweep_interval": "1s", "batch_window": "200ms", "idle_flush": "1h",
}  # fmt: skip
#: On a busy machine.
PATIENCE = timedelta(seconds=120)
_BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)
_CITIES = (("Lyon", "Oslo", "Turin", "Cork"), ("北京", "上海", "成都", "西安"))
_TEAS = (("Assam", "rooibos", "sencha", "mint"), ("绿茶", "红茶", "白茶", "花茶"))

#: What is compared: everything that is remembered, and how it came to be.
_KEPT = {
    "profiles": "SELECT user_id, topic, sub_topic, content, version, update_hits FROM {s}.user_profiles "
    "ORDER BY 1, 2, 3",
    "events": "SELECT e.user_id, f.number, e.id::text, event_tip, event_tags::text, profile_delta::text "
    "FROM {s}.user_events AS e JOIN {s}.flushes AS f ON f.id = e.id ORDER BY 1, 2",
    "gists": "SELECT event_id::text, number, content FROM {s}.user_event_gists ORDER BY 1, 2",
    "flushes": "SELECT user_id, number, id::text, blob_ids::text[], tokens, state FROM {s}.flushes ORDER BY 1, 2",
    "rows": "SELECT user_id, blob_id::text, flush_id::text, status FROM {s}.buffer_zone ORDER BY 1, 2",
}
_BUSY = """
SELECT count(*) FROM (
  SELECT user_id FROM {s}.flushes WHERE state <> 'done'
  UNION ALL
  SELECT user_id FROM {s}.buffer_zone WHERE flush_id IS NULL GROUP BY user_id HAVING sum(token_size) > $1
) AS busy
"""
#: Flushes of a user that were begun before the one before them had ended.
_UNORDERED = """
SELECT later.user_id, later.number FROM {s}.flushes AS later
JOIN {s}.flushes AS earlier ON earlier.user_id = later.user_id AND earlier.number < later.number
WHERE later.begun_at < earlier.ended_at
"""


def user(number: int) -> str:
    """Return a user's name; those with odd numbers speak Chinese."""
    return f"u-{number:02}"


def chats(users: int, each: int, chance: Random) -> list[NewBlob]:
    """Return what users say, in the order of time, each thing a different one; of a user, three or so fill a buffer."""
    numbers = [number for number in range(users) for _ in range(each)]
    chance.shuffle(numbers)
    return [_chat(number, place, chance) for place, number in enumerate(numbers)]


def _chat(number: int, place: int, chance: Random) -> NewBlob:
    tongue = number % 2
    city, tea = chance.choice(_CITIES[tongue]), chance.choice(_TEAS[tongue])
    if tongue:
        said = f"我叫王{number}。我住在{city}{place}。我喜欢{tea}{place}。我觉得高兴{place}。"
    else:
        said = f"My name is Ada{number}. I live in {city}{place}. I like {tea}{place}. I feel fine {place}."
    data = {"messages": [{"role": "user", "content": said}]}
    blob_id = uuid5(NAMESPACE_URL, f"{number}/{place}")
    at = _BEGIN + timedelta(seconds=place)
    return NewBlob(user(number), "chat", data, chance.randrange(20, 41), blob_id, at)


@dataclass
class MemoryLine:
    """One project of memory, and those who work for it."""

    dsn: str
    environment: Mapping[str, str]
    folder: Path
    provider: ProviderProcess
    connection: asyncpg.Connection[Any]
    memory: Memory = field(default_factory=Memory)
    workers: list[WorkerProcess] = field(default_factory=list)

    @property
    def schema(self) -> str:
        """Of the tables of memory."""
        return self.environment["HEADRACE_MEMORY_SCHEMA"]

    @property
    def store(self) -> str:
        """The schema of the store."""
        return self.environment["HEADRACE_QUEUE_SCHEMA"]

    @property
    def topic(self) -> str:
        """Where changes of the buffer table are told."""
        return f"memory.{self.schema}.buffer_zone"

    def start(self, *options: str) -> WorkerProcess:
        """Start a process that does all work of memory; nobody waits for it."""
        output = self.folder / f"memory-{self.schema}-{len(self.workers)}.json"
        command = [sys.executable, "-m", "headrace", "memory", "run", "--json", *options]
        with output.open("wb") as stdout, output.with_suffix(".log").open("wb") as stderr:
            process = subprocess.Popen(
                command, stdout=stdout, stderr=stderr, cwd=ROOT, env={**os.environ, **self.environment}
            )
        worker = WorkerProcess(process, output)
        self.workers.append(worker)
        return worker

    async def query(self, sql: str, *values: Any) -> list[Any]:
        """Run a statement of the test's own; {s} is the schema of the tables."""
        return list(await self.connection.fetch(sql.replace("{s}", f'"{self.schema}"'), *values))

    async def insert(self, blobs: Sequence[NewBlob]) -> list[UUID]:
        """Let users say something."""
        return await TABLES.insert_blobs(blobs)

    async def settle(self, patience: timedelta = PATIENCE) -> None:
        """Wait until all that is full has become memory."""

        async def settled() -> bool:
            return not (await self.query(_BUSY, FULL))[0][0]

        try:
            await wait_until(settled, patience, message="memory to be made")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self.state()}") from None

    async def state(self) -> str:
        """Return how things stand, for the message of a failure."""
        flushes = await self.query("SELECT * FROM {s}.flushes WHERE state <> 'done' ORDER BY user_id, number")
        jobs = await self.query(f"SELECT task, state, count(*) FROM {self.store}.jobs GROUP BY 1, 2 ORDER BY 1, 2")
        told = [dict(row) | {"result": None} for row in flushes]
        logs = "\n".join(worker.log()[-3_000:] for worker in self.workers)
        return f"{told}\n{jobs}\n{logs}"

    async def flush_rest(self, users: int) -> None:
        """Make memory of what is left in the buffers."""
        for number in range(users):
            await self.memory.flush(user(number))
        await self.settle()

    async def kept(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return all that is remembered."""
        return {name: [tuple(row) for row in await self.query(sql)] for name, sql in _KEPT.items()}

    async def unordered(self) -> list[tuple[Any, ...]]:
        """Return flushes that did not wait for the one before them."""
        return [tuple(row) for row in await self.query(_UNORDERED)]

    def paid_twice(self) -> int:
        """Return how many calls there were beyond the first of each content."""
        return sum(entry["calls"] - 1 for entry in self.provider.calls())

    def end(self) -> None:
        """Kill every process that is left."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.signal(signal.SIGCONT)
                worker.kill()


@asynccontextmanager
async def memory_line(
    folder: Path, *, server: PostgresServer | None = None, model: Sequence[str] = (),
    environ: Mapping[str, str] | None = None, **memory: str,
) -> AsyncIterator[MemoryLine]:  # fmt: skip
    """Make tables of one's own and a model; `memory`: more of `[memory]`, `model`: options of the scripted provider."""
    dsn = (server or shared_server()).dsn
    own = {**MEMORY, "schema": new_schema_name(), **memory}
    with ProviderProcess("--answer", MODEL, "--log", str(folder / f"calls-{own['schema']}.jsonl"), *model) as provider:
        environment = {
            **LIMITS, "HEADRACE_URL": dsn, "HEADRACE_QUEUE_SCHEMA": new_schema_name(), **provider.environment,
            "HEADRACE_LLM_INPUT_PRICE": "1", "HEADRACE_LLM_OUTPUT_PRICE": "2", "HEADRACE_DIRECTORY": str(folder),
            **{f"HEADRACE_MEMORY_{name.upper()}": value for name, value in own.items()}, **(environ or {}),
        }  # fmt: skip
        settings = load_settings(environ=environment, file=folder / "none.toml")
        connection = await asyncpg.connect(dsn)
        with settled(settings) as app:
            async with app:
                await TABLES.set_up()
                line = MemoryLine(dsn, environment, folder, provider, connection)
                try:
                    yield line
                finally:
                    line.end()
                    await line.connection.close()
