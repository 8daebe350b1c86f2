"""One call through the gateway: what is on record, what waits, what is shared, and what a crash leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from headrace import App, Context
from headrace.llm import counting
from headrace.llm.gateway import LLM
from headrace.model.budget import Budget
from headrace.model.calls import CallState, CallView, Origin, Purpose, current_origin
from headrace.model.errors import HeadraceError, InvalidInputError
from headrace.model.llm import CompletionRequest, FinishReason, TextPart
from headrace.model.parking import ParkRequested
from headrace.model.provider_errors import ProviderAuthError, ProviderTimeoutError, RateLimitedError
from headrace.model.quota import PoolLimits
from headrace.model.usage import Usage
from headrace.ports.call_observer import CallReport, Observers
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from tests.unit.llm_answers import WrittenProvider, llm_of, means_of
from tests.waiting import wait_until


async def ledger(stores: Stores) -> list[CallView]:
    """Return all calls on record, oldest first."""
    return (await stores.budgets.list_calls())[::-1]


async def test_a_call_is_on_record_with_its_tokens_and_its_price() -> None:
    """What was used, what it cost and by which table stand in the ledger, for whom it was made too."""
    stores = open_memory_stores()
    job, batch = uuid4(), uuid4()
    token = current_origin.set(Origin(job_id=job, batch_id=batch))
    await llm_of(WrittenProvider(["yes"]), stores).using(tenant="acme").complete("?", max_tokens=7)
    current_origin.reset(token)

    [call] = await ledger(stores)
    assert (call.state, call.pool, call.model) == (CallState.SETTLED, "written:written-1", "written-1")
    assert (call.usage.tokens, call.usage.cost, call.priced_by, call.request_id) == (15, 150, "written", "req-1")
    assert call.origin == Origin(job_id=job, batch_id=batch, tenant="acme")
    assert (call.estimate.max_tokens, call.purpose) == (7, Purpose.ASK)


@pytest.mark.parametrize(
    ("error", "state", "cost"),
    [
        (ProviderTimeoutError(maybe_paid=True), CallState.ORPHANED, 10 * (5 + 9)),
        (ProviderAuthError(), CallState.SETTLED, 0),
    ],
)
async def test_a_call_that_failed_says_what_it_may_have_cost(error: Exception, state: CallState, cost: int) -> None:
    """Without an answer nobody knows: then it is orphaned, with its estimate; a refusal costs nothing."""
    stores = open_memory_stores()
    with pytest.raises(type(error)):
        await llm_of(WrittenProvider([error]), stores).complete("?", max_tokens=9)

    [call] = await ledger(stores)
    assert (call.state, call.usage.cost_nano) == (state, cost)
    assert call.error


@pytest.mark.parametrize(
    "error", [HeadraceError("no server"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")]
)
async def test_a_call_that_was_never_sent_cost_nothing(error: Exception) -> None:
    """What keeps a provider from sending is no answer that nobody saw: neither money nor quota is used."""
    stores = open_memory_stores()
    llm = llm_of(WrittenProvider([error, "yes"]), stores)
    with pytest.raises(type(error)):
        await llm.complete("?", max_tokens=9)

    [call] = await ledger(stores)
    assert (call.state, call.error, call.usage) == (CallState.SETTLED, "not_sent", Usage())
    [budget] = await stores.budgets.list_budgets(["day"])
    assert (budget.cost_nano, budget.reserved_tokens) == (0, 0)
    assert await llm.complete("?", max_tokens=9) == "yes"


async def test_a_mistake_of_ours_after_the_call_may_have_been_paid() -> None:
    """Of any other error nobody knows when it happened."""
    stores = open_memory_stores()
    with pytest.raises(ZeroDivisionError):
        await llm_of(WrittenProvider([ZeroDivisionError()]), stores).complete("?", max_tokens=9)

    [call] = await ledger(stores)
    assert (call.state, call.error, call.usage.calls) == (CallState.ORPHANED, "unexpected", 1)


async def test_a_stored_answer_needs_no_quota() -> None:
    """While the pool has nothing to give, a repeated ask is answered at once."""
    stores = open_memory_stores()
    provider = WrittenProvider(["one", "two"])
    first = llm_of(provider, stores)
    await first.complete("?")
    slow = llm_of(provider, stores, limits=PoolLimits(requests_per_minute=0.001))

    async with asyncio.timeout(5):
        assert await slow.complete("?") == "one"
    assert len(provider.requests) == 1


async def test_a_call_that_waits_holds_its_key_and_lets_go_when_its_asker_goes() -> None:
    """It is prepared while it waits for its quota; cancelled before it was sent, nothing of it is left."""
    stores = open_memory_stores()
    llm = llm_of(WrittenProvider([]), stores, limits=PoolLimits(requests_per_minute=0.001))
    asking = asyncio.create_task(llm.complete("?"))

    async def prepared() -> bool:
        return [call.state for call in await ledger(stores)] == [CallState.PREPARED]

    await wait_until(prepared)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    async def gone() -> bool:
        return await ledger(stores) == []

    await wait_until(gone)


async def test_in_a_handler_a_long_wait_asks_to_be_parked() -> None:
    """The slot is left as soon as it is clear that the wait is long, and nothing stays on record."""
    stores = open_memory_stores()
    llm = llm_of(WrittenProvider([]), stores, limits=PoolLimits(requests_per_minute=0.1))
    token = current_origin.set(Origin(job_id=uuid4()))
    with pytest.raises(ParkRequested, match="the quota of written:written-1") as caught:
        await llm.complete("?")
    current_origin.reset(token)

    assert caught.value.wait > timedelta(seconds=2)
    assert await ledger(stores) == []


async def test_a_429_in_a_handler_spends_no_attempt_and_stays_on_record() -> None:
    """The refused call costs nothing; the job that met a long closing is parked, not failed."""
    stores = open_memory_stores()
    llm = llm_of(WrittenProvider([RateLimitedError(retry_after=timedelta(seconds=60))]), stores)
    token = current_origin.set(Origin(job_id=uuid4()))
    with pytest.raises(ParkRequested):
        await llm.complete("?")
    current_origin.reset(token)

    [call] = await ledger(stores)
    assert (call.state, call.error, call.usage) == (CallState.SETTLED, "rate_limited", Usage())


async def test_work_pauses_at_a_budget_and_goes_on_when_it_is_raised() -> None:
    """A call that would go over its budget waits and is made as soon as there is room."""
    stores = open_memory_stores()
    provider = WrittenProvider(["one", "two"])
    llm = llm_of(provider, stores).using(tenant="acme")
    await stores.budgets.set_budget("tenant:acme", Budget(tokens=25))
    await llm.complete("1", max_tokens=10)
    asking = asyncio.create_task(llm.complete("2", max_tokens=10))
    await asyncio.wait({asking}, timeout=0.3)
    assert len(provider.requests) == 1

    await stores.budgets.set_budget("tenant:acme", Budget(tokens=50))
    async with asyncio.timeout(10):
        assert await asking == "two"


async def test_calls_in_flight_are_bounded_over_all_processes() -> None:
    """With a concurrency of two, two gateways over one store have two calls under way together."""
    stores, most = open_memory_stores(), PoolLimits(concurrency=2)
    providers = [WrittenProvider(lambda request: request.messages[-1].content) for _ in range(2)]
    for provider in providers:
        provider.gate.clear()
    llms = [llm_of(provider, stores, limits=most) for provider in providers]
    asking = [asyncio.create_task(llm.complete(f"{number}")) for number in range(5) for llm in llms]
    under_way = lambda: sum(len(provider.requests) for provider in providers)  # noqa: E731
    await wait_until(lambda: under_way() == 2)
    await asyncio.wait(asking, timeout=0.2)
    assert under_way() == 2

    for provider in providers:
        provider.gate.set()
    assert sorted(await asyncio.gather(*asking)) == sorted(f"{number}" for number in range(5) for _ in llms)


async def test_equal_asks_of_two_processes_are_one_call() -> None:
    """The second gateway waits for the first one's answer."""
    stores = open_memory_stores()
    first, second = WrittenProvider(["yes"]), WrittenProvider([])
    first.gate.clear()
    asking = asyncio.create_task(llm_of(first, stores).complete("?"))
    await wait_until(lambda: first.requests)
    waiting = asyncio.create_task(llm_of(second, stores).complete("?"))
    await asyncio.wait({waiting}, timeout=0.1)
    first.gate.set()

    assert (await asking, await waiting) == ("yes", "yes")
    assert second.requests == []


