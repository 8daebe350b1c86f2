"""The ledger on Redis and what only it can get wrong: figures beside rows, parts of long calls, numbers, resets."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.model.budget import Budget
from headrace.model.calls import LIVE, CallState, NewCall, Opening, Settlement, Verdict
from headrace.model.errors import StorageResetError, StoreUnavailableError
from headrace.model.known_names import NewName
from headrace.model.quota import Estimate
from headrace.model.session import NewSession, ProcessId
from headrace.model.spend import SpendGroup
from headrace.model.stats import Retention
from headrace.model.usage import Usage
from headrace.ports.stores import Stores
from headrace.stores.redis import RedisSite, budget_store, call_store, create_namespace, name_store
from headrace.stores.redis.connection import Server
from headrace.stores.redis.faults import StoreFullError
from headrace.stores.redis.namespace import Namespace
from headrace.testing.clock import FakeClock
from tests.backends.redis import new_prefix, stores_on
from tests.backends.valkey import ValkeyServer
from tests.conformance.books import ESTIMATE, UNPRICED, USED, Books, answer, ask, parts
from tests.conformance.scenario import DAY, LEASE, MINUTE, SECOND
from tests.integration.test_redis_failover import TAKEOVER, sentinels
from tests.integration.test_redis_pressure import limit_memory
from tests.integration.test_redis_scripts import keys_of
from tests.waiting import wait_until

#: What stays of a ledger when everything in it is pruned, behind the root.
LASTING = {"about", "epoch", "sessions", "session"}
MEGABYTE = 1 << 20
#: Of a call that ended.
FIGURES = ("input", "output", "cached", "answered", "cost", "unpriced")


@pytest.fixture
async def books(site: RedisSite) -> AsyncIterator[Books]:
    """Open stores on it, under a clock that stands still."""
    clock = FakeClock()
    async with stores_on(site, clock) as stores:
        yield Books(stores, clock)


@pytest.fixture
def own_server() -> Iterator[ValkeyServer]:
    """Return a server of the test's own."""
    started = ValkeyServer()
    yield started
    started.remove()


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of scripts that run from now on, as they do."""
    run, names = Namespace.run, list[str]()

    async def spied(self: Namespace, verb: str, /, *words: Any) -> Any:
        names.append(verb)
        return await run(self, verb, *words)

    monkeypatch.setattr(Namespace, "run", spied)
    return names


# What stands beside the rows of calls


class Hand:
    """Does at random what may be done with calls, and knows which there were."""

    def __init__(self, books: Books, seed: int) -> None:
        self.books, self.random = books, random.Random(seed)
        self.calls: list[NewCall] = []
        self.sessions: list[UUID] = []

    async def move(self) -> None:
        """Do one thing."""
        self.books.clock.advance(self.random.choice([timedelta(), SECOND, LEASE / 2, 5 * LEASE, DAY / 3]))
        self.sessions.append(await self.books.worker(lease=self.random.choice([LEASE, DAY])))
        move = self.random.choice([self.open, self.open, self.again, self.send, self.spool, self.settle, self.settle])
        await move()
        if self.random.random() < 0.2:
            await self.books.calls.reap_calls(limit=self.random.randint(1, 5))

    async def open(self) -> None:
        """Open some calls of few keys."""
        calls = [self._call() for _ in range(self.random.randint(1, 4))]
        self.calls += calls
        await self.books.calls.open_calls(self.random.choice(self.sessions), calls)

    async def again(self) -> None:
        """Open known calls again, as after a lost answer."""
        if self.calls:
            chosen = self.random.choices(self.calls, k=2)
            await self.books.calls.open_calls(self.random.choice(self.sessions), chosen)

    async def send(self) -> None:
        """Send known calls."""
        await self.books.calls.send_calls([call.id for call in self.random.sample(self.calls, len(self.calls) // 3)])

    async def spool(self) -> None:
        """Store parts of an answer."""
        if self.calls:
            chosen = self.random.choices(self.calls, k=2)
            some = [part for call in chosen for part in parts(call.id, self.random.randint(0, 2), "a", "b")]
            await self.books.calls.spool_items(some)

    async def settle(self) -> None:
        """Settle calls, known and unknown ones, some of them twice."""
        chosen = [*self.random.choices(self.calls, k=3), self._call()] if self.calls else [self._call()]
        await self.books.calls.settle_calls([self._ending(call) for call in chosen])
        self.calls += chosen[-1:]

    def _call(self) -> NewCall:
        pick = self.random.choice
        return ask(
            pick(range(12)),
            pool=pick(["p", "q"]),
            model=pick(["m", "n"]),
            tenant=pick([None, "acme"]),
            estimate=pick([ESTIMATE, Estimate(7, 9, None), Estimate(0, 0, 0)]),
            send=pick([True, False]),
            fresh=pick([True, False]),
        )

    def _ending(self, call: NewCall) -> Settlement:
        pick = self.random.choice
        return Settlement(
            call=call,
            state=pick([CallState.SETTLED, CallState.SETTLED, CallState.ORPHANED]),
            answer=pick([None, None, answer()]),
            usage=pick([USED, UNPRICED, Usage()]),
            error=pick(["", "timeout"]),
        )


@pytest.mark.parametrize("seed", range(6))
async def test_what_stands_beside_the_rows_follows_from_them(
    books: Books, server: Server, site: RedisSite, seed: int
) -> None:
    """After any moves sets of live calls, the keys they hold, what they reserve and all sums are as the rows say."""
    hand = Hand(books, seed)
    for _ in range(30):
        await hand.move()
        await check_ledger(server, site)


async def check_ledger(server: Server, site: RedisSite) -> None:
    """Compare everything that is kept beside the rows of calls with the rows."""
    names = await keys_of(server, site)
    rows = {name[5:]: await hash_of(server, site, name) for name in names if name.startswith("call:")}
    live = {call_id: row for call_id, row in rows.items() if row["state"] in LIVE}
    orphans = {call_id for call_id, row in rows.items() if row["state"] == CallState.ORPHANED}
    assert await members(server, site, "calls") == set(rows)
    assert await members(server, site, "orphans") == orphans
    assert await members(server, site, "live") == set(live)
    assert await hash_of(server, site, "held") == {row["key"]: call_id for call_id, row in live.items()}
    for field, prefix in (("pool", "live:"), ("session", "flying:")):
        groups = defaultdict(set)
        for call_id, row in live.items():
            groups[prefix + row[field]].add(call_id)
        assert {name for name in names if name.startswith(prefix)} == set(groups)
        for name, group in groups.items():
            assert await members(server, site, name) == group
    kept = {name: await hash_of(server, site, name) for name in names if name.startswith(("used:", "sum:"))}
    numbers = {name: {figure: int(text) for figure, text in row.items()} for name, row in kept.items()}
    assert numbers == expected_figures(rows.values())


def expected_figures(rows: Any) -> dict[str, dict[str, int]]:
    """Add up rows of calls by the names of the keys where sums stand."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        day, state = int(row["opened_at"]) // 86_400_000_000, row["state"]
        figures = {
            name: int(row.get(name, 0)) for name in ("input", "output", "cached", "answered", "cost", "unpriced")
        }
        tokens = figures["input"] + figures["output"]
        used = {"cost": figures["cost"], "tokens": tokens, "unpriced": figures["unpriced"]}
        if state in LIVE:
            used = {
                "reserved_cost": int(row.get("nano", 0)),
                "reserved_tokens": int(row["prompt"]) + int(row["most"]),
            }
        elif state == CallState.ORPHANED:
            figures = {"lost_cost": figures["cost"], "lost_tokens": tokens, "lost_unpriced": figures["unpriced"]}
        for scope in row["scopes"].split("\x1f"):
            sums[f"used:day:{day}" if scope == "day" else f"used:{scope}"].update(used)
            if state not in LIVE:
                ends = {state: 1} | ({f"error:{row['error']}": 1} if "error" in row else {})
                sums[f"sum:{day}:{scope}"].update(figures | ends)
    # A figure that is zero is not there, nor is a key without figures.
    shown = {name: {figure: count for figure, count in counts.items() if count} for name, counts in sums.items()}
    return {name: counts for name, counts in shown.items() if counts}


