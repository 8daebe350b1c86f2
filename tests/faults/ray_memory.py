"""Memory on a Ray cluster: users who say something, workers that drive it, and what came of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from headrace.apps.memory import means
from headrace.apps.memory.memory import Memory
from headrace.apps.memory.worker import app
from headrace.settings import load_settings
from tests.backends.postgres import new_schema_name
from tests.backends.ray import RayCluster
from tests.backends.server import die_with_parent, shared_server
from tests.faults.site import LIMITS, ROOT
from tests.unit.memory_world import settled

PROVIDER = ("--answer", "headrace.apps.memory.samples.model:answer")
FULL = 100
#: Handlers of memory run on the node that has this, so that the driver's may be left alone.
SECOND = {"second": 0.05}
_IDS = UUID("3f1c7c0e-6a52-4d19-8f0a-9b3f8a1b6d10")
_TOWNS, _FOODS = ("Lyon", "Porto", "Graz", "Cork"), ("rye bread", "green tea", "plums", "cheese")
_STADT, _ESSEN = ("里昂", "北京", "上海", "杭州"), ("绿茶", "面包", "米饭", "苹果")


def said_by(number: int, blobs: int) -> list[str]:
    """Return what a user says, the same each time: every third user in Chinese."""
    if number % 3 == 2:
        first = f"我叫王{number}，我住在{_STADT[number % 4]}。"
        return [first, *(f"我喜欢{_ESSEN[(number + place) % 4]}，今天是第{place}天。" for place in range(1, blobs))]
    first = f"My name is User{number}. I live in {_TOWNS[number % 4]}."
    rest = "There is not much else to tell of it, but I thought that you would like to hear."
    return [first, *(f"I like {_FOODS[(number + place) % 4]}. {rest} ({place})" for place in range(1, blobs))]


@dataclass
class MemorySite:
    """One test's place: schemas, a provider with a log, and drivers."""

    cluster: RayCluster
    root: Path
    provider: dict[str, str]
    schema: str = field(default_factory=new_schema_name)
    memory: str = field(default_factory=new_schema_name)
    executor: str = "ray"
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What drivers get."""
        return {
            **self.cluster.environment, **LIMITS, **self.provider,
            "HEADRACE_URL": shared_server().dsn,
            "HEADRACE_QUEUE_SCHEMA": self.schema,
            "HEADRACE_DIRECTORY": str(self.root / "data"),
            "HEADRACE_CONFIG": str(self.root / "headrace.toml"),
            "HEADRACE_RAY_ADDRESS": self.cluster.address,
            "HEADRACE_MEMORY_SCHEMA": self.memory,
            "HEADRACE_MEMORY_BUFFER_TOKENS": str(FULL),
            "HEADRACE_MEMORY_LEASE": "6s",
            "HEADRACE_MEMORY_SWEEP_INTERVAL": "1s",
            "HEADRACE_MEMORY_BATCH_WINDOW": "1s",
            "HEADRACE_LLM_REQUESTS_PER_MINUTE": "60000",
            # Connecting to a cluster may keep a process from its heartbeat for some seconds.
            "HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "9s",
        }  # fmt: skip

    def start_driver(self) -> subprocess.Popen[bytes]:
        """Start all work of memory, its handlers on the cluster."""
        log = self.root / f"process-{len(self.processes)}.log"
        words = (sys.executable, "-m", "headrace", "memory", "run", "--executor", self.executor)
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.cluster.command(*words, folder=ROOT), stdout=output, stderr=output, start_new_session=True,
                env={**os.environ, **self.environment}, preexec_fn=die_with_parent,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def logs(self) -> str:
        """Return what the drivers wrote."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.root.glob("process-*.log")))

    def stop(self) -> None:
        """End what was started."""
        for process in self.processes:
            if process.poll() is None:
                # `nsenter` has the process within as its child, in the same group.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@asynccontextmanager
