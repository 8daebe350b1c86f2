"""Inbox: a consumer handles a message once, and its whole effect is stored with that note or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from headrace.model.errors import ConfigError, ConflictError, InvalidInputError
from headrace.model.inbox import Effect
from headrace.model.job import JobState, NewJob, Park
from tests.backends import server
from tests.conformance.events import Events, raw, row
from tests.conformance.scenario import ALL, ARGS, DAY, SECOND, SPEC, Scenario
from tests.waiting import wait_until

KEPT = timedelta(days=7)


def job(**facts: Any) -> NewJob:
    """Return a job to insert."""
    return NewJob(replace(SPEC, **facts.pop("spec", {})), ARGS, **facts)


async def test_the_effect_is_stored_with_the_note(on: Scenario, events: Events) -> None:
    """Jobs, events and messages, and signals; and the message is handled by this consumer."""
    new, out, letter = job(), row({"answer": 42}), raw(b"dead")
    assert not await events.inbox.handled("agent", "m-1")
    assert await events.inbox.accept("agent", "m-1", Effect([new], [out, letter], [("k", '{"ok": true}')]))

    assert await events.inbox.handled("agent", "m-1")
    assert [view.id for view in await on.stores.inspect.list_jobs(limit=ALL)] == [new.id]
    assert await events.waiting() == [{"answer": 42}, b"dead"]
    assert json.loads(await on.stores.signals.read_signal("k") or "") == {"ok": True}


async def test_a_message_is_handled_once_by_each_consumer(events: Events) -> None:
    """Again it stores nothing, whatever the effect; another consumer and another message have effects of their own."""
    effects = [("a", "1"), ("a", "1"), ("b", "1"), ("a", "2"), ("b", "1")]
    answers = [
        await events.inbox.accept(consumer, message, Effect(events=[row(number)]))
        for number, (consumer, message) in enumerate(effects)
    ]

    assert answers == [True, False, True, True, False]
    assert await events.waiting() == [0, 2, 3]
    assert not await events.inbox.handled("b", "2")


async def test_an_effect_may_be_empty(events: Events) -> None:
    """Nothing came of the message, and it is handled."""
    assert await events.inbox.accept("agent", "m-1", Effect())

    assert await events.inbox.handled("agent", "m-1")


async def test_of_the_same_message_at_once_one_takes_effect(on: Scenario, events: Events) -> None:
    """The others are told that it was handled."""
    effects = [Effect([job()], [row(number)], [("k", str(number))]) for number in range(8)]
    answers = await asyncio.gather(*(events.inbox.accept("agent", "m-1", effect) for effect in effects))

    assert answers.count(True) == 1
    winner = answers.index(True)
    assert await events.waiting() == [winner]
    assert await on.stores.signals.read_signal("k") == str(winner)
    assert [view.id for view in await on.stores.inspect.list_jobs(limit=ALL)] == [effects[winner].jobs[0].id]


async def test_different_messages_at_once_all_take_effect(on: Scenario, events: Events) -> None:
    """Also where they send the same signals in another order."""
    keys = ["k1", "k2", "k3"]
    effects = [
        Effect([job()], [row(number)], [(key, str(number)) for key in (keys if number % 2 else keys[::-1])])
        for number in range(8)
    ]
    answers = await asyncio.gather(*(events.inbox.accept("a", f"m-{n}", one) for n, one in enumerate(effects)))

    assert all(answers)
    assert sorted(await events.waiting()) == list(range(8))
    assert len(await on.stores.inspect.list_jobs(limit=ALL)) == 8


@pytest.mark.parametrize(("first", "second"), [("x" * 5_000 + "1", "x" * 5_000 + "2"), ("a\0b", "ab"), ("\ud800", "?")])
async def test_ids_of_others_may_be_odd(events: Events, first: str, second: str) -> None:
    """However long, and with characters that a database does not hold: no two of them are taken for one."""
    assert await events.inbox.accept("agent", first, Effect())

    assert await events.inbox.handled("agent", first)
    assert not await events.inbox.handled("agent", second)
    assert await events.inbox.accept("agent", second, Effect())
    assert not await events.inbox.accept("agent", first, Effect())


async def test_messages_that_are_handled_together_have_one_effect(on: Scenario, events: Events) -> None:
    """It is stored with the notes of all of them, and each is handled."""
    ids, new = ["m-2", "m-1", "a\0b", "x" * 5_000], job()
    assert await events.inbox.handled_among("agent", ids) == frozenset()
    assert await events.inbox.accept_batch("agent", ids, Effect([new], [row(1)], [("k", "1")])) == frozenset()

    assert await events.inbox.handled_among("agent", [*ids, "m-3"]) == frozenset(ids)
    assert [await events.inbox.handled("agent", one) for one in ids] == [True] * 4
    assert await events.inbox.handled_among("other", ids) == frozenset()
    assert [view.id for view in await on.stores.inspect.list_jobs(limit=ALL)] == [new.id]
    assert await events.waiting() == [1]
    assert await on.stores.signals.read_signal("k") == "1"


async def test_one_that_was_handled_before_keeps_all_from_being_stored(on: Scenario, events: Events) -> None:
    """It is told which, neither the effect nor a note is stored, and the rest is accepted then."""
    odd = "a\0b"
    for known in ("m-2", odd):
        assert await events.inbox.accept("agent", known, Effect())
    effect = Effect([job()], [row(1)], [("k", "1")])

    assert await events.inbox.accept_batch("agent", ["m-1", "m-2", odd, "m-3"], effect) == {"m-2", odd}
    assert await events.inbox.handled_among("agent", ["m-1", "m-2", "m-3"]) == {"m-2"}
    assert (await events.waiting(), await on.stores.signals.read_signal("k")) == ([], None)
    assert await on.stores.inspect.list_jobs(limit=ALL) == []
    assert await events.inbox.accept_batch("agent", ["m-1", "m-3"], effect) == frozenset()
    assert await events.waiting() == [1]


async def test_of_overlapping_batches_at_once_each_message_takes_effect_once(events: Events) -> None:
    """Also where they name the same messages in another order: one waits for the other, and is told."""
    ids = [f"m-{number}" for number in range(20)]
    batches = [ids[::-1] if number % 2 else ids for number in range(8)]
    answers = await asyncio.gather(
        *(events.inbox.accept_batch("a", one, Effect(events=[row(number)])) for number, one in enumerate(batches))
    )

    assert answers.count(frozenset()) == 1
    assert {answer for answer in answers if answer} == {frozenset(ids)}
    assert await events.waiting() == [answers.index(frozenset())]


async def test_a_batch_whose_effect_is_refused_leaves_nothing(on: Scenario, events: Events) -> None:
    """No note of any of its messages."""
    await on.stores.jobs.insert_jobs([job(key="k", body_hash="b")])
    with pytest.raises(ConflictError):
        await events.inbox.accept_batch("agent", ["m-1", "m-2"], Effect([job(key="k", body_hash="other")], [row(1)]))

    assert await events.inbox.handled_among("agent", ["m-1", "m-2"]) == frozenset()
    assert await events.waiting() == []


async def test_jobs_are_inserted_as_ever(on: Scenario, events: Events) -> None:
    """A known key inserts nothing and is no error."""
    first, again = job(key="k", body_hash="b"), job(key="k", body_hash="b")
    await on.stores.jobs.insert_jobs([first])

    assert await events.inbox.accept("agent", "m-1", Effect([again], [row(1)]))
    assert [view.id for view in await on.stores.inspect.list_jobs(limit=ALL)] == [first.id]
    assert await events.waiting() == [1]


async def test_an_effect_that_is_refused_leaves_nothing(on: Scenario, events: Events) -> None:
    """A key that stands for something else, an event that cannot be stored: no part of it, and no note."""
    await on.stores.jobs.insert_jobs([job(key="k", body_hash="b")])
    conflict = Effect([job(), job(key="k", body_hash="other")], [row(1)], [("s", "1")])
    with pytest.raises(ConflictError):
        await events.inbox.accept("agent", "m-1", conflict)
    with pytest.raises(InvalidInputError):
        await events.inbox.accept("agent", "m-1", Effect([job()], [row(1), row(2, id="none of ours")], [("s", "1")]))

    assert not await events.inbox.handled("agent", "m-1")
    assert (await events.waiting(), await events.logged()) == ([], [])
    assert len(await on.stores.inspect.list_jobs(limit=ALL)) == 1
    assert await on.stores.signals.read_signal("s") is None
    assert await events.inbox.accept("agent", "m-1", Effect(events=[row(3)]))
    assert await events.waiting() == [3]


async def test_signals_are_sent_as_ever(on: Scenario, events: Events) -> None:
    """The first one of a key stands, and who waits for it is woken."""
    await on.stores.signals.send_signal("old", "1")
    session, parked = await on.start()
    await on.end(session, parked, state=JobState.PARKED, park=Park("new"))
    await events.inbox.accept("agent", "m-1", Effect(signals=[("old", "2"), ("new", "3"), ("new", "4")]))

    assert [await on.stores.signals.read_signal(key) for key in ("old", "new")] == ["1", "3"]
    assert [again.id for again in await on.claim(session)] == [parked.id]


async def test_hints_follow(on: Scenario, events: Events) -> None:
    """To the queues of new jobs and of those that a signal wakes, and to the relay."""
    session, parked = await on.start(queue="slow")
    await on.end(session, parked, state=JobState.PARKED, park=Park("k"))
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    await events.inbox.accept("agent", "m-1", Effect([job(spec={"queue": "mail"})], [row()], [("k", "1")]))

    await wait_until(lambda: {"queue:mail", "queue:slow", "events"} <= set(heard))


async def test_notes_are_removed_after_their_time(on: Scenario, events: Events) -> None:
    """Then the message would be handled again; younger notes stay."""
    await events.inbox.accept("agent", "old", Effect())
    on.clock.advance(KEPT - SECOND)
    assert await events.inbox.prune_inbox(older_than=KEPT, limit=ALL) == 0
    await events.inbox.accept("agent", "young", Effect())
    on.clock.advance(2 * SECOND)

    assert await events.inbox.prune_inbox(older_than=KEPT, limit=ALL) == 1
    assert not await events.inbox.handled("agent", "old")
    assert await events.inbox.accept("agent", "old", Effect())
    assert not await events.inbox.accept("agent", "young", Effect())


async def test_removing_stops_at_its_limit_and_needs_the_term(on: Scenario, events: Events) -> None:
    """Under a term that is over nothing goes; the next calls go on."""
    for number in range(5):
        await events.inbox.accept("agent", f"m-{number}", Effect())
    on.clock.advance(KEPT + DAY)
    term = await on.term()

    assert await events.inbox.prune_inbox(older_than=KEPT, limit=2, term=replace(term, session=uuid4())) == 0
    assert [await events.inbox.prune_inbox(older_than=KEPT, limit=2, term=term) for _ in range(4)] == [2, 2, 1, 0]


@pytest.fixture
async def table(events: Events) -> AsyncIterator[str]:
    """Return a table of the user's own, where effects can write."""
    if not events.inbox.writes:
        pytest.skip("this store has no connection that a user could write on")
    name = f"users_{uuid4().hex[:12]}"
    connection = await asyncpg.connect(server.shared_server().dsn)
    await connection.execute(f"CREATE TABLE {name} (number int PRIMARY KEY)")
    yield name
    await connection.execute(f"DROP TABLE {name}")
    await connection.close()