async def test_fresh_buys_anew_and_keeps_that_and_bypass_keeps_nothing() -> None:
    """The switches decide what becomes of stored answers."""
    llm = llm_of(WrittenProvider(["one", "two", "three"]))
    assert await llm.complete("?") == "one"
    assert await llm.using(memo="fresh").complete("?") == "two"
    assert await llm.complete("?") == "two"
    assert await llm.using(memo="bypass").complete("?") == "three"
    assert await llm.complete("?") == "two"


@pytest.mark.parametrize(("memo", "kept"), [("fresh", "new"), ("bypass", "old")])
async def test_a_job_that_leaves_its_slot_pays_once_for_what_it_buys_anew(memo: str, kept: str) -> None:
    """Each entry asks from the first line; only the first pays, so that the budget it waits for is not drained."""
    stores = open_memory_stores()
    provider = WrittenProvider(["old", "new", "rest", "other"])
    plain = llm_of(provider, stores).using(tenant="acme")
    assert await plain.complete("a", max_tokens=10) == "old"
    await stores.budgets.set_budget("tenant:acme", Budget(tokens=50))
    llm = llm_of(provider, stores).using(tenant="acme", memo=memo)

    async def run() -> tuple[str, str]:
        return await llm.complete("a", max_tokens=10), await llm.complete("b", max_tokens=30)

    job = current_origin.set(Origin(job_id=uuid4()))
    for _ in range(3):
        with pytest.raises(ParkRequested, match="the budget of tenant:acme"):
            await run()
    assert len(provider.requests) == 2
    await stores.budgets.set_budget("tenant:acme", Budget(tokens=500))
    assert await run() == ("new", "rest")
    current_origin.reset(job)

    assert await plain.complete("a", max_tokens=10) == kept
    another = current_origin.set(Origin(job_id=uuid4()))
    assert await llm.complete("a", max_tokens=10) == "other"
    current_origin.reset(another)
    [budget] = await stores.budgets.list_budgets(["tenant:acme"])
    assert budget.tokens == 4 * 15


