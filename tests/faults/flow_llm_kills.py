"""Workers are killed in the middle of flows that ask a model; what was paid is counted by the provider itself."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headrace import App, Run
from headrace.apps.flows.checks import check_flow
from headrace.apps.flows.form import parse_flow
from headrace.apps.flows.schemas import model_of
from headrace.apps.flows.storing import graph_of, input_of
from headrace.apps.flows.tasks import register
from headrace.llm.first_requests import first_request
from headrace.llm.prompts import conversation
from headrace.model.calls import CallState
from headrace.model.llm import CompletionRequest
from headrace.model.run import Level
from headrace.settings import load_settings
from headrace.testing.provider import ProviderProcess
from tests.faults.flow_kills import APP, ended
from tests.faults.site import Site, WorkerProcess
from tests.unit.flow_making import flow, node

WORKERS, SLOTS = 3, 8
PAUSE_SECONDS = (0.0, 0.6)
#: After so many kills there is peace for a while: see `workflow_kills`.
ROW, PEACE_SECONDS = 3, 4.0
LONGEST_SECONDS = 400.0
SYSTEM = "Say of which question and of which paper it is."
SCHEMA = {
    "type": "object",
    "properties": {"paper": {"type": "integer"}, "question": {"type": "integer"}},
    "required": ["paper", "question"],
    "additionalProperties": False,
}
ANSWERS = {
    "rules": [
        {"path": "question", "pattern": "question (\\d+)", "as": "integer"},
        {"path": "paper", "pattern": "paper (\\d+)", "as": "integer"},
    ]
}
_ASKED = re.compile(r"question (\d+) of paper (\d+)")


@dataclass
class Report:
    """What a run showed."""

    nodes: int
    items: int
    #: Workers that were killed while they had something under way.
    kills: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    #: Different questions that the provider was asked, and all its calls.
    asked: int = 0
    calls: int = 0
    #: Questions that have not exactly one call in the ledger that ended with its answer.
    not_once: int = 0
    #: Calls beyond the first of a question, those of them that the ledger does not list as orphaned, and all it lists.
    again: int = 0
    unlisted: int = 0
    orphaned: int = 0
    #: Calls of a rerun, and of another run with the same items.
    calls_of_rerun: int = -1
    calls_of_second: int = -1

    @property
    def clean(self) -> bool:
        """Whether every promise was kept."""
        once = self.asked == self.nodes * self.items and not self.not_once
        bounded = not self.unlisted and self.again <= self.orphaned
        return once and bounded and not self.wrong and self.calls_of_rerun == self.calls_of_second == 0


def describe(report: Report) -> dict[str, Any]:
    """Return a report as JSON has it."""
    return {**asdict(report), "clean": report.clean}


def document(count: int) -> dict[str, Any]:
    """Return a flow of so many nodes that ask: half of them in a chain, the others in two branches behind it."""
    nodes, wires, ends = [node("Papers", "manual")], list[str](), {0: "Papers", 1: "Papers"}
    for number in range(count):
        name, branch = f"Ask {number}", number % 2
        nodes.append(node(name, "llmExtract", _asks(number)))
        chained = number <= count // 2
        wires.append(f"{ends[0 if chained else branch]} -> {name}")
        ends = {0: name, 1: name} if chained else {**ends, branch: name}
    nodes.append(node("Both", "merge", {"mode": "combine", "combineBy": "combineByPosition"}, typeVersion=3))
    wires += [f"{ends[0]} -> Both:0", f"{ends[1]} -> Both:1"]
    return flow(nodes, *wires, name=f"Read papers by {count} questions")


def _asks(number: int) -> dict[str, Any]:
    return {
        "text": f"={question(number, '{{ $json.paper }}')}", "instructions": SYSTEM, "schema": SCHEMA,
        "outputField": f"answer{number}",
    }  # fmt: skip


def question(number: int, paper: object) -> str:
    """Return what a node asks of an item."""
    return f"question {number} of paper {paper}"


def wanted(report: Report) -> list[dict[str, Any]]:
    """Return what the last node has to put out."""
    return [
        {"paper": paper} | {f"answer{number}": {"question": number, "paper": paper} for number in range(report.nodes)}
        for paper in range(report.items)
    ]


async def run(
    site: Site, folder: Path, level: Level, *, nodes: int, items: int, kills: int, latency: float = 0.3
) -> Report:  # fmt: skip
    """Run a flow while its workers are killed, count what was paid, and run it again."""
    (folder / "answers.json").write_text(json.dumps(ANSWERS))
    report = Report(nodes, items)
    options = ("--answers", str(folder / "answers.json"), "--latency", str(latency), "--log", f"{folder}/calls.jsonl")
    with ProviderProcess(*options) as provider:
        environ = {
            **provider.environment, "HEADRACE_LLM_INPUT_PRICE": "1", "HEADRACE_LLM_OUTPUT_PRICE": "2",
            "HEADRACE_BLOB_STORAGE_PATH": str(folder / "blobs"),
        }  # fmt: skip
        app = App(settings=load_settings(environ={**site.environment, **environ}, file=folder / "none.toml"))
        register(app)
        async with app:
            crew = _Crew(site, app, provider, environ, report, kills)
            try:
                await _run_twice(crew, level)
            finally:
                crew.end()
    return report


async def _run_twice(crew: _Crew, level: Level) -> None:
    report, provider, began = crew.report, crew.provider, time.monotonic()
    first = await _start(crew.app, report, level)
    crew.begin()
    await _through(crew, first)
    report.seconds = time.monotonic() - began
    report.wrong = await _wrong(first, report)
    await count(crew.app, provider, report)
    paid = provider.stats().calls
    report.wrong += await _wrong(await first.rerun(), report)
    report.calls_of_rerun, paid = provider.stats().calls - paid, provider.stats().calls
    report.wrong += await _wrong(await _start(crew.app, report, level), report)
    report.calls_of_second = provider.stats().calls - paid


async def _start(app: App, report: Report, level: Level) -> Run:
    checked = check_flow(parse_flow(document(report.nodes)))
    assert checked.runs, [str(problem) for problem in checked.problems]
    workflow = app.workflow(f"papers.{level.value}", graph_of(checked, level=level))
    return await app.start(workflow, input_of(checked, [{"json": {"paper": paper}} for paper in range(report.items)]))


async def _wrong(run: Run, report: Report) -> list[str]:
    found = [item["json"] for item in await run.result(LONGEST_SECONDS)]
    expected = wanted(report)
    wrong = [f"{got}, should be {one}" for got, one in zip(found, expected, strict=False) if got != one]
    return wrong if len(found) == len(expected) else [*wrong, f"{len(found)} items"]


async def _through(crew: _Crew, run: Run) -> None:
    """Kill workers until there were enough, or until the run ends."""
    killer = asyncio.create_task(crew.suffer())
    try:
        await run.result(LONGEST_SECONDS)
    finally:
        await ended(killer)


@dataclass
class _Crew:
    """Workers, one of which is killed now and then while the model is asked."""

    site: Site
    app: App
    provider: ProviderProcess
    environ: dict[str, str]
    report: Report
    most: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(11))
    workers: list[WorkerProcess] = field(default_factory=list)

    def begin(self) -> None:
        """Start them; nobody waits for them."""
        self.workers = [self._start() for _ in range(WORKERS)]

    def _start(self) -> WorkerProcess:
        return self.site.start_worker("--concurrency", str(SLOTS), environ=self.environ, app=APP)

    async def suffer(self) -> None:
        """Kill those that have something under way, each time when the model is being asked again."""
        while self.report.kills < self.most:
            await asyncio.sleep(self.chance.uniform(*PAUSE_SECONDS))
            busy = await self._busy()
            if not self.provider.stats().in_flight or not busy:
                continue
            number = self.chance.choice(busy)
            self.workers[number].kill()
            self.workers[number] = self._start()
            self.report.kills += 1
            if self.report.kills % ROW == 0:
                await asyncio.sleep(PEACE_SECONDS)

    async def _busy(self) -> list[int]:
        sessions = await self.app.runtime.stores.inspect.list_sessions()
        running = {session.process.pid for session in sessions if session.running}
        return [number for number, worker in enumerate(self.workers) if worker.pid in running]

    def end(self) -> None:
        """Kill those that are left."""
        for worker in self.workers:
            worker.kill()


async def count(app: App, provider: ProviderProcess, report: Report) -> None:
    """Compare what the provider was asked with what the ledger lists."""
    called = {question(*_ASKED.search(one["excerpt"]).groups()): one["calls"] for one in provider.calls("question ")}  # type: ignore[union-attr]
    ledger = app.runtime.stores.budgets
    settled = Counter([call.key for call in await ledger.list_calls(state=CallState.SETTLED, limit=10_000)])
    orphaned = Counter([call.key for call in await ledger.list_calls(state=CallState.ORPHANED, limit=10_000)])
    keys = dict(_keys(app, report))
    report.asked, report.calls, report.orphaned = len(called), provider.stats().calls, orphaned.total()
    for asked, times in called.items():
        report.not_once += settled[keys[asked]] != 1
        report.again += times - 1
        report.unlisted += max(times - 1 - orphaned[keys[asked]], 0)


def _keys(app: App, report: Report) -> Iterator[tuple[str, str]]:
    """Yield the memo key of each question as the gateway asks it."""
    llm, shape = app.llm, model_of(SCHEMA)
    for number in range(report.nodes):
        for paper in range(report.items):
            asked = question(number, paper)
            plain = CompletionRequest(model=llm.model_name, messages=conversation(asked, SYSTEM))
            request = first_request(shape, plain, llm.style)
            yield asked, request.memo_key(llm.provider_name, endpoint=app.settings.llm_settings().memo_endpoint)