async def hash_of(server: Server, site: RedisSite, name: str) -> dict[str, str]:
    """Return the fields of a hash."""
    flat = await server.call("HGETALL", f"{site.root}:{name}")
    return dict(zip(flat[::2], flat[1::2], strict=True))


async def members(server: Server, site: RedisSite, name: str) -> set[str]:
    """Return the members of a set, sorted or not."""
    command = ("SMEMBERS",) if name.startswith("flying:") else ("ZRANGE",)
    rest = () if name.startswith("flying:") else (0, -1)
    return set(await server.call(*command, f"{site.root}:{name}", *rest))


async def test_nothing_is_left_of_calls_that_are_gone(books: Books, server: Server, site: RedisSite) -> None:
    """Whatever became of them: once their retention is over, no key holds a trace of a call, a sum or a session."""
    hand = Hand(books, seed=99)
    for _ in range(40):
        await hand.move()
    await books.limit("tenant:acme", cost_nano=1)
    await books.budgets.set_budget("tenant:acme", None)
    books.clock.advance(500 * DAY)
    while await books.calls.reap_calls(limit=10):
        pass
    for _ in range(3):
        await books.stores.jobs.prune_jobs(Retention(answers=DAY), limit=1_000)

    left = await keys_of(server, site)
    assert {name for name in left if name.partition(":")[0] not in LASTING} == set()


