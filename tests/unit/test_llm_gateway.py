"""The LLM call: what it pays, what it keeps, what it repairs, and how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, Field, RootModel

from headrace.clock import SystemClock
from headrace.llm.endpoint import Endpoint
from headrace.llm.gateway import LLM
from headrace.llm.models import Models
from headrace.llm.results import Provenance
from headrace.model.calls import Settlement
from headrace.model.errors import InvalidInputError, StoreUnavailableError
from headrace.model.llm import AnswerStyle, FinishReason, Message, StoredAnswer
from headrace.model.provider_errors import (
    BadOutputError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusedError,
)
from headrace.model.quota import Pool
from headrace.model.usage import Usage, UsageMeter, current_meter
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores, stores_over
from headrace.stores.memory.call_store import MemoryCallStore
from headrace.stores.memory.memo_retention import DatedMemoStore
from headrace.stores.memory.notifier import MemoryNotifier
from headrace.stores.memory.state import State
from tests.unit.llm_answers import COST, OnePrice, WrittenProvider, llm_of, means_of, said
from tests.waiting import wait_until

GOOD = '{"plants": 60, "variety": "Rosada"}'


class Trial(BaseModel):
    """What is asked for."""

    plants: int = Field(ge=1, description="number of plants")
    variety: str


@pytest.fixture
def meter() -> Iterator[UsageMeter]:
    """The meter of an attempt."""
    meter = UsageMeter()
    token = current_meter.set(meter)
    yield meter
    current_meter.reset(token)


@pytest.mark.parametrize("style", [AnswerStyle.STRICT_SCHEMA, AnswerStyle.JSON])
async def test_a_valid_answer_is_one_call(style: AnswerStyle) -> None:
    """Ask, validate, return: with what it cost and where it came from."""
    provider = WrittenProvider([GOOD], style)
    extraction = await llm_of(provider).extract_detailed(Trial, prompt="We grew 60 plants.", system="Be exact.")

    assert extraction.value == Trial(plants=60, variety="Rosada")
    assert extraction.usage == COST
    assert (extraction.calls, extraction.reused, extraction.provenance) == (1, 0, Provenance.LLM)


async def test_a_strict_ask_carries_the_schema_and_a_json_ask_tells_it() -> None:
    """The provider's style decides how the schema travels."""
    strict, loose = WrittenProvider([GOOD]), WrittenProvider([GOOD], AnswerStyle.JSON)
    for provider in (strict, loose):
        await llm_of(provider).extract(Trial, prompt="We grew 60 plants.", system="Be exact.")

    (asked,) = strict.requests
    assert asked.schema is not None
    assert asked.schema["required"] == ["plants", "variety"]
    assert asked.schema_name == "Trial"
    assert [message.role for message in asked.messages] == ["system", "user"]
    (asked,) = loose.requests
    assert asked.schema is None
    assert asked.json_mode
    assert asked.messages[0].content.startswith("Be exact.")
    assert '"plants"' in asked.messages[0].content


async def test_words_and_fences_around_the_object_are_passed_over() -> None:
    """A model that talks round its JSON costs no repair."""
    provider = WrittenProvider([f"Sure! Here it is:\n```json\n{GOOD}\n```"], AnswerStyle.JSON)
    extraction = await llm_of(provider).extract_detailed(Trial, prompt="?")

    assert extraction.provenance is Provenance.LLM


@pytest.mark.parametrize(
    "draft", ['<think>{"plants": 9}? No.</think>\n', " <thinking>{a}\n</THINKING>", "Or {9}?</think>"]
)
async def test_reasoning_before_the_object_is_passed_over(draft: str) -> None:
    """A server that leaves it in the answer costs no repair; reasoning that never ends holds no value."""
    extraction = await llm_of(WrittenProvider([draft + GOOD])).extract_detailed(Trial, prompt="?")
    assert (extraction.value.plants, extraction.provenance) == (60, Provenance.LLM)

    odd = GOOD.replace("Rosada", "a </think> b")
    assert (await llm_of(WrittenProvider([odd])).extract(Trial, prompt="?")).variety == "a </think> b"
    lost = WrittenProvider([f"<think>Perhaps {GOOD}?", GOOD.replace("60", "61")])
    assert (await llm_of(lost).extract(Trial, prompt="?")).plants == 61


