"""When calls reserve their quota, and what their time says of the provider."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import cast

import pytest

from headrace.llm.ask import Ask
from headrace.llm.bill import Bill
from headrace.llm.endpoint import Endpoint
from headrace.llm.gateway import LLM
from headrace.llm.models import Models
from headrace.model.calls import NewCall
from headrace.model.llm import Answer
from headrace.model.quota import Estimate, Pool, PoolLimits
from headrace.model.usage import Usage
from headrace.ports.call_observer import Observers
from headrace.stores.memory import open_memory_stores
from tests.unit.llm_answers import OnePrice, WrittenProvider, means_of


async def test_no_quota_is_reserved_before_the_client_is_ready() -> None:
    """Calls that wait for an import would otherwise arrive together, after the provider had counted their second."""
    provider = WrittenProvider(lambda request: "yes")
    connected = asyncio.Event()
    provider.prepare = connected.wait  # type: ignore[assignment, method-assign]
    means = means_of(open_memory_stores())
    endpoint = Endpoint(open=lambda: provider, pool=Pool("written:1", PoolLimits(6_000)), prices=OnePrice())
    llm = LLM(Models({"": endpoint}, means))
    asking = [asyncio.create_task(llm.complete(f"{number}")) for number in range(3)]
    await asyncio.wait(asking, timeout=0.2)
    assert [pool.reserved for pool in means.quotas.stats()] in ([], [0])

    connected.set()
    assert await asyncio.gather(*asking) == ["yes"] * 3


@pytest.mark.parametrize(
    ("tokens", "first_part_at", "expected"),
    [(99, 0, None), (100, 0, 30), (19, 1_000_000_000, None), (100, 1_000_000_000, 20)],
)
def test_the_time_of_a_token_leaves_out_the_wait_for_the_first(
    tokens: int, first_part_at: int, expected: int | None
) -> None:
    """A stream tells it; of whole answers only long ones count, in which it is a small part."""
    call = NewCall(key="k", pool="p", provider="written", model="m", estimate=Estimate(1, 1))
    bill = Bill(cast(Ask, None), call, OnePrice(), Observers(), 0, first_part_at=first_part_at)
    answer = Answer(text="", usage=Usage(output_tokens=tokens, calls=1))
    told = bill.per_token(answer, 3_000_000_000)
    assert told == (None if expected is None else timedelta(milliseconds=expected))