async def numbers(table: str) -> list[int]:
    """Return what is in the user's table."""
    connection = await asyncpg.connect(server.shared_server().dsn)
    found = [row["number"] for row in await connection.fetch(f"SELECT number FROM {table} ORDER BY number")]
    await connection.close()
    return found


class Writes:
    """Writes numbers into the user's table, and then raises what it was given."""

    def __init__(self, table: str, number: int, error: Exception | None = None) -> None:
        self.table, self.number, self.error, self.calls = table, number, error, 0

    async def __call__(self, connection: Any) -> None:
        """Write within the transaction."""
        self.calls += 1
        await connection.execute(f"INSERT INTO {self.table} VALUES ($1)", self.number)
        if self.error is not None:
            raise self.error


async def test_writes_commit_with_the_note(events: Events, table: str) -> None:
    """In their order, once; a message that was handled is not written again."""
    again = Writes(table, 3)
    assert await events.inbox.accept(
        "agent", "m-1", Effect(events=[row(1)], writes=[Writes(table, 1), Writes(table, 2)])
    )
    assert not await events.inbox.accept("agent", "m-1", Effect(writes=[again]))

    assert (await numbers(table), again.calls) == ([1, 2], 0)


async def test_what_a_write_adds_is_stored_with_it(on: Scenario, events: Events, table: str) -> None:
    """Jobs for what it found, say; after a failure nothing of it is left in the effect, and it is added anew."""
    failing = Adds(table, 1, fails=True)
    effect = Effect([job()], [row(1)], writes=[failing])
    failing.effect = effect
    with pytest.raises(OwnError):
        await events.inbox.accept("agent", "m-1", effect)
    assert (len(effect.jobs), len(effect.events), effect.signals) == (1, 1, [])
    failing.fails = False
    assert await events.inbox.accept_batch("agent", ["m-1"], effect) == frozenset()

    assert len(await on.stores.inspect.list_jobs(limit=ALL)) == 2
    assert await events.waiting() == [1, "added"]
    assert await on.stores.signals.read_signal("added") == "1"


