"""The ledger on PostgreSQL: rivals that meet in the middle of a transaction, locks in one order, plans that stay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from headrace.model.budget import Budget
from headrace.model.calls import CallState, NewCall, Opening, Settlement, Verdict
from headrace.model.errors import HeadraceError
from headrace.model.spend import SpendGroup
from headrace.ports.stores import Stores
from headrace.stores.postgres import call_store
from headrace.stores.postgres.queries import load_query
from tests.conformance.books import USED, answer, ask, parts
from tests.integration.postgres_setup import connection, register, schema_stores
from tests.integration.test_postgres_lock_order import COUNT, cross
from tests.integration.test_postgres_races import lock_waits
from tests.unit.llm_answers import WrittenProvider, llm_of, said

#: Ended calls of a ledger that has been in use for a while, and their sums.
LEDGER = """INSERT INTO "{schema}".calls (id, opened_at, ended_at, day, prompt_tokens, most_tokens, state, key, pool,
    provider, model, purpose, scopes, cost_nano)
  SELECT gen_random_uuid(), now() - n * interval '1 second', now(), current_date, 1, 1, 'settled', md5(n::text),
    'p' || n % 5, 'openai', 'm' || n % 3, 'ask', ARRAY['day', 'pool:p' || n % 5, 'batch:' || n % 1000], 10
  FROM generate_series(1, 100000) AS n"""
SUMS = """INSERT INTO "{schema}".spend
  SELECT u.scope, '', c.day, count(*), 0, 0, 0, 0, 0, sum(c.cost_nano), 0, 0, 0, 0
  FROM "{schema}".calls AS c, unnest(c.scopes) AS u (scope) GROUP BY 1, 3"""
HOT_TABLES = ["calls", "spend", "answers", "call_items"]


def ledger(stores: Stores) -> call_store.PostgresCallStore:
    """Return the ledger of stores that have one."""
    assert isinstance(stores.calls, call_store.PostgresCallStore)
    return stores.calls


async def verdicts(stores: Stores, session: UUID, *calls: NewCall) -> list[Verdict]:
    """Open calls and return the verdicts."""
    return [opening.verdict for opening in await ledger(stores).open_calls(session, calls)]


@asynccontextmanager
async def opening(schema: str, session: UUID, calls: Sequence[NewCall]) -> AsyncIterator[Any]:
    """Open calls on another connection whose transaction is not over yet."""
    query = load_query("open_calls", schema)
    values = {"session": session, "now": None, **call_store._columns(calls), **call_store._conditions(calls)}
    async with connection() as other:
        transaction = other.transaction()
        await transaction.start()
        rows = await other.fetch(query.numbered, *query.arguments(values))
        assert {row["verdict"] for row in rows} == {"opened"}
        yield transaction
        if other.is_in_transaction():
            await transaction.rollback()


@pytest.mark.parametrize("commits", [True, False])
async def test_a_rival_for_a_key_waits_for_the_first(commits: bool) -> None:
    """While a call is being opened, others of its key wait: it is held if that commits, else theirs."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        async with opening(schema, session, [ask("x")]) as first:
            second = asyncio.create_task(verdicts(stores, session, ask("x")))
            await lock_waits(schema)
            await (first.commit() if commits else first.rollback())
            assert await second == [Verdict.HELD if commits else Verdict.OPENED]


async def test_what_rivals_for_a_budget_left_is_counted() -> None:
    """Calls of a scope with a budget are opened one after another, each on what the one before it left."""
    async with schema_stores() as (schema, stores):
        assert stores.budgets is not None
        session = await register(stores)
        await stores.budgets.set_budget("tenant:acme", Budget(1_000))
        async with opening(schema, session, [ask("x", tenant="acme")]) as first:
            second = asyncio.create_task(verdicts(stores, session, ask("y", tenant="acme")))
            await lock_waits(schema)
            assert await verdicts(stores, session, ask("z", tenant="other")) == [Verdict.OPENED]
            await first.commit()
            assert await second == [Verdict.OVER_BUDGET]


