"""BudgetStore: what scopes may spend, what they spent, and the reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import pytest

from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import CallState, Opening, Purpose, Verdict
from headrace.model.quota import Estimate
from headrace.model.spend import SpendGroup, SpendRow
from headrace.model.usage import Usage
from tests.conformance.books import UNPRICED, USED, Books, ask
from tests.conformance.scenario import DAY, LEASE, MINUTE

UNKNOWN = Estimate(100, 50, None)


async def test_a_budget_is_set_replaced_and_removed(books: Books) -> None:
    """Budgets are listed by scope; what is set stands in the place of what was; a removed one is gone."""
    batch = f"batch:{uuid4()}"
    assert await books.budgets.list_budgets() == []
    await books.limit("tenant:acme", cost_nano=1, tokens=2)
    await books.limit(batch, tokens=3)
    await books.limit("tenant:acme", cost_nano=5)

    views = await books.budgets.list_budgets()
    assert [(view.scope, view.budget) for view in views] == [(batch, Budget(None, 3)), ("tenant:acme", Budget(5))]
    for _ in range(2):
        await books.budgets.set_budget("tenant:acme", None)
    assert [view.scope for view in await books.budgets.list_budgets()] == [batch]


async def test_scopes_are_shown_where_nothing_is_set_or_spent(books: Books) -> None:
    """Scopes that are asked for are returned, each once and in order, with zeros where there is nothing."""
    await books.limit("day", tokens=3)
    views = await books.budgets.list_budgets(["tenant:none", "day", "tenant:none"])
    assert views == [BudgetView("day", Budget(None, 3), 0, 0, 0, 0, 0), BudgetView("tenant:none", None, 0, 0, 0, 0, 0)]
    assert await books.budgets.list_budgets([]) == []


async def test_what_is_spent_stays_counted(books: Books) -> None:
    """Calls count whether or not their scope has a budget, and a budget that is set later counts what was before."""
    await books.settle(await books.open(tenant="acme", word="x"))
    await books.limit("tenant:acme", cost_nano=1_699)

    opening = await books.try_open(await books.worker(), ask("y", tenant="acme"))
    assert opening == Opening(Verdict.OVER_BUDGET, scope="tenant:acme")
    await books.budgets.set_budget("tenant:acme", None)
    assert (await books.budget("tenant:acme")).cost_nano == 700
    assert await books.verdict(await books.worker(), ask("y", tenant="acme")) is Verdict.OPENED


@pytest.mark.parametrize("kind", ["batch_id", "run_id", "tenant", "day"])
async def test_each_scope_of_a_call_has_its_budget(books: Books, kind: str) -> None:
    """A call is held against the budgets of its batch, run, tenant and day; the first without room is named."""
    name = "acme" if kind == "tenant" else uuid4()
    origin = {} if kind == "day" else {kind: name}
    scope = "day" if kind == "day" else f"{kind.removesuffix('_id')}:{name}"
    await books.limit(scope, cost_nano=1_999)
    session = await books.worker()
    await books.open(session, "a", **origin)

    assert await books.try_open(session, ask("b", **origin)) == Opening(Verdict.OVER_BUDGET, scope=scope)
    if kind != "day":
        assert await books.verdict(session, ask("b")) is Verdict.OPENED


async def test_all_budgets_of_a_call_have_to_have_room(books: Books) -> None:
    """One full budget is enough to refuse; what is refused takes nothing from the others."""
    await books.limit("day", cost_nano=10_000)
    await books.limit("tenant:acme", cost_nano=500)
    opening = await books.try_open(await books.worker(), ask(tenant="acme"))

    assert opening == Opening(Verdict.OVER_BUDGET, scope="tenant:acme")
    assert (await books.budget("day")).reserved_nano == 0
    assert await books.ledger() == {}


async def test_a_budget_may_be_used_up_to_its_limit(books: Books) -> None:
    """Spent, reserved and asked for together may reach the limit and not pass it, in money and in tokens."""
    session = await books.worker()
    for limits in ({"cost_nano": 2_700}, {"tokens": 420}):
        tenant = next(iter(limits))
        await books.limit(f"tenant:{tenant}", **limits)
        await books.settle(await books.open(session, f"a {tenant}", tenant=tenant))
        await books.open(session, f"b {tenant}", tenant=tenant)
        tight = ask(f"c {tenant}", tenant=tenant, estimate=Estimate(100, 51, 1_001))
        assert await books.verdict(session, tight) is Verdict.OVER_BUDGET
        assert await books.verdict(session, ask(f"c {tenant}", tenant=tenant)) is Verdict.OPENED


async def test_a_budget_in_one_list_is_filled_to_the_brim(books: Books) -> None:
    """Calls of one list count against each other, in money and in tokens, of the day and of other scopes."""
    session = await books.worker()
    for scope, origin in (("tenant:acme", {"tenant": "acme"}), ("tenant:other", {"tenant": "other"}), ("day", {})):
        await books.limit(scope, **({"tokens": 3 * 150} if scope == "tenant:other" else {"cost_nano": 3_000}))
        calls = [ask((scope, n), **origin) for n in range(5)]
        openings = await books.calls.open_calls(session, calls)

        refused = Opening(Verdict.OVER_BUDGET, scope=scope)
        assert openings == [Opening(Verdict.OPENED)] * 3 + [refused] * 2
        for call in calls[:3]:
            await books.settle(call, answer=None, usage=Usage())


async def test_what_was_not_used_is_free_again(books: Books) -> None:
    """A settled call counts with what it used; the rest of what was reserved for it comes back."""
    await books.limit("tenant:acme", cost_nano=1_700)
    session = await books.worker()
    call = await books.open(session, "a", tenant="acme")
    assert await books.verdict(session, ask("b", tenant="acme")) is Verdict.OVER_BUDGET
    await books.settle(call)

    assert await books.verdict(session, ask("b", tenant="acme")) is Verdict.OPENED


async def test_a_raised_budget_lets_work_go_on(books: Books) -> None:
    """A budget that was overshot refuses, also what costs nothing, until it is raised."""
    await books.limit("tenant:acme", cost_nano=1_000)
    session = await books.worker()
    call = await books.open(session, "a", tenant="acme")
    await books.settle(call, usage=replace(USED, cost_nano=5_000))
    view = await books.budget("tenant:acme")
    assert (view.budget, view.cost_nano, view.reserved_nano) == (Budget(1_000), 5_000, 0)
    assert await books.verdict(session, ask("b", tenant="acme", estimate=Estimate(1, 1, 0))) is Verdict.OVER_BUDGET
    await books.limit("tenant:acme", cost_nano=6_000)

    assert await books.verdict(session, ask("b", tenant="acme")) is Verdict.OPENED


async def test_unknown_prices_do_not_count_against_money(books: Books) -> None:
    """A call of unknown price takes no money of a budget, and its tokens all the same."""
    await books.limit("tenant:acme", cost_nano=1_000)
    session = await books.worker()
    for word in range(3):
        await books.open(session, word, tenant="acme", estimate=UNKNOWN)
    await books.open(session, "priced", tenant="acme")
    assert await books.verdict(session, ask("b", tenant="acme")) is Verdict.OVER_BUDGET
    await books.limit("tenant:acme", tokens=4 * 150)
    assert await books.verdict(session, ask("b", tenant="acme", estimate=UNKNOWN)) is Verdict.OVER_BUDGET


async def test_the_budget_of_the_day_begins_anew(books: Books) -> None:
    """On another day (UTC) nothing is spent or reserved; a call counts for the day on which it was opened."""
    books.clock.set_now(datetime(2026, 3, 1, 23, 50, tzinfo=UTC))
    await books.limit("day", cost_nano=2_000)
    session = await books.worker(lease=DAY)
    await books.settle(await books.open(session, "a"))
    late = await books.open(session, "b")
    assert await books.verdict(session, ask("c")) is Verdict.OVER_BUDGET
    books.clock.advance(20 * MINUTE)

    view = await books.budget("day")
    assert (view.cost_nano, view.tokens, view.reserved_nano, view.reserved_tokens) == (0, 0, 0, 0)
    await books.open(session, "c")
    await books.settle(late)
    await books.open(session, "d")
    assert await books.verdict(session, ask("e")) is Verdict.OVER_BUDGET
    rows = await books.spend(SpendGroup.DAY)
    assert (rows["2026-03-01"].usage.cost_nano, rows["2026-03-02"].in_flight) == (1_400, 2)


async def test_other_scopes_add_up_over_days(books: Books) -> None:
    """A tenant's budget does not begin anew with the day."""
    await books.limit("tenant:acme", cost_nano=1_699)
    await books.settle(await books.open(tenant="acme", word="a"))
    books.clock.advance(DAY)

    assert await books.verdict(await books.worker(), ask("b", tenant="acme")) is Verdict.OVER_BUDGET