async def test_tenants_share_no_answers() -> None:
    """Each tenant's memo is its own, and apart from everybody's."""
    llm = llm_of(WrittenProvider(["ours", "a's", "b's"]))
    assert await llm.complete("?") == "ours"
    assert await llm.using(tenant="a").complete("?") == "a's"
    assert await llm.using(tenant="b").complete("?") == "b's"
    assert await llm.using(tenant="a").complete("?") == "a's"


@pytest.mark.parametrize(
    "fields",
    [{"model": "none"}, {"model": ["a"]}, {"tenant": ""}, {"tenant": 5}, {"memo": "never"}, {"memo": ["use"]}],
    ids=lambda fields: str(*fields.items()),
)
def test_wrong_switches_are_named(fields: dict[str, Any]) -> None:
    """A model that is not configured, an empty tenant and an unknown use of the memo are refused."""
    with pytest.raises(InvalidInputError, match=next(iter(fields))):
        llm_of(WrittenProvider([])).using(**fields)


async def test_another_model_is_asked_by_its_name() -> None:
    """`using` takes a further model, with a provider and a memo key of its own."""
    small, strong = WrittenProvider(["small"]), WrittenProvider(["strong"], model="written-2")
    llm = llm_of(small, others={"strong": strong})
    assert await llm.complete("?") == "small"
    assert await llm.using("strong").complete("?") == "strong"
    assert (llm.using("strong").model_name, llm.using("strong").pool) == ("written-2", "written:written-2")


def streamed(llm: LLM, text: str) -> asyncio.Task[list[str]]:
    """Stream an answer in a task of its own and return its parts."""

    async def read() -> list[str]:
        exchange = llm._exchange()
        request = llm._request(exchange_messages(text), None, 0.0, 0)
        return [part.text async for part in exchange.stream(request) if isinstance(part, TextPart)]

    return asyncio.create_task(read())


def exchange_messages(text: str) -> tuple:  # type: ignore[type-arg]
    """Return a conversation of one question."""
    from headrace.llm.prompts import conversation

    return conversation(text, None)


async def test_a_stream_is_told_part_by_part_and_shared_with_those_who_come_late() -> None:
    """Two streams and a plain ask of equal content are one call; who comes late sees every part."""
    provider = WrittenProvider(["abcdefgh"])
    provider.gate.clear()
    llm = llm_of(provider)
    first = streamed(llm, "?")
    await wait_until(lambda: provider.requests)
    second, plain = streamed(llm, "?"), asyncio.create_task(llm.complete("?"))
    provider.gate.set()

    assert await first == await second == ["abcd", "efgh"]
    assert await plain == "abcdefgh"
    assert len(provider.requests) == 1
    assert await streamed(llm, "?") == ["abcdefgh"]


class CutProvider(WrittenProvider):
    """Its stream stops in the middle until somebody goes on with it."""

    async def stream(self, request: CompletionRequest):  # type: ignore[no-untyped-def, override]
        """Half of the answer, and then nothing for a long time."""
        self.requests.append(request)
        yield TextPart("abcd")
        await asyncio.Event().wait()