async def test_what_rivals_for_a_pool_left_is_counted() -> None:
    """Calls of a pool with a limit are opened one after another, each on what the one before it left."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        async with opening(schema, session, [ask("x", most_in_flight=1)]) as first:
            second = asyncio.create_task(verdicts(stores, session, ask("y", most_in_flight=1)))
            await lock_waits(schema)
            await first.commit()
            assert await second == [Verdict.POOL_FULL]


async def test_scopes_without_a_budget_hold_nobody_up() -> None:
    """Calls of the same tenant, batch, day and pool are opened side by side where nothing limits them."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        facts = {"tenant": "acme", "batch_id": uuid4()}
        async with opening(schema, session, [ask("x", **facts)]):
            assert await verdicts(stores, session, ask("y", **facts)) == [Verdict.OPENED]


async def test_a_call_that_is_settled_while_it_is_given_up_is_answered() -> None:
    """The holder of a key is dead, and its answer is being stored: whoever wants the key waits, and is given that."""
    async with schema_stores() as (schema, stores):
        assert stores.budgets is not None
        dead, session = await register(stores), await register(stores)
        call = ask("x")
        await verdicts(stores, dead, call)
        await stores.sessions.close_session(dead)
        settlement = [Settlement(call=call, answer=answer(), usage=USED)]
        values = {"now": None, **call_store._columns([call]), **call_store._endings(settlement)}
        query = load_query("settle_calls", schema)
        async with connection() as other:
            transaction = other.transaction()
            await transaction.start()
            await other.fetch(query.numbered, *query.arguments(values))
            rival = asyncio.create_task(ledger(stores).open_calls(session, [ask("x")]))
            reaper = asyncio.create_task(ledger(stores).reap_calls(limit=10))
            await lock_waits(schema, 2)
            await transaction.commit()
            assert (await rival, await reaper) == ([Opening(Verdict.ANSWERED, answer())], 0)
        [view] = await stores.budgets.list_calls()
        assert (view.state, view.usage) == (CallState.SETTLED, USED)