# Reports


async def test_spending_is_added_up_by_each_group(books: Books) -> None:
    """Calls are summed by pool, model, batch, run, tenant, day and purpose, each under its own name."""
    session = await books.worker()
    batch, run = uuid4(), uuid4()
    first = await books.open(session, "a", batch_id=batch, tenant="acme", pool="p1", model="m1")
    second = await books.open(session, "b", batch_id=batch, run_id=run, pool="p2", model="m1", purpose=Purpose.REPAIR)
    for call in (first, second):
        await books.settle(call)

    both, one = USED + USED, USED
    expected = {
        SpendGroup.POOL: {"p1": one, "p2": one},
        SpendGroup.MODEL: {"openai/m1": both},
        SpendGroup.BATCH: {str(batch): both},
        SpendGroup.RUN: {str(run): one},
        SpendGroup.TENANT: {"acme": one},
        SpendGroup.DAY: {"2026-01-01": both},
        SpendGroup.PURPOSE: {"ask": one, "repair": one},
    }
    assert set(expected) == set(SpendGroup)
    for group, sums in expected.items():
        assert {name: row.usage for name, row in (await books.spend(group)).items()} == sums


async def test_a_sum_tells_what_is_not_known_or_not_over(books: Books) -> None:
    """Calls in flight, orphaned ones with their bound, unknown prices and errors are told beside what was used."""
    session = await books.worker(lease=LEASE)
    calls = [await books.open(session, n, estimate=UNKNOWN if n == 4 else Estimate(100, 50, 1_000)) for n in range(6)]
    await books.settle(calls[0])
    await books.settle(calls[1], usage=UNPRICED, priced_by="")
    await books.settle(calls[2], answer=None, usage=Usage(), error="overloaded")
    await books.orphan(calls[3], usage=Usage(output_tokens=9, cost_nano=400), error="timeout")
    await books.orphan(calls[4], usage=Usage(input_tokens=100, unpriced=1), error="timeout")
    prepared = await books.open(session, "prepared", send=False)

    expected = SpendRow(
        name="openai:me:small",
        usage=USED + UNPRICED,
        in_flight=2,
        orphaned=2,
        orphaned_nano=400,
        orphaned_unpriced=1,
        errors={"overloaded": 1, "timeout": 2},
    )
    assert await books.budgets.list_spend(SpendGroup.POOL) == [expected]
    books.clock.advance(LEASE)
    await books.calls.reap_calls(limit=10)
    [row] = await books.budgets.list_spend(SpendGroup.POOL)
    assert row == replace(expected, in_flight=0, orphaned=3, orphaned_nano=1_400)
    assert prepared.id not in await books.ledger()


