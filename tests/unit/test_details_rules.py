"""Details: kinds and sizes, priorities, requests, items, wordings, and the demonstration's made-up answers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from importlib.resources import as_file, files
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headrace.apps.details.ending import left_over
from headrace.apps.details.items import MOST_BYTES, DetailItem
from headrace.apps.details.kinds import KINDS, base_sizes, kind_of
from headrace.apps.details.names import item_key
from headrace.apps.details.priorities import priority_class
from headrace.apps.details.request import MOST_ITEMS, parse_request
from headrace.apps.details.wording import MOST_AVOIDED, Slice, slant, word
from headrace.details_settings import DetailSettings, check_details
from headrace.model.agent_ids import canonical_id
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.event import MAX_EVENT_BYTES
from headrace.model.feed import MAX_ENTRY_BYTES, NewEntry, check_entries
from headrace.model.payload import encode_json
from headrace.testing.provider import Answers, ChatRequest

TYPES = [*KINDS, "ship_name"]


@pytest.mark.parametrize(
    ("type_", "size", "agent", "label"),
    [
        ("character_name", 20, "characterexpert", "character_name"),
        ("location_name", 20, "worldbuilder", "location_name"),
        ("item", 16, "worldbuilder", "item"),
        ("skill", 10, "worldbuilder", "skill"),
        ("organization", 10, "worldbuilder", "organization"),
        ("ship_name", 20, "worldbuilder", "other"),
    ],
)
def test_kinds_have_their_sizes_and_agents(type_: str, size: int, agent: str, label: str) -> None:
    """Each known type has its size and its agent; an unknown one goes to the world builder, 20 at a time."""
    kind = kind_of(type_)
    assert (kind.size, canonical_id(kind.agent), kind.label) == (size, agent, label)
    assert 0.92 <= kind.threshold <= 0.97
    assert kind.rule().similarity is not None


@pytest.mark.parametrize(
    ("type_", "count", "calls", "largest"),
    [
        ("character_name", 20, 1, 20),
        ("character_name", 21, 2, 11),
        ("character_name", 160, 8, 20),
        ("character_name", 161, 5, 33),
        ("skill", 80, 8, 10),
        ("skill", 1_000, 50, 20),
        ("item", 128, 8, 16),
        ("item", 129, 5, 26),
        ("ship_name", 1_000, 25, 40),
    ],
)
def test_base_sizes(type_: str, count: int, calls: int, largest: int) -> None:
    """Up to the kind's size one sub-batch; beyond 8 of them twice the size, 50 at most."""
    sizes = base_sizes(type_, count)
    assert (len(sizes), max(sizes), sum(sizes)) == (calls, largest, count)


@given(type_=st.sampled_from(TYPES), count=st.integers(1, MOST_ITEMS))
def test_base_sizes_are_even_and_whole(type_: str, count: int) -> None:
    """No item is lost, sub-batches differ by one at most, and none is above 50."""
    sizes = base_sizes(type_, count)
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1
    assert 1 <= min(sizes) <= max(sizes) <= 50


@pytest.mark.parametrize("type_", ["", "Skill", "2names", "a b", "a-b", "x" * 65, None, 7])
def test_other_words_are_no_types(type_: Any) -> None:
    """What is no short word of small letters is refused, and the known types are named."""
    with pytest.raises(InvalidInputError, match="type must be one of character_name"):
        kind_of(type_)


@pytest.mark.parametrize("priority", [-1, 11, True, 5.0, "5", None])
def test_other_priorities_are_refused(priority: Any) -> None:
    """Out of range is an error, never the nearest class."""
    with pytest.raises(InvalidInputError, match="priority must be a whole number from 0 to 10"):
        priority_class(priority)


def test_a_request_gets_its_defaults() -> None:
    """Priority 5, a first response of 10, a session of its own, and the session as the scope."""
    request = parse_request({"type": "item", "count": 50})
    assert (request.priority, request.first_response, request.style, request.webhook) == (5, 10, "", None)
    assert UUID(request.session_id).version == 7
    assert request.scope == request.session_id
    assert parse_request({"type": "item", "count": 3, "scope": "saga"}).scope == "saga"
    assert parse_request({"type": "item", "count": 3}).first_count == 3


