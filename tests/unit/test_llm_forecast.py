"""What asks would take: told before anything is spent, and what is stored costs nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

import pytest
from pydantic import BaseModel

from headrace.model.budget import Budget
from headrace.model.llm import AnswerStyle
from headrace.model.quota import PoolLimits
from headrace.stores.memory import open_memory_stores
from tests.unit.llm_answers import WrittenProvider, llm_of


class Trial(BaseModel):
    """What is asked for."""

    plants: int


@dataclass
class Ask:
    """An ask that is planned."""

    prompt: str | None = None
    shape: type[BaseModel] | None = None
    system: str | None = None
    messages: tuple[dict[str, str], ...] = ()
    stop: str | None = None
    max_tokens: int | None = None
    temperature: float = 0.0
    expected_output_tokens: int = 100


@pytest.mark.parametrize("style", [AnswerStyle.STRICT_SCHEMA, AnswerStyle.JSON])
async def test_answers_that_are_stored_are_free(style: AnswerStyle) -> None:
    """An estimate knows the very requests that were paid for, extractions and completions alike, and makes none."""
    provider = WrittenProvider(['{"plants": 3}', "yes"], style)
    llm = llm_of(provider)
    await llm.extract(Trial, prompt="We grew 3.", system="Be exact.")
    await llm.complete("?", max_tokens=9, stop="\n")
    asks = [
        Ask("We grew 3.", Trial, system="Be exact."),
        Ask("We grew 4.", Trial, system="Be exact."),
        Ask("?", max_tokens=9, stop="\n"),
    ]
    forecast = await llm.estimate(asks)

    assert forecast.remembered == (True, False, True)
    assert (forecast.calls, forecast.output_tokens) == (1, 100)
    assert forecast.cost_nano == 10 * (forecast.input_tokens + 100)
    assert len(provider.requests) == 2


async def test_an_estimate_comes_close_to_what_is_paid() -> None:
    """Once answers were seen, tokens are as the provider counts them: within a fifth."""
    llm = llm_of(WrittenProvider(lambda request: "yes"))
    asks = [Ask(f"Is the number {number} even?", expected_output_tokens=0) for number in range(100)]
    for ask in asks[:5]:
        await llm.complete(ask.prompt)
    forecast = await llm.estimate(asks[5:])
    used = 0
    for ask in asks[5:]:
        used += (await llm.complete_detailed(ask.prompt)).usage.cost_nano

    assert forecast.cost_nano == pytest.approx(used, rel=0.2)


@pytest.mark.parametrize(
    ("limits", "duration", "binding"),
    [
        (PoolLimits(requests_per_minute=60), 10, "60 requests per minute of written:written-1"),
        (PoolLimits(requests_per_minute=600, output_tokens_per_minute=600), 100, "600 output tokens per minute of"),
        (PoolLimits(requests_per_day=4), 2 * 86_400, "4 requests per day of"),
    ],
)
async def test_the_limit_that_binds_is_named(limits: PoolLimits, duration: float, binding: str) -> None:
    """Time follows from the quota that takes longest."""
    llm = llm_of(WrittenProvider([]), limits=limits)
    forecast = await llm.estimate([Ask(f"{number}?") for number in range(10)])

    assert forecast.duration == timedelta(seconds=duration)
    assert forecast.binding is not None
    assert forecast.binding.startswith(binding)


def slices(asks: list[Ask], size: int) -> list[list[Ask]]:
    """Cut asks into slices."""
    return [asks[start : start + size] for start in range(0, len(asks), size)]


async def test_forecasts_of_slices_are_judged_by_their_sum() -> None:
    """Three slices of two calls use up a day of five, and a budget that has room for each of them alone."""
    stores = open_memory_stores()
    llm = llm_of(WrittenProvider([]), stores, limits=PoolLimits(requests_per_day=5))
    parts = [await llm.estimate(part) for part in slices([Ask(f"{number}?") for number in range(6)], 2)]
    whole = parts[0] + parts[1] + parts[2]

    assert [part.duration for part in parts] == [timedelta()] * 3
    assert (whole.calls, whole.duration) == (6, timedelta(days=1))
    assert whole.binding == "5 requests per day of written:written-1"
    assert whole.cost_nano == sum(part.cost_nano or 0 for part in parts)

    await stores.budgets.set_budget("day", Budget(tokens=whole.input_tokens + whole.output_tokens - 1))
    parts = [await llm.estimate(part) for part in slices([Ask(f"{number}?") for number in range(6)], 2)]
    assert all("budget" not in (part.binding or "") for part in parts)
    assert (parts[0] + parts[1] + parts[2]).binding is not None
    assert "the budget of day" in ((parts[0] + parts[1] + parts[2]).binding or "")


async def test_models_of_one_pool_share_its_pace_and_others_go_side_by_side() -> None:
    """Two models take as long as the slower, and as both together where they use one quota."""
    limits = PoolLimits(requests_per_minute=60)
    llm = llm_of(
        WrittenProvider([]), limits=limits, others={"same": WrittenProvider([]), "b": WrittenProvider([], model="b")}
    )
    asks = [Ask(f"{number}?") for number in range(10)]
    one = await llm.estimate(asks)

    assert (one + await llm.using("b").estimate(asks[:4])).duration == timedelta(seconds=10)
    assert (one + await llm.using("same").estimate(asks[:4])).duration == timedelta(seconds=14)


@pytest.mark.parametrize("limits", [PoolLimits(requests_per_day=4), PoolLimits()])
async def test_where_nothing_is_left_to_ask_no_time_passes_and_nothing_binds(limits: PoolLimits) -> None:
    """All answers are stored: that takes no time, whatever the quota, and no budget stands in the way."""
    stores = open_memory_stores()
    llm = llm_of(WrittenProvider(["yes"]), stores, limits=limits)
    await llm.complete("?")
    await stores.budgets.set_budget("day", Budget(tokens=0))
    forecast = await llm.estimate([Ask("?")])

    assert (forecast.calls, forecast.duration, forecast.binding) == (0, timedelta(), None)


async def test_without_limits_no_time_is_made_up() -> None:
    """Nothing is configured: then how long it takes is not known."""
    forecast = await llm_of(WrittenProvider([]), limits=PoolLimits()).estimate([Ask("?")])
    assert (forecast.duration, forecast.binding) == (None, None)


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (Budget(cost_nano=1_000), r"the budget of tenant:acme \(\$0.0000010 left\)"),
        (Budget(tokens=50), r"the budget of tenant:acme \(50 tokens left\)"),
    ],
)
async def test_a_budget_without_room_binds(budget: Budget, says: str) -> None:
    """What money or tokens are left is said beforehand."""
    stores = open_memory_stores()
    await stores.budgets.set_budget("tenant:acme", budget)
    forecast = await llm_of(WrittenProvider([]), stores).using(tenant="acme").estimate([Ask("?")])

    assert forecast.binding is not None
    assert re.fullmatch(says, forecast.binding)