async def test_what_came_of_a_stream_survives_its_process() -> None:
    """The parts of a stream that was cut off are given at once, as an answer that was cut."""
    stores = open_memory_stores()
    asking = streamed(llm_of(CutProvider([]), stores), "?")

    async def spooled() -> bool:
        return [call.state for call in await ledger(stores)] == [CallState.RECEIVED]

    await wait_until(spooled)
    # Its process dies: the session ends, and nothing else happens.
    sessions = await stores.inspect.list_sessions()
    await stores.sessions.expire_sessions([session.id for session in sessions])
    provider = WrittenProvider(["never asked"])
    exchange = llm_of(provider, stores)._exchange()
    request = llm_of(provider, stores)._request(exchange_messages("?"), None, 0.0, 0)
    parts = [part async for part in exchange.stream(request)]

    assert [part.text for part in parts] == ["abcd", "abcd"]
    assert parts[-1].finish_reason is FinishReason.LENGTH  # type: ignore[union-attr]
    assert provider.requests == []
    asking.cancel()


async def test_a_dead_process_lets_go_of_its_key() -> None:
    """A call of a session that has ended is orphaned, and an equal one is made by who asks next."""
    stores = open_memory_stores()
    dead = WrittenProvider(["late"])
    dead.gate.clear()
    asking = asyncio.create_task(llm_of(dead, stores).complete("?"))
    await wait_until(lambda: dead.requests)
    sessions = await stores.inspect.list_sessions()
    await stores.sessions.expire_sessions([session.id for session in sessions])

    assert await llm_of(WrittenProvider(["new"]), stores).complete("?") == "new"
    assert [call.state for call in await ledger(stores)] == [CallState.ORPHANED, CallState.SETTLED]
    # Its answer comes after all: what stands is what was stored first, and its cost is known now.
    dead.gate.set()
    assert await asking == "new"
    assert [call.state for call in await ledger(stores)] == [CallState.SETTLED] * 2


async def test_observers_are_told_of_each_call_and_of_memo_hits() -> None:
    """A report has the request, the answer, the times, and whether it was reused."""
    reports: list[CallReport] = []

    class Keeper:
        def ended(self, report: CallReport) -> None:
            reports.append(report)

    stores = open_memory_stores()
    llm = llm_of(WrittenProvider(["yes"]), stores)
    llm._models.means = replace(means_of(stores), observer=Observers([Keeper()]))
    await llm.complete("?")
    await llm.complete("?")

    assert [(report.reused, report.error, report.sent_at > 0) for report in reports] == [
        (False, "", True),
        (True, "", False),
    ]
    assert reports[0].asked_at <= reports[0].sent_at <= reports[0].ended_at


async def test_what_an_answer_cost_is_counted_as_saved_when_it_is_used_again() -> None:
    """From the memo and from an equal ask under way; where the price is not known nothing is."""
    stores = open_memory_stores()
    llm = llm_of(WrittenProvider(["yes", "no"]), stores)
    await asyncio.gather(llm.complete("1"), llm.complete("1"))
    await llm.complete("1")
    [call] = await ledger(stores)
    tally = llm._models.means.tally
    assert (tally[counting.MEMO_HITS], tally[counting.SHARED]) == (1, 1)
    assert tally[counting.SAVED] == 2 * call.usage.cost_nano > 0


async def test_vectors_are_bought_once() -> None:
    """A list of texts is one call, in order, and costs nothing the second time."""
    stores = open_memory_stores()
    llm = llm_of(WrittenProvider([]), stores)
    assert await llm.embed(["a", "bbb"]) == [[1.0], [3.0]]
    assert await llm.embed(["a", "bbb"]) == [[1.0], [3.0]]
    assert len(await ledger(stores)) == 1
    with pytest.raises(InvalidInputError, match="texts"):
        await llm.embed("a")


async def test_jobs_of_a_pool_do_not_start_while_it_is_held() -> None:
    """A task that names its pool is not claimed while that has nothing to give."""
    app, runs = App("memory://"), []

    @app.task(pools=["written:small"])
    async def work(ctx: Context) -> int:
        runs.append(ctx.attempt)
        return ctx.attempt

    async with app.worker():
        await app.runtime.limiter.close_bucket("jobs:written:small", timedelta(milliseconds=300))
        handle = await work.enqueue()
        assert await handle.result(timeout=20) == 1
        assert runs == [1]


async def test_a_session_that_only_calls_models_is_no_worker() -> None:
    """It serves no queue."""
    stores = open_memory_stores()
    await llm_of(WrittenProvider(["yes"]), stores).complete("?")
    [session] = await stores.inspect.list_sessions()
    assert session.queues == {}