async def test_a_former_leader_prunes_nothing_of_the_ledger(books: Books) -> None:
    """Under a term after which another began no call and no sum goes; under the current one they do."""
    former = await books.term(SECOND)
    books.clock.advance(2 * SECOND)
    await books.settle(await books.open())
    books.clock.advance(500 * DAY)
    current = await books.term(DAY)

    keep, prune = Retention(answers=DAY), books.stores.jobs.prune_jobs
    assert (await prune(keep, limit=10, term=former)).total == 0
    removed = (await prune(keep, limit=10, term=current)).removed
    assert (removed["calls"], removed["spend"]) == (1, 4)


async def test_names_leave_no_trace_but_their_numbers(books: Books, server: Server, site: RedisSite) -> None:
    """A scope whose names were all given back is known by the last number it gave alone."""
    owner = uuid4()
    await books.names.claim_names("s", [NewName(str(n), str(n), owner) for n in range(3)], seen=0)
    await books.names.release_names("s", owner)

    left = {name for name in await keys_of(server, site) if not name.startswith("epoch:")} - {"about"}
    assert left == {"positions"}


# Numbers


async def test_money_is_exact_up_to_the_largest_sums(books: Books, server: Server, site: RedisSite) -> None:
    """Nanodollars and tokens near 2^53 are added up to the last digit, and stored as whole numbers."""
    large = 2**52 - 1
    session = await books.worker()
    await books.limit("tenant:acme", cost_nano=2**53 - 1, tokens=2**53 - 1)
    huge = Estimate(large - 1, 1, large)
    calls = [await books.open(session, n, tenant="acme", estimate=huge) for n in range(2)]
    view = await books.budget("tenant:acme")
    assert (view.reserved_nano, view.reserved_tokens) == (2 * large, 2 * large)
    assert await books.verdict(session, ask("more", tenant="acme", estimate=Estimate(1, 1, 0))) is Verdict.OVER_BUDGET
    assert await books.verdict(session, ask("more", tenant="acme", estimate=Estimate(1, 0, 2))) is Verdict.OVER_BUDGET
    await books.settle(calls[0], usage=Usage(input_tokens=large, calls=1, cost_nano=large))
    await books.orphan(calls[1], usage=Usage(output_tokens=large, cost_nano=large))

    view = await books.budget("tenant:acme")
    assert (view.cost_nano, view.tokens, view.reserved_nano) == (2 * large, 2 * large, 0)
    assert view.budget == Budget(2**53 - 1, 2**53 - 1)
    last = await books.open(session, "last", tenant="acme", estimate=Estimate(1, 0, 1))
    await books.settle(last, usage=Usage(calls=1, cost_nano=2))
    assert (await books.budget("tenant:acme")).cost_nano == 2**53
    [row] = (await books.spend(SpendGroup.TENANT)).values()
    assert (row.usage.cost_nano, row.orphaned_nano) == (large + 2, large)
    for name in await keys_of(server, site):
        if name.startswith(("sum:", "used:", "call:")):
            texts = (await hash_of(server, site, name)).values()
            assert not [text for text in texts if (text.partition(".")[0].isdigit() and "." in text) or "e+" in text]


