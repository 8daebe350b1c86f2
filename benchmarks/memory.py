"""Measure memory of many users beside the least that the provider allows.

Run ``python -m benchmarks.memory [--users 1000] [--blobs 20] [--rate 1200] [--ray]``. It starts a PostgreSQL of its own
(fsync on), a scripted provider with a quota of requests in a process of its own, and a worker of memory; with ``--ray``
all but the database within namespaces of their own, with a Ray cluster of two nodes on which the handlers run. A few
users warm it up. Then it inserts the blobs of all users, which fill their buffers, and waits until every flush is
memory.

``least`` is what the provider's quota alone would take for the calls that were made: ``calls / rate`` minutes.
``ratio`` is the time from the first insert to the last commit beside it. The start of the processes, and what warms
them up, are no part of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.backends.ray import RayCluster
from tests.backends.server import PostgresServer, die_with_parent

ROOT = Path(__file__).resolve().parent.parent
TOWNS = ("Lyon", "Porto", "Bergen", "Graz", "Leeds", "Turin", "Ghent", "Cork")
THINGS = ("rye bread", "green tea", "chess", "rowing", "old maps", "jazz", "gardens", "ferries")
#: Words that make a blob long enough for twenty of them to fill a buffer.
REST = (
    "I tell you this because it came to my mind on the way home, and you said that small things are welcome here. It "
    "was a long day, and the train was late again, but the evening was quiet, and I read a while before going to bed."
)
PATIENCE = 900.0
#: Jobs of each queue at once.
SLOTS = {"memory_consume": 2, "memory_buffer": 4, "memory_process": 12, "memory_storage": 4}


def blobs_of(user: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield what a user says, the same each time."""
    chance = random.Random(user)
    for number in range(count):
        first = f"My name is User{user}. I live in {chance.choice(TOWNS)}."
        fact = f"I like {chance.choice(THINGS)}." if number else first
        yield {
            "user_id": f"user-{user}", "blob_id": UUID(int=user * 1_000 + number + 1),
            "data": {"messages": [{"role": "user", "content": f"{fact} {REST} ({user}/{number})"}]},
        }  # fmt: skip


async def drive(options: argparse.Namespace) -> dict[str, Any]:
    """Insert the blobs, wait for the end, and return what it took."""
    from headrace.apps.memory.memory import Memory

    memory = Memory()
    async with memory.app:
        await memory.set_up()
        await _remember(memory, range(options.users, options.users + options.warm), options.blobs, done=options.warm)
        print(json.dumps({"warm": True}), flush=True)
        sys.stdin.readline()
        began = time.perf_counter()
        await _remember(memory, range(options.users), options.blobs, done=options.users + options.warm)
        return {"seconds": round(time.perf_counter() - began, 2)}


async def _remember(memory: Any, users: range, blobs: int, *, done: int) -> None:
    """Insert what users say, and wait until so many are remembered in all."""
    began = time.perf_counter()
    for start in range(0, len(users), 50):
        said = [blob for user in users[start : start + 50] for blob in blobs_of(user, blobs)]
        await memory.insert_blobs(said)
    while (found := await _done(memory)) < done:
        assert time.perf_counter() - began < PATIENCE, f"{found} of {done}"
        await asyncio.sleep(0.25)


async def _done(memory: Any) -> int:
    async with memory.app.database() as connection:
        schema = memory.app.settings.memory.schema
        query = f"SELECT count(DISTINCT user_id) FROM {schema}.flushes WHERE state = 'done'"  # a name that was checked
        return int(await connection.fetchval(query))


@dataclass(frozen=True)
class Place:
    """Where processes run: here, or within the namespaces of a Ray cluster."""

    folder: Path
    cluster: RayCluster | None

    def start(self, *words: str, environ: Mapping[str, str], **pipes: Any) -> subprocess.Popen[str]:
        """Start a command, which ends with this process."""
        command = list(words) if self.cluster is None else self.cluster.command(*words, folder=self.folder)
        inner = {} if self.cluster is None else self.cluster.environment
        return subprocess.Popen(
            command, env={**os.environ, **inner, **environ}, cwd=self.folder, text=True, preexec_fn=die_with_parent,
            start_new_session=True, **pipes,
        )  # fmt: skip


