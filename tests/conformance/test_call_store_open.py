"""CallStore.open_calls and send_calls: who may make a call, and what is recorded before it is made."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from headrace.model.calls import CallState, Opening, Origin, Purpose, Settlement, Verdict
from headrace.model.ids import uuid7
from headrace.model.quota import Estimate
from headrace.model.usage import Usage
from tests.conformance.books import ESTIMATE, USED, Books, answer, ask, key, parts
from tests.conformance.scenario import LEASE, SECOND

OPENED = Opening(Verdict.OPENED)


async def test_a_call_is_recorded_before_it_is_made(books: Books) -> None:
    """What is opened is in the ledger with all that is known of it, as sent at the store's time."""
    origin: dict[str, Any] = {"job_id": uuid4(), "batch_id": uuid4(), "run_id": uuid4(), "tenant": "acme"}
    call = await books.open(word="x", purpose=Purpose.REASK, estimate=Estimate(7, 9, None), **origin)

    view = await books.known(call)
    assert (view.id, view.key, view.state) == (call.id, key("x"), CallState.SENT)
    assert (view.pool, view.provider, view.model) == ("openai:me:small", "openai", "small")
    assert (view.purpose, view.origin, view.estimate) == (Purpose.REASK, Origin(**origin), Estimate(7, 9, None))
    assert (view.usage, view.priced_by, view.error, view.request_id) == (Usage(), "", "", None)
    assert (view.opened_at, view.ended_at) == (books.clock.now(), None)


async def test_an_answer_that_is_stored_stands(books: Books) -> None:
    """A call whose key has an answer is not made: it is given the answer, and nothing is recorded."""
    await books.stores.memo.store_answer(key("x"), answer("paid"))

    assert await books.try_open(await books.worker(), ask("x")) == Opening(Verdict.ANSWERED, answer("paid"))
    assert await books.ledger() == {}


async def test_a_fresh_call_passes_over_the_answer(books: Books) -> None:
    """With `fresh` a stored answer does not count, and another one is bought."""
    await books.stores.memo.store_answer(key("x"), answer("paid"))
    session = await books.worker()

    assert await books.try_open(session, ask("x", fresh=True)) == OPENED
    assert await books.verdict(session, ask("x", fresh=True)) is Verdict.HELD


async def test_a_live_call_holds_its_key(books: Books) -> None:
    """While an equal call of a living session is under way, in any state, no other is opened, by nobody."""
    session, rival = await books.worker(), await books.worker()
    prepared = await books.open(session, "x", send=False)
    for step in (None, books.calls.send_calls([prepared.id]), books.calls.spool_items(parts(prepared.id, 0, "a"))):
        if step is not None:
            await step
        assert await books.verdict(rival, ask("x")) is Verdict.HELD
        assert await books.verdict(session, ask("x")) is Verdict.HELD
    assert list(await books.ledger()) == [prepared.id]
    assert await books.verdict(rival, ask("y")) is Verdict.OPENED


async def test_calls_of_one_list_are_taken_in_order(books: Books) -> None:
    """Each call of a list is judged as if those before it had come alone before it."""
    await books.stores.memo.store_answer(key("paid"), answer())
    await books.limit("tenant:acme", cost_nano=1_000)
    first, again = ask("x", tenant="acme"), ask("x", tenant="acme")
    calls = [first, again, ask("paid"), ask("y", tenant="acme"), ask("z"), first]

    openings = await books.calls.open_calls(await books.worker(), calls)

    expected = [Verdict.OPENED, Verdict.HELD, Verdict.ANSWERED, Verdict.OVER_BUDGET, Verdict.OPENED, Verdict.OPENED]
    assert [opening.verdict for opening in openings] == expected
    assert set(await books.ledger()) == {calls[0].id, calls[4].id}


async def test_an_empty_list_is_nothing(books: Books) -> None:
    """Verbs take empty lists."""
    assert await books.calls.open_calls(await books.worker(), []) == []
    assert await books.calls.send_calls([]) == frozenset()
    assert await books.calls.settle_calls([]) == []


async def test_a_long_list_is_opened_and_settled_whole(books: Books) -> None:
    """Hundreds of calls go through one call of each verb."""
    calls = [ask(n, batch_id=uuid4()) for n in range(350)]
    openings = await books.calls.open_calls(await books.worker(), calls)
    assert openings == [OPENED] * 350

    settled = await books.calls.settle_calls(
        [Settlement(call=call, answer=answer(call.key), usage=USED) for call in calls]
    )
    assert settled == [answer(call.key) for call in calls]
    assert set((await books.ledger()).values()) == {CallState.SETTLED}
    assert (await books.budget("day")).cost_nano == 350 * USED.cost_nano


# A lost answer


