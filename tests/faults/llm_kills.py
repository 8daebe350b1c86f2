"""Processes that call a model are killed at random points; what was paid twice is counted by the provider itself."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headrace import App
from headrace.model.calls import CallState
from headrace.model.llm import CompletionRequest
from headrace.settings import load_settings
from headrace.testing.provider import ProviderProcess
from tests.faults.llm_tasks import make, question, wanted
from tests.faults.site import Site, WorkerProcess

APP = "tests.faults.llm_tasks:app"
WORKERS, SLOTS = 3, 8
ANSWERS = {"rules": [{"compute": "upper"}]}
#: Time between two kills: a new process needs about a second to begin.
PAUSE_SECONDS = (0.1, 0.9)


@dataclass
class Report:
    """What a run showed."""

    kills: int
    items: int
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    #: calls whose client was gone before the answer was written, as the provider saw it
    cut_off: int = 0
    #: calls beyond the first of each content, answered or not: a provider may charge for any
    paid_twice: int = 0
    #: contents among these of which too few calls are listed as orphaned
    unlisted: int = 0
    #: calls that the ledger lists as orphaned, and what they may have cost at most
    orphaned: int = 0
    orphaned_nano: int = 0
    paid: int = 0
    #: calls that the provider got when the same items were submitted again
    calls_again: int = -1

    @property
    def clean(self) -> bool:
        """Whether every promise was kept."""
        bounded = self.paid_twice <= min(self.orphaned, self.kills * SLOTS)
        return not self.wrong and not self.unlisted and bounded and self.calls_again == 0


async def run(site: Site, folder: Path, *, kills: int, items: int, seed: int = 0, latency: float = 0.3) -> Report:
    """Submit items, kill their workers at random points, and count."""
    answers = folder / "answers.json"
    answers.write_text(json.dumps(ANSWERS))
    report = Report(kills, items)
    options = ("--answers", str(answers), "--latency", str(latency), "--log", str(folder / "calls.jsonl"))
    with ProviderProcess(*options) as provider:
        environ = {**provider.environment, "HEADRACE_LLM_INPUT_PRICE": "1", "HEADRACE_LLM_OUTPUT_PRICE": "2"}
        settings = load_settings(environ={**site.environment, **environ}, file=folder / "none.toml")
        app, ask = make(App(settings=settings))
        began = time.monotonic()
        async with app:
            batch = await app.submit(ask, list(range(items)), key="first")
            workers = [start(site, environ) for _ in range(WORKERS)]
            chance = random.Random(seed)
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
                victim = chance.randrange(WORKERS)
                workers[victim].kill()
                workers[victim] = start(site, environ)
            await batch.wait(timeout=600)
            async for item in batch.results():
                if item.result != wanted(item.index):
                    report.wrong.append(f"{item.index}: {item.error or item.result}")
            report.seconds = time.monotonic() - began
            await count(app, provider, report)
            paid = provider.stats().calls
            again = await app.submit(ask, list(range(items)), key="again")
            await again.wait(timeout=600)
            report.calls_again = provider.stats().calls - paid
        for worker in workers:
            worker.kill()
    return report


def start(site: Site, environ: dict[str, str]) -> WorkerProcess:
    """Start a worker; nobody waits for it."""
    return site.start_worker("--concurrency", str(SLOTS), environ=environ, app=APP)


async def count(app: App, provider: ProviderProcess, report: Report) -> None:
    """Compare what the provider answered with what the ledger lists."""
    called = Counter({entry["excerpt"]: entry["calls"] for entry in provider.calls("item ")})
    orphans = await app.runtime.stores.budgets.list_calls(state=CallState.ORPHANED, limit=10_000)
    listed = Counter(call.key for call in orphans)
    keys = {question(number): key_of(app, question(number)) for number in range(-report.items, report.items)}
    for asked, times in called.items():
        report.paid_twice += times - 1
        report.unlisted += times - 1 > listed[keys[asked]]
    stats = provider.stats()
    report.paid, report.cut_off = stats.paid, stats.outcomes.get("aborted", 0)
    report.orphaned = len(orphans)
    report.orphaned_nano = sum(call.usage.cost_nano for call in orphans)


def key_of(app: App, asked: str) -> str:
    """Return the memo key of a question as the gateway asks it."""
    from headrace.llm.prompts import conversation

    llm = app.llm
    request = CompletionRequest(model=llm.model_name, messages=conversation(asked, None), max_tokens=40)
    return request.memo_key(llm.provider_name, endpoint=app.settings.llm_settings().memo_endpoint)


def describe(report: Report) -> dict[str, Any]:
    """Return a report as JSON has it."""
    return {**asdict(report), "clean": report.clean}