async def test_days_are_those_of_the_calendar(books: Books) -> None:
    """Days are told by their dates, over leap days, ends of years and the first day of all."""
    for moment in (datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC),
                   datetime(2024, 3, 1, tzinfo=UTC), datetime(2026, 12, 31, 12, tzinfo=UTC)):  # fmt: skip
        books.clock.set_now(moment)
        await books.settle(await books.open(word=moment))
    rows = await books.spend(SpendGroup.DAY)
    assert sorted(rows) == ["1970-01-01", "2024-02-29", "2024-03-01", "2026-12-31"]
    assert list(await books.spend(SpendGroup.DAY, since=date(2024, 3, 1))) == ["2024-03-01", "2026-12-31"]


# Long calls, in parts that are short each


async def test_long_lists_are_read_in_parts(books: Books, monkeypatch: pytest.MonkeyPatch, scripts: list[str]) -> None:
    """Budgets, sums, calls in flight and the ledger are read page by page, and nothing is missing or told twice."""
    for name, size in (("SCOPES", 3), ("SUMS", 3), ("CALLS", 3), ("FLYING", 2)):
        monkeypatch.setattr(budget_store, name, size)
    session, tenants = await books.worker(lease=9 * DAY), [f"t{n}" for n in range(8)]
    calls: list[NewCall] = []
    for day in range(2):
        calls += [await books.open(session, (day, tenant), tenant=tenant, pool=f"p{day}") for tenant in tenants]
        books.clock.advance(DAY)
    await books.calls.settle_calls([Settlement(call=call, usage=USED) for call in calls[:12]])
    for tenant in tenants:
        await books.limit(f"tenant:{tenant}", cost_nano=1)

    assert [view.scope for view in await books.budgets.list_budgets()] == [f"tenant:{tenant}" for tenant in tenants]
    asked = [f"tenant:{tenant}" for tenant in tenants]
    assert [view.scope for view in await books.budgets.list_budgets(asked[::-1])] == asked
    rows = await books.spend(SpendGroup.TENANT)
    assert {name: (row.usage.calls, row.in_flight) for name, row in rows.items()} == {
        tenant: (2, 0) if n < 4 else (1, 1) for n, tenant in enumerate(tenants)
    }
    newest = [call.id for call in sorted(calls, key=lambda call: (call.pool, call.id), reverse=True)]
    assert [view.id for view in await books.budgets.list_calls()] == newest
    assert [view.id for view in await books.budgets.list_calls(pool="p0", limit=5)] == newest[8:13]
    assert [view.id for view in await books.budgets.list_calls(state=CallState.SENT)] == sorted(
        (call.id for call in calls[12:]), reverse=True
    )
    assert scripts.count("list_spend") == 5


async def test_many_names_are_told_in_parts(books: Books, monkeypatch: pytest.MonkeyPatch, scripts: list[str]) -> None:
    """A claimer hears of all names it has not seen, its own left out; releases walk the whole scope."""
    monkeypatch.setattr(name_store, "PAGE", 4)
    first, second, third = uuid4(), uuid4(), uuid4()
    for owner, word in ((first, "a"), (second, "b"), (first, "c")):
        seen = len(await books.names.list_names("s"))
        names = [NewName(f"{word}{n}", "", owner) for n in range(10)]
        assert len((await books.names.claim_names("s", names, seen=seen)).taken) == 10

    assert [name.position for name in await books.names.list_names("s")] == list(range(1, 31))
    news = await books.names.claim_names("s", [NewName("x", "", third)], seen=3)
    assert [name.position for name in news.newer] == list(range(4, 31))
    news = await books.names.claim_names("s", [NewName("a0", "", first)], seen=0)
    assert [name.key for name in news.newer] == [f"b{n}" for n in range(10)]
    scripts.clear()
    assert await books.names.release_names("s", first) == 20
    assert len(scripts) == 8
    assert {name.owner for name in await books.names.list_names("s")} == {second}


