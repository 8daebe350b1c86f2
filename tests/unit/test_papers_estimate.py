"""What an extraction will take: planned by the code that asks, corrected by what was measured."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.papers import numbered, planning
from headrace.apps.papers.asking import PlannedAsk
from headrace.apps.papers.bars import expected
from headrace.apps.papers.command import told_estimate
from headrace.apps.papers.documents import scan_folder
from headrace.apps.papers.dual import Second
from headrace.apps.papers.estimate import DocumentPlan, Estimate, corrected, project
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.planning import Guess, Planner, input_tokens, plan_document
from headrace.apps.papers.result import TokenCount
from tests.unit.papers_files import document_of
from tests.unit.papers_models import CapableModel, WeakModel, answer
from tests.unit.test_papers_extract import PAPER
from tests.unit.test_papers_extract import TEMPLATE as PLAIN_TEMPLATE
from tests.unit.test_papers_rows import TEMPLATE, TRIAL, arm

SAID = {"country": answer("Norway", 1), "arm": [arm(answer("aspirin", 2))]}


def model() -> CapableModel:
    """Return a model that answers something."""
    return CapableModel(lambda prompt: SAID)


async def test_what_is_planned_is_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompts of a plan are letter by letter those of the extraction, in parts and in both wordings."""
    monkeypatch.setattr(numbered, "CHUNK_TOKENS", 300)
    document = document_of("There was rain on that day too. " * 120)
    llm = model()
    plan = await plan_document(document, TEMPLATE, llm, second=Second(llm, other_words=True))
    assert llm.prompts == []
    await extract_document(document, TEMPLATE, llm, second=Second(llm, other_words=True))
    assert len(llm.prompts) > 6
    assert [ask.prompt for ask in plan.first] == llm.prompts


async def test_asks_of_two_models_are_planned_apart() -> None:
    """A second model has a forecast of its own."""
    llm, other = model(), model()
    plan = await plan_document(TRIAL, TEMPLATE, llm, second=Second(other))
    assert [ask.prompt for ask in plan.first] == [ask.prompt for ask in plan.second]


async def test_a_plan_for_a_weak_model_holds_every_question() -> None:
    """Nothing is asked of a weak model that the plan does not hold; second questions are planned too."""
    asked: list[Any] = []

    @dataclass
    class Watched(WeakModel):
        async def complete_detailed(self, **options: Any) -> Any:
            asked.append(options)
            return await super().complete_detailed(**options)

    weak = Watched(lambda label, text: "Norway")
    plan = await plan_document(PAPER, PLAIN_TEMPLATE, weak)
    assert not asked
    await extract_document(PAPER, PLAIN_TEMPLATE, weak)
    planned = [list(ask.messages) for ask in plan.first]
    assert all(options["messages"] in planned for options in asked)
    assert len(planned) >= len(asked)


