"""Lists of items: valid ones are kept as they were said, and only the others are asked for again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, Field, RootModel

from headrace.llm.items import Items
from headrace.llm.ladder.lists import extract_items
from headrace.llm.results import Provenance
from headrace.model.calls import Purpose
from headrace.model.errors import InvalidInputError
from headrace.model.llm import Answer, AnswerStyle, FinishReason
from headrace.model.provider_errors import BadOutputError, ProviderTimeoutError, RefusedError
from tests.unit.llm_asking import REQUEST, WrittenExchange, cut


class Tree(BaseModel):
    """An item."""

    name: str = Field(min_length=2)
    height: int


def tree(name: str, height: Any = 3) -> str:
    """An item as a model writes it, with a space that no serialiser of ours would write."""
    return f'{{"name" : {json.dumps(name)}, "height": {json.dumps(height)}}}'


def listed(*items: str) -> str:
    """A whole answer."""
    return '{"items": [' + ",\n ".join(items) + "]}"


async def extracted(exchange: WrittenExchange, expected: int | None = None, **options: Any) -> Items[Tree]:
    """The items of this exchange."""
    return await extract_items(exchange, Tree, REQUEST, expected=expected, **options)


def names(items: Items[Tree]) -> list[str | None]:
    """The names in order; None for what needs review."""
    return [item.value.name if item.value else None for item in items]


async def test_valid_items_are_one_call() -> None:
    """Each comes with its place, its words and where it is from."""
    exchange = WrittenExchange([listed(tree("Oak"), tree("Elm"))])
    items = await extracted(exchange, 2)

    assert items.values == [Tree(name="Oak", height=3), Tree(name="Elm", height=3)]
    assert [(item.index, item.provenance, item.raw) for item in items] == [
        (0, Provenance.LLM, tree("Oak")),
        (1, Provenance.LLM, tree("Elm")),
    ]
    assert exchange.purposes == [Purpose.ASK]
    assert items.needs_review == []
    assert (items.usage.calls, items.is_complete, len(items), items[1].index) == (1, True, 2, 1)


async def test_the_first_request_is_the_user_s_with_a_schema_of_the_list() -> None:
    """Strict schemas have an object at the top; in JSON mode the schema is told; no count or hint is added."""
    strict = WrittenExchange([listed(tree("Oak"))])
    await extracted(strict, 1)
    ((_, asked),) = strict.asked
    assert asked.messages == REQUEST.messages
    assert asked.schema is not None
    assert (list(asked.schema["properties"]), asked.schema_name) == (["items"], "TreeList")
    loose = WrittenExchange([listed(tree("Oak"))])
    await extracted(loose, 1, style=AnswerStyle.JSON)
    ((_, asked),) = loose.asked
    assert (asked.schema, asked.json_mode, asked.messages[1:]) == (None, True, REQUEST.messages)
    assert '"items"' in asked.messages[0].content


async def test_an_item_no_strict_schema_can_say_is_asked_for_in_json_mode() -> None:
    """As single objects are."""

    class Counts(BaseModel):
        by_word: dict[str, int]

    exchange = WrittenExchange(['{"items": [{"by_word": {"a": 1}}]}'])
    items = await extract_items(exchange, Counts, REQUEST)
    assert items.values == [Counts(by_word={"a": 1})]
    assert exchange.asked[0][1].json_mode


async def test_only_what_failed_is_asked_for_again() -> None:
    """By number, with its errors, in one call; the valid ones are not said again and stay byte for byte."""
    first = listed(tree("Oak"), tree("E", 4), tree("Ash"), tree("Fir", "high"), tree("Yew"))
    exchange = WrittenExchange([first, listed(tree("Elm", 4), tree("Fir", 40))])
    items = await extracted(exchange, 5)

    assert names(items) == ["Oak", "Elm", "Ash", "Fir", "Yew"]
    assert exchange.purposes == [Purpose.ASK, Purpose.REASK]
    assert [item.provenance for item in items] == ["llm", "reasked", "llm", "reasked", "llm"]
    assert all(items[index].raw in first for index in (0, 2, 4))
    request = exchange.asked[1][1]
    assert request.messages[: len(REQUEST.messages)] == REQUEST.messages
    assert request.messages[-2].content == f"{tree('E', 4)}\n{tree('Fir', 'high')}"
    words = request.messages[-1].content
    assert "Item 2: name: String should have at least 2 characters" in words
    assert "Item 4: height: Input should be a valid integer" in words
    assert '{"only_items": [2, 4]}' in words
    assert "Oak" not in words
    assert request.temperature == 0
    assert request.schema == exchange.asked[0][1].schema


async def test_small_mistakes_in_an_item_are_read_past_at_no_cost() -> None:
    """By code, where nothing is lost or made up; it is said so."""
    exchange = WrittenExchange([listed("{'name': 'Oak', 'height': 3,}", tree("Elm"))])
    items = await extracted(exchange, 2)

    assert [item.provenance for item in items] == ["repaired", "llm"]
    assert exchange.purposes == [Purpose.ASK]


@pytest.mark.parametrize(
    "broken", ['{"name": , "height": 3}', '{"name": None, "height": 3}', '{"name": "Oak, "height": 3}']
)
async def test_what_is_missing_in_an_item_is_not_made_up(broken: str) -> None:
    """An empty or odd text where the model said none is no value: it is asked for."""
    exchange = WrittenExchange([listed(tree("Elm"), broken, tree("Ash")), listed(tree("Oak"))])
    items = await extracted(exchange, 3)

    assert names(items) == ["Elm", "Oak", "Ash"]
    assert items[1].provenance is Provenance.REASKED


@pytest.mark.parametrize("makes", [cut, lambda text: Answer(text=text)])
async def test_of_a_cut_answer_the_closed_items_are_kept(makes: Any) -> None:
    """The unclosed one is not mended, also where the model says it was done; it and the missing are asked for."""
    first = '{"items": [' + ", ".join([tree("Oak"), tree("Elm"), '{"name": "As'])
    exchange = WrittenExchange([makes(first), listed(tree("Ash"), tree("Fir"), tree("Yew"))])
    items = await extracted(exchange, 5)

    assert names(items) == ["Oak", "Elm", "Ash", "Fir", "Yew"]
    assert [item.provenance for item in items] == ["llm", "llm", "reasked", "reasked", "reasked"]
    words = exchange.last_words[1]
    assert "Item 3: it was cut off before its end\nItems 4 to 5: it is missing\n" in words
    assert "not to be repeated: Oak, Elm." in words
    assert '"only_items": [3, 4, 5]' in words


async def test_a_cut_list_of_unknown_length_is_continued() -> None:
    """Behind what is there, until the list is closed; then what is wrong in it is asked for."""
    first = '{"items": [' + ", ".join([tree("Oak"), tree("E"), '{"name": "As'])
    exchange = WrittenExchange([cut(first), listed(tree("Ash"), tree("Fir")), listed(tree("Elm"))])
    items = await extracted(exchange)

    assert names(items) == ["Oak", "Elm", "Ash", "Fir"]
    assert '{"continue_after": 2}' in exchange.last_words[1]
    assert '{"only_items": [2]}' in exchange.last_words[2]
    assert items.is_complete


async def test_a_list_that_never_ends_is_said_to_be_incomplete() -> None:
    """All that was closed is there; the item at the cut needs review."""
    begun = '{"items": [' + tree("Oak") + ', {"name": "A'
    items = await extracted(WrittenExchange([cut(begun), cut(begun), cut(begun)]))

    assert names(items) == ["Oak", "Oak", "Oak", None]
    assert not items.is_complete


async def test_a_model_that_has_no_more_ends_the_list() -> None:
    """What was cut then is no item."""
    items = await extracted(WrittenExchange([cut('{"items": [' + tree("Oak") + ', {"name": "A'), '{"items": []}']))

    assert names(items) == ["Oak"]
    assert items.is_complete


async def test_an_answer_without_one_whole_item_gets_more_room() -> None:
    """The same room would cut it again."""
    exchange = WrittenExchange([cut('{"items": [{"name": "O'), listed(tree("Oak"))])
    request = REQUEST.__class__(model="m", messages=REQUEST.messages, max_tokens=8)
    items = await extract_items(exchange, Tree, request, expected=1)

    assert names(items) == ["Oak"]
    assert [asked.max_tokens for _, asked in exchange.asked] == [8, 16]


@pytest.mark.parametrize(
    "said", ["", "I am not sure.", '{"unexpected": {"shape": true}}', '{"items": "none"}', "[1, 2]"]
)
@pytest.mark.parametrize("expected", [None, 2])
async def test_an_answer_without_a_list_is_asked_for_again_whole(said: str, expected: int | None) -> None:
    """Nothing of it can be kept."""
    exchange = WrittenExchange([said, listed(tree("Oak"), tree("Elm"))])
    items = await extracted(exchange, expected)

    assert names(items) == ["Oak", "Elm"]
    assert {item.provenance for item in items} == {Provenance.REASKED}


async def test_an_empty_list_is_an_answer() -> None:
    """Where the number was left to the model."""
    exchange = WrittenExchange(['{"items": []}'])
    assert len(await extracted(exchange)) == 0
    assert exchange.purposes == [Purpose.ASK]


async def test_after_two_asks_and_the_second_model_the_caller_s_rule_decides() -> None:
    """Each value says how it came about; a valid item is on no later bill."""
    bad = tree("X")
    above = WrittenExchange([listed(tree("Elm"), bad, bad)])
    exchange = WrittenExchange(
        [listed(tree("Oak"), bad, bad, bad), listed(bad, bad, bad), listed(bad, bad, bad)], above=above
    )

    def rule(raw: str, errors: tuple[str, ...]) -> Tree | None:
        assert raw == bad
        assert errors == ("name: String should have at least 2 characters",)
        return Tree(name=json.loads(raw)["name"] * 3, height=0)

    items = await extracted(exchange, 4, on_fail=rule)
    assert names(items) == ["Oak", "Elm", "XXX", "XXX"]
    assert [item.provenance for item in items] == ["llm", "escalated", "rule", "rule"]
    assert exchange.purposes == [Purpose.ASK, Purpose.REASK, Purpose.REASK]
    assert above.purposes == [Purpose.ESCALATE]
    assert len({request.memo_key("p") for _, request in exchange.asked}) == 3
    assert items.usage.calls == 4


@pytest.mark.parametrize(
    ("on_fail", "provenance"),
    [("needs_review", None), (Tree(name="none", height=0), Provenance.FALLBACK), (lambda raw, errors: None, None)],
)
async def test_what_nobody_could_make_valid_is_a_default_or_labelled(on_fail: Any, provenance: Any) -> None:
    """With its errors and what was said; never a value that is not valid."""
    bad = tree("X")
    items = await extracted(WrittenExchange([listed(bad)] * 3), 1, on_fail=on_fail)

    assert items[0].provenance is provenance
    assert items[0].needs_review == (provenance is None)
    assert items[0].errors == ("name: String should have at least 2 characters",)
    assert items[0].raw == bad


async def test_a_decline_of_what_is_asked_again_loses_nothing() -> None:
    """The valid items stay, the others say why they are none."""
    declined = Answer(text="No.", finish_reason=FinishReason.REFUSED)
    above = WrittenExchange([BadOutputError()])
    items = await extracted(WrittenExchange([listed(tree("Oak"), tree("X")), declined, declined], above=above), 2)

    assert names(items) == ["Oak", None]
    assert items[1].errors[1:] == ("the model declined to answer", "the model gave no answer")


async def test_a_decline_of_the_first_ask_and_faults_of_providers_go_to_the_caller() -> None:
    """There is nothing to keep, or the job's retry policy decides."""
    with pytest.raises(RefusedError):
        await extracted(WrittenExchange([Answer(text="No.", finish_reason=FinishReason.REFUSED)]), 2)
    with pytest.raises(ProviderTimeoutError):
        await extracted(WrittenExchange([listed(tree("Oak"), tree("X")), ProviderTimeoutError()]), 2)


