"""Measure where work stops at a budget of model calls, how far over it, and how soon it goes on once that is raised.

Run ``python benchmarks/budget.py [--items N] [--json FILE] [SCENARIO …]``. Each scenario starts a scripted provider and
three worker processes over an embedded PostgreSQL: a batch of items, one call each, under a budget for 40 % of what
they cost. When nothing has been called for five seconds, what was spent is held against the budget; then the budget is
raised. Shown: spent ÷ budget at the stop, by how many calls' price that is over, calls in flight at most, failed jobs,
seconds from raising to the next call, and whether every item was answered with one call each.

Scenarios whose name ends in "unforeseen" give no `max_tokens`, and each answer is longer than those before it, so that
every call uses more than was estimated: only so can a budget be overshot, by no more than the calls in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headrace import App, Backoff, Batch
from headrace.model.budget import BudgetView
from headrace.model.calls import CallState, CallView
from headrace.model.money import NANO
from headrace.model.usage import Usage
from headrace.settings import load_settings
from headrace.testing.provider import ProviderProcess
from tests.waiting import wait_until

WORKERS, SLOTS = 3, 8
LATENCY = 0.25
#: US dollars per million tokens of prompts and of answers.
INPUT_PRICE, OUTPUT_PRICE = 1, 2
QUESTION = "put this into capitals: the name of river number"
#: The length of answers that is assumed where it is not given: too short.
EXPECTED_TOKENS = 8
#: The part of the whole cost that the budget is for.
PART = 0.4
#: Nothing called for so long: work has stopped. Calls take a quarter of a second.
STILL_SECONDS = 5.0

app = App(os.environ.get("HEADRACE_URL"))


# A name of its own: this file is also run as a program.
@app.task(
    name="benchmarks.budget.ask",
    queue="budget",
    retry=Backoff.exponential(max_attempts=5, base="50ms", cap="1s"),
    timeout="60s",
)
async def ask(number: int, tenant: str | None, max_tokens: int | None) -> str:
    """Ask one thing, for a tenant or for nobody."""
    llm = app.llm if tenant is None else app.llm.using(tenant=tenant)
    return await llm.complete(question(number, max_tokens), max_tokens=max_tokens)


def question(number: int, max_tokens: int | None) -> str:
    """Return what is asked for an item, in capitals the answer; without `max_tokens` longer and longer."""
    return f"{QUESTION} {number:05}{'' if max_tokens else ' and one more' * number}"


@dataclass(frozen=True)
class Scenario:
    """Whose budget, in what, and whether the length of answers is known."""

    kind: str
    unit: str
    max_tokens: int | None = 20


SCENARIOS = {
    "dollars per batch": Scenario("batch", "dollars"),
    "dollars per tenant": Scenario("tenant", "dollars"),
    "dollars per day": Scenario("day", "dollars"),
    "tokens per tenant": Scenario("tenant", "tokens"),
    "tokens per batch": Scenario("batch", "tokens"),
    "dollars per batch, unforeseen": Scenario("batch", "dollars", None),
    "tokens per day, unforeseen": Scenario("day", "tokens", None),
}


@dataclass(frozen=True)
class Figures:
    """What a scenario gave; money in nanodollars where the budget is in dollars."""

    scenario: str
    items: int
    budget: int
    #: of the budget, when nothing was called any more
    spent: int
    spent_part: float
    #: by how many calls more than the budget was spent, at the price of the dearest; 0: it was kept
    calls_over: float
    #: calls under way at one time, at most
    peak_in_flight: int
    #: calls when work stopped, and until it was raised
    calls_at_stop: int
    jobs_failed: int
    seconds_to_stop: float
    #: from raising to the next call, and to the end
    seconds_to_resume: float
    seconds_to_end: float
    answered: int
    calls: int


async def measure(
    name: str,
    environ: Mapping[str, str],
    *,
    items: int,
    folder: Path,
    workers: int = WORKERS,
    still_seconds: float = STILL_SECONDS,
) -> Figures:
    """Run a scenario on a store; `environ` says where that is."""
    answers = folder / "answers.json"
    answers.write_text(json.dumps({"rules": [{"compute": "upper"}]}))
    with ProviderProcess("--answers", str(answers), "--latency", str(LATENCY)) as provider:
        prices = {"HEADRACE_LLM_INPUT_PRICE": str(INPUT_PRICE), "HEADRACE_LLM_OUTPUT_PRICE": str(OUTPUT_PRICE)}
        assumed = {"HEADRACE_LLM_EXPECTED_TOKENS": str(EXPECTED_TOKENS)}
        environ = {**environ, **provider.environment, **prices, **assumed}
        settings = load_settings(environ=environ, file=folder / "none.toml")
        ask.app.settings = settings
        async with ask.app as opened:
            return await _Run(name, opened, provider, still_seconds).measure(items, environ, workers)


class _Run:
    def __init__(self, name: str, opened: App, provider: ProviderProcess, still_seconds: float) -> None:
        self._name, self._scenario, self._app, self._provider = name, SCENARIOS[name], opened, provider
        self._still_seconds = still_seconds

    async def measure(self, items: int, environ: Mapping[str, str], workers: int) -> Figures:
        scenario, tenant = self._scenario, "acme" if self._scenario.kind == "tenant" else None
        options = {"tenant": tenant, "max_tokens": scenario.max_tokens}
        asks = [{"number": number, **options} for number in range(items)]
        batch = await self._app.submit(ask, asks, spread=True)
        scope = {"batch": f"batch:{batch.id}", "tenant": "tenant:acme", "day": "day"}[scenario.kind]
        prices = [await self._price(number) for number in (0, items - 1)]
        # The day's has paid for the questions above, too.
        budget = round(PART * items * sum(prices) / 2) + (sum(prices) if scenario.kind == "day" else 0)
        await self._set(scope, budget)
        with _workers(environ, workers):
            began = time.monotonic()
            calls = await self._until_still(batch)
            stopped = time.monotonic() - self._still_seconds
            [view] = await self._app.budgets.show([scope])
            dearest = max(self._used(call.usage) for call in await self._calls())
            peak = self._provider.stats().peak_in_flight
            raised = time.monotonic()
            await self._set(scope, 10 * budget)
            resumed = await self._until_called(calls)
            await batch.wait(timeout=300)
            ended = time.monotonic()
        progress, spent, wrong = await batch.progress(), self._used(view), await self._wrong_answers(batch)
        return Figures(
            scenario=self._name, items=items, budget=budget, spent=spent, spent_part=round(spent / budget, 4),
            calls_over=round(max(0, spent - budget) / dearest, 2), peak_in_flight=peak, calls_at_stop=calls,
            jobs_failed=progress.failed, seconds_to_stop=round(stopped - began, 1),
            seconds_to_resume=round(resumed - raised, 1), seconds_to_end=round(ended - raised, 1),
            answered=items - wrong, calls=self._provider.stats().calls,
        )  # fmt: skip

    async def _price(self, number: int) -> int:
        """What a call costs: asked of another tenant, and forgotten by the provider."""
        asked = question(number, self._scenario.max_tokens)
        await self._app.llm.using(tenant="probe").complete(asked)
        self._provider.forget_calls()
        return self._used((await self._calls())[0].usage)

    async def _calls(self) -> list[CallView]:
        return await self._app.runtime.stores.budgets.list_calls(state=CallState.SETTLED, limit=10_000)

    def _used(self, what: BudgetView | Usage) -> int:
        return what.cost_nano if self._scenario.unit == "dollars" else what.tokens

    async def _wrong_answers(self, batch: Batch) -> int:
        return sum(
            [item.result != question(item.index, self._scenario.max_tokens).upper() async for item in batch.results()]
        )

    async def _set(self, scope: str, amount: int) -> None:
        if self._scenario.unit == "dollars":
            await self._app.budgets.set(scope, dollars=f"{amount / NANO:.9f}")
        else:
            await self._app.budgets.set(scope, tokens=amount)

    async def _until_still(self, batch: Batch) -> int:
        calls, since = 0, time.monotonic()
        while calls == 0 or time.monotonic() - since < self._still_seconds:
            await asyncio.sleep(0.1)
            if (now := self._provider.stats().calls) != calls:
                calls, since = now, time.monotonic()
        if (await batch.progress()).percent == 100:
            raise RuntimeError("the budget stopped nothing")
        return calls

    async def _until_called(self, calls: int) -> float:
        await wait_until(lambda: self._provider.stats().calls > calls, timedelta(seconds=60))
        return time.monotonic()


@contextmanager
def _workers(environ: Mapping[str, str], count: int) -> Iterator[None]:
    command = [sys.executable, "-m", "headrace", "worker", "benchmarks.budget:app", "--concurrency", str(SLOTS)]
    with tempfile.TemporaryFile() as said:
        started = [
            subprocess.Popen(
                command, cwd=Path(__file__).resolve().parent.parent, env={**os.environ, **environ}, stdout=said,
                stderr=said,
            )
            for _ in range(count)
        ]  # fmt: skip
        try:
            yield
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(30)


def render(figures: Figures) -> str:
    """Return one line."""
    return (
        f"{figures.scenario:30} {figures.spent_part:7.1%} of the budget, {figures.calls_over:4.1f} calls over, "
        f"{figures.peak_in_flight} in flight, {figures.jobs_failed} failed, "
        f"stopped after {figures.seconds_to_stop:.0f} s, next call {figures.seconds_to_resume:.1f} s after raising; "
        f"{figures.answered}/{figures.items} answered with {figures.calls} calls"
    )


def main() -> None:
    """Run scenarios and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of: {'; '.join(SCENARIOS)} (default: all)")
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {unknown[0]!r}; there are: {'; '.join(SCENARIOS)}")
    rows: list[dict[str, Any]] = []
    for name in options.scenarios or SCENARIOS:
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            environ = {"HEADRACE_DIRECTORY": str(folder / "store")}
            figures = asyncio.run(measure(name, environ, items=options.items, folder=folder))
        rows.append(asdict(figures))
        print(render(figures), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