async def test_large_answers_cross_the_wire_in_parts(books: Books, scripts: list[str]) -> None:
    """A list of calls with megabytes each is settled and answered by several scripts, whole and in order."""
    session, size = await books.worker(), call_store._BYTES // 4
    calls = [ask(n) for n in range(14)]
    given = [answer(f"{n}" * size) for n in range(10)]
    await books.calls.open_calls(session, calls)
    scripts.clear()
    endings = [Settlement(call=call, answer=given[n % 10], usage=USED) for n, call in enumerate(calls)]
    assert await books.calls.settle_calls(endings) == [given[n % 10] for n in range(14)]
    assert scripts.count("settle_calls") >= 4
    scripts.clear()
    openings = await books.calls.open_calls(session, [ask(n) for n in range(14)])
    assert openings == [Opening(Verdict.ANSWERED, given[n % 10]) for n in range(14)]
    assert scripts.count("open_calls") >= 4


async def test_what_stands_in_the_end_is_told_over_all_parts(books: Books) -> None:
    """An answer that a later part of a long list replaces is told to the first part as well."""
    calls = [ask("x", fresh=True), *(ask(n) for n in range(call_store._SLICE)), ask("x", fresh=True)]
    endings = [Settlement(call=call, answer=answer(str(n)), replace=True) for n, call in enumerate(calls)]
    told = await books.calls.settle_calls(endings)
    assert told[0] == told[-1] == answer(str(len(calls) - 1))


async def test_many_parts_are_spooled_in_parts(
    books: Books, monkeypatch: pytest.MonkeyPatch, scripts: list[str]
) -> None:
    """Parts of an answer that are many, or large, are stored by several scripts under numbers without a gap."""
    monkeypatch.setattr(call_store, "_MANY", 4)
    monkeypatch.setattr(call_store, "_BYTES", 100)
    call = await books.open(await books.worker(lease=LEASE))
    texts = [*(str(n) for n in range(10)), *("x" * 60 for _ in range(4)), "y" * 500]
    scripts.clear()
    await books.calls.spool_items(parts(call.id, 0, *texts[:12]))
    await books.calls.spool_items(parts(call.id, 12, *texts[12:]))
    assert len(scripts) == 7
    books.clock.advance(LEASE)
    assert (await books.try_open(await books.worker(), ask())).spooled == tuple(texts)


async def test_the_dead_are_reaped_in_parts(books: Books, scripts: list[str]) -> None:
    """Hundreds of calls of dead sessions are ended a hundred at a time; those of the living are not looked at."""
    dead, alive = [await books.worker(lease=LEASE) for _ in range(3)], await books.worker(lease=DAY)
    for n, session in enumerate((*dead, alive)):
        await books.calls.open_calls(session, [ask((n, m)) for m in range(120)])
    books.clock.advance(LEASE)
    scripts.clear()

    assert await books.calls.reap_calls(limit=330) == 330
    assert scripts == ["reap_calls"] * 4
    assert await books.calls.reap_calls(limit=1_000) == 30
    assert Counter((await books.ledger()).values()) == {CallState.ORPHANED: 360, CallState.SENT: 120}


async def test_the_reaper_ends_only_calls_of_the_session(books: Books, server: Server, site: RedisSite) -> None:
    """Whatever the set of a dead session names: a call of another one, one that ended or none is left alone."""
    dead, alive = await books.worker(lease=LEASE), await books.worker(lease=DAY)
    lost, other, ended = await books.open(dead, "a"), await books.open(alive, "b"), await books.open(dead, "c")
    await books.settle(ended)
    for call_id in (other.id, ended.id, uuid4()):
        await server.call("SADD", f"{site.root}:flying:{dead.hex}", call_id.hex)
    books.clock.advance(LEASE)

    assert await books.calls.reap_calls(limit=10) == 1
    orphaned, sent, settled = CallState.ORPHANED, CallState.SENT, CallState.SETTLED
    assert await books.ledger() == {lost.id: orphaned, other.id: sent, ended.id: settled}
    await check_ledger(server, site)
    assert await server.call("SMEMBERS", f"{site.root}:flyers") == [alive.hex]


# A server that is full, forgets, is emptied, or is replaced


