"""Workers that run JSON flows are killed in the middle of nodes; every node has to put out what it has to anyway."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headrace import App, Run
from headrace.apps.flows.tasks import register
from headrace.model.run import Level
from headrace.settings import load_settings
from headrace.testing.provider import ProviderProcess
from tests.faults.site import Site, WorkerProcess
from tests.flows import goldens

APP = "headrace.apps.flows.worker:app"
WORKERS, SLOTS = 2, 8
#: Time between two kills, and of peace after three: see `workflow_kills`.
PAUSE_SECONDS, ROW, PEACE_SECONDS = (0.2, 1.0), 3, 5.0
#: How often all flows are run at most until there were kills enough.
MOST_ROUNDS = 20
#: A run that takes longer hangs.
LONGEST_SECONDS = 90.0


@dataclass
class Report:
    """What came of all flows at both levels."""

    runs: int = 0
    #: Workers that were killed, and those that had something under way when they died.
    kills: int = 0
    hits: int = 0
    #: Jobs that the dead held, which others had to take over.
    cut_off: int = 0
    seconds: float = 0.0
    #: Differences by flow and level.
    wrong: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Crew:
    """Two workers, one of which is killed now and then, when it has something to do."""

    site: Site
    app: App
    environ: dict[str, str]
    report: Report
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    workers: list[WorkerProcess] = field(default_factory=list)

    def begin(self) -> None:
        """Start both and wait until they work."""
        self.workers = [self._start() for _ in range(WORKERS)]
        for worker in self.workers:
            worker.wait_until_started()

    def _start(self) -> WorkerProcess:
        return self.site.start_worker("--concurrency", str(SLOTS), environ=self.environ, app=APP)

    async def suffer(self, hits: int) -> None:
        """Kill workers until so many have died with something under way."""
        while self.report.hits < hits:
            await asyncio.sleep(self.chance.uniform(*PAUSE_SECONDS))
            await self._kill_one()
            if self.report.kills and self.report.kills % ROW == 0:
                await asyncio.sleep(PEACE_SECONDS)

    async def _kill_one(self) -> None:
        running = await self._running()
        busy = [number for number, worker in enumerate(self.workers) if running[worker.pid]]
        if not busy:
            return
        number = self.chance.choice(busy)
        victim = self.workers[number]
        victim.kill()
        left = (await self._running())[victim.pid]
        self.report.kills += 1
        self.report.hits += left > 0
        self.report.cut_off += left
        self.workers[number] = self._start()

    async def _running(self) -> Counter[int]:
        """Return how many jobs each process has, the dead among them until their jobs are taken from them."""
        running = Counter[int]()
        for session in await self.app.runtime.stores.inspect.list_sessions():
            running[session.process.pid] += session.running  # a process may have more than one
        return running

    def end(self) -> None:
        """Kill those that are left."""
        for worker in self.workers:
            worker.kill()


async def run_all(site: Site, folder: Path, *, hits: int) -> Report:
    """Run all flows at both levels while workers are killed; more than once, if need be, until so many were hit."""
    report, began = Report(), time.monotonic()
    async with _crew_of(site, folder, report) as (crew, web):
        killer = asyncio.create_task(crew.suffer(hits))
        try:
            for _ in range(MOST_ROUNDS):
                await _round(crew, web, report)
                if killer.done():
                    break
        finally:
            await ended(killer)
    for name in goldens.names():
        report.wrong |= _files(name, folder)
    report.seconds = time.monotonic() - began
    return report


async def ended(killer: asyncio.Task[None]) -> None:
    """Let a killer end, and raise what it failed by."""
    killer.cancel()
    for failed in await asyncio.gather(killer, return_exceptions=True):
        if isinstance(failed, Exception):
            raise failed


@asynccontextmanager
async def _crew_of(site: Site, folder: Path, report: Report) -> AsyncIterator[tuple[Crew, str]]:
    """Start what flows need, an app of this process, and workers."""
    with (
        goldens.surroundings(folder) as (web, environ),
        ProviderProcess("--answers", f"{folder}/answers.json") as model,
    ):
        environ = {**environ, **model.environment, "HEADRACE_BLOB_STORAGE_PATH": str(folder / "blobs")}
        app = App(settings=load_settings(environ={**site.environment, **environ}, file=folder / "none.toml"))
        register(app)
        async with app:
            crew = Crew(site, app, environ, report)
            crew.begin()
            try:
                yield crew, web.target
            finally:
                crew.end()


async def _round(crew: Crew, web: str, report: Report) -> None:
    runs = [
        (name, level, await goldens.start(crew.app, goldens.load(name), level, web=web))
        for name in goldens.names()
        for level in (Level.WORKFLOW, Level.NODE)
    ]
    for name, level, run in runs:
        report.runs += 1
        wrong = await _differences(crew.app, name, run, web)
        if wrong:
            report.wrong[f"{name}, {level}"] = wrong


async def _differences(app: App, name: str, run: Run, web: str) -> list[str]:
    try:
        await goldens.ended(run, LONGEST_SECONDS)
    except TimeoutError:
        live = [f"{one.node}: {one.state}" for one in await app.runtime.stores.runs.live_nodes(run.id)]
        return [f"did not end within {LONGEST_SECONDS} s; live: {live}"]
    golden = goldens.load(name)
    return goldens.differences(golden, await goldens.outcome(app, run, golden, web=web))


def _files(name: str, folder: Path) -> dict[str, list[str]]:
    wrong = goldens.files_differ(goldens.load(name), folder / "flow-files")
    return {f"{name}, files": wrong} if wrong else {}
