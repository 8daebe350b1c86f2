"""What the scripted provider makes up and spoils: lists, computed answers, faults of single elements, cut streams."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import httpx2
import json_repair
import pytest

from headrace.model.errors import InvalidInputError
from headrace.testing.provider import Answers, Fault, FaultKind, Latency, ScriptedProvider, Span
from headrace.testing.provider.listed import element_spans

CASE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "module": {"enum": ["login", "cart", "search"]},
        "priority": {"type": "integer", "minimum": 1, "maximum": 3},
        "note": {"anyOf": [{"type": "string", "maxLength": 30}, {"type": "null"}]},
    },
}
CASES = {"type": "object", "properties": {"cases": {"type": "array", "items": {"$ref": "#/$defs/Case"}}}}
SCHEMA = {**CASES, "$defs": {"Case": CASE}}
LIST = {"items": [{"name": f"item {number}", "size": number} for number in range(1, 11)]}


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client without proxies."""
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        yield client


async def post(client: httpx2.AsyncClient, provider: ScriptedProvider, *texts: str, **fields: Any) -> httpx2.Response:
    """Ask with these messages of the user."""
    body = {"model": "m", "messages": [{"role": "user", "content": text} for text in texts], **fields}
    headers = {"authorization": f"Bearer {provider.api_key}"}
    return await client.post(f"{provider.base_url}/chat/completions", json=body, headers=headers)


async def said(client: httpx2.AsyncClient, provider: ScriptedProvider, *texts: str, **fields: Any) -> str:
    """The text of the answer."""
    content: str = (await post(client, provider, *texts, **fields)).json()["choices"][0]["message"]["content"]
    return content


def with_schema(schema: Any) -> dict[str, Any]:
    """The response format of a JSON schema."""
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


async def answers(client: httpx2.AsyncClient, rule: Any, *asks: Sequence[str], **fields: Any) -> list[Any]:
    """The JSON that this rule answers to each ask."""
    async with ScriptedProvider(rules=Answers([rule])) as provider:
        return [json.loads(await said(client, provider, *texts, **fields)) for texts in asks]


async def test_a_list_follows_the_schema_and_the_count_in_the_prompt(client: httpx2.AsyncClient) -> None:
    """So many elements as the prompt says, each valid, all different, and the same in every run."""
    rule = {"list": {"count": r"(\d+) cases"}}
    first = await answers(client, rule, ["Write 12 cases for a shop"], **with_schema(SCHEMA))
    again = await answers(client, rule, ["Write 12 cases for a shop"], **with_schema(SCHEMA))
    cases = first[0]["cases"]

    assert first == again
    assert len(cases) == len({json.dumps(case) for case in cases}) == 12
    for case in cases:
        assert set(case) == {"id", "module", "priority", "note"}
        assert case["module"] in ("login", "cart", "search")
        assert 1 <= case["priority"] <= 3
        assert len(case["note"]) <= 30


async def test_a_part_of_a_list_is_the_same_as_in_the_whole(client: httpx2.AsyncClient) -> None:
    """`only_items` and `continue_after` in a JSON block give the elements that the whole list has at those numbers."""
    rule = {"list": {"count": 8, "item": {"n": "{index}", "name": "{name}", "text": "about {words:2} {given}"}}}
    asked = "Names, please."
    only = 'These were wrong:\n```json\n{"only_items": [2, 5], "errors": ["too long", "too short"]}\n```'
    whole, some, rest, more = await answers(
        client,
        rule,
        [asked],
        [asked, only],
        [asked, '{"continue_after": 6}'],
        [asked, '{"continue_after": 8, "count": 2}'],
    )
    items = whole["items"]

    assert [item["n"] for item in items] == list(range(1, 9))
    assert len({item["name"] for item in items}) == 8
    assert some["items"] == [items[1], items[4]]
    assert rest["items"] == items[6:]
    assert [item["n"] for item in more["items"]] == [9, 10]


