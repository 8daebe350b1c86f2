"""Measure memory of many users beside the least that the provider allows.

Run ``python -m benchmarks.memory [--users 1000] [--blobs 20] [--rate 1200] [--workers 1]``. It starts a PostgreSQL of
its own (fsync on), a scripted provider with a quota of requests in a process of its own, and workers. Then it inserts
the blobs of all users, which fill their buffers, and waits until every flush is memory.

``least`` is what the provider's quota alone would take for the calls that were made: ``calls / rate`` minutes.
``ratio`` is the time from the first insert to the last commit beside it. The start of the processes is no part of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from headrace.testing.provider import ProviderProcess
from tests.backends.server import PostgresServer

ROOT = Path(__file__).resolve().parent.parent
TOWNS = ("Lyon", "Porto", "Bergen", "Graz", "Leeds", "Turin", "Ghent", "Cork")
THINGS = ("rye bread", "green tea", "chess", "rowing", "old maps", "jazz", "gardens", "ferries")
#: Words that make a blob long enough for twenty of them to fill a buffer.
REST = (
    "I tell you this because it came to my mind on the way home, and you said that small things are welcome here. It "
    "was a long day, and the train was late again, but the evening was quiet, and I read a while before going to bed."
)
PATIENCE = 900.0


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
    from headrace.apps.memory.means import TABLES
    from headrace.apps.memory.memory import Memory

    memory = Memory()
    async with memory.app:
        await memory.set_up()
        began = time.perf_counter()
        for start in range(0, options.users, 50):
            users = range(start, min(start + 50, options.users))
            await memory.insert_blobs([blob for user in users for blob in blobs_of(user, options.blobs)])
        inserted = time.perf_counter() - began
        while (done := await _done(memory)) < options.users:
            assert time.perf_counter() - began < PATIENCE, (done, await TABLES.counts())
            await asyncio.sleep(0.25)
        return {"seconds": round(time.perf_counter() - began, 2), "inserting": round(inserted, 2), "flushes": done}


async def _done(memory: Any) -> int:
    async with memory.app.database() as connection:
        schema = memory.app.settings.memory.schema
        query = f"SELECT count(DISTINCT user_id) FROM {schema}.flushes WHERE state = 'done'"  # a name that was checked
        return int(await connection.fetchval(query))


@contextmanager
def working(options: argparse.Namespace, environment: dict[str, str], folder: Path) -> Iterator[None]:
    """Start the workers, and end them."""
    command = [sys.executable, "-m", "headrace", "worker", "headrace.apps.memory.worker:app", "--json"]
    for queue, slots in (("buffer", 8), ("process", options.slots), ("storage", 10), ("consume", 4)):
        command += ["--queue", f"memory_{queue}:{slots}"]
    processes = []
    for number in range(options.workers):
        with (folder / f"worker-{number}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
            processes.append(process)
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)


def measure(options: argparse.Namespace, folder: Path, url: str) -> dict[str, Any]:
    """Return the figures of one round."""
    quota = f"requests_per_minute={options.rate}"
    model = ("--answer", "headrace.apps.memory.samples.model:answer", "--latency", f"{options.latency},2000")
    with ProviderProcess(*model, "--quota", quota) as provider:
        environment = {
            **os.environ, **provider.environment, "HEADRACE_URL": url, "PYTHONPATH": str(ROOT),
            "HEADRACE_LLM_REQUESTS_PER_MINUTE": str(options.rate),
        }  # fmt: skip
        run([sys.executable, "-m", "headrace", "migrate"], environment, folder)
        with working(options, environment, folder):
            words = [f"--{name}={getattr(options, name)}" for name in ("users", "blobs")]
            driven = run([sys.executable, "-m", "benchmarks.memory", "--drive", *words], environment, folder)
        stats = provider.stats()
    made: dict[str, Any] = json.loads(driven.splitlines()[-1])
    least = stats.calls / options.rate * 60
    return made | {
        "calls": stats.calls, "rate_limited": stats.rate_limited, "least": round(least, 2),
        "ratio": round(made["seconds"] / least, 3),
    }  # fmt: skip


def run(command: Sequence[str], environment: dict[str, str], folder: Path) -> str:
    """Run a command and return what it wrote."""
    return subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--blobs", type=int, default=20, help="of each user")
    parser.add_argument("--rate", type=int, default=1_200, help="requests a minute that the provider allows")
    parser.add_argument("--latency", type=float, default=0.4, help="seconds until the first token of an answer")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--slots", type=int, default=60, help="flushes that each works on at once")
    parser.add_argument("--keep", type=Path, help="folder for the logs of the workers")
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        print(json.dumps(asyncio.run(drive(options))))
        return
    server = PostgresServer(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(options, options.keep or Path(folder), server.dsn)
    finally:
        server.stop()
        shutil.rmtree(server.root, ignore_errors=True)
    print(json.dumps({"python": platform.python_version(), "cores": os.cpu_count(), **figures}, indent=1))


if __name__ == "__main__":
    main()
