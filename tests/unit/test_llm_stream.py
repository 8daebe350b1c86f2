"""Items of a stream: each the moment it closes, and a bad one ends nothing."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import BaseModel, Field

from headrace.llm.items import ItemResult
from headrace.llm.ladder.lists import stream_items
from headrace.llm.results import Provenance
from headrace.model.calls import Purpose
from headrace.model.errors import InvalidInputError
from headrace.model.llm import Answer, AnswerStyle, FinishReason
from headrace.model.provider_errors import BadOutputError, ProviderTimeoutError, RefusedError
from tests.unit.llm_asking import REQUEST, WrittenExchange, cut


class Tree(BaseModel):
    """An item."""

    name: str = Field(min_length=2)


def listed(*names: str) -> str:
    """A whole answer."""
    return json.dumps({"items": [{"name": name} for name in names]})


def brief(result: ItemResult[Tree]) -> tuple[int, str | None, bool]:
    """Index, name, whether it is final."""
    return result.index, result.value.name if result.value else None, result.is_final


async def streamed(exchange: WrittenExchange, expected: int | None = None, **options: Any) -> list[ItemResult[Tree]]:
    """All results of this exchange."""
    return [result async for result in stream_items(exchange, Tree, REQUEST, expected=expected, **options)]


async def test_an_item_comes_before_the_next_one_is_written() -> None:
    """Its consumer can work on it while the model goes on."""
    answer = listed(*(f"Oak {number}" for number in range(50)))
    exchange = WrittenExchange([answer], part=4)
    parts: list[int] = []
    original = exchange.stream

    async def counted(*args: Any, **options: Any) -> Any:
        async for part in original(*args, **options):
            parts.append(1)
            yield part

    exchange.stream = counted  # type: ignore[method-assign]
    results = stream_items(exchange, Tree, REQUEST, expected=50)
    seen = [(len(parts), brief(result)) async for result in results]

    assert [brief for _, brief in seen] == [(number, f"Oak {number}", True) for number in range(50)]
    assert seen[0][0] <= 0.05 * len(parts)
    assert seen[25][0] <= 0.56 * len(parts)


async def test_a_bad_item_comes_at_once_and_again_when_it_was_asked_for() -> None:
    """The others come as if nothing was wrong; the second coming has the same index."""
    exchange = WrittenExchange([listed("Oak", "E", "Ash"), listed("Elm")])
    results = await streamed(exchange, 3)

    assert [brief(result) for result in results] == [
        (0, "Oak", True),
        (1, None, False),
        (2, "Ash", True),
        (1, "Elm", True),
    ]
    assert results[1].errors == ("name: String should have at least 2 characters",)
    assert results[3].provenance is Provenance.REASKED
    assert exchange.purposes == [Purpose.ASK, Purpose.REASK]


async def test_broken_text_between_items_ends_nothing() -> None:
    """The elements behind it are found; the pieces of the broken one are not asked for twice."""
    text = '{"items": [{"name": "Oak"}, {"name": "Elm}, {"name": "Ash"}, {"name": "Fir"}]}'
    results = await streamed(WrittenExchange([text, listed("Elm")]), 4)

    final = {result.index: result.value.name for result in results if result.is_final and result.value}
    assert sorted(final.values()) == ["Ash", "Elm", "Fir", "Oak"]
    assert [result.value.name for result in results if result.value] == ["Oak", "Ash", "Fir", "Elm"]


async def test_a_cut_stream_keeps_what_was_closed() -> None:
    """Every missing item comes once, as final."""
    exchange = WrittenExchange([cut('{"items": [{"name": "Oak"}, {"name": "El'), listed("Elm", "Ash")])
    results = await streamed(exchange, 3)

    assert [brief(result) for result in results] == [
        (0, "Oak", True), (1, None, False), (1, "Elm", True), (2, "Ash", True),
    ]  # fmt: skip


async def test_a_list_of_unknown_length_goes_on_after_a_cut() -> None:
    """Until the model closes it."""
    exchange = WrittenExchange([cut('{"items": [{"name": "Oak"}, {"name": "El'), listed("Elm", "Ash")])
    results = await streamed(exchange)

    assert [brief(result) for result in results if result.is_final] == [
        (0, "Oak", True),
        (1, "Elm", True),
        (2, "Ash", True),
    ]


async def test_what_stays_bad_ends_with_the_rule_or_a_label() -> None:
    """As it does without a stream."""
    above = WrittenExchange([listed("Y")])
    results = await streamed(WrittenExchange([listed("Oak", "X")] + [listed("X")] * 2, above=above), 2)
    assert [brief(result) for result in results] == [(0, "Oak", True), (1, None, False), (1, None, True)]
    assert results[-1].needs_review
    results = await streamed(WrittenExchange([listed("X")] * 3), 1, on_fail=Tree(name="none"))
    assert results[-1].provenance is Provenance.FALLBACK


async def test_an_item_too_many_does_not_come() -> None:
    """The caller said how many."""
    results = await streamed(WrittenExchange([listed("Oak", "Elm", "Ash")]), 2)
    assert [brief(result) for result in results] == [(0, "Oak", True), (1, "Elm", True)]


async def test_a_stream_that_gives_nothing_is_asked_for_once_more() -> None:
    """Within the repairs, and not as a stream; without any it is an error."""
    exchange = WrittenExchange([BadOutputError(), listed("Oak")])
    assert [brief(result) for result in await streamed(exchange)] == [(0, "Oak", True)]
    assert exchange.purposes == [Purpose.ASK, Purpose.REPAIR]
    with pytest.raises(BadOutputError):
        await streamed(WrittenExchange([BadOutputError()], most_repairs=0))


async def test_a_decline_is_an_error_only_where_there_is_nothing_yet() -> None:
    """What came before it is kept, and the rest is asked for."""
    declined = Answer(text=listed("Oak")[:-1], finish_reason=FinishReason.REFUSED)
    with pytest.raises(RefusedError):
        await streamed(WrittenExchange([declined]))

    class DeclinesMidway(WrittenExchange):
        async def stream(self, *args: Any, **options: Any) -> Any:
            async for part in super().stream(*args, **options):
                if isinstance(part, Answer):
                    raise RefusedError
                yield part

    exchange = DeclinesMidway(['{"items": [{"name": "Oak"}, {"na', listed("Elm")])
    results = await streamed(exchange, 2)
    assert [brief(result) for result in results if result.is_final] == [(0, "Oak", True), (1, "Elm", True)]


async def test_faults_of_the_provider_go_to_the_caller() -> None:
    """The job's retry policy decides; what was paid is found again."""
    with pytest.raises(ProviderTimeoutError):
        await streamed(WrittenExchange([ProviderTimeoutError()]))