async def test_items_that_cannot_be_told_apart_are_not_guessed() -> None:
    """Two were asked for, one came: it may be either."""
    first = listed(tree("X", 1), tree("Oak"), tree("Y", 2))
    exchange = WrittenExchange([first, listed(tree("Elm", 2)), listed(tree("Ash", 1), tree("Elm", 2))])
    items = await extracted(exchange, 3)

    assert names(items) == ["Ash", "Oak", "Elm"]
    assert "2 items were asked for, and the answer held 1" in exchange.last_words[2]


async def test_a_model_that_says_all_again_changes_no_valid_item() -> None:
    """Of a whole list the wanted places are taken, and the others stay as they were."""
    exchange = WrittenExchange(
        [listed(tree("Oak"), tree("X"), tree("Ash")), listed(tree("Oak", 99), tree("Elm"), tree("Ash", 99))]
    )
    items = await extracted(exchange, 3)

    assert names(items) == ["Oak", "Elm", "Ash"]
    assert [item.value.height for item in items if item.value] == [3, 3, 3]


async def test_one_wanted_item_may_come_without_a_list() -> None:
    """Asked for one, a model says one object."""
    items = await extracted(WrittenExchange([listed(tree("Oak"), tree("X")), tree("Elm")]), 2)
    assert names(items) == ["Oak", "Elm"]
    assert names(await extracted(WrittenExchange([tree("Oak")]), 1)) == ["Oak"]