class Adds:
    """Writes a number, and adds to its own effect."""

    def __init__(self, table: str, number: int, *, fails: bool) -> None:
        self.table, self.number, self.fails, self.effect = table, number, fails, Effect()

    async def __call__(self, connection: Any) -> None:
        """Write within the transaction."""
        await connection.execute(f"INSERT INTO {self.table} VALUES ($1)", self.number)
        self.effect.jobs.append(job())
        self.effect.events.append(row("added"))
        self.effect.signals.append(("added", "1"))
        if self.fails:
            raise OwnError("mine")


async def test_writes_commit_with_the_notes_of_all(on: Scenario, events: Events, table: str) -> None:
    """Once, and what one raises leaves nothing."""
    failing = Writes(table, 2, OwnError("mine"))
    with pytest.raises(OwnError):
        await events.inbox.accept_batch("agent", ["m-1", "m-2"], Effect(writes=[Writes(table, 1), failing]))
    assert (await numbers(table), await events.inbox.handled_among("agent", ["m-1", "m-2"])) == ([], frozenset())
    assert await events.inbox.accept_batch("agent", ["m-1", "m-2"], Effect(writes=[Writes(table, 1)])) == frozenset()
    assert await numbers(table) == [1]


class OwnError(Exception):
    """What a user's code raises."""