async def test_closing_the_iterator_ends_the_call() -> None:
    """A consumer that has enough pays for no more."""
    exchange = WrittenExchange([listed("Oak", "Elm", "Ash")])
    async with aclosing(stream_items(exchange, Tree, REQUEST)) as results:
        assert (await anext(results)).index == 0

    assert exchange.broken_off == 1


async def test_an_answer_in_one_piece_is_read_as_well() -> None:
    """From the memo it comes without parts."""

    class AtOnce(WrittenExchange):
        async def stream(self, *args: Any, **options: Any) -> Any:
            yield await self.send(*args, **options)

    assert [brief(result) for result in await streamed(AtOnce([listed("Oak", "Elm")]))] == [
        (0, "Oak", True),
        (1, "Elm", True),
    ]


async def test_a_plain_model_s_items_come_one_by_one() -> None:
    """As each is answered."""
    exchange = WrittenExchange(["Oak", "Elm"])
    async with aclosing(stream_items(exchange, Tree, REQUEST, style=AnswerStyle.PLAIN, expected=2)) as results:
        assert brief(await anext(results)) == (0, "Oak", True)
        assert len(exchange.asked) == 1
        assert brief(await anext(results)) == (1, "Elm", True)
    with pytest.raises(InvalidInputError):
        await streamed(WrittenExchange([]), style=AnswerStyle.PLAIN)