async def test_a_group_of_calls_in_flight_alone_is_shown(books: Books) -> None:
    """What has begun is reported before anything has ended."""
    await books.open(tenant="acme")
    assert (await books.spend(SpendGroup.TENANT))["acme"] == SpendRow(
        name="acme", usage=Usage(), in_flight=1, orphaned=0, orphaned_nano=0, orphaned_unpriced=0
    )
    assert await books.budgets.list_spend(SpendGroup.BATCH) == []


async def test_the_dearest_come_first(books: Books) -> None:
    """Rows are ordered by what was spent, orphaned calls at their bound, then by name; `limit` cuts the rest."""
    session = await books.worker()
    costs = {"b": 500, "a": 500, "c": 900, "d": 100}
    for pool, cost in costs.items():
        await books.settle(await books.open(session, pool, pool=pool), usage=replace(USED, cost_nano=cost))
    await books.orphan(await books.open(session, "lost", pool="d"), usage=Usage(cost_nano=700))

    rows = await books.budgets.list_spend(SpendGroup.POOL)
    assert [row.name for row in rows] == ["c", "d", "a", "b"]
    rows = await books.budgets.list_spend(SpendGroup.POOL, limit=2)
    assert [row.name for row in rows] == ["c", "d"]


async def test_spending_since_a_day(books: Books) -> None:
    """With `since`, calls that were opened before that day (UTC) are left out, those in flight too."""
    session = await books.worker(lease=timedelta(days=9))
    await books.settle(await books.open(session, "a", tenant="old"))
    await books.open(session, "b", tenant="slow")
    books.clock.advance(DAY)
    await books.settle(await books.open(session, "c", tenant="new"))

    assert set(await books.spend(SpendGroup.TENANT)) == {"old", "slow", "new"}
    assert set(await books.spend(SpendGroup.TENANT, since=date(2026, 1, 2))) == {"new"}
    assert set(await books.spend(SpendGroup.DAY, since=date(2026, 1, 2))) == {"2026-01-02"}
    assert await books.budgets.list_spend(SpendGroup.POOL, since=date(2026, 1, 3)) == []