@pytest.mark.parametrize(
    "answer",
    [
        f"<think>Perhaps [{tree('DRAFT')}]? No</think>{listed(tree('Oak'), tree('Elm'))}",
        f"Perhaps [{tree('DRAFT')}]? No: {listed(tree('Oak'), tree('Elm'))}",
        f"<think>{listed(tree('DRAFT'))}</think>[{tree('Oak')}, {tree('Elm')}]",
        f"Perhaps [{tree('DRAFT')}]? No: [{tree('Oak')}, {tree('Elm')}]. That is all.",
    ],
)
async def test_a_draft_never_becomes_a_value(answer: str) -> None:
    """What the model tried out before its answer is no item, and costs no further ask."""
    exchange = WrittenExchange([answer])
    items = await extracted(exchange, 2)

    assert names(items) == ["Oak", "Elm"]
    assert exchange.purposes == [Purpose.ASK]
    assert names(await extracted(WrittenExchange([f"<think>{tree('DRAFT')}</think>", tree("Oak")]), 1)) == ["Oak"]


async def test_what_is_too_much_is_dropped() -> None:
    """Pieces of a broken item before whole ones, then the last."""
    items = await extracted(WrittenExchange([listed(*(tree(name) for name in ("Oak", "Elm", "Ash")))]), 2)
    assert names(items) == ["Oak", "Elm"]
    broken = '{"name": "Fir"}, "height": 3}'
    exchange = WrittenExchange([listed(tree("Oak"), broken, tree("Ash")), listed(tree("Fir"))])
    items = await extracted(exchange, 3)
    assert names(items) == ["Oak", "Fir", "Ash"]
    assert [item.index for item in items] == [0, 1, 2]