@given(
    data=st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES), "count": st.integers(1, 1_000)},
        optional={
            "style": st.text(alphabet=st.characters(categories=["L", "N", "P", "Zs"]), max_size=500),
            "priority": st.integers(0, 10),
            "session_id": st.just("s-1"),
            "scope": st.just("saga"),
            "first_response": st.integers(1, 25),
            "webhook": st.just("https://example.org/hook"),
        },
    )
)
def test_a_request_travels_as_json(data: dict[str, Any]) -> None:
    """What a request is written as is read as the same request."""
    request = parse_request(data)
    assert parse_request(json.loads(json.dumps(request.to_json()))) == request


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": None}, "type"),
        ({"count": None}, "count"),
        ({"count": 0}, "count"),
        ({"count": 1_001}, "count"),
        ({"count": "5"}, "count"),
        ({"count": True}, "count"),
        ({"style": "x" * 501}, "style"),
        ({"style": "a\x00b"}, "style"),
        ({"style": "a\ud800b"}, "style"),
        ({"style": 5}, "style"),
        ({"priority": 11}, "priority"),
        ({"session_id": ""}, "session_id"),
        ({"session_id": "x" * 129}, "session_id"),
        ({"scope": "a\nb"}, "scope"),
        ({"first_response": 0}, "first_response"),
        ({"first_response": 26}, "first_response"),
        ({"webhook": "ftp://example.org"}, "webhook"),
        ({"webhook": "https://"}, "webhook"),
        ({"webhook": "https://[::1"}, "webhook"),
        ({"webhook": "https://example.org/a b"}, "webhook"),
        ({"colour": "red"}, "details request"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    """An error names the field that is wrong; None is a field left out, and two cannot be."""
    with pytest.raises(InvalidInputError) as caught:
        parse_request({"type": "item", "count": 5, **change})
    assert caught.value.field == field


@pytest.mark.parametrize("data", [None, [], "item", 5])
def test_a_request_is_an_object(data: Any) -> None:
    """Other JSON is refused by name."""
    with pytest.raises(InvalidInputError, match="details request must be an object"):
        parse_request(data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"name": ""},
        {"name": "  \n "},
        {"name": "\u200b"},
        {"name": "x" * 201},
        {"name": 5},
        {"name": "a", "attributes": {"": 1}},
        {"name": "a", "attributes": {"deep": {"er": 1}}},
        {"name": "a", "attributes": {"list": [1]}},
        {"name": "a", "attributes": {"number": float("nan")}},
        {"name": "a", "attributes": {"long": "x" * 501}},
        {"name": "a\ud800"},
        {"name": "a", "description": "x" * 4_001},
        {"name": "a", "attributes": {str(number): number for number in range(51)}},
        {"name": "a", "attributes": {str(number): "x" * 400 for number in range(50)}},
    ],
)
def test_what_is_no_item_is_refused(data: dict[str, Any]) -> None:
    """An item has a name that can be seen, and plain values."""
    with pytest.raises(ValidationError):
        DetailItem.model_validate(data)


def test_an_item_is_plain_json() -> None:
    """Values keep their types, spaces around names go, and control characters are spaces."""
    item = DetailItem.model_validate(
        {
            "name": " The\tFrost-Keep ",
            "description": "Old.\nCold.",
            "attributes": {"a": 1, "b": 1.5, "c": True, "d": None},
        }
    )
    assert json.loads(json.dumps(item.to_json())) == {
        "name": "The Frost-Keep",
        "description": "Old. Cold.",
        "attributes": {"a": 1, "b": 1.5, "c": True, "d": None},
    }
    assert item.to_json()["attributes"]["c"] is True
    assert item.key == "frost keep"


def test_a_prompt_says_what_is_wanted() -> None:
    """Type, style, count and the newest names to avoid stand in the prompt; what all calls share comes first."""
    avoid = [f"Name {number}" for number in range(MOST_AVOIDED + 5)]
    worded = word(
        Slice(subtask_id="7:3", type="location_name", count=5, style="grim,\ncold", batch_index=3, batches=9), avoid
    )
    for words in ("names of places", "Style: grim, cold", "Count: 5", '"Name 104"', '"Name 5"'):
        assert words in worded.prompt
    assert '"Name 4"' not in worded.prompt
    assert worded.prompt.splitlines()[-1] == "Request 7:3/0"
    other = word(Slice(subtask_id="8:0", type="location_name", count=5, style="grim,\ncold", batch_index=4, batches=9))
    assert (other.system, other.prompt.splitlines()[:3]) == (worded.system, worded.prompt.splitlines()[:3])


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("batches", [2, 11, 26, 50])
def test_parallel_calls_have_slants_of_their_own(type_: str, batches: int) -> None:
    """No two calls of a batch that goes out at once are told the same."""
    told = [slant(kind_of(type_), index, batches) for index in range(batches)]
    assert len(set(told)) == batches


@pytest.mark.parametrize("type_", TYPES)
def test_a_single_call_is_not_narrowed(type_: str) -> None:
    """Where there is one call it may write about anything."""
    assert slant(kind_of(type_), 0, 1) == "as unlike one another as can be"


