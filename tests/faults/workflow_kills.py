"""Processes that work runs are killed at random points; what runs come to is compared with a plain interpreter."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace import App
from headrace.model.graph.form import parse_graph
from headrace.settings import Settings, load_settings
from headrace.testing.provider import ProviderProcess
from tests.faults import llm_kills, llm_tasks
from tests.faults.site import Site, WorkerProcess
from tests.unit import graph_tasks
from tests.unit.graph_runs import compare, start
from tests.unit.graph_worlds import World, make_world

APP = "tests.faults.workflow_tasks:app"
LEVELS = ("workflow_level", "node_level")
WORKERS, SLOTS = 3, 8
#: Runs at once.
AT_ONCE = 4
#: Time between two kills; where a model is asked, from the next call that begins to the kill.
PAUSE_SECONDS, ASKING_PAUSE_SECONDS = (0.2, 1.0), (0.0, 0.3)
#: After so many kills there is peace for a while: who looks after the jobs of the dead has to be found first, and is
#: found never where it dies every other second.
ROW, PEACE_SECONDS = 3, 5.0
#: A run that takes longer hangs: deaths of workers are seen within seconds, and few runs meet more than a few.
LONGEST_SECONDS = 40.0


@dataclass
class Report:
    """What a run of many graphs showed."""

    graphs: int
    kills: int = 0
    nodes: int = 0
    seconds: float = 0.0
    #: Per graph that ended otherwise than it has to, what is different.
    wrong: dict[int, list[str]] = field(default_factory=dict)


@dataclass
class Crew:
    """The workers, one of which is killed now and then."""

    site: Site
    app: App
    environ: dict[str, str]
    chance: random.Random
    pause: tuple[float, float] = PAUSE_SECONDS
    #: How much has been done so far: each kill waits until there is more.
    done: Callable[[], int] | None = None
    workers: list[WorkerProcess] = field(default_factory=list)
    kills: int = 0

    def begin(self) -> None:
        """Start all of them; nobody waits for them."""
        self.workers = [self._start() for _ in range(WORKERS)]

    def _start(self) -> WorkerProcess:
        return self.site.start_worker("--concurrency", str(SLOTS), environ=self.environ, app=APP)

    async def suffer(self, most: int) -> None:
        """Kill a worker and start another, up to so many times."""
        while self.kills < most:
            await self._until_more_is_done()
            await asyncio.sleep(self.chance.uniform(*self.pause))
            at_work = await self._at_work()
            if not at_work:
                continue
            victim = self.chance.choice(at_work)
            self.workers[victim].kill()
            self.workers[victim] = self._start()
            self.kills += 1
            if self.kills % ROW == 0:
                await asyncio.sleep(PEACE_SECONDS)

    async def _until_more_is_done(self) -> None:
        before = 0 if self.done is None else self.done()
        while self.done is not None and self.done() == before:
            await asyncio.sleep(0.05)

    async def _at_work(self) -> list[int]:
        """Return the workers that run something: the death of another says little."""
        sessions = await self.app.runtime.stores.inspect.list_sessions()
        busy = {session.process.pid for session in sessions if session.running}
        return [number for number, worker in enumerate(self.workers) if worker.pid in busy]

    def end(self) -> None:
        """Kill all that are left."""
        for worker in self.workers:
            worker.kill()


@contextmanager
def crew_of(site: Site, app: App, environ: dict[str, str], seed: int) -> Iterator[Crew]:
    """Start workers, and end them."""
    crew = Crew(site, app, environ, random.Random(seed))
    crew.begin()
    try:
        yield crew
    finally:
        crew.end()


@asynccontextmanager
async def suffering(crew: Crew, most: int) -> AsyncIterator[None]:
    """Let workers be killed while the block runs."""
    killer = asyncio.create_task(crew.suffer(most))
    try:
        yield
    finally:
        killer.cancel()
        await asyncio.gather(killer, return_exceptions=True)


def environ_of(folder: Path, level: str) -> dict[str, str]:
    """Return by what every process works all runs at a level, and keeps large values where the others find them."""
    return {"HEADRACE_SCHEDULER_HYBRID_DEFAULT_MODE": level, "HEADRACE_BLOB_STORAGE_PATH": str(folder / "blobs")}


def settings_of(site: Site, folder: Path, environ: dict[str, str]) -> Settings:
    """Return the settings of the workers, for an app in this process."""
    return load_settings(environ={**site.environment, **environ}, file=folder / "none.toml")


async def run_graphs(site: Site, folder: Path, level: str, *, graphs: int, first: int = 0) -> Report:
    """Run the graphs of some seeds at a level while workers are killed."""
    environ, report, began = environ_of(folder, level), Report(graphs), time.monotonic()
    app = graph_tasks.make(App(settings=settings_of(site, folder, environ)))
    room = asyncio.Semaphore(AT_ONCE)

    async def run_one(seed: int) -> None:
        world = make_world(seed, salt=level)
        async with room:
            await _run_one(app, world, report)

    async with app:
        with crew_of(site, app, environ, first) as crew:
            async with suffering(crew, most=10 * graphs), asyncio.TaskGroup() as group:
                for seed in range(first, first + graphs):
                    group.create_task(run_one(seed))
            report.kills = crew.kills
    report.seconds = time.monotonic() - began
    return report


async def _run_one(app: App, world: World, report: Report) -> None:
    found = await compare(app, await start(app, world), world, seconds=LONGEST_SECONDS)
    report.nodes += len(world.expected()[1])
    if found:
        report.wrong[world.seed] = found


# Nodes that call a model

ROWS, COLUMNS = 10, 5


def asking_graph() -> dict[str, Any]:
    """Return a graph of 50 nodes that ask a model: five chains of ten, with ways from each to the next one."""
    nodes = [{"id": f"ask-{number}", "task": "ask", "args": [number]} for number in range(ROWS * COLUMNS)]
    edges = []
    for number in range(COLUMNS, ROWS * COLUMNS):
        above, column = number - COLUMNS, number % COLUMNS
        edges.append({"from": f"ask-{above}", "to": f"ask-{number}"})
        if column % 2:
            edges.append({"from": f"ask-{above - 1}", "to": f"ask-{number}"})
    output = [{"$node": node["id"]} for node in nodes]
    return {"nodes": nodes, "edges": edges, "output": output}


async def run_asking(
    site: Site, folder: Path, level: str, *, kills: int, seconds: float = 0.3, seed: int = 0
) -> llm_kills.Report:
    """Run nodes that call a model while workers are killed, count what was paid, and run them again.

    `seconds`: how long an answer takes; ten of them follow one another.
    """
    report = llm_kills.Report(kills, ROWS * COLUMNS)
    with _provider(folder, seconds) as provider:
        prices = {"HEADRACE_LLM_INPUT_PRICE": "1", "HEADRACE_LLM_OUTPUT_PRICE": "2"}
        environ = {**environ_of(folder, level), **provider.environment, **prices}
        app, _ = llm_tasks.make(App(settings=settings_of(site, folder, environ)))
        asking, began = app.workflow("asking", parse_graph(asking_graph())), time.monotonic()
        async with app:
            run = await app.start(asking)
            with crew_of(site, app, environ, seed) as crew:
                crew.pause, crew.done = ASKING_PAUSE_SECONDS, lambda: provider.stats().calls
                async with suffering(crew, most=kills):
                    results = await run.result(timeout=600)
                report.kills = crew.kills
                report.wrong = [f"{at}: {one}" for at, one in enumerate(results) if one != llm_tasks.wanted(at)]
                report.seconds = time.monotonic() - began
                await llm_kills.count(app, provider, report)
                paid = provider.stats().calls
                again = await app.start(asking)
                assert await again.result(timeout=600) == results
                assert await (await run.rerun()).result(timeout=600) == results
                report.calls_again = provider.stats().calls - paid
    return report


def _provider(folder: Path, seconds: float) -> ProviderProcess:
    answers = folder / "answers.json"
    answers.write_text('{"rules": [{"compute": "upper"}]}')
    return ProviderProcess("--answers", str(answers), "--latency", str(seconds), "--log", str(folder / "calls.jsonl"))