@pytest.mark.parametrize("send", [True, False])
async def test_opening_again_under_the_same_id_is_its_own(books: Books, send: bool) -> None:
    """After a lost answer the call is opened again as if the first time had not been: recorded once."""
    session, call = await books.worker(), ask("x", send=send, most_in_flight=1)
    assert [await books.try_open(session, call) for _ in range(3)] == [OPENED] * 3

    assert await books.ledger() == {call.id: CallState.SENT if send else CallState.PREPARED}
    assert (await books.budget("day")).reserved_nano == 1_000


async def test_opening_again_looks_at_no_budget(books: Books) -> None:
    """A call that is there has its place already, whatever the budget has become."""
    session, call = await books.worker(), ask("x")
    await books.try_open(session, call)
    await books.limit("day", cost_nano=0)

    assert await books.try_open(session, call) == OPENED


async def test_opening_again_moves_a_call_forward_only(books: Books) -> None:
    """A prepared call that is opened again to be sent is sent; one that was sent is never prepared again."""
    session, call = await books.worker(), ask("x", send=False)
    for send, state in [(False, CallState.PREPARED), (True, CallState.SENT), (False, CallState.SENT)]:
        assert await books.try_open(session, replace(call, send=send)) == OPENED
        assert await books.ledger() == {call.id: state}


async def test_opening_again_takes_the_call_into_its_session(books: Books) -> None:
    """A call that is opened again under a new session lives with that one."""
    call = await books.open(await books.worker(lease=SECOND))
    books.clock.advance(2 * SECOND)
    session = await books.worker()

    assert await books.try_open(session, call) == OPENED
    assert await books.calls.reap_calls(limit=10) == 0
    assert await books.verdict(session, ask()) is Verdict.HELD


async def test_opening_again_where_there_is_an_answer_by_now(books: Books) -> None:
    """A call that was opened, of which its caller never heard, is removed when an answer came meanwhile."""
    session, call = await books.worker(), ask("x")
    await books.try_open(session, call)
    await books.stores.memo.store_answer(key("x"), answer("late"))

    assert await books.try_open(session, call) == Opening(Verdict.ANSWERED, answer("late"))
    assert await books.ledger() == {}
    assert (await books.budget("day")).reserved_nano == 0


async def test_an_id_that_ended_is_not_opened_again(books: Books) -> None:
    """A call that was settled without an answer, or orphaned, stays so: another attempt has an id of its own."""
    session = await books.worker()
    failed, lost = await books.open(session, "x"), await books.open(session, "y")
    await books.settle(failed, answer=None, usage=Usage(), error="rate_limited")
    await books.orphan(lost)

    assert await books.race(session, [failed, lost]) == [Verdict.ENDED, Verdict.ENDED]
    assert await books.verdict(session, replace(failed, id=uuid7())) is Verdict.OPENED
    assert await books.verdict(session, replace(lost, id=uuid7())) is Verdict.OPENED


async def test_an_answer_comes_before_an_id_that_ended(books: Books) -> None:
    """A settled call that is opened again is given its answer; a fresh one is told that it ended."""
    call = await books.open()
    await books.settle(call)

    session = await books.worker()
    assert await books.try_open(session, call) == Opening(Verdict.ANSWERED, answer())
    assert await books.verdict(session, replace(call, fresh=True)) is Verdict.ENDED


# Dead sessions


async def test_a_dead_session_does_not_hold_a_key(books: Books) -> None:
    """A sent call of a session whose lease ended becomes orphaned, at what it may have cost, before the next one."""
    lost = await books.open(await books.worker(lease=LEASE), "x")
    books.clock.advance(LEASE - SECOND)
    session = await books.worker()
    assert await books.verdict(session, ask("x")) is Verdict.HELD
    books.clock.advance(SECOND)

    again = await books.open(session, "x")
    assert await books.ledger() == {again.id: CallState.SENT, lost.id: CallState.ORPHANED}
    view = await books.known(lost)
    assert (view.usage.input_tokens, view.usage.output_tokens, view.usage.cost_nano) == (100, 50, 1_000)
    assert view.ended_at == books.clock.now()


async def test_a_prepared_call_of_a_dead_session_is_removed(books: Books) -> None:
    """What was never sent was never paid for: it leaves no trace."""
    lost = await books.open(await books.worker(lease=LEASE), "x", send=False)
    books.clock.advance(LEASE)
    again = await books.open(word="x")

    assert await books.ledger() == {again.id: CallState.SENT}
    assert await books.calls.send_calls([lost.id]) == frozenset()
    view = await books.budget("day")
    assert (view.cost_nano, view.tokens, view.reserved_nano) == (0, 0, 1_000)


async def test_a_session_that_was_closed_is_dead(books: Books) -> None:
    """A worker that stops in order leaves its keys at once."""
    session = await books.worker()
    await books.open(session, "x")
    await books.stores.sessions.close_session(session)

    assert await books.verdict(await books.worker(), ask("x")) is Verdict.OPENED


