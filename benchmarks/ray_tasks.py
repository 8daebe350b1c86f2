"""Compare tasks of Ray with actors, under a steady and a bursty load.

Run ``python -m benchmarks.ray_tasks [--seconds 10] [--rate 100] [--burst 200]``. It makes namespaces of its own (so it
needs the right to), starts `headrace ray up` in there with two CPUs, and sends calls that wait five milliseconds, as
those do that ask a store or a broker. A call's latency counts from when it was due, so a queue that builds up is seen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from headrace.executors.ray.joining import join
from headrace.executors.ray.local_cluster import LocalCluster
from headrace.executors.ray.local_state import NodeSize

CALL_SECONDS = 0.005
CPUS = 2
STORE_BYTES = 200_000_000
BURSTS, BURST_PAUSE = 5, 2.0
ROUNDS, WAYS = 3, 4
#: How Ray names the processes that run calls.
_CALLED = (b"ray::IDLE", b"ray::work", b"ray::Worker", b"ray::Async")
INSIDE = "HEADRACE_BENCH_INSIDE"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one load gave with one way of sending."""

    per_second: float
    p50_ms: float
    p99_ms: float
    memory_mb: float


class Way:
    """One way of sending a call. `first_ms`: from nothing to the answer of its first call."""

    def __init__(self, name: str, send: Callable[[], Any], begun: float) -> None:
        self.name, self.send = name, send
        send_and_wait(send)
        self.first_ms = (time.perf_counter() - begun) * 1000


def ways() -> Iterator[Callable[[], Way]]:
    """The ways, each made when its turn comes."""
    import ray

    def work() -> None:
        threading.Event().wait(CALL_SECONDS)

    class Worker:
        def work(self) -> None:
            threading.Event().wait(CALL_SECONDS)

    class AsyncWorker:
        async def work(self) -> None:
            await asyncio.sleep(CALL_SECONDS)

    def tasks() -> Way:
        begun = time.perf_counter()
        remote: Any = ray.remote(num_cpus=1, max_retries=0)(work)
        return Way("tasks", remote.remote, begun)

    def actors(name: str, kind: type, count: int, cpus: float) -> Way:
        begun = time.perf_counter()
        maker: Any = ray.remote(num_cpus=cpus)(kind)
        made = [maker.remote() for _ in range(count)]
        turn = cycle(made)
        return Way(name, lambda: next(turn).work.remote(), begun)

    yield tasks
    yield lambda: actors("1 actor", Worker, 1, 0.5)
    yield lambda: actors("2 actors in turns", Worker, 2, 0.5)
    yield lambda: actors("1 async actor", AsyncWorker, 1, 0.5)


def send_and_wait(send: Callable[[], Any]) -> None:
    """Send one call and wait for it."""
    import ray

    ray.get(send())


async def steady(send: Callable[[], Any], rate: float, seconds: float) -> tuple[list[float], float]:
    """Send calls when they are due, whatever became of earlier ones; return latencies and the time it took."""
    began = time.perf_counter()
    waiting = []
    for number in range(int(rate * seconds)):
        due = began + number / rate
        await asyncio.sleep(max(due - time.perf_counter(), 0))
        waiting.append(asyncio.create_task(_latency(send(), due)))
    latencies = await asyncio.gather(*waiting)
    return latencies, time.perf_counter() - began


async def bursty(send: Callable[[], Any], size: int) -> tuple[list[float], float]:
    """Send bursts of calls with silence between; return latencies and the time in which calls were out."""
    latencies, busy = [], 0.0
    for _ in range(BURSTS):
        began = time.perf_counter()
        latencies += await asyncio.gather(*[asyncio.create_task(_latency(send(), began)) for _ in range(size)])
        busy += time.perf_counter() - began
        await asyncio.sleep(BURST_PAUSE)
    return latencies, busy


async def _load(load: str, send: Callable[[], Any], options: argparse.Namespace) -> tuple[list[float], float]:
    if load == "steady":
        return await steady(send, options.rate, options.seconds)
    return await bursty(send, options.burst)


async def _latency(ref: Any, due: float) -> float:
    await ref
    return time.perf_counter() - due


def figures(latencies: list[float], seconds: float) -> Figures:
    """Fold a run."""
    ordered = sorted(latencies)
    p50, p99 = (ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000 for share in (0.5, 0.99))
    return Figures(len(ordered) / seconds, p50, p99, worker_memory())


def worker_memory() -> float:
    """Return what the processes that run calls take, in MB, shared pages in shares."""
    total = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if (folder / "cmdline").read_bytes().startswith(_CALLED):
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1000


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run every way under every load, a cluster for each, so that none has the warm processes of another."""
    rows: list[dict[str, Any]] = []
    # One folder, and so one token: a process keeps the one that it has read first.
    with tempfile.TemporaryDirectory() as folder:
        cluster = LocalCluster(Path(folder))
        for number in range(WAYS):
            state, _ = cluster.up([NodeSize(CPUS, STORE_BYTES)], None)
            try:
                join(state)
                rows += one_way(state.address, number, options)
            finally:
                cluster.down()
    return rows


def one_way(address: str, number: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure one way on a fresh cluster, in rounds; the median of each figure counts."""
    import ray

    ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        way = list(ways())[number]()
        rows = []
        for load in ("steady", "bursty"):
            found = [figures(*asyncio.run(_load(load, way.send, options))) for _ in range(ROUNDS)]
            middle = {name: sorted(getattr(one, name) for one in found)[ROUNDS // 2] for name in Figures.__slots__}
            rows.append({"way": way.name, "load": load, "first_ms": way.first_ms, **middle})
        return rows
    finally:
        ray.shutdown()


def main() -> None:
    """Go into a namespace, measure, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--burst", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not os.environ.get(INSIDE):
        again = [sys.executable, "-m", "benchmarks.ray_tasks", *sys.argv[1:]]
        wrap = ["unshare", "-n", "-p", "-f", "--mount-proc", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        sys.exit(subprocess.run([*wrap, *again], env={**os.environ, INSIDE: "1"}, check=False).returncode)
    rows = measure(options)
    if options.json:
        print(json.dumps(rows))
        return
    print("| load | way | calls/s | p50 ms | p99 ms | first call ms | memory of its processes, MB |")
    print("|---|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda row: row["load"], reverse=True):
        print(
            f"| {row['load']} | {row['way']} | {row['per_second']:.0f} | {row['p50_ms']:.1f} | {row['p99_ms']:.1f} "
            f"| {row['first_ms']:.0f} | {row['memory_mb']:.0f} |"
        )


if __name__ == "__main__":
    main()