async def test_names_of_groups_are_their_own(books: Books) -> None:
    """A name that begins like a group, or holds what patterns and separators are made of, stays what it is."""
    odd = ["tenant:x", "a:b:c", "100%_", "pool", "é 😀", "a'b\"\\", "\U0010ffff"]
    for pool in odd:
        await books.settle(await books.open(word=pool, pool=pool, model=pool))
    assert set(await books.spend(SpendGroup.POOL)) == set(odd)
    assert set(await books.spend(SpendGroup.MODEL)) == {f"openai/{name}" for name in odd}
    assert await books.spend(SpendGroup.TENANT) == {}


async def test_calls_are_listed_newest_first(books: Books) -> None:
    """The ledger is read from its end, by state and by pool, up to a limit."""
    session = await books.worker(lease=DAY)
    calls, jobs = [], (uuid4(), None, uuid4())
    for n in range(6):
        calls.append(await books.open(session, n, pool=f"p{n % 2}", job_id=jobs[n % 3]))
        books.clock.advance(MINUTE)
    await books.settle(calls[0])
    await books.orphan(calls[3])
    newest = [call.id for call in reversed(calls)]

    async def listed(**facts: object) -> list[object]:
        return [view.id for view in await books.budgets.list_calls(**facts)]  # type: ignore[arg-type]

    assert await listed() == newest
    assert await listed(limit=2) == newest[:2]
    assert await listed(pool="p1") == newest[::2]
    assert await listed(pool="p1", state=CallState.ORPHANED) == [calls[3].id]
    assert await listed(state=CallState.SETTLED) == [calls[0].id]
    assert await listed(state=CallState.SENT, pool="p0", limit=1) == [calls[4].id]
    assert await listed(pool="none") == []
    assert await listed(job=jobs[0]) == [calls[3].id, calls[0].id]
    assert await listed(job=jobs[0], limit=1) == [calls[3].id]
    assert await listed(job=jobs[0], state=CallState.ORPHANED, pool="p1") == [calls[3].id]
    assert await listed(job=jobs[2], state=CallState.SETTLED) == []
    assert await listed(job=uuid4()) == []