async def test_one_element_for_each_that_was_asked_about(client: httpx2.AsyncClient) -> None:
    """An element's answer depends on the element alone, so that a re-ask of some gives what the whole gave."""
    rule = {"list": {"each": "inputs"}}
    inputs = [{"id": f"T{number}", "title": f"case {number}"} for number in range(5)]
    fields = with_schema(SCHEMA)
    whole, again = await answers(
        client,
        rule,
        [f"Tag these: {json.dumps({'inputs': inputs})}"],
        [f"Once more: {json.dumps({'inputs': [inputs[3], inputs[1]]})}"],
        **fields,
    )

    assert [case["id"] for case in whole["cases"]] == ["T0", "T1", "T2", "T3", "T4"]
    for name in ("id", "module", "priority"):
        assert [case[name] for case in again["cases"]] == [whole["cases"][index][name] for index in (3, 1)]


async def test_lists_overlap_where_names_come_from_a_pool(client: httpx2.AsyncClient) -> None:
    """With a pool, lists about different things share names; without one a list has none twice."""
    asks = [[f"Names for batch {number}"] for number in range(10)]
    pooled = await answers(client, {"list": {"count": 20, "key": None, "pool": 50}}, *asks)
    apart = await answers(client, {"list": {"count": 500, "key": None}}, ["Names"])

    assert len({name for names in pooled for name in names}) <= 50 < 200
    assert len(set(apart[0])) == 500


async def test_answers_are_computed_from_the_prompt(client: httpx2.AsyncClient) -> None:
    """A whole answer or one field is computed from the prompt, or from what a pattern finds in it."""
    rules = Answers(
        [
            {"contains": "add", "compute": "sum"},
            {"contains": "repeat", "compute": "echo", "pattern": "repeat (.*)"},
            {"path": "total", "compute": "sum", "pattern": "price (\\d+)"},
        ]
    )
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}}
    async with ScriptedProvider(rules=rules) as provider:
        assert await said(client, provider, "add 2 and 40") == "42"
        assert await said(client, provider, "repeat after me") == "after me"
        text = await said(client, provider, "9 eggs: price 3, price 4", **with_schema(schema))

    assert json.loads(text) == {"total": 7}


@pytest.mark.parametrize(
    "rule", [{"list": {"size": 3}}, {"list": 3}, {"list": {"count": "("}}, {"compute": "root"}, {"contains": "x"}]
)
def test_a_wrong_rule_is_named(rule: Any) -> None:
    """Mistakes in the new rules are told where they are written."""
    with pytest.raises(InvalidInputError, match="rule"):
        Answers([rule])


async def test_single_elements_are_broken_and_the_others_stay(client: httpx2.AsyncClient) -> None:
    """By their numbers, or by a share that is the same in every run."""
    rated = Fault(kind=FaultKind.BAD_ITEM, item_rate=0.3)
    runs = []
    for fault in (Fault.parse("bad_item:items=2,5,times=1"), rated, rated, Fault(kind=FaultKind.BAD_ITEM)):
        async with ScriptedProvider(answer=lambda request: LIST, faults=[fault], seed=4) as provider:
            runs.append(json.loads(await said(client, provider, "ten"))["items"])
    bad = [
        [n for n, (got, meant) in enumerate(zip(items, LIST["items"], strict=True), 1) if got != meant]
        for items in runs
    ]

    assert bad[0] == [2, 5]
    assert runs[1] == runs[2]
    assert 1 <= len(bad[1]) <= 6
    assert len(bad[3]) == 1
    for items in runs:
        for item in items:
            is_valid = isinstance(item["name"], str) and isinstance(item["size"], int)
            assert is_valid == (item in LIST["items"])


@pytest.mark.parametrize("style", ["trailing_comma", "code_fence", "single_quotes", "bare_keys"])
async def test_malformed_json_can_be_mended(style: str, client: httpx2.AsyncClient) -> None:
    """Each style is no JSON, and mended it is what was meant."""
    fault = Fault.parse(f"malformed_json:style={style}")
    async with ScriptedProvider(answer=lambda request: LIST, faults=[fault]) as provider:
        text = await said(client, provider, "ten")

    with pytest.raises(ValueError, match=r"Exp|property"):
        json.loads(text)
    assert json_repair.loads(text) == LIST


async def test_a_length_cut_lies_in_the_middle_of_an_element(client: httpx2.AsyncClient) -> None:
    """After so many whole elements the next one is begun and not ended, and the finish reason says `length`."""
    for text, whole in (("length:after_items=3", 3), ("length", 5)):
        async with ScriptedProvider(answer=lambda request: LIST, faults=[Fault.parse(text)]) as provider:
            choice = (await post(client, provider, "ten")).json()["choices"][0]
        cut = choice["message"]["content"]

        assert choice["finish_reason"] == "length"
        assert json.dumps(LIST).startswith(cut)
        assert abs(cut.count("}") - whole) <= (0 if "after" in text else 1)
        assert cut.count("{") == cut.count("}") + 2


