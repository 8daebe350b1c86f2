"""Lists of items through the gateway: paid once, escalated, streamed."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel, Field

from headrace.model.errors import InvalidInputError
from headrace.model.llm import AnswerStyle
from headrace.stores.memory import open_memory_stores
from tests.unit.llm_answers import WrittenProvider, llm_of


class Tree(BaseModel):
    """An item."""

    name: str = Field(min_length=2)


def listed(*names: str) -> str:
    """An answer."""
    return json.dumps({"items": [{"name": name} for name in names]})


async def test_a_list_that_took_every_step_costs_nothing_the_second_time() -> None:
    """Ask, two asks for what failed, the second model: the same path from the memo, with the same outcome."""
    stores = open_memory_stores()
    first = WrittenProvider([listed("Oak", "X", "Y"), listed("Elm", "Y"), listed("Y")])
    second = WrittenProvider([listed("Ash")], model="strong-1")
    outcomes = []
    for _ in range(2):
        llm = llm_of(first, stores, others={"strong": second}, escalate_to="strong")
        outcomes.append(await llm.extract_items(Tree, prompt="Name trees.", expected=3))

    paid, again = outcomes
    assert [item.provenance for item in paid] == ["llm", "reasked", "escalated"]
    assert again.results == paid.results
    assert (paid.usage.calls, again.usage.calls, again.usage.reused) == (4, 0, 4)
    assert second.requests[0].model == "strong-1"


@pytest.mark.parametrize("style", [AnswerStyle.STRICT_SCHEMA, AnswerStyle.JSON])
async def test_a_streamed_list_is_paid_once_too(style: AnswerStyle) -> None:
    """Whether it is streamed or not is no part of the key: the first ask is the same one."""
    stores = open_memory_stores()
    provider = WrittenProvider([listed("Oak", "X"), listed("Elm")], style)
    for _ in range(2):
        results = llm_of(provider, stores).stream_items(Tree, prompt="Name trees.", expected=2)
        final = {result.index: result.value async for result in results if result.is_final}
        assert final == {0: Tree(name="Oak"), 1: Tree(name="Elm")}
    items = await llm_of(provider, stores).extract_items(Tree, prompt="Name trees.", expected=2)

    assert [item.value for item in items] == [Tree(name="Oak"), Tree(name="Elm")]
    assert len(provider.requests) == 2


async def test_a_mistake_of_the_caller_asks_nothing() -> None:
    """Also where the list is streamed."""
    provider = WrittenProvider([])
    with pytest.raises(InvalidInputError, match="expected"):
        await llm_of(provider).extract_items(Tree, prompt="?", expected=0)
    with pytest.raises(InvalidInputError, match="on_fail"):
        await anext(llm_of(provider).stream_items(Tree, prompt="?", on_fail="drop"))  # type: ignore[arg-type]
    assert provider.requests == []
