"""The outbox on PostgreSQL: races of holding and releasing, plans, and events that go along with other writes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from uuid import UUID

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.event import Message, Outgoing
from headrace.model.job import Claim, Completion, JobState
from headrace.model.session import LeaderTerm, TermOverError
from headrace.stores.postgres import event_rows
from tests.integration.event_setup import Events, event, events_on, in_transaction
from tests.integration.postgres_setup import LEASE, claim, connection, database, done, enqueue, register
from tests.integration.test_postgres_endings import run_again
from tests.integration.test_postgres_enqueue import OPENERS, end
from tests.integration.test_postgres_plans import plan, used
from tests.integration.test_postgres_races import lock_waits


@pytest.fixture
async def on() -> AsyncIterator[Events]:
    """Open stores with a relay that leads."""
    async with events_on() as opened:
        yield opened


async def test_a_release_sees_what_was_held_while_it_waited(on: Events) -> None:
    """A hold that is not committed yet keeps its parked row; the release waits, and then lets the held row go."""
    first, second = await on.emit("a", "a")
    await on.park(first)
    release: list[asyncio.Task[list[int]]] = []

    async def meanwhile() -> None:
        release.append(asyncio.create_task(on.ports.outbox.release_parked([first], drop=True)))
        await lock_waits(on.schema)

    await in_transaction(on.database, [("hold_events", {"positions": [second]})], meanwhile)
    assert await release[0] == [first]
    assert await on.waiting() == [second]


@pytest.mark.parametrize("drop", [True, False])
async def test_nothing_is_held_behind_a_row_that_is_being_released(on: Events, drop: bool) -> None:
    """A release that is not committed yet has looked for held rows already: a hold waits for it, and holds nothing."""
    first, second = await on.emit("a", "a")
    await on.park(first)
    asked = {"positions": [first]}
    hold: list[asyncio.Task[list[int]]] = []

    async def meanwhile() -> None:
        hold.append(asyncio.create_task(on.hold(second)))
        await lock_waits(on.schema)

    steps = [("lock_parked", asked), ("drop_parked" if drop else "release_parked", asked)]
    await in_transaction(on.database, [*steps, ("free_held", {"topics": [], "keys": []})], meanwhile)
    assert await hold[0] == []
    assert await on.waiting() == ([second] if drop else [first, second])


async def test_two_who_release_two_rows_of_one_key_leave_nothing_held(on: Events) -> None:
    """Each of them alone would leave the held row to the other's parked one: they take turns."""
    first, second, third = await on.emit("a", "a", "a")
    await on.park(first, second)
    assert await on.hold(third) == [third]
    asked = {"positions": [first]}
    release: list[asyncio.Task[list[int]]] = []

    async def meanwhile() -> None:
        release.append(asyncio.create_task(on.ports.outbox.release_parked([second], drop=True)))
        await lock_waits(on.schema)

    free = ("free_held", {"topics": [event().topic], "keys": ["a"]})
    await in_transaction(on.database, [("lock_parked", asked), ("drop_parked", asked), free], meanwhile)
    assert await release[0] == [second]
    assert await on.waiting() == [third]


@pytest.mark.parametrize("drop", [True, False])
async def test_what_is_parked_while_a_release_waits_stays_parked(on: Events, drop: bool) -> None:
    """It was not looked at for what it holds: that would stay held behind nothing."""
    first, behind, other, held = await on.emit("a", "a", "b", "b")
    await on.park(first)
    release: list[asyncio.Task[list[int]]] = []

    async def meanwhile() -> None:
        release.append(asyncio.create_task(on.ports.outbox.release_parked([first, other], drop=drop)))
        await lock_waits(on.schema)
        await on.park(other)
        assert await on.hold(held) == [held]

    await in_transaction(on.database, [("hold_events", {"positions": [behind]})], meanwhile)
    assert await release[0] == [first]
    assert await on.waiting() == ([behind] if drop else [first, behind])
    assert await on.ports.outbox.release_parked([other], drop=drop) == [other]
    assert await on.waiting() == ([behind, held] if drop else [first, behind, other, held])


async def test_whatever_relays_and_operators_do_at_once_nothing_stays_held(on: Events) -> None:
    """Ten that park, hold and release rows of three keys at once, then all parked rows are released: all rows wait."""
    chance = Random(8)
    positions = await on.emit(*(chance.choice("abc") for _ in range(60)))

    async def act(number: int) -> None:
        own = Random(number)
        for _ in range(25):
            some = own.sample(positions, 6)
            turn = own.random()
            if turn < 0.3:
                await on.park(some[0])
            elif turn < 0.7:
                await on.hold(*some)
            else:
                await on.ports.outbox.release_parked(some, drop=False)

    await asyncio.gather(*(act(number) for number in range(10)))
    parked = [row.position for row in await on.ports.outbox.list_parked(limit=100)]
    await on.ports.outbox.release_parked(parked, drop=False)
    assert await on.waiting() == positions


