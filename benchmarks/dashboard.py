"""Walk through the dashboard of a system that is big: 1,000,000 jobs that ended and 100,000 that wait.

Run ``python benchmarks/dashboard.py [--ended N] [--waiting N] [--pictures FOLDER] [--json]`` (about five minutes). It
starts a PostgreSQL of its own (fsync and synchronous_commit on), a worker and a service, brings work of every kind, and
drives a browser through every page and every action that they offer: milliseconds until the first byte as the browser
counts them, bytes of a page with all that it asks for, what it complains of, and what came of each action. Before
that a batch of 10,000 items runs while its page is open. ``TEST_AXE`` names another axe-core than that of the package.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx2

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from growth import HISTORY, LOAD, SESSIONS  # noqa: E402
from live_grid import measure_grid  # noqa: E402
from spike_hot_path import postgres  # noqa: E402

from headrace.dashboard.table import PAGES  # noqa: E402
from tests.acceptance.dashboard_actions import do_all  # noqa: E402
from tests.acceptance.dashboard_fill import fill, model  # noqa: E402
from tests.acceptance.dashboard_walk import Walk  # noqa: E402
from tests.unit.browser import browser, installed  # noqa: E402

WORLD = ROOT / "tests" / "acceptance" / "dashboard_world.py"
#: Requests for the overview that are timed besides the walk.
TURNS = 30


async def load(dsn: str, *, ended: int, waiting: int) -> None:
    """Fill the tables with jobs of a queue that no worker serves, and let PostgreSQL know how full they are."""
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "headrace"})
    try:
        await connection.execute(SESSIONS.replace("interval '1 day'", "interval '-1 hour'"))
        await connection.execute(LOAD.replace("'default'", "'bulk'"), "ready", waiting)
        for start in range(0, ended, 100_000):
            await connection.execute(HISTORY.replace("'default'", "'bulk'"), None, min(100_000, ended - start))
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


@contextmanager
def running(dsn: str, more: Mapping[str, str], *arguments: str) -> Iterator[dict[str, Any]]:
    """Start a command of ours that runs on, and yield the first line that it says."""
    environment = {**os.environ, "HEADRACE_URL": dsn, **more}
    command = [sys.executable, "-m", "headrace", *arguments, "--json"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)


def time_overview(client: httpx2.Client) -> list[float]:
    """Return the milliseconds of requests for the overview, one after another."""
    found = []
    for _ in range(TURNS):
        answer = client.get("/", headers={"accept": "text/html"})
        answer.raise_for_status()
        found.append(answer.elapsed.total_seconds() * 1000)
    return found


def measure(options: argparse.Namespace, dsn: str) -> dict[str, Any]:
    """Walk through all pages and return what was seen."""
    subprocess.run(
        [sys.executable, "-m", "headrace", "migrate"], env={**os.environ, "HEADRACE_URL": dsn}, check=True, cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    asyncio.run(load(dsn, ended=options.ended, waiting=options.waiting))
    program = installed()
    assert program is not None, "this machine has no browser: install chromium"
    with (
        model() as more,
        running(dsn, more, "worker", f"{WORLD}:app"),
        running(dsn, more, "serve", f"{WORLD}:app", "--port", "0") as served,
        httpx2.Client(base_url=served["url"], timeout=60) as client,
        tempfile.TemporaryDirectory() as folder,
        browser(program, Path(folder)) as tab,
    ):
        grid = measure_grid(tab, served["url"], dsn)
        fill(client)
        overview = time_overview(client)
        walk = Walk(tab, served["url"], PAGES, pictures=options.pictures)
        visits = walk.run()
        actions = do_all(tab, served["url"], PAGES, [visit.path for visit in visits])
    return {
        "overview_ms": {"median": statistics.median(overview), "worst": max(overview), "of": TURNS},
        "grid_ms": grid,
        "pages": [
            {"page": visit.page, "path": visit.path, "first_byte_ms": round(visit.first_byte, 1), "bytes": visit.weight}
            for visit in visits
        ],
        "actions": [[one.page, one.verb, one.target, one.status, one.said] for one in actions],
        "faults": [fault for one in (*visits, *actions) for fault in one.faults],
        "unseen": sorted(walk.unseen),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ended", type=int, default=1_000_000)
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    with postgres() as dsn:
        found = measure(options, dsn)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    timing = found["overview_ms"]
    print(f"overview: median {timing['median']:.1f} ms, worst {timing['worst']:.1f} ms of {timing['of']}")
    for name, told in found["grid_ms"].items():
        figures = ", ".join(f"{rank} {told[rank]:.2f}" for rank in ("median", "p95", "worst"))
        print(f"live batch, {name}: {figures} ms of {told['of']}")
    for one in found["pages"]:
        print(f"{one['page']:16} {one['first_byte_ms']:8.1f} ms {one['bytes']:9,} bytes  {one['path']}")
    for page, verb, target, status, said in found["actions"]:
        print(f"{page:16} {status:8} {verb} {target}  {said if status >= 400 else ''}")
    print(f"pages that no link led to: {', '.join(found['unseen']) or 'none'}")
    print("\n".join(found["faults"]) or "no faults")


if __name__ == "__main__":
    main()
