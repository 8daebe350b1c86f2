"""What a job costs: commits, bytes of log, rows, processor time of server, worker and client.

    python -m benchmarks.capacity [--rounds 5] [--short] [--json FILE]

It starts a PostgreSQL of its own (fsync, synchronous_commit and full_page_writes on, other settings default) and takes
about two minutes. First the verbs of the store by the number of jobs a call takes, on two connections whose counters
are read before and after; then whole jobs through the client and the shipped worker. docs/explanation/capacity.md shows
what it wrote last; `capacity_simulation.py` carries it further.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks import capacity_verbs, capacity_whole
from benchmarks.capacity_meter import Site, open_site
from benchmarks.capacity_verbs import Effort, Verbs
from benchmarks.capacity_whole import Figures, Sizes, open_whole
from headrace.bench.machine import describe_machine, look
from headrace.bench.server import BenchServer, own_server

STORED = 10_000
FSYNCS = 200


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds; whole jobs get three fifths as many")
    parser.add_argument("--short", action="store_true", help="a look within seconds; its figures say nothing")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    effort = capacity_verbs.SHORT if options.short else replace(Effort(), rounds=options.rounds)
    sizes = capacity_whole.SHORT if options.short else Sizes()
    with own_server() as server:
        report = asyncio.run(measure(server, effort, sizes))
    for row in report["verbs"]:
        print({name: value for name, value in row.items() if name != "spread"})
    for part in ("whole", "storage", "disk"):
        print(part, json.dumps(report[part], indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


async def measure(server: BenchServer, effort: Effort, sizes: Sizes) -> dict[str, Any]:
    """Return everything that is found out."""
    begun, quiet = time.perf_counter(), [look()]
    _, dsn = await server.new_database()
    stored = STORED if effort.jobs > capacity_verbs.SHORT.jobs else 100
    async with open_site(dsn) as site:
        await _set(site.watch, "autovacuum", "off")  # it would be counted now and then
        verbs = Verbs(site, effort)
        storage = [await store(verbs, stored, payload) for payload in (0, effort.payload)]
        for _ in range(effort.rounds):
            await verbs.round()
            await verbs.prune()
        disk = await commits(dsn, max(effort.single, 20))
        await _set(site.watch, "autovacuum", "on")
    quiet.append(look())
    whole = await measure_whole(server, sizes, math.ceil(effort.rounds * 0.6))
    quiet.append(look())
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "server": await server.settings(),
        "quiet": [one.to_json() for one in quiet],
        "rounds": effort.rounds,
        "took_seconds": round(time.perf_counter() - begun),
        "verbs": verbs.measured.to_json(),
        "whole": {name: spread(rounds) for name, rounds in whole.items()},
        "storage": storage,
        "disk": disk,
    }


async def store(verbs: Verbs, count: int, payload: int) -> dict[str, float]:
    """Return the bytes of a job that waits and of one that ended, tables and indexes, on empty tables."""
    site: Site = verbs.site
    await site.watch.execute("TRUNCATE capacity.jobs, capacity.finished_jobs")
    empty = await site.sizes()
    await verbs.fill(count, payload)
    waiting = await site.sizes()
    await verbs.drain()
    ended = await site.sizes()

    def each(after: Mapping[str, tuple[int, int]], table: str, part: int) -> float:
        return round((after[table][part] - empty[table][part]) / count, 1)

    found = {
        f"{word}_{name}": each(after, table, part)
        for word, after, table in (("waiting", waiting, "jobs"), ("ended", ended, "finished_jobs"))
        for part, name in enumerate(("heap", "indexes"))
    }
    return {"payload": payload, **found}


async def commits(dsn: str, count: int) -> dict[str, float]:
    """Return what a commit of one row takes here, alone and by eight connections at once."""
    connections = [await asyncpg.connect(dsn) for _ in range(8)]
    await connections[0].execute("CREATE TABLE bare (id int)")

    async def insert(connection: Any) -> list[float]:
        taken = []
        for number in range(count):
            begun = time.perf_counter()
            await connection.execute("INSERT INTO bare VALUES ($1)", number)
            taken.append(time.perf_counter() - begun)
        return taken

    alone = await insert(connections[0])
    begun = time.perf_counter()
    await asyncio.gather(*map(insert, connections))
    together = 8 * count / (time.perf_counter() - begun)
    for connection in connections:
        await connection.close()
    return {"commit_ms": round(1000 * statistics.median(alone), 3), "commits_per_second_of_8": round(together)}


async def measure_whole(server: BenchServer, sizes: Sizes, rounds: int) -> dict[str, list[Figures]]:
    """Return the figures of every arm and round, arms in turns."""
    found: dict[str, list[Figures]] = {}
    _, dsn = await server.new_database()
    async with open_whole(dsn, server.pid, sizes) as whole:
        for _ in range(rounds):
            for name, arm in whole.arms().items():
                found.setdefault(name, []).append(await arm())
    return found


def spread(rounds: list[Figures]) -> dict[str, list[float]]:
    """Return median, least and most of each figure."""
    names = dict.fromkeys(name for figures in rounds for name in figures)
    columns = {name: [figures[name] for figures in rounds if name in figures] for name in names}
    return {
        name: [round(value, 4) for value in (statistics.median(column), min(column), max(column))]
        for name, column in columns.items()
    }


async def _set(connection: Any, name: str, value: str) -> None:
    await connection.execute(f"ALTER SYSTEM SET {name} = {value}")
    await connection.execute("SELECT pg_reload_conf()")


if __name__ == "__main__":
    main()
