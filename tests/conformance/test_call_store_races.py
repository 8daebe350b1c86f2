"""The ledger under rivals: one call per key, pools and budgets that hold, nothing spent twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from random import Random

from headrace.model.calls import CallState, NewCall, Settlement, Verdict
from headrace.model.quota import Estimate
from headrace.model.spend import SpendGroup
from tests.conformance.books import USED, Books, answer, ask
from tests.conformance.scenario import LEASE, SECOND


async def test_of_many_openers_of_one_key_one_opens_it(books: Books) -> None:
    """Rivals for one key, in any number of sessions, make one call."""
    sessions = [await books.worker() for _ in range(4)]
    for word in range(5):
        verdicts = await asyncio.gather(*(books.verdict(sessions[n % 4], ask(word)) for n in range(20)))
        assert Counter(verdicts) == {Verdict.OPENED: 1, Verdict.HELD: 19}


async def test_openers_of_the_same_keys_in_any_order_all_end(books: Books) -> None:
    """Lists of the same keys forwards and backwards: each key is opened once, and nobody waits for ever."""
    session = await books.worker()
    lists = [[ask(word) for word in range(30)][:: 1 if turn % 2 else -1] for turn in range(8)]
    answers = await asyncio.gather(*(books.calls.open_calls(session, calls) for calls in lists))

    pairs = [pair for calls, openings in zip(lists, answers, strict=True) for pair in zip(calls, openings, strict=True)]
    opened = [call.key for call, opening in pairs if opening.verdict is Verdict.OPENED]
    assert len(opened) == len(set(opened)) == 30


async def test_openers_find_the_answer_or_the_call_that_brings_it(books: Books) -> None:
    """A call is settled while others ask the same: each is held or answered, and none pays again."""
    session = await books.worker()
    for word in range(20):
        call = await books.open(session, word)
        verdicts, _ = await asyncio.gather(books.race(session, [ask(word) for _ in range(6)]), books.settle(call))
        assert set(verdicts) <= {Verdict.HELD, Verdict.ANSWERED}


async def test_a_budget_with_room_for_some_lets_just_those_pass(books: Books) -> None:
    """Openers at the same moment, alone and in lists, fill a budget exactly."""
    session = await books.worker()
    for turn, limits in enumerate([{"cost_nano": 7_900}, {"tokens": 7 * 150}]):
        tenant = f"t{turn}"
        await books.limit(f"tenant:{tenant}", **limits)
        lists = [[ask((turn, n, m), tenant=tenant) for m in range(n % 3 + 1)] for n in range(12)]
        answers = await asyncio.gather(*(books.calls.open_calls(session, calls) for calls in lists))

        verdicts = Counter(opening.verdict for openings in answers for opening in openings)
        assert verdicts == {Verdict.OPENED: 7, Verdict.OVER_BUDGET: 17}
        assert (await books.budget(f"tenant:{tenant}")).reserved_nano == 7_000


async def test_budgets_in_any_order_do_not_deadlock(books: Books) -> None:
    """Lists that count against several budgets, in opposite orders: all end, and no budget is overrun."""
    session = await books.worker()
    tenants = [f"t{n}" for n in range(6)]
    for tenant in tenants:
        await books.limit(f"tenant:{tenant}", cost_nano=5_000)

    async def open_many(turn: int) -> None:
        calls = [ask((turn, tenant), tenant=tenant) for tenant in tenants][:: 1 if turn % 2 else -1]
        await books.calls.open_calls(session, calls)

    await asyncio.gather(*(open_many(turn) for turn in range(12)))
    assert {(await books.budget(f"tenant:{tenant}")).reserved_nano for tenant in tenants} == {5_000}


async def test_a_pool_with_room_for_some_lets_just_those_pass(books: Books) -> None:
    """Openers at the same moment fill a pool exactly, by its calls in flight and by those of its day."""
    session = await books.worker()
    calls = [ask(n, most_in_flight=5) for n in range(15)]
    assert Counter(await books.race(session, calls)) == {Verdict.OPENED: 5, Verdict.POOL_FULL: 10}
    calls = [ask(("day", n), pool="daily", most_per_day=6) for n in range(15)]
    assert Counter(await books.race(session, calls)) == {Verdict.OPENED: 6, Verdict.DAY_FULL: 9}


async def test_a_dead_call_is_counted_once_whoever_finds_it(books: Books) -> None:
    """Reapers and openers of a key find its dead holder at the same moment: it is spent once, one call is opened."""
    for word in range(10):
        lost = await books.open(await books.worker(lease=LEASE), word, tenant=f"t{word}")
        books.clock.advance(LEASE)
        session = await books.worker(lease=100 * LEASE)
        openers = books.race(session, [ask(word, tenant=f"t{word}") for _ in range(5)])
        verdicts, *_ = await asyncio.gather(openers, *(books.calls.reap_calls(limit=10) for _ in range(3)))

        assert Counter(verdicts)[Verdict.OPENED] == 1
        assert (await books.known(lost)).state is CallState.ORPHANED
        spent = await books.budget(f"tenant:t{word}")
        assert (spent.cost_nano, spent.reserved_nano) == (1_000, 1_000)


async def test_a_late_answer_meets_whoever_gives_the_call_up(books: Books) -> None:
    """A call is settled while it is taken for dead: in the end it is settled, and cost what it cost."""
    for word in range(15):
        tenant = f"t{word}"
        call = await books.open(await books.worker(lease=LEASE), word, tenant=tenant)
        books.clock.advance(LEASE)
        session = await books.worker(lease=100 * LEASE)
        verdict, _, _ = await asyncio.gather(
            books.verdict(session, ask(word, tenant=tenant)), books.settle(call), books.calls.reap_calls(limit=10)
        )

        assert (await books.known(call)).state is CallState.SETTLED
        spent = await books.budget(f"tenant:{tenant}")
        reserved = 1_000 if verdict is Verdict.OPENED else 0
        assert (spent.cost_nano, spent.reserved_nano) == (700, reserved)


async def test_everything_at_once_adds_up(books: Books) -> None:
    """Opens, settlements and reaping of many calls by many hands: the sums are those of the calls, nothing leaks."""
    random = Random(5)
    sessions = [await books.worker(lease=(n + 1) * SECOND) for n in range(4)]

    async def work(hand: int) -> None:
        for turn in range(8):
            calls = [ask((hand % 3, turn, n), tenant=f"t{n % 2}", model=f"m{n % 3}") for n in range(5)]
            random.shuffle(calls)
            openings = await books.calls.open_calls(sessions[hand % 4], calls)
            opened = [c for c, o in zip(calls, openings, strict=True) if o.verdict is Verdict.OPENED]
            ended = [call for call in opened if random.random() < 0.8]
            await books.calls.settle_calls([_ending(call, random) for call in ended])
            if hand == 0 and turn in (3, 6):
                books.clock.advance(SECOND)
            if hand < 2:
                await books.calls.reap_calls(limit=5)

    await asyncio.gather(*(work(hand) for hand in range(6)))
    books.clock.advance(LEASE)
    while await books.calls.reap_calls(limit=7):
        pass

    views = await books.budgets.list_calls(limit=10_000)
    assert {view.state for view in views} == {CallState.SETTLED, CallState.ORPHANED}
    spent = await books.budget("day")
    assert (spent.reserved_nano, spent.reserved_tokens) == (0, 0)
    assert spent.cost_nano == sum(view.usage.cost_nano for view in views)
    assert spent.tokens == sum(view.usage.tokens for view in views)
    for group in (SpendGroup.MODEL, SpendGroup.TENANT, SpendGroup.PURPOSE, SpendGroup.POOL, SpendGroup.DAY):
        rows = (await books.spend(group)).values()
        assert sum(row.usage.cost_nano + row.orphaned_nano for row in rows) == spent.cost_nano
        assert sum(row.orphaned for row in rows) == sum(view.state is CallState.ORPHANED for view in views)
        assert sum(row.in_flight for row in rows) == 0


def _ending(call: NewCall, random: Random) -> Settlement:
    if random.random() < 0.2:
        return Settlement(call=call, state=CallState.ORPHANED, usage=replace(USED, calls=0), error="timeout")
    return Settlement(call=call, answer=answer(call.key), usage=USED)


async def test_opening_at_the_same_moment_under_one_id_is_one_call(books: Books) -> None:
    """A statement that was thought lost runs beside the one that repeats it: both are told that the call is theirs."""
    session = await books.worker()
    for word in range(10):
        call = ask(word, most_in_flight=1, pool=f"p{word}", estimate=Estimate(1, 1, 1))
        assert await books.race(session, [call] * 4) == [Verdict.OPENED] * 4
    assert len(await books.ledger()) == 10