@contextmanager
def place_of(options: argparse.Namespace, folder: Path) -> Iterator[Place]:
    """Make the place, with its cluster if there is one."""
    if not options.ray:
        yield Place(folder, None)
        return
    with RayCluster() as cluster:
        # Ray keeps as many idle processes as a node has CPUs, and ends others after a second: these jobs wait, most of
        # their time, so that the nodes are given more than the machine has.
        for _ in range(2):
            cluster.start_node(cpus=sum(SLOTS.values()) // 2)
        yield Place(folder, cluster)


@contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """End a process, with what it started, at the end of the block."""
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


def measure(options: argparse.Namespace, place: Place, url: str) -> dict[str, Any]:
    """Return the figures of one round."""
    log, python = place.folder / "calls.jsonl", sys.executable
    provider = place.start(
        python, "-m", "headrace.testing.provider", "--answer", "headrace.apps.memory.samples.model:answer",
        "--latency", f"{options.latency},2000", "--quota", f"requests_per_minute={options.rate}", "--log", str(log),
        environ={}, stdout=subprocess.PIPE,
    )  # fmt: skip
    with running(provider):
        environ = environment(options, place, url, json.loads(provider.stdout.readline() if provider.stdout else ""))
        subprocess.run([python, "-m", "headrace", "migrate"], env={**os.environ, **environ}, check=True)
        with (place.folder / "worker.log").open("w") as written:
            executor = "ray" if options.ray else "local"
            words = (python, "-m", "headrace", "memory", "run", "--executor", executor)
            worker = place.start(*words, environ=environ, stdout=written, stderr=written)
            with running(worker):
                return _driven(options, place, environ, log)


def _driven(options: argparse.Namespace, place: Place, environ: Mapping[str, str], log: Path) -> dict[str, Any]:
    words = [f"--{name}={getattr(options, name)}" for name in ("users", "blobs", "warm")]
    command = (sys.executable, "-m", "benchmarks.memory", "--drive", *words)
    driver = Place(place.folder, None).start(*command, environ=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert driver.stdin is not None
    assert driver.stdout is not None
    assert json.loads(driver.stdout.readline())["warm"]
    before = _calls(log)
    driver.stdin.write("go\n")
    driver.stdin.close()
    made: dict[str, Any] = json.loads(driver.stdout.readline())
    driver.wait(60)
    calls = _calls(log) - before
    least = calls / options.rate * 60
    return made | {"calls": calls, "least": round(least, 2), "ratio": round(made["seconds"] / least, 3)}


def _calls(log: Path) -> int:
    return sum(json.loads(line)["event"] == "answered" for line in log.read_text().splitlines())


def environment(options: argparse.Namespace, place: Place, url: str, ready: Mapping[str, Any]) -> dict[str, str]:
    """Return what the processes of memory get."""
    names = {"model": "MODEL", "base_url": "BASE_URL", "api_key": "API_KEY"}
    small = {"num_cpus": 1}
    queues = ("memory_consume", "memory_buffer", "memory_process", "memory_storage")
    slots = {queue: {"min_slots": 1, "max_slots": most, "start_slots": most} for queue, most in SLOTS.items()}
    given = {f"HEADRACE_LLM_{variable}": str(ready[name]) for name, variable in names.items()}
    if place.cluster is not None:
        given |= {
            "HEADRACE_RAY_ADDRESS": place.cluster.address,
            "HEADRACE_RAY_RESOURCES": json.dumps(dict.fromkeys(queues, small)),
        }  # fmt: skip
    return given | {
        "HEADRACE_URL": url, "PYTHONPATH": str(ROOT), "HEADRACE_QUEUES": json.dumps(slots),
        "HEADRACE_LLM_REQUESTS_PER_MINUTE": str(options.rate), "HEADRACE_DIRECTORY": str(place.folder / "data"),
    }  # fmt: skip


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--blobs", type=int, default=20, help="of each user")
    parser.add_argument("--rate", type=int, default=1_200, help="requests a minute that the provider allows")
    parser.add_argument("--latency", type=float, default=0.4, help="seconds until the first token of an answer")
    parser.add_argument("--warm", type=int, default=40, help="users before those that are measured")
    parser.add_argument("--ray", action="store_true", help="handlers run on a Ray cluster of two nodes")
    parser.add_argument("--keep", type=Path, help="folder for the logs")
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        print(json.dumps(asyncio.run(drive(options))))
        return
    server = PostgresServer(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder, place_of(options, options.keep or Path(folder)) as place:
            figures = measure(options, place, server.dsn)
    finally:
        server.stop()
        shutil.rmtree(server.root, ignore_errors=True)
    print(json.dumps({"python": platform.python_version(), "cores": os.cpu_count(), **figures}, indent=1))


if __name__ == "__main__":
    main()