async def test_an_equal_ask_costs_nothing() -> None:
    """The answer is taken from the memo, also by another LLM over the same memo, as after a restart."""
    stores = open_memory_stores()
    provider = WrittenProvider([GOOD])
    first = await llm_of(provider, stores).extract_detailed(Trial, prompt="?")
    again = await llm_of(provider, stores).extract_detailed(Trial, prompt="?")

    assert again.value == first.value
    assert again.usage == Usage(reused=1)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    "changes", [{"prompt": "other"}, {"system": "s"}, {"max_tokens": 9}, {"temperature": 1}, {"sample": 1}]
)
async def test_another_ask_is_another_call(changes: dict[str, Any]) -> None:
    """Whatever changes the answer is part of the key."""
    provider = WrittenProvider([GOOD, GOOD])
    llm = llm_of(provider)
    await llm.extract(Trial, prompt="?")
    await llm.extract(Trial, **{"prompt": "?", **changes})

    assert len(provider.requests) == 2


async def test_the_answer_is_stored_before_it_is_read() -> None:
    """What was paid lies in the memo even where it turns out useless."""
    stores, calls = recording_stores()
    with pytest.raises(BadOutputError):
        await llm_of(WrittenProvider(["one", "two", "three"]), stores).extract(Trial, prompt="?")

    assert [answer.answer.text for answer in calls.stored] == ["one", "two", "three"]


class RecordingCalls(MemoryCallStore):
    """A ledger that shows which answers it was given, and is out of order for a while."""

    outages = 0

    def __init__(self, state: State, memo: DatedMemoStore) -> None:
        super().__init__(state, memo)
        self.stored: list[StoredAnswer] = []

    async def settle_calls(self, settlements: Sequence[Settlement]) -> list[StoredAnswer | None]:
        """Fail while out of order, then store."""
        if self.outages:
            self.outages -= 1
            raise StoreUnavailableError
        self.stored += [settlement.answer for settlement in settlements if settlement.answer is not None]
        return await super().settle_calls(settlements)


def recording_stores() -> tuple[Stores, RecordingCalls]:
    """Stores in memory whose ledger can be looked at."""
    state = State(SystemClock())
    memo = DatedMemoStore(state)
    calls = RecordingCalls(state, memo)
    return replace(stores_over(state, MemoryNotifier()), calls=calls, memo=memo), calls


async def test_a_paid_answer_outlives_a_store_that_restarts() -> None:
    """Storing is tried again before the answer is given up."""
    stores, calls = recording_stores()
    calls.outages = 1
    provider = WrittenProvider([GOOD])
    await llm_of(provider, stores).extract(Trial, prompt="?")

    assert len(calls.stored) == 1
    assert len(provider.requests) == 1


async def test_the_answer_stored_first_stands() -> None:
    """Where another process stored an answer in the meantime, that one is used: all see the same."""
    stores = open_memory_stores()
    provider = WrittenProvider(["late"])
    provider.gate.clear()
    llm = llm_of(provider, stores)
    asking = asyncio.create_task(llm.complete("?"))
    await wait_until(lambda: provider.requests)
    await stores.memo.store_answer(provider.requests[0].memo_key("written"), StoredAnswer("written", said("early")))
    provider.gate.set()

    assert await asking == "early"


@pytest.mark.parametrize("style", [AnswerStyle.STRICT_SCHEMA, AnswerStyle.JSON])
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('{"plants": "many", "variety": "Rosada"}', "plants: Input should be a valid integer"),
        ('{"plants": 0, "variety": "Rosada"}', "plants: Input should be greater than or equal to 1"),
        ('{"plants": 60}', "variety: Field required"),
        ('{"plants": 60, "variety": "Ros', "no JSON object"),
        ('{"plants": 60,, "variety": "Rosada"}', "Invalid JSON"),
        ("", "no JSON object"),
    ],
)
async def test_a_wrong_answer_is_repaired_by_naming_its_errors(style: AnswerStyle, wrong: str, told: str) -> None:
    """The model sees its answer again with each error named, and may correct it."""
    provider = WrittenProvider([wrong, GOOD], style)
    extraction = await llm_of(provider).extract_detailed(Trial, prompt="?")

    assert extraction.value.plants == 60
    assert extraction.provenance is Provenance.REASKED
    assert extraction.usage == COST + COST
    echoed, feedback = provider.requests[1].messages[-2:]
    assert (echoed.role, feedback.role) == ("assistant", "user")
    assert told in feedback.content