@dataclass(frozen=True)
class Told:
    """What a gateway foresees, with a quota of one request in ten seconds and two in a day."""

    remembered: Sequence[bool]
    input_tokens: int = 1_000
    output_tokens: int = 100
    cost_nano: int | None = 5_000

    @property
    def duration(self) -> timedelta:
        """Ten seconds a call, and a day for each two that are full."""
        calls = len(self.remembered) - sum(self.remembered)
        return timedelta(days=(calls - 1) // 2) if calls > 2 else timedelta(seconds=10 * calls)

    @property
    def binding(self) -> str:
        """Which of both limits decides."""
        return f"requests per {'day' if self.duration >= timedelta(days=1) else 'minute'} of openai:gpt"

    def __add__(self, other: Told) -> Told:
        """Both together."""
        unknown = self.cost_nano is None or other.cost_nano is None
        return Told(
            [*self.remembered, *other.remembered],
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if unknown else (self.cost_nano or 0) + (other.cost_nano or 0),
        )


@dataclass
class Foretelling(CapableModel):
    """A model behind a gateway that forecasts: it knows the answers about Norway already."""

    asks: list[PlannedAsk] = field(default_factory=list)
    slices: list[int] = field(default_factory=list)
    price: int | None = 5_000

    async def estimate(self, asks: Sequence[PlannedAsk]) -> Told:
        """Forecast."""
        self.asks += asks
        self.slices.append(len(asks))
        return Told(["Norway" in (ask.prompt or "") for ask in asks], cost_nano=self.price)


def folder(tmp_path: Path) -> Path:
    """Return a folder with two papers and a broken one."""
    (tmp_path / "a.txt").write_text("The trial was done in Norway.")
    (tmp_path / "b.txt").write_text("The trial was done in Peru. It went on for long.")
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.7 not really")
    return tmp_path


async def test_the_gateway_says_what_is_remembered_the_money_and_the_time(tmp_path: Path) -> None:
    """Answers that were paid before are free, and money, time and limit are the gateway's."""
    llm = Foretelling(lambda prompt: SAID)
    estimate = await Planner(TEMPLATE, llm).estimate(scan_folder(folder(tmp_path)).documents)
    assert [ask.shape is not None for ask in llm.asks] == [True, True]
    assert (estimate.calls, estimate.reused, estimate.unreadable) == (1, 1, 1)
    assert (estimate.input_tokens, estimate.output_tokens, estimate.dollars) == (1_000, 100, 5e-6)
    assert (estimate.duration, estimate.binding) == (timedelta(seconds=10), "requests per minute of openai:gpt")
    assert estimate.to_json()["usd"] == 5e-6
    assert Estimate.decode(estimate.encode()) == estimate


async def test_many_documents_are_planned_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a slice the prompts are held, the rest adds up: time and limit are judged once, by the sum of all slices."""
    monkeypatch.setattr(planning, "SLICE", 1)
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(f"The trial was done in Peru {number} times.")
    documents = scan_folder(folder(tmp_path)).documents
    llm = Foretelling(lambda prompt: SAID)
    whole = await Planner(TEMPLATE, llm).estimate(documents)
    assert llm.slices == [1] * 6
    assert (whole.calls, whole.input_tokens, whole.cost_nano) == (5, 6_000, 30_000)
    assert (whole.duration, whole.binding) == (timedelta(days=2), "requests per day of openai:gpt")
    assert (len(whole.documents), whole.unreadable) == (6, 1)
    priceless = Second(Foretelling(lambda prompt: SAID, price=None))
    dual = await Planner(TEMPLATE, Foretelling(lambda prompt: SAID), priceless).estimate(documents)
    assert (dual.calls, dual.cost_nano, dual.duration) == (10, None, timedelta(days=4))


async def test_without_a_forecast_calls_and_tokens_are_counted_here(tmp_path: Path) -> None:
    """A model that forecasts nothing leaves money and time unknown, which is never 0."""
    estimate = await Planner(TEMPLATE, model()).estimate(scan_folder(folder(tmp_path)).documents)
    assert (estimate.calls, estimate.reused, estimate.dollars, estimate.duration) == (2, 0, None, None)
    assert estimate.input_tokens > 200
    none = await Planner(TEMPLATE, model()).estimate(())
    assert (none.calls, none.dollars, none.duration) == (0, 0, timedelta())


async def test_what_asks_nothing_takes_no_time_at_whatever_pace(tmp_path: Path) -> None:
    """Where every answer is remembered, the time is 0 also where nobody knows how fast the model answers."""

    class Paceless(Foretelling):
        async def estimate(self, asks: Sequence[PlannedAsk]) -> Guess:  # type: ignore[override]
            return Guess([True] * len(asks), 0, 0, cost_nano=0, duration=None, binding="a limit")

    estimate = await Planner(TEMPLATE, Paceless(lambda prompt: SAID)).estimate(scan_folder(folder(tmp_path)).documents)
    assert (estimate.calls, estimate.reused, estimate.duration, estimate.binding) == (0, 2, timedelta(), None)
    assert "binding limit: none, nothing has to be asked" in told_estimate(estimate)


def world(seed: int, count: int = 200) -> tuple[Estimate, dict[str, TokenCount]]:
    """Return the plan of documents of many lengths, and what they really take: another tokeniser, longer answers."""
    chance = random.Random(seed)
    plans, truth = [], {}
    tokeniser, talk = chance.uniform(0.6, 1.5), chance.uniform(0.3, 3)
    for at in range(count):
        length = round(chance.lognormvariate(9, 0.6))
        calls = 1 + length // 16_000
        plan = DocumentPlan(f"d{at}", calls, 0, length + 700 * calls, 300 * calls)
        plans.append(plan)
        truth[plan.document_id] = TokenCount(
            calls=calls,
            input_tokens=round(plan.input_tokens * tokeniser * chance.uniform(0.9, 1.1)),
            output_tokens=round(plan.output_tokens * talk * chance.uniform(0.6, 1.4)),
            cost_nano=round(plan.input_tokens * tokeniser * 150 + plan.output_tokens * talk * 600),
        )
    return Estimate.of_plans(plans), truth


@pytest.mark.parametrize("seed", range(100))
def test_after_five_percent_the_estimate_is_right_within_a_fifth(seed: int) -> None:
    """From 10 of 200 documents on, calls, tokens, money and time differ by at most 20 % from what comes out."""
    estimate, truth = world(seed)
    done = dict(random.Random(seed).sample(sorted(truth.items()), 10))
    projected = project(estimate, done, timedelta(seconds=sum(one.output_tokens for one in done.values())))
    assert projected.measured == 10
    for name in ("calls", "input_tokens", "output_tokens", "cost_nano"):
        total = sum(getattr(one, name) for one in truth.values())
        assert abs(getattr(projected, name) - total) <= 0.2 * total, name
    assert projected.duration is not None


def test_before_five_percent_the_plan_stands() -> None:
    """Nine of 200 documents say too little; unknown documents say nothing."""
    estimate, truth = world(1)
    assert project(estimate, dict(list(truth.items())[:9])) is estimate
    assert project(estimate, {"elsewhere": TokenCount(calls=1)}) is estimate


def test_all_done_is_what_it_took() -> None:
    """At the end the estimate is the sum of what was measured."""
    estimate, truth = world(2)
    projected = project(estimate, truth)
    assert projected.output_tokens == sum(one.output_tokens for one in truth.values())
    assert projected.cost_nano == sum(one.cost_nano for one in truth.values())


def test_an_unknown_price_stays_unknown() -> None:
    """One call without a price makes the money unknown; free answers leave the estimate of the gateway."""
    estimate, truth = world(3)
    some = dict(list(truth.items())[:20])
    some["d0"] = TokenCount(calls=1, unpriced=1)
    assert project(estimate, some).cost_nano is None
    reused = dict.fromkeys(list(truth)[:20], TokenCount(reused=1))
    assert project(estimate, reused).cost_nano is estimate.cost_nano


def test_what_was_all_remembered_cost_nothing_at_whatever_price() -> None:
    """At the end of a run without a call the money is known, though the price is not."""
    plans = [DocumentPlan(f"d{at}", 1, 0, 100, 10) for at in range(3)]
    done = {plan.document_id: TokenCount(reused=1) for plan in plans}
    assert project(Estimate.of_plans(plans), done).cost_nano == 0


@pytest.mark.parametrize("seed", range(100))
def test_an_estimate_after_five_percent_is_right_within_a_fifth(seed: int) -> None:
    """With what 10 of 200 documents took, what is left is foreseen so that the run as a whole comes out within 20 %."""
    whole, truth = world(seed)
    chosen = set(random.Random(seed).sample(sorted(truth), 10))
    known = [(plan, truth[plan.document_id]) for plan in whole.documents if plan.document_id in chosen]
    left = Estimate.of_plans([plan for plan in whole.documents if plan.document_id not in chosen])
    better = corrected(left, known, done=10)
    assert better.measured == 10
    for name in ("calls", "input_tokens", "output_tokens", "cost_nano"):
        total = sum(getattr(one, name) for one in truth.values())
        foreseen = sum(getattr(one, name) for _, one in known) + getattr(better, name)
        assert abs(foreseen - total) <= 0.2 * total, name
    assert corrected(left, known[:9], done=9) is left


def test_longer_answers_take_longer_where_tokens_are_the_limit_only() -> None:
    """A limit of tokens decides the time by their number; one of requests does not."""
    plans = [DocumentPlan(f"d{at}", 1, 0, 100, 100) for at in range(10)]
    left = replace(Estimate.of_plans(plans), duration=timedelta(seconds=10), binding="60 requests per minute of p")
    known = [(DocumentPlan("x", 1, 0, 100, 100), TokenCount(calls=1, input_tokens=100, output_tokens=300))]
    assert corrected(left, known, done=1).duration == timedelta(seconds=10)
    by_tokens = replace(left, binding="9,000 tokens per minute of p")
    assert corrected(by_tokens, known, done=1).duration == timedelta(seconds=20)


def test_remembered_documents_tell_nothing_of_the_others() -> None:
    """Where the first documents were free by plan, the plan of the others stands."""
    plans = [DocumentPlan(f"d{at}", 0, 1, 0, 0) for at in range(10)]
    plans += [DocumentPlan(f"e{at}", 1, 0, 100, 10) for at in range(10)]
    projected = project(Estimate.of_plans(plans), {f"d{at}": TokenCount(reused=1) for at in range(10)})
    assert (projected.calls, projected.input_tokens, projected.reused) == (10, 1_000, 10)


def test_the_display_shows_only_what_was_measured() -> None:
    """A plan is not shown as if it were known."""
    estimate, truth = world(4)
    assert expected(estimate) == ""
    assert "tokens, $" in expected(project(estimate, truth))


def test_tokens_of_an_ask_count_schema_system_and_prompt() -> None:
    """Everything that is sent counts."""
    whole = PlannedAsk(system="s" * 400, prompt="p" * 400)
    assert 200 <= input_tokens(whole) <= 204
    assert input_tokens(PlannedAsk(messages=({"role": "user", "content": "m" * 400},))) == 101
