"""CallStore.settle_calls and reap_calls: what calls cost, once each, and the answers they leave."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from headrace.model.calls import CallState, Settlement, Verdict
from headrace.model.llm import Answer, StoredAnswer
from headrace.model.quota import Estimate
from headrace.model.spend import SpendGroup
from headrace.model.usage import Usage
from tests.conformance.books import UNPRICED, USED, Books, answer, ask, key, parts
from tests.conformance.scenario import LEASE, MINUTE

MOST = Usage(input_tokens=100, output_tokens=50, cost_nano=1_000)


async def test_a_settled_call_leaves_its_answer_and_its_cost(books: Books) -> None:
    """The answer stands under the key, the ledger says what it used, and the key is free."""
    call = await books.open(word="x", tenant="acme")
    books.clock.advance(MINUTE)
    stands = await books.settle(call, request_id="req-9")

    assert stands == answer() == await books.stores.memo.load_answer(key("x"))
    view = await books.known(call)
    assert (view.state, view.usage, view.priced_by) == (CallState.SETTLED, USED, "list 2026-01-01")
    assert (view.error, view.request_id, view.ended_at) == ("", "req-9", books.clock.now())
    for scope in ("day", "tenant:acme"):
        spent = await books.budget(scope)
        assert (spent.cost_nano, spent.tokens, spent.reserved_nano, spent.reserved_tokens) == (700, 120, 0, 0)
    assert await books.verdict(await books.worker(), ask("x", fresh=True)) is Verdict.OPENED


async def test_a_call_without_an_answer_frees_its_key(books: Books) -> None:
    """A failed call is recorded with its error; the next one may try."""
    call = await books.open(word="x")
    assert await books.settle(call, answer=None, usage=Usage(), priced_by="", error="overloaded") is None

    view = await books.known(call)
    assert (view.state, view.error, view.usage) == (CallState.SETTLED, "overloaded", Usage())
    assert (await books.budget("day")).cost_nano == 0
    assert await books.verdict(await books.worker(), ask("x")) is Verdict.OPENED


async def test_any_text_is_kept(books: Books) -> None:
    """A model may answer with NULs, lone surrogates and megabytes, in answers and in parts of them."""
    texts = ["NUL \x00, lone surrogate \ud800, \\u0000, é😀", "x" * 1_000_000]
    session = await books.worker(lease=LEASE)
    for word, text in enumerate(texts):
        call = await books.open(session, word)
        given = StoredAnswer("local", Answer(text=text))
        assert await books.settle(call, answer=given) == given
        assert (await books.try_open(session, ask(word))).answer == given
    call = await books.open(session, "parts")
    await books.calls.spool_items(parts(call.id, 0, *texts))
    books.clock.advance(LEASE)
    assert (await books.try_open(await books.worker(), ask("parts"))).spooled == tuple(texts)


# Once


async def test_a_call_is_settled_once(books: Books) -> None:
    """A settlement that is repeated after a lost answer, or another one, changes neither call nor costs."""
    call = await books.open()
    await books.settle(call)
    dear = Usage(calls=1, cost_nano=9_999)
    for facts in ({}, {"usage": dear}, {"state": CallState.ORPHANED, "usage": dear}, {"error": "timeout"}):
        assert await books.settle(call, **{"answer": answer("other"), **facts}) == answer()

    view = await books.known(call)
    assert (view.state, view.usage, view.error) == (CallState.SETTLED, USED, "")
    assert (await books.budget("day")).cost_nano == 700
    [row] = (await books.spend(SpendGroup.POOL)).values()
    assert (row.usage, row.orphaned, row.errors) == (USED, 0, {})


async def test_settling_at_the_same_moment_spends_once(books: Books) -> None:
    """Ten settlements of one call by ten writers cost what one costs."""
    for word in range(5):
        call = await books.open(word=word)
        answers = await asyncio.gather(*(books.settle(call, answer=answer(str(n))) for n in range(10)))
        assert len({stored.answer.text for stored in answers if stored}) == 1

    assert (await books.budget("day")).cost_nano == 5 * 700


async def test_one_list_settles_a_call_once(books: Books) -> None:
    """A call that is in a list twice is settled by the first."""
    call = await books.open()
    twice = [Settlement(call=call, usage=USED), Settlement(call=call, usage=MOST)]
    await books.calls.settle_calls(twice)

    assert (await books.known(call)).usage == USED
    assert (await books.budget("day")).cost_nano == 700


async def test_the_first_answer_stands_and_costs_of_both_count(books: Books) -> None:
    """Where two calls were paid under one key, the first answer stands and both are told it; both cost."""
    first = await books.open(await books.worker(lease=LEASE))
    books.clock.advance(LEASE)
    second = await books.open()
    assert await books.settle(first, answer=answer("first")) == answer("first")
    assert await books.settle(second, answer=answer("second")) == answer("first")

    assert await books.stores.memo.load_answer(first.key) == answer("first")
    assert (await books.budget("day")).cost_nano == 2 * 700


async def test_an_answer_is_replaced_where_that_is_asked(books: Books) -> None:
    """With `replace` the new answer takes the place of the one that stands."""
    await books.stores.memo.store_answer(key("hello"), answer("old"))
    call = await books.open(fresh=True)

    assert await books.settle(call, answer=answer("new"), replace=True) == answer("new")
    assert await books.stores.memo.load_answer(call.key) == answer("new")


async def test_a_repeated_replacement_replaces_nothing(books: Books) -> None:
    """A settled call that is settled again does not push aside what came after it."""
    session = await books.worker()
    first = await books.open(session)
    await books.settle(first, replace=True, answer=answer("first"))
    second = await books.open(session, fresh=True)
    await books.settle(second, replace=True, answer=answer("second"))

    assert await books.settle(first, replace=True, answer=answer("first")) == answer("second")
    assert await books.stores.memo.load_answer(first.key) == answer("second")


async def test_answers_of_one_list_under_one_key(books: Books) -> None:
    """Of several answers under a key the first stands, or the last that replaces; all are told which."""
    calls = [ask("x", fresh=True) for _ in range(3)]
    plain = [Settlement(call=call, answer=answer(str(n))) for n, call in enumerate(calls)]
    assert await books.calls.settle_calls(plain) == [answer("0")] * 3
    mixed = [
        Settlement(call=ask("y"), answer=answer("a"), usage=USED),
        Settlement(call=ask("y"), answer=answer("b"), usage=USED, replace=True),
        Settlement(call=ask("y"), answer=answer("c"), usage=USED),
        Settlement(call=ask("z"), usage=USED),
    ]
    assert await books.calls.settle_calls(mixed) == [answer("b")] * 3 + [None]


async def test_one_answer_may_stand_under_a_further_key(books: Books) -> None:
    """Beside the call that bought it one that used nothing brings it there, and only the one that bought it counts."""
    await books.stores.memo.store_answer(key("plain"), answer("old"))
    call = await books.open(word="own")
    beside = Settlement(call=ask("plain"), answer=answer("new"), replace=True)
    both = [Settlement(call=call, answer=answer("new"), usage=USED), beside]

    assert await books.calls.settle_calls(both) == [answer("new")] * 2
    assert await books.stores.memo.load_answer(key("plain")) == answer("new")
    assert await books.ledger() == {call.id: CallState.SETTLED}
    assert (await books.budget("day")).tokens == USED.tokens


# Not sent, or not known


async def test_a_prepared_call_that_ends_costs_nothing(books: Books) -> None:
    """What was not sent is removed, whatever is said of it; saying so again changes nothing."""
    call = await books.open(send=False)
    for _ in range(2):
        assert await books.settle(call, answer=None, usage=Usage(), error="cancelled") is None

    assert await books.ledger() == {}
    assert (await books.budget("day")).reserved_nano == 0
    assert await books.spend(SpendGroup.POOL) == {}


async def test_the_answer_of_an_unknown_call_is_kept_and_counted(books: Books) -> None:
    """A call that the store does not know was paid for all the same: recorded once, as opened now."""
    call = ask("x", tenant="acme", model="big")
    for _ in range(2):
        assert await books.settle(call) == answer()

    view = await books.known(call)
    assert (view.state, view.usage, view.opened_at) == (CallState.SETTLED, USED, books.clock.now())
    assert (view.origin, view.estimate, view.model) == (call.origin, call.estimate, "big")
    assert (await books.budget("tenant:acme")).cost_nano == 700
    assert (await books.spend(SpendGroup.MODEL))["openai/big"].usage == USED


async def test_an_unknown_call_that_used_nothing_is_not_recorded(books: Books) -> None:
    """There is nothing to tell of it."""
    assert await books.settle(ask("x"), answer=None, usage=Usage(), error="timeout") is None
    assert await books.ledger() == {}


# Orphans


async def test_a_call_may_end_as_orphaned(books: Books) -> None:
    """A call that was cut off counts with what it may have used at most, and frees its key."""
    call = await books.open(word="x")
    await books.orphan(call, usage=MOST, error="timeout")

    view = await books.known(call)
    assert (view.state, view.usage, view.error) == (CallState.ORPHANED, MOST, "timeout")
    spent = await books.budget("day")
    assert (spent.cost_nano, spent.tokens, spent.reserved_nano) == (1_000, 150, 0)
    assert await books.verdict(await books.worker(), ask("x")) is Verdict.OPENED


async def test_an_orphan_stays_as_it_was_said_first(books: Books) -> None:
    """An orphaned call that is orphaned again keeps its bound."""
    call = await books.open()
    await books.orphan(call, usage=MOST)
    await books.orphan(call, usage=Usage(cost_nano=5))

    assert (await books.known(call)).usage == MOST
    assert (await books.budget("day")).cost_nano == 1_000


async def test_a_late_answer_settles_an_orphan(books: Books) -> None:
    """An answer that comes after all is kept, and what was feared is replaced by what was used, on the call's day."""
    books.clock.set_now(datetime(2026, 3, 1, 23, 50, tzinfo=UTC))
    call = await books.open(await books.worker(lease=LEASE), "x", tenant="acme")
    books.clock.advance(timedelta(hours=1))
    assert await books.calls.reap_calls(limit=10) == 1
    assert (await books.budget("tenant:acme")).cost_nano == 1_000

    assert await books.settle(call) == answer()
    assert (await books.known(call)).state is CallState.SETTLED
    spent = await books.budget("tenant:acme")
    assert (spent.cost_nano, spent.tokens, spent.unpriced) == (700, 120, 0)
    assert (await books.budget("day")).cost_nano == 0
    rows = await books.spend(SpendGroup.DAY)
    assert rows["2026-03-01"].usage == USED
    assert (rows["2026-03-01"].orphaned, rows["2026-03-01"].orphaned_nano) == (0, 0)
    assert await books.settle(call) == answer()
    assert (await books.budget("tenant:acme")).cost_nano == 700