async def memory_site_on(
    cluster: RayCluster, root: Path, provider: dict[str, str], executor: str = "ray"
) -> AsyncIterator[tuple[MemorySite, Memory]]:
    """Set a place up, with the app of memory on its store, and end it."""
    site = MemorySite(cluster, root, provider, executor=executor)
    (root / "headrace.toml").write_text(config(executor))
    settings = load_settings(environ={k: v for k, v in site.environment.items() if k.startswith("HEADRACE_")})
    with settled(settings):
        async with app:
            await means.TABLES.set_up()
            try:
                yield site, Memory()
            finally:
                site.stop()


def config(executor: str) -> str:
    """Return the resources of each queue: little, as the nodes are small, and on the second node."""
    if executor != "ray":
        return ""
    custom = ", ".join(f'"{name}={amount}"' for name, amount in SECOND.items())
    queues = ("memory_consume", "memory_buffer", "memory_process", "memory_storage")
    return "".join(f"[ray.resources.{queue}]\nnum_cpus = 0.2\ncustom = [{custom}]\n" for queue in queues)


@contextmanager
def provider_in(cluster: RayCluster, log: Path, latency: float) -> Iterator[dict[str, str]]:
    """Start the scripted model within the namespace of a cluster, and return the variables that point there."""
    command = cluster.command(
        sys.executable, "-m", "headrace.testing.provider", *PROVIDER, "--latency", f"{latency},4000", "--log", str(log),
        folder=ROOT,
    )  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=die_with_parent, start_new_session=True)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        names = {"model": "MODEL", "base_url": "BASE_URL", "api_key": "API_KEY"}
        yield {f"HEADRACE_LLM_{variable}": str(ready[name]) for name, variable in names.items()}
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


async def tell(memory: Memory, users: int, blobs: int) -> None:
    """Let all users say what they say, with ids and times that are the same each time."""
    start = datetime(2026, 5, 1, tzinfo=UTC)
    await memory.insert_blobs(
        [
            {
                "user_id": f"user-{number}", "blob_id": uuid5(_IDS, f"{number}/{place}"),
                "created_at": start + timedelta(minutes=place),
                "data": {"messages": [{"role": "user", "content": text}]},
            }
            for number in range(users)
            for place, text in enumerate(said_by(number, blobs))
        ]
    )  # fmt: skip


async def known(memory: Memory, users: int) -> dict[str, Any]:
    """Return all that is known of the users, without times of storing."""
    found = {}
    for number in range(users):
        user = f"user-{number}"
        events = await memory.events(user, limit=1_000)
        found[user] = {
            "profile": [(slot.topic, slot.sub_topic, slot.content) for slot in await memory.profile(user)],
            "events": sorted((str(event.id), event.event_tip) for event in events),
        }
    return found


async def unfinished(users: int) -> int:
    """Return for how many users something is still to be done."""
    left = 0
    for number in range(users):
        buffer = await means.TABLES.buffer(f"user-{number}")
        left += buffer.tokens > FULL or bool(await means.TABLES.unfinished(buffer.user_id))
    return left


@dataclass(frozen=True)
class Call:
    """A call of the provider, with the times of its beginning and end; None: nobody was there to hear the answer."""

    key: str
    begun: float
    ended: float | None


def calls_of(log: Path) -> list[Call]:
    """Return the calls that the provider noted, in their order."""
    begun: dict[int, dict[str, Any]] = {}
    ended: dict[int, float] = {}
    for line in map(json.loads, log.read_text().splitlines()):
        if line["event"] == "received":
            begun[line["call"]] = line
        elif line["event"] == "answered":
            ended[line["call"]] = line["at"]
    return [Call(line["key"], line["at"], ended.get(number)) for number, line in sorted(begun.items())]


def paid_twice(calls: list[Call], kills: list[float], around: float = 2.0) -> list[Call]:
    """Return calls that were made again although the first was not under way at a kill, nor ended just before it."""
    first: dict[str, Call] = {}
    wrong = []
    for call in calls:
        known = first.setdefault(call.key, call)
        end = known.ended if known.ended is not None else float("inf")
        if known is not call and not any(known.begun - around <= kill <= end + around for kill in kills):
            wrong.append(call)
    return wrong