async def test_after_two_repairs_it_ends_and_the_end_costs_nothing_twice() -> None:
    """Three wrong answers are a permanent error that names the errors; the same ask again makes no call."""
    stores = open_memory_stores()
    provider = WrittenProvider(["{}"] * 3)
    for _ in range(2):
        with pytest.raises(BadOutputError) as caught:
            await llm_of(provider, stores).extract(Trial, prompt="?")

    assert len(provider.requests) == 3
    assert len({request.memo_key("written") for request in provider.requests}) == 3
    assert caught.value.errors == ("plants: Field required", "variety: Field required")
    assert not caught.value.transient


@pytest.mark.parametrize("style", list(AnswerStyle))
@pytest.mark.parametrize("repairs", [0, 1, 2])
async def test_a_caller_may_allow_fewer_repairs(style: AnswerStyle, repairs: int) -> None:
    """However the model is asked: the first answer, and so many more."""

    class Count(BaseModel):
        """One field, which is one question to a model that answers plainly."""

        plants: int

    provider = WrittenProvider(["many"] * 3, style)
    with pytest.raises(BadOutputError):
        await llm_of(provider).extract(Count, prompt="?", repairs=repairs)
    assert len(provider.requests) == 1 + repairs


@pytest.mark.parametrize("repairs", [-1, 3, True, "1"])
async def test_repairs_are_0_to_2(repairs: Any) -> None:
    """Others are refused before anything is asked."""
    with pytest.raises(InvalidInputError, match="repairs must be a whole number from 0 to 2"):
        await llm_of(WrittenProvider([])).extract_detailed(Trial, prompt="?", repairs=repairs)


async def test_a_cut_answer_is_asked_for_again_with_more_room() -> None:
    """A cut answer is never mended, not even where it could be read; the paid cut one stays in the memo."""
    stores = open_memory_stores()
    cut = said(GOOD, FinishReason.LENGTH)
    provider = WrittenProvider([cut, cut, GOOD])
    for _ in range(2):
        value = await llm_of(provider, stores).extract(Trial, prompt="?", max_tokens=100)
        assert value.plants == 60

    assert [request.max_tokens for request in provider.requests] == [100, 356, 712]


async def test_an_answer_cut_at_the_provider_s_own_limit_is_asked_for_shorter() -> None:
    """Where no more room can be given, the model is asked to be brief; after two such asks it ends."""
    cut = said('{"plants": 6', FinishReason.LENGTH)
    provider = WrittenProvider([cut] * 3)
    with pytest.raises(BadOutputError, match="cut off"):
        await llm_of(provider).extract(Trial, prompt="?")

    assert len({request.memo_key("written") for request in provider.requests}) == 3
    assert "shorter" in provider.requests[1].messages[-1].content


@pytest.mark.parametrize("style", list(AnswerStyle))
async def test_a_refusal_is_permanent_and_paid_once(style: AnswerStyle) -> None:
    """The model declines: no repair, and the same ask again is refused from the memo."""
    stores = open_memory_stores()
    provider = WrittenProvider([said("I cannot.", FinishReason.REFUSED)], style)
    for _ in range(2):
        with pytest.raises(RefusedError, match=r"I cannot\.") as caught:
            await llm_of(provider, stores).extract(Trial, prompt="?")

    assert len(provider.requests) == 1
    assert not caught.value.transient


async def test_an_answer_that_is_none_is_asked_for_again(meter: UsageMeter) -> None:
    """A body that held no answer spends a repair, its cost is counted, and nothing is stored for it."""
    useless = BadOutputError(errors=["a tool call instead of text"], usage=replace(COST, cost_nano=0))
    provider = WrittenProvider([useless, GOOD])
    extraction = await llm_of(provider).extract_detailed(Trial, prompt="?")

    assert extraction.provenance is Provenance.REASKED
    assert extraction.usage == meter.total == COST + COST
    provider = WrittenProvider([useless] * 3)
    with pytest.raises(BadOutputError):
        await llm_of(provider).complete("?")
    assert len(provider.requests) == 3


async def test_a_transient_fault_is_the_job_s_affair() -> None:
    """Nothing is retried here: the error goes out as it came, and nothing is stored."""
    away = ProviderUnavailableError()
    provider = WrittenProvider([away, "yes"])
    llm = llm_of(provider)
    with pytest.raises(ProviderUnavailableError) as caught:
        await llm.complete("?")

    assert caught.value is away
    assert await llm.complete("?") == "yes"


