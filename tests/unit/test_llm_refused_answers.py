"""What becomes of an answer that the store refuses to keep."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from headrace.model.calls import CallState, Settlement
from headrace.model.errors import HeadraceError
from headrace.model.llm import Answer, StoredAnswer
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from tests.unit.llm_answers import WrittenProvider, llm_of, said

BAD: Answer = replace(said("no"), request_id="r\0")


class Picky:
    """A ledger that takes no NUL, as columns of text do; `refuses_all`: nor anything else that ends."""

    def __init__(self, stores: Stores) -> None:
        self._calls = stores.calls
        self.refuses_all = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._calls, name)

    async def settle_calls(self, settlements: Sequence[Settlement]) -> list[StoredAnswer | None]:
        """Refuse the whole list for one."""
        if self.refuses_all or any("\0" in (each.request_id or "") for each in settlements):
            raise HeadraceError("no NUL")
        return await self._calls.settle_calls(settlements)


@pytest.fixture
def stores() -> Stores:
    """Stores whose ledger is picky."""
    plain = open_memory_stores()
    return replace(plain, calls=Picky(plain))


async def test_an_answer_that_is_refused_frees_its_key_and_stays_on_the_bill(stores: Stores) -> None:
    """Its asker is told; the call is orphaned with what it cost, and who asks the same gets an answer."""
    llm = llm_of(WrittenProvider([BAD, "yes"]), stores)
    with pytest.raises(HeadraceError, match=r"refused to keep the model's answer.*no NUL"):
        await llm.complete("?")
    async with asyncio.timeout(10):
        assert await llm.complete("?") == "yes"

    again, first = await stores.budgets.list_calls()
    assert (first.state, first.usage.cost_nano, first.error) == (CallState.ORPHANED, 150, "not_stored")
    assert (first.request_id, again.state) == (None, CallState.SETTLED)


async def test_a_refused_answer_fails_only_its_own_asker(stores: Stores) -> None:
    """Answers that are stored together with it are kept."""
    provider = WrittenProvider([BAD, *(f"{number}" for number in range(4))])
    provider.gate.clear()
    llm = llm_of(provider, stores)
    asking = [asyncio.create_task(llm.complete(f"{number}?")) for number in range(5)]
    while len(provider.requests) < 5:
        await asyncio.sleep(0)
    provider.gate.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)

    assert sorted(answer for answer in answers if isinstance(answer, str)) == ["0", "1", "2", "3"]
    assert sum(isinstance(answer, HeadraceError) for answer in answers) == 1


async def test_an_answer_that_is_not_to_be_kept_is_given_all_the_same(stores: Stores) -> None:
    """Past the memo only the id of the request is lost."""
    assert await llm_of(WrittenProvider([BAD]), stores).using(memo="bypass").complete("?") == "no"

    [call] = await stores.budgets.list_calls()
    assert (call.state, call.usage.cost_nano, call.request_id) == (CallState.SETTLED, 150, None)


async def test_a_store_that_refuses_every_end_says_why(stores: Stores) -> None:
    """The asker hears what the store said, and does not wait."""
    assert isinstance(stores.calls, Picky)
    stores.calls.refuses_all = True
    async with asyncio.timeout(10):
        with pytest.raises(HeadraceError, match=r"^no NUL$"):
            await llm_of(WrittenProvider(["yes"]), stores).complete("?")
