"""CallStore.spool_items: what was streamed and paid for survives its call; and how long the ledger is kept."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from headrace.model.calls import CallState, NewCall, Opening, Settlement, Verdict
from headrace.model.spend import SPEND_RETENTION, SpendGroup
from headrace.model.stats import Pruned, Retention
from headrace.model.usage import Usage
from tests.conformance.books import USED, Books, answer, ask, parts
from tests.conformance.scenario import DAY, LEASE, SECOND

KEEP = Retention(answers=40 * DAY)


async def resumed(books: Books, word: object = "hello") -> tuple[str, ...]:
    """Let the session of a call die and return what the next one under its key finds."""
    books.clock.advance(LEASE)
    opening = await books.try_open(await books.worker(lease=LEASE), ask(word))
    assert opening.verdict is Verdict.OPENED
    return opening.spooled


async def begun(books: Books, word: object = "hello") -> NewCall:
    """Open a call whose session ends soon."""
    return await books.open(await books.worker(lease=LEASE), word)


async def test_what_was_spooled_is_there_for_the_next_call(books: Books) -> None:
    """Parts of an answer that was cut off are returned in order, and the ledger says that some came."""
    call = await begun(books)
    await books.calls.spool_items(parts(call.id, 0, "a", "b"))
    await books.calls.spool_items(parts(call.id, 2, "c"))
    assert (await books.ledger())[call.id] is CallState.RECEIVED

    assert await resumed(books) == ("a", "b", "c")
    assert (await books.ledger())[call.id] is CallState.ORPHANED


async def test_parts_add_up_over_calls(books: Books) -> None:
    """A call that goes on where another one was cut off is itself gone on with."""
    call = await begun(books)
    await books.calls.spool_items(parts(call.id, 0, "a"))
    books.clock.advance(LEASE)
    second = ask()
    assert (await books.try_open(await books.worker(lease=LEASE), second)).spooled == ("a",)
    await books.calls.spool_items(parts(second.id, 1, "b"))

    assert await resumed(books) == ("a", "b")


async def test_a_number_is_written_once(books: Books) -> None:
    """Spooling again after a lost answer changes nothing."""
    call = await begun(books)
    for items in (["a", "b"], ["x", "y", "c"]):
        await books.calls.spool_items(parts(call.id, 0, *items))

    assert await resumed(books) == ("a", "b", "c")


async def test_what_lies_behind_a_gap_is_forgotten(books: Books) -> None:
    """Parts behind one that is missing are of no use: they are dropped, and their numbers are free again."""
    call = await begun(books)
    await books.calls.spool_items(parts(call.id, 0, "a"))
    await books.calls.spool_items(parts(call.id, 2, "lost"))
    books.clock.advance(LEASE)
    second = ask()
    assert (await books.try_open(await books.worker(lease=LEASE), second)).spooled == ("a",)
    await books.calls.spool_items(parts(second.id, 1, "b", "c"))

    assert await resumed(books) == ("a", "b", "c")


async def test_keys_do_not_mix(books: Books) -> None:
    """Each key has parts of its own."""
    first, second = await begun(books, "x"), await begun(books, "y")
    await books.calls.spool_items(parts(first.id, 0, "x"))
    await books.calls.spool_items(parts(second.id, 0, "y"))
    books.clock.advance(LEASE)

    openings = await books.calls.open_calls(await books.worker(), [ask("y"), ask("z"), ask("x")])
    assert openings == [Opening(Verdict.OPENED, spooled=spooled) for spooled in (("y",), (), ("x",))]


async def test_parts_of_many_calls_are_stored_together(books: Books) -> None:
    """Parts of many calls come in one list, in any order; those of calls that are not live spoil no others."""
    session = await books.worker(lease=LEASE)
    ended, *calls = [await books.open(session, word) for word in ("ended", *range(30))]
    await books.settle(ended)
    known = [part for call in reversed(calls) for part in parts(call.id, 0, f"{call.key}-0", f"{call.key}-1")]
    unknown, late = parts(uuid4(), 0, "unknown"), parts(ended.id, 0, "late")
    await books.calls.spool_items([*unknown, *known[::2], *late, *known[1::2]])
    await books.calls.spool_items([])
    states = await books.ledger()
    assert {states[call.id] for call in calls} == {CallState.RECEIVED}
    books.clock.advance(LEASE)

    session = await books.worker()
    openings = await books.calls.open_calls(session, [ask(word) for word in range(30)])
    assert [each.spooled for each in openings] == [(f"{call.key}-0", f"{call.key}-1") for call in calls]
    assert (await books.try_open(session, ask("ended", fresh=True))).spooled == ()


async def test_only_a_live_call_spools(books: Books) -> None:
    """A call that was given up stores nothing: another one may be under way under its key."""
    lost = await begun(books)
    await books.calls.spool_items(parts(lost.id, 0, "a"))
    books.clock.advance(LEASE)
    await books.try_open(await books.worker(lease=LEASE), ask())
    await books.calls.spool_items(parts(lost.id, 1, "late"))
    await books.calls.spool_items(parts(uuid4(), 0, "unknown"))

    assert (await books.ledger())[lost.id] is CallState.ORPHANED
    assert await resumed(books) == ("a",)


async def test_an_answer_clears_what_was_spooled(books: Books) -> None:
    """Once the key has its answer its parts are removed; a call that failed leaves them."""
    session = await books.worker()
    for given, left in [(None, ("a",)), (answer(), ())]:
        word = str(given)
        call = await books.open(session, word)
        await books.calls.spool_items(parts(call.id, 0, "a"))
        await books.settle(call, answer=given)
        assert (await books.try_open(session, ask(word, fresh=True))).spooled == left


async def test_a_call_that_is_opened_again_hears_of_its_parts(books: Books) -> None:
    """After a lost answer what is spooled is told again."""
    call = await begun(books)
    await books.calls.spool_items(parts(call.id, 0, "a"))
    books.clock.advance(LEASE)
    session, second = await books.worker(), ask()
    openings = [await books.try_open(session, second) for _ in range(2)]

    assert openings == [Opening(Verdict.OPENED, spooled=("a",))] * 2


# Retention


async def prune(books: Books, limit: int = 1_000, queue: str | None = None) -> Pruned:
    """Prune once."""
    return await books.stores.jobs.prune_jobs(KEEP, limit=limit, queue=queue)


async def test_ended_calls_are_kept_as_long_as_answers(books: Books) -> None:
    """Settled and orphaned calls go when they were opened longer ago than answers are kept; live ones stay."""
    session = await books.worker(lease=100 * DAY)
    job = uuid4()
    settled, lost, live = [await books.open(session, word, job_id=job) for word in ("a", "b", "c")]
    await books.settle(settled)
    await books.orphan(lost)
    books.clock.advance(40 * DAY - SECOND)
    assert (await prune(books)).removed["calls"] == 0
    books.clock.advance(SECOND)

    assert (await prune(books, queue="default")).removed.get("calls", 0) == 0
    assert [(await prune(books, limit=1)).removed["calls"] for _ in range(3)] == [1, 1, 0]
    assert await books.ledger() == {live.id: CallState.SENT}
    assert [view.id for view in await books.budgets.list_calls(job=job)] == [live.id]


async def test_what_is_spooled_is_kept_as_long_as_answers(books: Books) -> None:
    """Parts that nobody went on with are removed when an answer would be."""
    call = await books.open(await books.worker(lease=100 * DAY))
    await books.calls.spool_items(parts(call.id, 0, "a", "b"))
    books.clock.advance(20 * DAY)
    await books.calls.spool_items(parts(call.id, 2, "c"))
    await books.settle(call, answer=None, usage=Usage())
    books.clock.advance(20 * DAY - SECOND)
    assert (await prune(books)).removed["spool"] == 0
    books.clock.advance(SECOND)

    assert [(await prune(books, limit=1)).removed["spool"] for _ in range(3)] == [1, 1, 0]
    assert (await books.try_open(await books.worker(), ask())).spooled == ()


async def test_sums_outlive_their_calls(books: Books) -> None:
    """What was spent is known long after its calls are gone, and for ever where it counts against a budget."""
    session = await books.worker(lease=DAY)
    calls = [await books.open(session, tenant, tenant=tenant) for tenant in ("acme", "other")]
    await books.calls.settle_calls([Settlement(call=call, usage=USED) for call in calls])
    await books.limit("tenant:acme", cost_nano=10_000)
    books.clock.advance(SPEND_RETENTION)
    assert (await prune(books)).removed["calls"] == 2
    assert set(await books.spend(SpendGroup.TENANT)) == {"acme", "other"}
    books.clock.advance(DAY)

    assert (await prune(books, limit=1)).removed["spend"] == 1
    # The sums of both under pool, model, purpose and day, and one tenant's.
    assert (await prune(books)).removed["spend"] == 4
    assert set(await books.spend(SpendGroup.TENANT)) == {"acme"}
    assert await books.spend(SpendGroup.POOL) == {}
    assert (await books.budget("tenant:acme")).cost_nano == 700


async def test_a_queue_s_prune_leaves_the_ledger_alone(books: Books) -> None:
    """Pruning one queue removes jobs of that queue and nothing else."""
    await books.settle(await books.open())
    books.clock.advance(timedelta(days=1_000))
    assert (await prune(books, queue="default")).total == 0
    assert len(await books.ledger()) == 1