async def test_a_full_quota_is_waited_for_and_is_no_error() -> None:
    """A 429 closes the pool; the call is made again when that is over, and its asker hears nothing of it."""
    provider = WrittenProvider([RateLimitedError(retry_after=timedelta(milliseconds=20)), "yes"])
    llm = llm_of(provider)

    assert await llm.complete("?") == "yes"
    assert len(provider.requests) == 2


async def test_equal_asks_at_one_time_are_one_call(meter: UsageMeter) -> None:
    """Ten askers, one call, one bill."""
    provider = WrittenProvider(["yes"])
    provider.gate.clear()
    llm = llm_of(provider)
    asking = [asyncio.create_task(llm.complete_detailed("?")) for _ in range(10)]
    await wait_until(lambda: provider.requests)
    provider.gate.set()
    completions = await asyncio.gather(*asking)

    assert len(provider.requests) == 1
    assert [completion.reused for completion in completions] == [False] + [True] * 9
    assert meter.total == COST + Usage(reused=9)


async def test_a_cancelled_asker_loses_no_paid_answer(meter: UsageMeter) -> None:
    """The call goes on without it; its answer is stored, counted and there for the next asker."""
    stores, calls = recording_stores()
    provider = WrittenProvider([GOOD])
    provider.gate.clear()
    llm = llm_of(provider, stores)
    asking = asyncio.create_task(llm.extract(Trial, prompt="?"))
    await wait_until(lambda: provider.requests)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    provider.gate.set()
    await wait_until(lambda: calls.stored)

    assert (await llm.extract_detailed(Trial, prompt="?")).usage == Usage(reused=1)
    assert meter.total == COST + Usage(reused=1)


async def test_a_cancelled_asker_leaves_the_others_alone() -> None:
    """One of two askers goes; the other gets the answer."""
    provider = WrittenProvider(["yes"])
    provider.gate.clear()
    llm = llm_of(provider)
    first, second = (asyncio.create_task(llm.complete("?")) for _ in range(2))
    await wait_until(lambda: provider.requests)
    first.cancel()
    await asyncio.wait({first})
    provider.gate.set()

    assert await second == "yes"


async def test_closing_waits_for_answers_under_way() -> None:
    """What is paid and under way is stored before the provider is let go."""
    stores, calls = recording_stores()
    provider = WrittenProvider(["yes"])
    provider.gate.clear()
    llm = llm_of(provider, stores)
    asking = asyncio.create_task(llm.complete("?"))
    await wait_until(lambda: provider.requests)
    closing = asyncio.create_task(llm.aclose())
    provider.gate.set()
    await closing

    assert len(calls.stored) == 1
    assert provider.is_closed
    assert await asking == "yes"
    await llm.aclose()


async def test_a_text_is_asked_with_earlier_turns_and_stops() -> None:
    """Worked examples stand between system and prompt, given as messages or as mappings."""
    provider = WrittenProvider([said("Paris", FinishReason.LENGTH)])
    completion = await llm_of(provider).complete_detailed(
        "Capital of France?",
        system="Answer in a word.",
        messages=[{"role": "user", "content": "Capital of Norway?"}, Message("assistant", "Oslo")],
        stop="\n",
        max_tokens=5,
    )

    (asked,) = provider.requests
    assert [message.role for message in asked.messages] == ["system", "user", "assistant", "user"]
    assert (asked.stop, asked.max_tokens, asked.temperature) == (("\n",), 5, 0.0)
    assert (completion.text, completion.truncated, completion.reused) == ("Paris", True, False)


