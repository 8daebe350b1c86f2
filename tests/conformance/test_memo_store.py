"""MemoStore: paid answers, written once."""

from __future__ import annotations

import asyncio

from headrace.model.llm import Answer, FinishReason, StoredAnswer
from headrace.model.usage import Usage
from tests.conformance.scenario import Scenario

KEY = "0123456789abcdef" * 4


def answer(text: str = "hello") -> StoredAnswer:
    """Return an answer as a provider gave it."""
    return StoredAnswer("openai", Answer(text=text, usage=Usage(input_tokens=3, output_tokens=5, calls=1)))


async def test_an_unknown_key_has_no_answer(on: Scenario) -> None:
    """What was never stored is None."""
    assert await on.stores.memo.load_answer(KEY) is None


async def test_an_answer_is_kept_as_it_was(on: Scenario) -> None:
    """Text, finish reason, usage, model and request id are read back as they were stored."""
    stored = StoredAnswer(
        "local",
        Answer(
            text='NUL \x00, lone surrogate \ud800, "quotes", é😀',
            finish_reason=FinishReason.LENGTH,
            usage=Usage(10, 20, 1, 0),
            model="tiny-2026-01-01",
            request_id="req-1",
        ),
    )

    assert await on.stores.memo.store_answer(KEY, stored) == stored
    assert await on.stores.memo.load_answer(KEY) == stored


async def test_the_first_answer_stands(on: Scenario) -> None:
    """A key that is taken keeps its answer, and a second writer is told which."""
    await on.stores.memo.store_answer(KEY, answer("first"))

    assert await on.stores.memo.store_answer(KEY, answer("second")) == answer("first")
    assert await on.stores.memo.load_answer(KEY) == answer("first")


async def test_keys_do_not_mix(on: Scenario) -> None:
    """Each key has its own answer."""
    other = KEY[::-1]
    await on.stores.memo.store_answer(KEY, answer("one"))
    await on.stores.memo.store_answer(other, answer("two"))

    assert await on.stores.memo.load_answer(KEY) == answer("one")
    assert await on.stores.memo.load_answer(other) == answer("two")


async def test_concurrent_writers_agree(on: Scenario) -> None:
    """Whoever stores under one key at the same moment is told the one answer that stands."""
    answers = await asyncio.gather(*(on.stores.memo.store_answer(KEY, answer(str(n))) for n in range(10)))

    stands = await on.stores.memo.load_answer(KEY)
    assert stands is not None
    assert answers == [stands] * 10


async def test_a_large_answer_is_kept(on: Scenario) -> None:
    """An answer of a megabyte is no exception."""
    large = answer("x" * 1_000_000)
    await on.stores.memo.store_answer(KEY, large)

    assert await on.stores.memo.load_answer(KEY) == large