async def test_a_plain_model_is_asked_item_by_item() -> None:
    """Field by field, as it is asked for a single object; without a number there is no end."""
    exchange = WrittenExchange(["Oak", "3", "Elm", "high", "high", "4", "X", "5", "X", "X"])
    exchange.may_repair = lambda: len(exchange.asked) < 10  # type: ignore[method-assign] # one budget for all its fields
    items = await extracted(exchange, 3, style=AnswerStyle.PLAIN)

    assert names(items) == ["Oak", "Elm", None]
    assert "item 2 of 3" in exchange.last_words[2]
    assert "name" in items[2].errors[0]
    with pytest.raises(InvalidInputError, match="expected"):
        await extracted(WrittenExchange([]), style=AnswerStyle.PLAIN)


@pytest.mark.parametrize(
    ("item", "options", "field"),
    [
        (Tree, {"expected": 0}, "expected"),
        (Tree, {"expected": True}, "expected"),
        (Tree, {"on_fail": "drop"}, "on_fail"),
        (int, {}, "model"),
        (RootModel[list[int]], {}, "model"),
    ],
)
async def test_a_caller_s_mistake_is_named_before_anything_is_asked(item: Any, options: Any, field: str) -> None:
    """Field, rule and value."""
    exchange = WrittenExchange([])
    with pytest.raises(InvalidInputError, match=field):
        await extract_items(exchange, item, REQUEST, **options)
    assert exchange.asked == []


async def test_a_rule_that_returns_something_else_is_named() -> None:
    """A value of another type is never passed off as an item."""
    with pytest.raises(InvalidInputError, match="must return a Tree"):
        await extracted(WrittenExchange([listed(tree("X"))] * 3), 1, on_fail=lambda raw, errors: raw)
