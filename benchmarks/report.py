"""Measure whole reports: beside the least that the model allows, and with no model at all.

Run ``python -m benchmarks.report [--rounds 3] [--latency 0.5] [--in-flight 64]``. It starts a PostgreSQL of its own
(fsync on) and a scripted provider in a process of its own, and makes, in turns, a report of each of two workbooks of
2,000 rows: the messy sample, and one in which every row failed, which is the most that rows can ask of a model. Then,
once each, with a provider that refuses every connection.

``least`` is what the model alone would take: ``calls / in_flight`` calls after one another, and one for the text, which
needs all others. ``ratio`` is the time from the request to the end of the report beside it. Imports and the start of
the processes are no part of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import xlsxwriter

from headrace.testing.provider import ProviderProcess
from tests.backends.server import PostgresServer

ROOT = Path(__file__).resolve().parent.parent
ROWS = 2_000
HEADER = ("Case ID", "Module", "Title", "Priority", "Steps", "Expected", "Actual", "Result")
MODULES = ("Login", "Payment", "Search", "Orders", "Profile", "Reports")
FAILURES = (
    "HTTP 500 from /api/{module}/{number}", "NullPointerException in {module}Service.load",
    "timeout after {number} ms waiting for selector '#b{number}'", "expected '{number}' but was '0'",
    "deadlock detected while updating {module}", "button {number} does nothing",
)  # fmt: skip
#: The text cites clusters that there are, and summaries cite the case that stands for the cluster.
RULES = {
    "rules": [
        {"path": "conclusions", "value": [{"text": "The largest cluster needs a look.", "cites": [""]}]},
        {"path": "conclusions.0.cites.0", "pattern": '"id": "(C-[^"]+)"'},
        {"path": "evidence", "pattern": '"representative": "([^"]+)"', "as": "string", "all": True},
        {"path": "name", "value": "Failures that look alike"},
        {"path": "commonality", "value": "They fail in the same way."},
        {"path": "systemic_risk", "value": "One cause may be behind them."},
        {"path": "groups", "value": []},
        {"path": "confidence", "value": 0.9},
    ]
}


#: The limits are known, and far away: with unknown ones the first minute of a store goes slowly, as it must.
LIMITS = {"HEADRACE_LLM_REQUESTS_PER_MINUTE": "60000"}


def write_failing(path: Path) -> None:
    """Write a workbook of which every row failed."""
    chance = random.Random(5)
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet("Cases")
    sheet.write_row(0, 0, HEADER)
    for row in range(ROWS):
        module, number = chance.choice(MODULES), chance.randint(1, 9_999)
        actual = chance.choice(FAILURES).format(module=module, number=number)
        priority = chance.choice(("P0", "P1", "P2", "P3"))
        cells = (f"{module.upper()}-{row:04}", module, f"{module} case {row}", priority, f"press {number}", "it works")
        sheet.write_row(row + 1, 0, (*cells, actual, "Fail"))
    book.close()


async def make(path: Path, in_flight: int) -> dict[str, Any]:
    """Make one report, and return what it took."""
    from headrace.apps.report.commands.following import working
    from headrace.apps.report.job import ReportRequest, begin_report
    from headrace.apps.report.opening import app

    async with working(concurrency=in_flight, elsewhere=False):
        await app.llm.prepare()
        began = time.perf_counter()
        job = await begin_report(ReportRequest(str(path)), name=str(time.time_ns()))
        result = await job.run.result()
        return {
            "seconds": round(time.perf_counter() - began, 2), "status": result["status"],
            "calls": result["next_inputs"]["usage"]["calls"], "cases": result["metrics"]["cases"],
        }  # fmt: skip


def beside_least(made: dict[str, Any], latency: float, in_flight: int) -> dict[str, Any]:
    """Return a report's figures with the least that the model allows."""
    least = (made["calls"] - 1) * latency / in_flight + latency
    return made | {"least": round(least, 2), "ratio": round(made["seconds"] / least, 3)}


def child(options: argparse.Namespace) -> None:
    """Make one report in this process, and print its figures."""
    print(json.dumps(asyncio.run(make(options.workbook, options.in_flight))))


async def in_child(workbook: Path, in_flight: int, settings: dict[str, str], folder: Path) -> dict[str, Any]:
    """Make one report in a process of its own."""
    environment = {**os.environ, **settings, "PYTHONPATH": str(ROOT)}
    await run([sys.executable, "-m", "headrace", "migrate"], environment, folder)
    words = ["benchmarks.report", "--workbook", str(workbook), "--in-flight", str(in_flight)]
    found: dict[str, Any] = json.loads(await run([sys.executable, "-m", *words], environment, folder))
    return found


async def run(command: list[str], environment: dict[str, str], folder: Path) -> str:
    """Run a command and return the last line that it wrote."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env=environment, cwd=folder
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, f"{command} failed"
    return (out.decode().splitlines() or [""])[-1]


async def measure(options: argparse.Namespace, folder: Path, url: str) -> dict[str, Any]:
    """Return the figures of all rounds."""
    from headrace.apps.report.samples.messy import write_messy

    messy, failing, rules = folder / "messy.xlsx", folder / "failing.xlsx", folder / "rules.json"
    write_messy(messy)
    write_failing(failing)
    rules.write_text(json.dumps(RULES), encoding="utf-8")
    found: dict[str, Any] = {}
    for number in range(options.rounds):
        for workbook in (messy, failing):
            # Each with a provider of its own name: no answer of a round before may serve this one.
            with ProviderProcess("--latency", f"{options.latency},100000", "--answers", str(rules)) as provider:
                place = {"HEADRACE_URL": url, "HEADRACE_QUEUE_SCHEMA": f"r{number}"}
                settings = {**provider.environment, **LIMITS, **place}
                made = await in_child(workbook, options.in_flight, settings, folder)
                calls = provider.stats().calls
            told = beside_least(made | {"calls": calls}, options.latency, options.in_flight)
            found.setdefault(workbook.stem, []).append(told)
    away = {
        "HEADRACE_LLM_BASE_URL": "http://127.0.0.1:9/v1", "HEADRACE_LLM_MODEL": "away", "HEADRACE_LLM_API_KEY": "none",
        "HEADRACE_URL": url, "HEADRACE_QUEUE_SCHEMA": "away",
    }  # fmt: skip
    for workbook in (messy, failing):
        found[f"{workbook.stem}, no model"] = [await in_child(workbook, options.in_flight, away, folder)]
    return {name: summed(rounds) for name, rounds in found.items()}


def summed(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the median and the spread of what rounds took."""
    seconds = [one["seconds"] for one in rounds]
    ratios = [one["ratio"] for one in rounds if "ratio" in one]
    spread = {"ratio": statistics.median(ratios), "ratios": ratios} if ratios else {}
    return rounds[0] | {"seconds": statistics.median(seconds), "each": seconds} | spread


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds a call takes")
    parser.add_argument("--in-flight", type=int, default=64, help="calls at once")
    parser.add_argument("--workbook", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.workbook is not None:
        child(options)
        return
    server = PostgresServer(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            figures = asyncio.run(measure(options, Path(folder), server.dsn))
    finally:
        server.stop()
        shutil.rmtree(server.root, ignore_errors=True)
    print(json.dumps({"python": platform.python_version(), "cores": os.cpu_count(), "reports": figures}, indent=1))


if __name__ == "__main__":
    main()