async def test_a_bus_that_has_a_parked_row_does_not_let_go_what_it_holds(on: Events) -> None:
    """Of two relays one published a row that the other parked: it stays until someone releases it and what it holds."""
    first, second = await on.emit("a", "a")
    await on.park(first)
    await on.hold(second)
    await on.ports.outbox.mark_published([first])
    assert await on.state() == (0, 1, 1)
    await on.ports.outbox.release_parked([first], drop=True)
    assert await on.waiting() == [second]


async def test_a_term_of_another_role_does_not_stand_in_for_the_relays(on: Events) -> None:
    """The relay's term is over; that its session leads the engine in a term of the same number does not help it."""
    first, second = await on.emit("a", "a")
    await on.park(first)
    assert await on.stores.sessions.lead(on.term.session, lease=LEASE) == LeaderTerm(on.term.session, on.term.term)
    await on.stores.sessions.resign(on.term)
    for refused in (on.park, on.hold):
        with pytest.raises(TermOverError):
            await refused(second)
    assert await on.ports.outbox.prune_events(older_than=timedelta(), limit=10, term=on.term) == 0
    assert await on.state() == (1, 0, 1)


LOAD = """WITH made AS (
    INSERT INTO "{schema}".events (id, occurred_at, schema_version, retries, type, aggregate_type, aggregate_id,
      correlation_id, payload)
    SELECT gen_random_uuid(), now(), 1, 0, 'A.B.C', 'B', (n % 2000)::text, (n % 5000)::text, '1'
    FROM generate_series(1, 20000) AS n RETURNING id)
  INSERT INTO "{schema}".event_outbox (event_id, created_at, raw, state, topic, key)
  SELECT id, now(), false, 'waiting', 't', md5(id::text) FROM made"""
TABLES = "events", "event_outbox", "event_inbox"
#: What each statement may use to reach the tables of events.
PLANS = {
    "waiting_events": {"event_outbox_waiting", "events_pkey"},
    "mark_published": {"event_outbox_pkey"},
    "park_events": {"event_outbox_pkey"},
    "hold_events": {"event_outbox_pkey", "event_outbox_parked"},
    "lock_parked": {"event_outbox_pkey", "event_outbox_parked"},
    "free_held": {"event_outbox_pkey", "event_outbox_parked", "event_outbox_held"},
    "list_parked": {"event_outbox_parked", "event_outbox_held", "events_pkey"},
    "outbox_stats": {"event_outbox_waiting", "event_outbox_held", "event_outbox_parked"},
    "list_events": {"events_pkey", "events_position_key"},
    "events_of_correlation": {"events_correlation", "events_pkey"},
    "events_of_aggregate": {"events_aggregate", "events_pkey"},
    "prune_events": {"events_age", "events_pkey", "event_outbox_event"},
}


async def test_statements_of_the_outbox_keep_to_their_indexes() -> None:
    """Made on empty tables or on full ones, no plan scans a table, walks a whole key or takes another index."""
    async with database(fresh=True, pinned=True) as opened:
        raw = await opened.connect()
        for scene in ("empty", "loaded", "analysed"):
            if scene == "loaded":
                await raw.execute(LOAD.format(schema=opened.schema))
            if scene == "analysed":
                await raw.execute(f'ANALYZE "{opened.schema}".events, "{opened.schema}".event_outbox')
            for name, allowed in PLANS.items():
                text = await plan(opened, name, raw)
                assert used(text) <= allowed, f"{name}, {scene}\n{text}"
                assert not any(f"Seq Scan on {table}" in text for table in TABLES), f"{name}, {scene}\n{text}"
                assert not re.search(r"_pkey on .*\n(?!.*Index Cond)", text), f"{name}, {scene}\n{text}"
        await raw.close()


@pytest.mark.parametrize("kind", list(OPENERS))
async def test_events_leave_iff_the_callers_transaction_commits(on: Events, kind: str) -> None:
    """On each kind of connection: nobody sees the rows before the commit, and after a rollback there are none."""
    assert on.stores.foreign is not None
    message = Message("sack.dlt", "a", b"\0\xff", (("dlt-error", "no"),))
    given = [event(correlation_id="c"), Outgoing("sack.dlt", "a", message=message), event("b")]
    for number, expected in ((2, 0), (1, 3)):
        async with OPENERS[kind]() as opened:
            await on.stores.foreign.insert_events_on(opened[0], given)
            assert await on.state() == (0, 0, 0)
            await end(opened[number])
        assert (await on.state())[0] == expected
    rows = await on.ports.outbox.waiting_events(limit=10)
    assert [row.outgoing.message for row in rows] == [None, message, None]
    assert [row.outgoing.event and row.outgoing.event.payload for row in rows] == [{"kilos": 25}, None, {"kilos": 25}]


