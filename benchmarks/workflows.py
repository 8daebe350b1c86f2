"""What a step of a workflow costs: at both levels, beside a bare commit of the same run, DBOS and Prefect.

    python benchmarks/workflows.py [--rounds 5] [--steps 100] [--entries 10000] [--json FILE]

The arms take turns, round by round, on one embedded PostgreSQL with fsync, so that all see one machine:

- `commit`: so many transactions of one row of a few bytes, one after the other, over one connection;
- `workflow level`, `node level`: a chain of so many tasks that do nothing, from its start until its result is there;
  `hop` is the median of the times between the ends of neighbouring nodes;
- `fan-out`: a map over so many entries and its join, on one worker process, and what its memory grew by;
- `dbos`, `prefect`: as many steps of one workflow there, where `.venv-bench` has them (`sh tools/setup.sh bench`).

Every step's end is on disk before the next one begins, in all arms but Prefect's, which does not say so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg

from headrace import App, Run, chain, input_, map_
from headrace.bench.machine import look
from headrace.settings import load_settings
from headrace.stores.postgres.embedded import start_embedded

HERE = Path(__file__).resolve().parent
BENCH_PYTHON = HERE.parent / ".venv-bench" / "bin" / "python"
DURABLE = {"workflow level": "schedule:workflow_level", "node level": "schedule:node_level"}

Arm = Callable[[], Awaitable[dict[str, float]]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each arm")
    parser.add_argument("--steps", type=int, default=100, help="steps of a chain")
    parser.add_argument("--entries", type=int, default=10_000, help="entries of the map")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure DBOS and Prefect")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = start_embedded(Path(directory))
        try:
            figures = asyncio.run(measure(server.dsn, Path(directory), options))
        finally:
            server.release()
    report(figures, options)


def make_app(directory: Path, options: argparse.Namespace) -> App:
    """Return the app that is measured."""
    app = App(settings=load_settings(file=directory / "none", environ={"HEADRACE_DIRECTORY": str(directory)}))

    @app.task(queue="bench")
    async def noop(value: Any = None) -> Any:
        return value

    for name, tag in DURABLE.items():
        app.workflow(name.replace(" ", "-"), chain(*(noop.s() for _ in range(options.steps))), tags=(tag,))
    app.workflow("fan-out", map_(noop.s(), over=input_), tags=("schedule:node_level",))
    return app


async def measure(dsn: str, directory: Path, options: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Return the figures of each round by arm."""
    app = make_app(directory, options)
    figures: dict[str, list[dict[str, float]]] = {}
    async with app.worker(concurrency=100):
        arms: dict[str, Arm] = {"commit": lambda: commits(dsn, options.steps)}
        for name in DURABLE:
            arms[name] = lambda name=name: run_chain(app, name.replace(" ", "-"), options.steps)  # type: ignore[misc]
        arms["fan-out"] = lambda: fan_out(app, options.entries)
        if options.peers and BENCH_PYTHON.exists():
            for peer in ("dbos", "prefect"):
                arms[peer] = lambda peer=peer: run_peer(peer, dsn, options.steps)  # type: ignore[misc]
        for number in range(options.rounds + 1):
            for name, arm in arms.items():
                found = await arm()
                if number and found:  # the first round warms up
                    figures.setdefault(name, []).append(found)
                    print(f"round {number}: {name}: " + ", ".join(f"{k} {v:.2f}" for k, v in found.items()), flush=True)
    return figures


async def commits(dsn: str, steps: int) -> dict[str, float]:
    """Return what a bare commit takes."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS bare (id serial PRIMARY KEY, value json)")
        insert = await connection.prepare("INSERT INTO bare (value) VALUES ($1)")
        began = time.perf_counter()
        for _ in range(steps):
            await insert.fetch('{"value": 1}')
        return {"ms a step": 1000 * (time.perf_counter() - began) / steps}
    finally:
        await connection.close()


async def run_chain(app: App, name: str, steps: int) -> dict[str, float]:
    """Return what a step of a chain takes, and the median between the ends of two."""
    began = time.perf_counter()
    run = await app.start(name, 1)
    await run.result("5m")
    took = time.perf_counter() - began
    ends = sorted(node.finished_at for node in (await run.tree()).nodes if node.finished_at is not None)
    gaps = [(after - before).total_seconds() for before, after in pairwise(ends)]
    return {"ms a step": 1000 * took / steps, "hop p50 ms": 1000 * statistics.median(gaps)}


async def fan_out(app: App, entries: int) -> dict[str, float]:
    """Return how long a map and its join take, and what memory grew by meanwhile."""
    before = memory_mib()
    began = time.perf_counter()
    run: Run = await app.start("fan-out", list(range(entries)))
    peak, result = before, asyncio.create_task(run.result("5m"))
    while not result.done():
        await asyncio.wait([result], timeout=0.05)
        peak = max(peak, memory_mib())
    assert await result == list(range(entries))
    return {"seconds": time.perf_counter() - began, "MiB more": peak - before}


def memory_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def run_peer(peer: str, dsn: str, steps: int) -> dict[str, float]:
    """Return what a step takes there; nothing where it is not installed."""
    command = [str(BENCH_PYTHON), str(HERE / f"{peer}_steps.py"), str(steps)]
    done = await asyncio.to_thread(
        subprocess.run, command, env={**os.environ, "BENCH_DSN": dsn}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{peer} is not measured: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else '?'}")
        return {}
    answer: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def report(figures: dict[str, list[dict[str, float]]], options: argparse.Namespace) -> None:
    """Print medians with their spread, and ratios within a round."""
    print()
    for name, rounds in figures.items():
        for what in rounds[0]:
            values = [one[what] for one in rounds]
            print(f"{name:15} {what:11} {statistics.median(values):8.2f}  ({min(values):.2f}–{max(values):.2f})")
    if "dbos" in figures:
        pairs = zip(figures["workflow level"], figures["dbos"], strict=True)
        ratios = [ours["ms a step"] / theirs["ms a step"] for ours, theirs in pairs]
        print(f"workflow level ÷ dbos: {statistics.median(ratios):.2f}  ({min(ratios):.2f}–{max(ratios):.2f})")
    if options.json is not None:
        machine = asyncio.run(asyncio.to_thread(look))
        options.json.write_text(json.dumps({"figures": figures, "machine": str(machine)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
