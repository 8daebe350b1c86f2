"""Show how elastic slots follow a bursty load, and that they do not grow where the quota of a model binds.

Run ``python benchmarks/elastic.py [--json FILE] [--unguarded]`` (about 80 s). One worker with 4 to 40 slots, looked at
every second, over an embedded PostgreSQL; a scripted provider of 10 calls a second. Three loads, one after the other,
each followed by a pause: two bursts of jobs that rest for 0.1 s, and a burst of jobs that call the model. Printed: each
second's backlog, running jobs and slots, then for each load the sizes in their order and how often they turned.

``--unguarded`` leaves out that what runs waits for its quota: then the slots grow in the third load, and gain nothing.
The exit code is 1 where slots flap, do not follow a burst, or grow in the third load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headrace import App, Task
from headrace.engine.slot_use import SlotUse
from headrace.engine.telemetry import SLOTS
from headrace.engine.worker import Worker
from headrace.model.job import JobState
from headrace.settings import load_settings
from headrace.testing.provider import ProviderProcess

QUEUE = "elastic"
LEAST, MOST, START = 4, 40, 10
RULE = {"min_slots": LEAST, "max_slots": MOST, "start_slots": START, "grow_above": 200, "shrink_below": 50}
REST_SECONDS = 0.1
CALLS_PER_SECOND = 10
#: A burst goes up, and the pause down: more is flapping.
MOST_TURNS = 2


@dataclass(frozen=True)
class Load:
    """Jobs that come at once, and how long is looked at what becomes of them."""

    name: str
    task: str
    jobs: int
    seconds: int


LOADS = (
    Load("first burst", "rest", 3_000, 28),
    Load("second burst", "rest", 3_000, 28),
    Load("burst of calls", "ask", 500, 20),
)


@dataclass(frozen=True)
class Second:
    """What was seen at one second."""

    at: int
    load: str
    ready: int
    running: int
    slots: int
    eligible: int
    held_by: str | None


@dataclass(frozen=True)
class Outcome:
    """How the slots went under one load."""

    load: str
    sizes: list[int]
    turns: int
    ended: int
    seconds: list[Second] = field(repr=False, default_factory=list)


def make_app(environ: Mapping[str, str]) -> tuple[App, dict[str, Task[[int], None]]]:
    """Return an app of one elastic queue, and its tasks by name."""
    app = App(settings=load_settings(environ=environ, file=Path("none.toml")))
    app.queue(QUEUE, **RULE)  # type: ignore[arg-type]

    @app.task(queue=QUEUE)
    async def rest(number: int) -> None:
        await asyncio.sleep(REST_SECONDS)

    @app.task(queue=QUEUE)
    async def ask(number: int) -> None:
        await app.llm.complete(f"Name river number {number}.", max_tokens=10)

    return app, {"rest": rest, "ask": ask}


async def look(app: App, worker: Worker, load: Load, at: int) -> Second:
    """See how it stands."""
    jobs = await app.runtime.stores.inspect.live_jobs(QUEUE)
    told = worker.telemetry.snapshot().get(SLOTS, {}).get(QUEUE, {})
    slots = 0 if worker.session is None else worker.session.queues[QUEUE]
    ready, running = jobs.get(JobState.READY, 0), jobs.get(JobState.RUNNING, 0)
    return Second(at, load.name, ready, running, slots, told.get("eligible", 0), told.get("held_by"))


async def play(environ: Mapping[str, str]) -> list[Outcome]:
    """Play all loads, and print each second."""
    app, tasks = make_app(environ)
    outcomes, at = [], 0
    async with app.worker(queues=[QUEUE]) as worker:
        # Connecting takes longer than a look.
        await app.llm.complete("Are you there?", max_tokens=10)
        print(f"{'second':>6} {'ready':>6} {'running':>7} {'slots':>5} {'eligible':>8}  held by")
        for load in LOADS:
            print(f"-- {load.name}: {load.jobs} jobs")
            batch = await app.submit(tasks[load.task], range(load.jobs))
            seconds = []
            for _ in range(load.seconds):
                seen = await look(app, worker, load, at)
                seconds.append(seen)
                print(
                    f"{seen.at:>6} {seen.ready:>6} {seen.running:>7} {seen.slots:>5} {seen.eligible:>8}"
                    f"  {seen.held_by or ''}",
                    flush=True,
                )
                await asyncio.sleep(1)
                at += 1
            ended = (await batch.progress()).done
            outcomes.append(_outcome(load, seconds, ended))
            await batch.cancel()
    return outcomes


def _outcome(load: Load, seconds: list[Second], ended: int) -> Outcome:
    sizes = [size for size, _ in groupby(seen.slots for seen in seconds)]
    ways = [after > before for before, after in pairwise(sizes)]
    return Outcome(load.name, sizes, sum(way != other for way, other in pairwise(ways)), ended, seconds)


def faults(outcomes: list[Outcome]) -> list[str]:
    """Return what did not go as it should."""
    *bursts, calls = outcomes
    found = [f"{one.load}: turned {one.turns} times" for one in outcomes if one.turns > MOST_TURNS]
    found += [f"{one.load}: no more than {max(one.sizes)} slots" for one in bursts if max(one.sizes) < MOST]
    found += [f"{one.load}: still {one.sizes[-1]} slots" for one in bursts if one.sizes[-1] > LEAST]
    if max(calls.sizes) > calls.sizes[0]:
        found.append(f"{calls.load}: grew to {max(calls.sizes)} slots although the quota binds")
    return found


def main() -> int:
    """Play, print the table, and say what did not go as it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--unguarded", action="store_true", help="let slots grow although a quota binds")
    options = parser.parse_args()
    if options.unguarded:
        guarded = SlotUse.look
        SlotUse.look = lambda use: (guarded(use)[0], False)  # type: ignore[method-assign]
    quota = f"requests_per_minute={CALLS_PER_SECOND * 60},burst=1s"
    with tempfile.TemporaryDirectory() as folder, ProviderProcess("--latency", "0.1", "--quota", quota) as provider:
        environ = {
            **provider.environment,
            "HEADRACE_DIRECTORY": folder,
            "HEADRACE_WORKER_RESIZE_INTERVAL": "1s",
            "HEADRACE_LLM_REQUESTS_PER_MINUTE": str(CALLS_PER_SECOND * 60),
        }
        outcomes = asyncio.run(play(environ))
    print("\n| load | jobs that ended | slots, in their order | turns |\n|---|---|---|---|")
    for one in outcomes:
        print(f"| {one.load} | {one.ended:,} | {' → '.join(map(str, one.sizes))} | {one.turns} |")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n")
    found = faults(outcomes)
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