async def test_a_whole_conversation_needs_no_prompt() -> None:
    """`messages` may hold the question too."""
    provider = WrittenProvider(["yes"])
    assert await llm_of(provider).complete(messages=[Message("user", "?")], stop=["a", "b"]) == "yes"
    assert provider.requests[0].stop == ("a", "b")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "prompt must hold a question .*, got None"),
        ({"prompt": 3}, "prompt must be text, got 3"),
        ({"messages": "hi"}, "messages must be a list, .*, got 'hi'"),
        ({"messages": {"role": "user", "content": "x"}}, "messages must be a list, "),
        ({"messages": 5}, "messages must be a list, .*, got 5"),
        ({"messages": ["hi"]}, r"messages\[0\] must be {role, content} .*, got 'hi'"),
        ({"messages": [{"role": "robot", "content": "x"}]}, r"messages\[0\] must be {role, content} with a role of "),
        ({"messages": [{"role": "user", "content": 5}]}, r"messages\[0\] must be text, got 5"),
        ({"messages": [Message("robot", "x")]}, r"messages\[0\] must be {role, content} with a role of "),  # type: ignore[arg-type]
        ({"messages": [Message("assistant", "x")]}, "prompt must hold a question"),
        ({"max_tokens": 0}, "max_tokens must be a whole number from 1 to .*, got 0"),
        ({"max_tokens": "5"}, "max_tokens must be a whole number from 1 to .*, got '5'"),
        ({"max_tokens": 1.5}, "max_tokens must be a whole number"),
        ({"max_tokens": True}, "max_tokens must be a whole number"),
        ({"max_tokens": 10**30}, "max_tokens must be a whole number"),
        ({"temperature": 3}, "temperature must be a number from 0 to 2, got 3"),
        ({"temperature": "hot"}, "temperature must be a number from 0 to 2, got 'hot'"),
        ({"temperature": float("nan")}, "temperature must be a number from 0 to 2, got nan"),
        ({"stop": ""}, "stop must be a text that is not empty, .*, got ''"),
        ({"stop": 5}, "stop must be a text that is not empty, .*, got 5"),
        ({"stop": ["a", ""]}, "stop must be a text that is not empty"),
        ({"stop": b"a"}, "stop must be a text that is not empty"),
        ({"sample": "a"}, "sample must be a whole number from 0 to .*, got 'a'"),
    ],
)
async def test_a_malformed_ask_is_named_before_anything_is_paid(fields: dict[str, Any], told: str) -> None:
    """Mistakes of the caller are told with field, rule and value, and make no call."""
    provider = WrittenProvider([])
    prompt = {} if not fields or "messages" in fields else {"prompt": "?"}
    with pytest.raises(InvalidInputError, match=f"^{told}"):
        await llm_of(provider).complete(**{**prompt, **fields})
    assert provider.requests == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"prompt": "grün\ud800!"}, r"prompt must be Unicode: character 4 .*'grün\\ud800!'"),
        ({"prompt": "?", "system": "\udc80"}, "system must be Unicode: character 0 "),
        ({"messages": [Message("user", "?"), Message("user", "é\ud800")]}, r"messages\[1\] must be .* 1 "),
        ({"messages": [{"role": "user", "content": "a\ud800"}]}, r"messages\[0\] must be .* 1 "),
    ],
)
async def test_half_of_a_pair_in_a_prompt_is_named_with_its_place(fields: dict[str, Any], named: str) -> None:
    """It has no UTF-8, so it could never be sent: nothing is asked, nothing is on record."""
    provider, stores = WrittenProvider([]), open_memory_stores()
    with pytest.raises(InvalidInputError, match=named):
        await llm_of(provider, stores).complete(**fields)
    assert (provider.requests, await stores.budgets.list_calls()) == ([], [])


@pytest.mark.parametrize("model", [int, RootModel[list[int]], {"type": "object"}])
async def test_only_a_model_with_fields_can_be_extracted(model: Any) -> None:
    """Anything else is refused with a clear error."""
    provider = WrittenProvider([])
    with pytest.raises(InvalidInputError, match="model must be a pydantic model"):
        await llm_of(provider).extract(model, prompt="?")


async def test_a_shape_no_strict_schema_can_say_is_asked_for_as_json() -> None:
    """Mappings and values of any type fall back to JSON mode, at a provider that is strict otherwise."""

    class Counts(BaseModel):
        by_word: dict[str, int]

    provider = WrittenProvider([json.dumps({"by_word": {"a": 1}})])
    assert (await llm_of(provider).extract(Counts, prompt="?")).by_word == {"a": 1}
    assert provider.requests[0].json_mode


def test_nothing_is_opened_before_the_first_use() -> None:
    """An app without model calls needs no model."""
    opened: list[int] = []

    def open_provider() -> WrittenProvider:
        opened.append(1)
        return WrittenProvider([])

    endpoint = Endpoint(open=open_provider, pool=Pool("written"), prices=OnePrice())
    llm = LLM(Models({"": endpoint}, means_of(open_memory_stores())))
    assert opened == []
    assert (llm.style, llm.model_name) == (AnswerStyle.STRICT_SCHEMA, "written-1")
    assert opened == [1]