async def test_a_late_end_changes_the_error_it_counts_under(books: Books) -> None:
    """An orphan that is settled counts under the error it ended with in the end, once."""
    call = await books.open()
    await books.orphan(call, usage=MOST, error="timeout")
    await books.settle(call, error="bad_output")

    [row] = (await books.spend(SpendGroup.POOL)).values()
    assert (row.errors, row.orphaned, row.usage) == ({"bad_output": 1}, 0, USED)


async def test_calls_of_unknown_price_are_counted_apart(books: Books) -> None:
    """What a call of unknown price cost is not in the sum, and the sum says so: settled or orphaned."""
    unknown = Estimate(100, 50, None)
    settled, lost = [await books.open(word=n, estimate=unknown) for n in range(2)]
    await books.settle(settled, usage=UNPRICED, priced_by="")
    await books.orphan(lost, usage=Usage(input_tokens=100, output_tokens=50, unpriced=1))

    spent = await books.budget("day")
    assert (spent.cost_nano, spent.unpriced, spent.tokens) == (0, 2, 270)


# The reaper


async def test_the_reaper_ends_calls_of_dead_sessions(books: Books) -> None:
    """Sent calls become orphaned at their estimate, prepared ones are removed, those of the living stay."""
    dead, alive = await books.worker(lease=LEASE), await books.worker(lease=10 * LEASE)
    sent, received = await books.open(dead, "a"), await books.open(dead, "b", estimate=Estimate(10, 20, None))
    await books.calls.spool_items(parts(received.id, 0, "1"))
    await books.open(dead, "c", send=False)
    live = await books.open(alive, "d")
    assert await books.calls.reap_calls(limit=10) == 0
    books.clock.advance(LEASE)

    assert await books.calls.reap_calls(limit=10) == 3
    assert await books.calls.reap_calls(limit=10) == 0
    orphaned, running = CallState.ORPHANED, CallState.SENT
    assert await books.ledger() == {sent.id: orphaned, received.id: orphaned, live.id: running}
    spent = await books.budget("day")
    assert (spent.cost_nano, spent.tokens, spent.unpriced, spent.reserved_nano) == (1_000, 180, 1, 1_000)


async def test_the_reaper_takes_no_more_than_its_limit(books: Books) -> None:
    """What is beyond the limit is left for the next time."""
    session = await books.worker(lease=LEASE)
    for word in range(5):
        await books.open(session, word)
    books.clock.advance(LEASE)

    assert [await books.calls.reap_calls(limit=2) for _ in range(4)] == [2, 2, 1, 0]


async def test_calls_of_dead_sessions_fill_pools_until_they_are_reaped(books: Books) -> None:
    """What may still be running at the provider counts as in flight until somebody ended it."""
    await books.open(await books.worker(lease=LEASE), "a", most_in_flight=1)
    books.clock.advance(LEASE)
    session = await books.worker()
    assert await books.verdict(session, ask("b", most_in_flight=1)) is Verdict.POOL_FULL
    await books.calls.reap_calls(limit=10)

    assert await books.verdict(session, ask("b", most_in_flight=1)) is Verdict.OPENED


async def test_calls_of_sessions_that_are_gone_are_reaped(books: Books) -> None:
    """A session that was pruned is as dead as one whose lease ended."""
    call = await books.open(uuid4())
    assert await books.calls.reap_calls(limit=10) == 1
    assert (await books.known(call)).state is CallState.ORPHANED