def test_no_two_asks_are_equal() -> None:
    """Equal asks share a stored answer: the subtask, and the number of its ask, tell all apart."""
    parts = [
        Slice(subtask_id=task, type="item", count=5, ask=ask) for task in ("7:0", "7:1", "8:0") for ask in range(3)
    ]
    assert len({word(part).prompt for part in parts}) == len(parts)


def made_up(part: Slice) -> tuple[list[DetailItem], int]:
    """The items that the demonstration's rules answer with, and how many tokens the answer has."""
    with as_file(files("headrace.apps.details.demo") / "rules.json") as path:
        answers = Answers.load(path)
    worded = word(part)
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": DetailItem.model_json_schema()}}}
    text = answers(
        ChatRequest(
            key="k", model="m", messages=(("system", worded.system), ("user", worded.prompt)), schema=schema,
            json_mode=False, stream=True, wants_usage=True, max_tokens=None, stop=(), body={},
        )
    )  # fmt: skip
    return [DetailItem.model_validate(item) for item in json.loads(text)["items"]], len(text) // 4


@pytest.mark.parametrize(("style", "least", "most"), [("grim", 0, 4), ("plain", 5, 40), ("crowded", 200, 300)])
def test_the_rules_answer_with_valid_items(style: str, least: int, most: int) -> None:
    """So many items as asked, about 60 tokens each; of 400 names few come twice, and many in the style `crowded`."""
    parts = [Slice(subtask_id=f"b:{index}", type="skill", count=10, style=style) for index in range(40)]
    answers = [made_up(part) for part in parts]
    assert {len(items) for items, _ in answers} == {10}
    assert 50 <= sum(tokens for _, tokens in answers) / 400 <= 70
    given_out = Counter(item.key for items, _ in answers for item in items)
    assert least <= given_out.total() - len(given_out) <= most


def test_a_further_ask_gets_other_items() -> None:
    """A top-up of the same subtask is not answered with what was there already."""
    first, again = (made_up(Slice(subtask_id="b:0", type="skill", count=5, ask=ask))[0] for ask in (0, 1))
    assert not {item.key for item in first} & {item.key for item in again}
    assert made_up(Slice(subtask_id="b:0", type="skill", count=5))[0] == first


WILD = st.text(max_size=600).filter(lambda text: all(not 0xD800 <= ord(each) < 0xE000 for each in text))


@given(name=WILD, description=WILD, attributes=st.dictionaries(WILD, WILD | st.integers() | st.booleans(), max_size=60))
def test_an_item_always_fits_an_entry_and_its_key_is_one(name: str, description: str, attributes: Any) -> None:
    """Whatever a model writes: it is refused, or it can be stored as it is."""
    try:
        item = DetailItem.model_validate({"name": name, "description": description, "attributes": attributes})
    except ValidationError:
        return
    data = encode_json({"subtask_id": "b:0", **item.to_json()}, field="item", most=MAX_ENTRY_BYTES // 2)
    check_entries("details:b", [NewEntry("item", data, item_key("01980000-0000-7000-8000-000000000000:999", 49))])


def test_the_largest_items_of_a_call_fit_an_event() -> None:
    """A call has 50 items at most, and its event is not too large to leave."""
    assert 50 * MOST_BYTES + 10_000 < MAX_EVENT_BYTES


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"deadline": timedelta()}, "details.deadline must be longer than zero and at most 5m, got 0s"),
        ({"deadline": timedelta(minutes=6)}, "details.deadline must be longer than zero and at most 5m, got 6m"),
        ({"first_response_deadline": timedelta(seconds=6)}, "must not be above details.deadline, 5s, got 6s"),
        ({"first_response": 26}, "details.first_response must be from 1 to 25, got 26"),
        ({"agent_concurrency": 0}, "details.agent_concurrency must be from 1 to 1000, got 0"),
        ({"single_call_at": 1.5}, "details.single_call_at must be a share from 0 (never) to 1, got 1.5"),
        ({"single_call_at": float("nan")}, "details.single_call_at must be a share from 0 (never) to 1, got nan"),
        ({"single_call_window": 0}, "details.single_call_window must be from 1 to 1000, got 0"),
    ],
)
def test_settings_that_do_not_fit_are_named(change: dict[str, Any], words: str) -> None:
    """Key, rule and value."""
    with pytest.raises(ConfigError) as caught:
        check_details(replace(DetailSettings(), **change))
    assert words in str(caught.value)


def test_the_last_event_has_what_no_other_tells_and_stays_small() -> None:
    """Items of parts that told are left out, and so is what there is no room for."""
    items = [
        {"subtask_id": f"b:{number % 2}", "name": str(number), "description": "d" * 4_000} for number in range(200)
    ]
    left = left_over(items, {"b:0"})
    assert set(left) == {"b:1"} and 40 <= len(left["b:1"]) < 60
    assert "subtask_id" not in left["b:1"][0]