async def test_openers_lock_keys_in_one_order() -> None:
    """Openers of the same keys in opposite orders take them in one order."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        words = list(range(COUNT))

        async def take(direction: int) -> object:
            return await verdicts(stores, session, *[ask(word) for word in words[::direction]])

        name = f'"{schema}" call {ask(COUNT // 2).key}'
        await cross(schema, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name, take)


async def test_openers_lock_budgets_in_one_order() -> None:
    """Openers of calls under the same budgets in opposite orders take them in one order."""
    async with schema_stores() as (schema, stores):
        assert stores.budgets is not None
        session = await register(stores)
        tenants = [f"t{n}" for n in range(COUNT)]
        for tenant in tenants:
            await stores.budgets.set_budget(f"tenant:{tenant}", Budget(10_000))

        async def take(direction: int) -> object:
            calls = [ask((direction, tenant), tenant=tenant) for tenant in tenants[::direction]]
            return await verdicts(stores, session, *calls)

        name = f'"{schema}" budget tenant:t{COUNT // 2}'
        await cross(schema, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name, take)


async def test_settlers_lock_calls_and_sums_in_one_order() -> None:
    """Settlements of the same calls, and of calls of the same scopes, in opposite orders wait in one order."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        tenants = [f"t{n}" for n in range(COUNT)]
        lists = {turn: [ask((turn, tenant), tenant=tenant) for tenant in tenants] for turn in (0, 1, -1)}
        for calls in lists.values():
            await verdicts(stores, session, *calls)

        async def settle(calls: Sequence[NewCall]) -> object:
            return await ledger(stores).settle_calls([Settlement(call=call, usage=USED) for call in calls])

        middle = sorted(call.id for call in lists[0])[COUNT // 2]
        same = 'SELECT FROM "{schema}".calls WHERE id = $1 FOR UPDATE'
        await cross(schema, same, middle, lambda direction: settle(lists[0][::direction]))
        sums = 'SELECT FROM "{schema}".spend WHERE scope = $1 FOR UPDATE'
        scope = f"tenant:t{COUNT // 2}"
        await cross(schema, sums, scope, lambda direction: settle(lists[direction][::direction]))


async def test_spoolers_lock_calls_in_one_order() -> None:
    """Parts of the same calls in opposite orders are stored one after another; each number is written once."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        calls = [ask(word) for word in range(COUNT)]
        await verdicts(stores, session, *calls)

        async def spool(direction: int) -> object:
            some = [part for call in calls[::direction] for part in parts(call.id, 0, f"{direction}")]
            return await ledger(stores).spool_items(some)

        middle = sorted(call.id for call in calls)[COUNT // 2]
        await cross(schema, 'SELECT FROM "{schema}".calls WHERE id = $1 FOR UPDATE', middle, spool)
        spooled = {opening.spooled for opening in await ledger(stores).open_calls(session, calls)}
        assert spooled in ({("1",)}, {("-1",)})


async def test_a_large_ledger_slows_nothing_down() -> None:
    """Plans that were made on empty tables reach calls, sums and answers by their keys once there are 100,000 calls."""
    async with schema_stores(max_pool_size=1) as (schema, stores):
        assert stores.budgets is not None
        session = await register(stores)
        await stores.budgets.set_budget("day", Budget(10**15))

        async def work() -> None:
            calls = [ask(uuid4(), most_in_flight=100, most_per_day=10**6) for _ in range(5)]
            assert set(await verdicts(stores, session, *calls)) == {Verdict.OPENED}
            await ledger(stores).send_calls([call.id for call in calls])
            await ledger(stores).spool_items([part for call in calls for part in parts(call.id, 0, "a")])
            await ledger(stores).settle_calls([Settlement(call=call, answer=answer(), usage=USED) for call in calls])
            assert await ledger(stores).reap_calls(limit=10) == 0
            # Else its scans are reported with later ones, after a second or more.
            async with ledger(stores)._hot.lend() as worked:
                await worked.fetchval("SELECT pg_stat_force_next_flush()")

        await work()
        async with connection() as opened:
            await opened.execute(LEDGER.format(schema=schema))
            before = await scans(opened, schema)
            await work()
            after = await scans(opened, schema)
        assert (after[0], after[1] > before[1]) == (before[0], True)


async def scans(opened: asyncpg.Connection[Any], schema: str) -> tuple[int, int]:
    """Return how often hot tables were read as a whole, and by an index, as far as the server has reported it."""
    row = await opened.fetchrow(
        """SELECT sum(seq_scan)::bigint, sum(idx_scan)::bigint FROM pg_stat_user_tables
        WHERE schemaname = $1 AND relname = ANY($2)""",
        schema,
        HOT_TABLES,
    )
    assert row is not None
    return row[0] or 0, row[1] or 0


async def test_reports_read_sums_and_not_calls() -> None:
    """With 100,000 calls in the ledger, what was spent is told from the sums alone."""
    async with schema_stores() as (schema, stores):
        assert stores.budgets is not None
        session = await register(stores)
        await verdicts(stores, session, ask("x", pool="p1"))
        async with connection() as opened:
            await opened.execute(LEDGER.format(schema=schema))
            await opened.execute(SUMS.format(schema=schema))
            await opened.execute(f'ANALYZE "{schema}".calls, "{schema}".spend')
            query = load_query("list_spend", schema)
            values = {"kind": "pool", "first": "pool:", "last": "pool;", "since": None, "limit": 10}
            rows = await opened.fetch(f"EXPLAIN (ANALYZE, BUFFERS) {query.numbered}", *query.arguments(values))

        plan = "\n".join(row[0] for row in rows)
        assert "Seq Scan on calls" not in plan, plan
        assert "calls_in_flight" in plan or "calls_held" in plan, plan
        by_pool = {row.name: row for row in await stores.budgets.list_spend(SpendGroup.POOL)}
        assert {name: row.usage.cost_nano for name, row in by_pool.items()} == {f"p{n}": 200_000 for n in range(5)}
        assert [name for name, row in by_pool.items() if row.in_flight] == ["p1"]
        assert len(await stores.budgets.list_spend(SpendGroup.BATCH, limit=5)) == 5


async def test_an_answer_that_the_server_refuses_does_not_hold_its_key() -> None:
    """A column of text takes no NUL: the call is orphaned with its cost, and the next equal ask is made."""
    async with schema_stores() as (_, stores):
        llm = llm_of(WrittenProvider([replace(said("no"), request_id="r\0"), "yes"]), stores)
        with pytest.raises(HeadraceError, match="refused to keep the model's answer"):
            await llm.complete("?")
        async with asyncio.timeout(10):
            assert await llm.complete("?") == "yes"

        calls = await stores.budgets.list_calls()
        assert [(call.state, call.usage.cost_nano) for call in calls] == [
            (CallState.SETTLED, 150),
            (CallState.ORPHANED, 150),
        ]