def test_spans_of_elements_are_found_in_lists_of_objects() -> None:
    """The longest list of an object counts, however deep its elements are; other texts have none."""
    text = json.dumps({"tags": ["]"], "items": [{"a": [1, {"b": "}"}]}, 2, '"x'], "z": 1}, indent=1)

    assert [json.loads(text[start:end]) for start, end in element_spans(text)] == [{"a": [1, {"b": "}"}]}, 2, '"x']
    assert [element_spans(other) for other in ("[]", "{}", "no", "3", '{"a": 1}')] == [[], [], [], [], []]
    assert element_spans("[10 ]") == [(1, 3)]


async def stream(client: httpx2.AsyncClient, provider: ScriptedProvider) -> tuple[str, list[tuple[float, str]], bool]:
    """The text of a streamed answer, when each piece came, and whether the stream was whole."""
    body = {"model": "m", "messages": [{"role": "user", "content": "ten"}], "stream": True}
    headers = {"authorization": f"Bearer {provider.api_key}"}
    begun_at, pieces, is_whole = time.monotonic(), [], False
    try:
        async with client.stream(
            "POST", f"{provider.base_url}/chat/completions", json=body, headers=headers
        ) as response:
            async for line in response.aiter_lines():
                is_whole |= line == "data: [DONE]"
                if line.startswith("data: {"):
                    delta = json.loads(line[6:])["choices"][0]["delta"]
                    pieces.append((time.monotonic() - begun_at, delta.get("content", "")))
    except httpx2.RemoteProtocolError:
        pass
    return "".join(piece for _, piece in pieces), pieces, is_whole


@pytest.mark.parametrize(
    ("fault", "end"),
    [("stream_cut:after_items=3", '"size": 3}'), ("stream_cut:after_characters=22", '"name": "i'), ("stream_cut", "")],
)
async def test_a_stream_is_cut_where_the_script_says(fault: str, end: str, client: httpx2.AsyncClient) -> None:
    """Everything up to there arrives, then the connection breaks; the call is not counted as paid."""
    async with ScriptedProvider(answer=lambda request: LIST, faults=[Fault.parse(fault)]) as provider:
        text, _, is_whole = await stream(client, provider)
        stats = provider.stats()

    assert json.dumps(LIST).startswith(text)
    assert text.endswith(end)
    assert 0 < len(text) < len(json.dumps(LIST))
    assert not is_whole
    assert (stats.paid, stats.outcomes) == (0, {"aborted": 1})


async def test_a_stream_comes_token_by_token_and_is_not_late_in_sum(client: httpx2.AsyncClient) -> None:
    """The first token waits its time, the others follow at their rate, and the last is due when the model says."""
    latency = Latency(timedelta(milliseconds=100), tokens_per_second=500)
    async with ScriptedProvider(answer=lambda request: "x" * 800, latency=latency) as provider:
        text, pieces, is_whole = await stream(client, provider)
    times = [at for at, piece in pieces if piece]

    assert is_whole
    assert len(text) == 800
    assert len(times) == 200
    assert times[0] >= 0.1
    assert times[-1] >= 0.1 + 199 / 500
    assert pieces[-1][0] >= latency.total(200) == 0.5


async def test_a_fault_of_words_strikes_by_attempt_too(client: httpx2.AsyncClient) -> None:
    """The second ask of the same content is answered as it should be."""
    fault = Fault(kind=FaultKind.MALFORMED_JSON, attempts=Span(1, 1))
    async with ScriptedProvider(answer=lambda request: LIST, faults=[fault]) as provider:
        texts = [await said(client, provider, "ten") for _ in range(2)]

    assert texts[0] != texts[1]
    assert json.loads(texts[1]) == LIST


@pytest.mark.parametrize("text", ["malformed_json:style=odd", "bad_item:items=a", "stream_cut:after_items=x"])
def test_a_value_of_a_fault_that_is_not_understood_is_named(text: str) -> None:
    """The new values are checked where they are written."""
    with pytest.raises(InvalidInputError, match="fault"):
        Fault.parse(text)