async def test_a_full_server_refuses_new_calls_and_keeps_what_was_paid(own_server: ValkeyServer) -> None:
    """At maxmemory no call is opened, nothing is paid; parts and answers of those under way are stored, and reaped."""
    site = RedisSite(own_server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        session = await registered(stores)
        calls = [ask(n) for n in range(20)]
        await stores.calls.open_calls(session, calls)
        await stores.calls.open_calls(uuid4(), [ask("dead")])
        limit_memory(own_server, MEGABYTE)
        large = answer("x" * 200_000)
        for call in calls[:8]:
            await stores.calls.settle_calls([Settlement(call=call, answer=large, usage=USED)])
        with pytest.raises(StoreFullError):
            await stores.calls.open_calls(session, [ask("new")])
        await stores.calls.spool_items(parts(calls[8].id, 0, "part"))
        assert await stores.calls.settle_calls([Settlement(call=calls[9], answer=large, usage=USED)]) == [large]
        assert await stores.calls.reap_calls(limit=10) == 1
        assert await stores.memo.load_answer(calls[9].key) == large
        own_server.call("CONFIG", "SET", "maxmemory", 0)
        assert [each.verdict for each in await stores.calls.open_calls(session, [ask("new")])] == [Verdict.OPENED]


async def registered(stores: Stores) -> UUID:
    """Register a session that lives for minutes of real time."""
    session = NewSession(ProcessId("host", 1, 1), "host", {"default": 10}, 5 * MINUTE)
    await stores.sessions.register_session(session)
    return session.id


async def test_a_server_that_forgot_the_scripts_does_the_work_once(books: Books, server: Server) -> None:
    """After SCRIPT FLUSH each verb of the ledger goes on as before."""
    session = await books.worker()
    for word in range(3):
        await server.call("SCRIPT", "FLUSH")
        call = await books.open(session, word)
        await server.call("SCRIPT", "FLUSH")
        await books.settle(call)
    await server.call("SCRIPT", "FLUSH")
    assert (await books.budget("day")).cost_nano == 3 * USED.cost_nano


async def test_no_verb_of_the_ledger_does_anything_after_a_reset(own_server: ValkeyServer) -> None:
    """Every verb is refused where the epoch is gone: nothing is written, nor read as if nothing was spent."""
    site = RedisSite(own_server.url, prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        session, call = await registered(stores), ask()
        await stores.calls.open_calls(session, [call])
        own_server.call("FLUSHALL")
        settlement = Settlement(call=call, answer=answer(), usage=USED)
        verbs = [
            stores.calls.open_calls(session, [call]),
            stores.calls.send_calls([call.id]),
            stores.calls.spool_items(parts(call.id, 0, "a")),
            stores.calls.settle_calls([settlement]),
            stores.calls.reap_calls(limit=10),
            stores.budgets.set_budget("day", Budget(1)),
            stores.budgets.list_budgets(),
            stores.budgets.list_spend(SpendGroup.DAY),
            stores.budgets.list_calls(),
            stores.names.claim_names("s", [NewName("a", "A", session)], seen=0),
            stores.names.list_names("s"),
            stores.names.release_names("s", session),
        ]
        answers = await asyncio.gather(*verbs, return_exceptions=True)
    assert [type(each) for each in answers] == [StorageResetError] * len(verbs)
    assert own_server.call("DBSIZE") == ":0"


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_failover_under_way_neither_pays_nor_counts_twice() -> None:
    """The primary dies with a call in flight: on its successor the key is held, and the call is settled once."""
    with ExitStack() as stack:
        servers = sentinels(stack)
        site = RedisSite(servers.url, prefix=new_prefix())
        await create_namespace(site)
        async with stores_on(site, None) as stores:
            session, call = await registered(stores), ask()
            assert await stores.calls.open_calls(session, [call]) == [Opening(Verdict.OPENED)]
            primary, replica = servers.nodes
            assert primary.call("WAIT", 1, 5_000) == ":1"
            primary.stop()
            settlement = Settlement(call=call, answer=answer(), usage=USED)

            async def settled() -> bool:
                try:
                    assert [each.verdict for each in await stores.calls.open_calls(session, [ask()])] == [Verdict.HELD]
                    assert await stores.calls.settle_calls([settlement]) == [answer()]
                except StoreUnavailableError:
                    return False
                return True

            await wait_until(settled, timedelta(seconds=TAKEOVER))
            assert await stores.calls.settle_calls([settlement]) == [answer()]
            [view] = await stores.budgets.list_budgets(["day"])
            assert (view.cost_nano, view.reserved_nano) == (USED.cost_nano, 0)
            assert "role:master" in replica.call("INFO", "replication")