async def test_a_connection_of_another_kind_takes_no_events(on: Events) -> None:
    """The error says which kinds there are."""
    assert on.stores.foreign is not None
    with pytest.raises(InvalidInputError, match="connection must be a connection of asyncpg"):
        await on.stores.foreign.insert_events_on(object(), [event()])


async def test_an_id_of_an_event_must_be_a_uuid(on: Events) -> None:
    """An event with another id is refused, and nothing is stored."""
    with pytest.raises(InvalidInputError, match="event id must be a UUID"):
        await on.ports.outbox.insert_events([event("a"), event("b", id="e-1")])
    assert await on.state() == (0, 0, 0)


async def test_rows_beyond_one_statement_are_stored_all_and_in_order(
    on: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounded by rows or by bytes, several statements of one transaction do it; an id given twice is there once."""
    given = [event(str(number), payload="x" * 100) for number in range(25)]
    for name, most in (("ROWS_PER_STATEMENT", 10), ("BYTES_PER_STATEMENT", 500)):
        monkeypatch.setattr(event_rows, name, most)
        given.append(event(name))
        await on.ports.outbox.insert_events([*given, *given])
    rows = await on.ports.outbox.waiting_events(limit=100)
    assert [row.outgoing.key for row in rows] == [row.key for row in given]


async def test_texts_of_others_that_no_database_holds_are_stored_as_they_can_be(on: Events) -> None:
    """A dead letter whose key has a NUL and half a character, longer than an index entry, is parked and held."""
    key = "\0\ud800" + "k" * 10_000
    await on.ports.outbox.insert_events([Outgoing("t", key, message=Message("t", key, None)) for _ in range(2)])
    first, second = await on.waiting()
    await on.park(first)
    assert await on.hold(second) == [second]
    [parked] = await on.ports.outbox.list_parked(limit=10)
    assert (parked.key[:2], parked.event_id, parked.held) == ("\ufffd?", None, 1)


async def test_events_leave_with_the_success_of_their_job_only(on: Events) -> None:
    """Of jobs that end together those that succeeded under their fence emit; sent again, nothing changes."""
    session = await register(on.stores)
    await enqueue(on.stores, 4)
    good, bad, lost, back = await claim(on.stores, session)
    ends = [
        replace(done([good])[0], events=(event("good"), event("good"))),
        replace(done([bad], JobState.FAILED)[0], events=(event("bad"),)),
        Completion(lost.id, lost.attempt + 1, JobState.SUCCEEDED, events=(event("lost"),)),
        Completion(back.id, back.attempt, JobState.READY, events=(event("back"),)),
    ]
    assert set(await on.stores.jobs.complete_jobs(session, ends)) == {good.id, bad.id, back.id}
    assert await on.stores.jobs.complete_jobs(session, ends) == []
    rows = await on.ports.outbox.waiting_events(limit=10)
    assert [row.outgoing.key for row in rows] == ["good", "good"]


async def test_events_leave_with_an_exchange(on: Events) -> None:
    """Completing and claiming in one step emits as well, and claims."""
    session = await register(on.stores)
    await enqueue(on.stores, 2)
    [job] = await claim(on.stores, session, 1)
    ending = replace(done([job])[0], events=(event("a"),))
    ended, claimed = await on.stores.jobs.exchange_jobs(session, [ending], Claim(session, "default", 1))
    assert (ended, len(claimed), await on.state()) == ([job.id], 1, (1, 0, 0))


async def test_a_job_that_had_ended_before_emits_nothing_again(on: Events) -> None:
    """A late duplicate of an insert runs the job again: its end is dropped with its events, another's is kept."""
    session = await register(on.stores)
    _, again = await run_again(on.stores, session)
    [other] = await enqueue_and_claim(on, session)
    ends = [replace(completion, events=(event(str(completion.job_id)),)) for completion in done([again])]
    ends.append(Completion(other, 1, JobState.SUCCEEDED, events=(event("other"),)))
    assert set(await on.stores.jobs.complete_jobs(session, ends)) == {again.id, other}
    rows = await on.ports.outbox.waiting_events(limit=10)
    assert [row.outgoing.key for row in rows] == ["other"]


async def enqueue_and_claim(on: Events, session: UUID) -> list[UUID]:
    """Return a job that runs under a session."""
    await enqueue(on.stores, 1)
    return [job.id for job in await claim(on.stores, session, 1)]


async def test_workers_of_the_release_before_lead_on_this_schema(on: Events) -> None:
    """Their statement names no role: it takes the engine's row, whoever takes it next goes on with its term."""
    former = f"""INSERT INTO "{on.schema}".leader AS l (session, term, expires_at)
      VALUES ($1, 1, now() - interval '1 second')
      ON CONFLICT (one) DO UPDATE SET session = excluded.session, term = l.term + 1 RETURNING l.term"""
    async with connection() as opened:
        assert [await opened.fetchval(former, on.term.session) for _ in range(2)] == [1, 2]
    term = await on.stores.sessions.lead(on.term.session, lease=LEASE)
    assert term == LeaderTerm(on.term.session, 3)