@pytest.mark.parametrize("error", [OwnError("mine"), OSError("mine"), TimeoutError("mine")])
async def test_what_a_write_raises_passes_through(on: Scenario, events: Events, table: str, error: Exception) -> None:
    """As it is, and nothing is stored: not the note, not what was written before it, and nothing of ours."""
    effect = Effect([job()], [row(1)], [("k", "1")], [Writes(table, 1), Writes(table, 2, error)])
    with pytest.raises(type(error)) as raised:
        await events.inbox.accept("agent", "m-1", effect)

    assert raised.value is error
    assert not await events.inbox.handled("agent", "m-1")
    assert (await events.waiting(), await numbers(table), await on.stores.signals.read_signal("k")) == ([], [], None)
    assert await on.stores.inspect.list_jobs(limit=ALL) == []


async def test_the_databases_own_errors_in_writes_pass_through_too(events: Events, table: str) -> None:
    """Such as a row that is there already."""
    with pytest.raises(asyncpg.UniqueViolationError):
        await events.inbox.accept("agent", "m-1", Effect(writes=[Writes(table, 1), Writes(table, 1)]))

    assert (await numbers(table), await events.inbox.handled("agent", "m-1")) == ([], False)


async def test_a_store_without_a_connection_refuses_writes(events: Events) -> None:
    """They are never left out in silence."""
    if events.inbox.writes:
        pytest.skip("this store can write")

    with pytest.raises(ConfigError, match="PostgreSQL"):
        await events.inbox.accept("agent", "m-1", Effect([job()], [row(1)], writes=[Writes("t", 1)]))
    assert (await events.waiting(), await events.inbox.handled("agent", "m-1")) == ([], False)