async def test_the_orphan_counts_before_the_next_is_opened(books: Books) -> None:
    """What an orphaned call may have cost is spent: where that leaves no room, the next one is over budget."""
    await books.limit("tenant:acme", cost_nano=1_500)
    await books.open(await books.worker(lease=LEASE), "x", tenant="acme")
    books.clock.advance(LEASE)

    opening = await books.try_open(await books.worker(), ask("x", tenant="acme"))
    assert opening == Opening(Verdict.OVER_BUDGET, scope="tenant:acme")
    view = await books.budget("tenant:acme")
    assert (view.cost_nano, view.reserved_nano) == (1_000, 0)


async def test_whether_the_opening_session_lives_is_not_asked(books: Books) -> None:
    """A session whose lease ended may open; its call is anybody's to end."""
    session = await books.worker(lease=LEASE)
    books.clock.advance(LEASE)
    call = await books.open(session)

    assert await books.verdict(await books.worker(), ask()) is Verdict.OPENED
    assert (await books.ledger())[call.id] is CallState.ORPHANED


# Pools


async def test_a_pool_has_as_many_calls_in_flight_as_it_may(books: Books) -> None:
    """Prepared and sent calls of a pool fill it, whatever their keys; what ends makes room; other pools are others."""
    session = await books.worker()
    first = await books.open(session, "a", most_in_flight=2)
    await books.open(session, "b", most_in_flight=2, send=False)

    assert await books.try_open(session, ask("c", most_in_flight=2)) == Opening(Verdict.POOL_FULL)
    assert await books.verdict(session, ask("d", most_in_flight=2, pool="other")) is Verdict.OPENED
    assert len(await books.ledger()) == 3
    await books.settle(first)
    assert await books.verdict(session, ask("c", most_in_flight=2)) is Verdict.OPENED
    assert await books.verdict(session, ask("e")) is Verdict.OPENED


async def test_a_pool_in_one_list_is_filled_to_the_brim(books: Books) -> None:
    """Calls of one list count against each other."""
    calls = [ask(n, most_in_flight=3) for n in range(5)]
    openings = await books.calls.open_calls(await books.worker(), calls)

    assert [opening.verdict for opening in openings] == [Verdict.OPENED] * 3 + [Verdict.POOL_FULL] * 2


async def test_the_calls_of_a_day_are_counted(books: Books) -> None:
    """Calls in flight and calls that ended, however, count for the day (UTC) on which they were opened."""
    books.clock.set_now(datetime(2026, 3, 1, 23, 50, tzinfo=UTC))
    session = await books.worker(lease=timedelta(hours=2))
    calls = [await books.open(session, n, most_per_day=4) for n in range(4)]
    await books.settle(calls[0])
    await books.settle(calls[1], answer=None, usage=Usage(), error="overloaded")
    await books.orphan(calls[2])

    assert await books.try_open(session, ask("more", most_per_day=4)) == Opening(Verdict.DAY_FULL)
    assert await books.verdict(session, ask("elsewhere", most_per_day=4, pool="other")) is Verdict.OPENED
    books.clock.advance(timedelta(minutes=20))
    # The one that is still in flight was opened yesterday.
    for n in range(4):
        await books.open(session, f"next {n}", most_per_day=4)
    assert await books.verdict(session, ask("more", most_per_day=4)) is Verdict.DAY_FULL
    await books.settle(calls[3])
    assert await books.verdict(session, ask("more", most_per_day=5)) is Verdict.OPENED


async def test_what_was_not_sent_does_not_count_for_the_day(books: Books) -> None:
    """A prepared call that ends takes nothing from the day's calls."""
    session = await books.worker()
    for n in range(3):
        call = await books.open(session, n, send=False, most_per_day=1)
        await books.settle(call, answer=None, usage=Usage())


# Sending


async def test_a_prepared_call_is_sent_once_it_has_its_quota(books: Books) -> None:
    """Prepared calls become sent, also when asked again; unknown and ended ones may not be sent."""
    session = await books.worker()
    prepared, other = [await books.open(session, n, send=False) for n in range(2)]
    ended = await books.open(session, "ended")
    await books.settle(ended)

    for _ in range(2):
        sent = await books.calls.send_calls([prepared.id, ended.id, uuid4()])
        assert sent == {prepared.id}
    states = await books.ledger()
    assert (states[prepared.id], states[other.id]) == (CallState.SENT, CallState.PREPARED)
    assert states[ended.id] is CallState.SETTLED


async def test_a_prepared_call_reserves_its_part(books: Books) -> None:
    """What a prepared call may use counts as reserved, as that of a sent one does."""
    session = await books.worker()
    await books.open(session, "a", send=False)
    call = await books.open(session, "b", estimate=replace(ESTIMATE, cost_nano=None))

    view = await books.budget("day")
    assert (view.reserved_nano, view.reserved_tokens, view.unpriced) == (1_000, 300, 0)
    await books.settle(call)
    view = await books.budget("day")
    assert (view.reserved_nano, view.reserved_tokens, view.cost_nano, view.tokens) == (1_000, 150, 700, 120)
