"""The inbox on PostgreSQL: effects with the user's own writes, all or nothing, and races of two who accept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import asyncpg
import pytest

from headrace.model.errors import ConflictError, InvalidInputError
from headrace.model.inbox import Effect, Write
from headrace.model.job import NewJob
from tests.integration.event_setup import Events, event, events_on
from tests.integration.postgres_setup import ARGS, SPEC, connection, statements
from tests.integration.test_postgres_races import lock_waits


@pytest.fixture
async def on() -> AsyncIterator[Events]:
    """Open stores, with a table of the user's beside them."""
    async with events_on() as opened:
        async with connection() as raw:
            await raw.execute(f'CREATE TABLE IF NOT EXISTS "{opened.schema}".sacks (name text PRIMARY KEY)')
        yield opened
        async with connection() as raw:
            await raw.execute(f'DROP TABLE "{opened.schema}".sacks')


def sack(on: Events, name: str) -> Write:
    """Return a write of a row of the user's."""

    async def write(connection: Any) -> None:
        await connection.execute(f'INSERT INTO "{on.schema}".sacks VALUES ($1)', name)

    return write


async def sacks(on: Events) -> list[str]:
    """Return the user's rows."""
    async with connection() as raw:
        return [row["name"] for row in await raw.fetch(f'SELECT name FROM "{on.schema}".sacks ORDER BY name')]


def whole(on: Events, *writes: Write) -> Effect:
    """Return an effect with something of each kind."""
    return Effect([NewJob(SPEC, ARGS)], [event()], [("sack", "1")], [sack(on, "first"), *writes])


async def expect_nothing(on: Events, effect: Effect) -> None:
    """Nothing of an effect is stored."""
    assert await sacks(on) == []
    assert await on.waiting() == []
    assert await on.stores.signals.read_signal("sack") is None
    assert await on.stores.inspect.known_jobs([job.id for job in effect.jobs]) == frozenset()
    assert not await on.ports.inbox.handled("filler", "1")


async def test_writes_of_the_user_commit_with_the_note(on: Events) -> None:
    """Each is called in its order with a connection of the transaction; the second time nothing is."""
    effect = whole(on, sack(on, "second"))
    assert on.ports.inbox.writes
    assert await on.ports.inbox.accept("filler", "1", effect)
    assert not await on.ports.inbox.accept("filler", "1", effect)
    assert await sacks(on) == ["first", "second"]
    assert await on.state() == (1, 0, 0)
    assert await on.stores.signals.read_signal("sack") == "1"


@pytest.mark.parametrize("fault", [ValueError("mine"), TimeoutError("mine"), ConflictError("mine"), KeyError("mine")])
async def test_what_a_write_raises_passes_unchanged_and_undoes_all(on: Events, fault: Exception) -> None:
    """Whatever kind it is, also one that the driver has, it is the very same; the next try finds nothing done."""

    async def write(_: Any) -> None:
        raise fault

    effect = whole(on, write)
    with pytest.raises(type(fault)) as caught:
        await on.ports.inbox.accept("filler", "1", effect)
    assert caught.value is fault
    await expect_nothing(on, effect)
    assert await on.ports.inbox.accept("filler", "1", whole(on))


async def test_what_the_database_refuses_a_write_passes_as_the_driver_has_it(on: Events) -> None:
    """A row that is there already is the user's own matter."""
    effect = whole(on, sack(on, "first"))
    with pytest.raises(asyncpg.UniqueViolationError):
        await on.ports.inbox.accept("filler", "1", effect)
    await expect_nothing(on, effect)


async def test_a_write_is_done_again_after_a_deadlock(on: Events) -> None:
    """The server undid all of it: the whole effect is done once more, and is there once."""
    calls: list[str] = []

    async def write(connection: Any) -> None:
        calls.append("called")
        if len(calls) == 1:
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        await connection.execute(f"INSERT INTO \"{on.schema}\".sacks VALUES ('second')")

    assert await on.ports.inbox.accept("filler", "1", whole(on, write))
    assert (len(calls), await sacks(on), await on.state()) == (2, ["first", "second"], (1, 0, 0))


async def _swallows(connection: Any) -> None:
    try:
        await connection.execute("SELECT 1 / 0")
    except asyncpg.DivisionByZeroError:
        return


async def _commits(connection: Any) -> None:
    await connection.execute("ROLLBACK")


@pytest.mark.parametrize(("write", "rule"), [(_swallows, "in a savepoint"), (_commits, "neither commit nor roll back")])
async def test_a_write_that_breaks_the_transaction_is_no_success(on: Events, write: Write, rule: str) -> None:
    """A transaction that was aborted or ended would commit nothing and look well: the error says what to do."""
    effect = whole(on, write)
    with pytest.raises(InvalidInputError, match=rule):
        await on.ports.inbox.accept("filler", "1", effect)
    await expect_nothing(on, effect)


async def test_a_savepoint_lets_a_write_go_on_after_an_error(on: Events) -> None:
    """What failed within it is undone alone."""

    async def write(connection: Any) -> None:
        with pytest.raises(asyncpg.UniqueViolationError):
            async with connection.transaction():
                await connection.execute(f"INSERT INTO \"{on.schema}\".sacks VALUES ('x'), ('first')")

    assert await on.ports.inbox.accept("filler", "1", whole(on, write))
    assert await sacks(on) == ["first"]


async def test_of_two_who_accept_at_once_the_later_waits_and_does_nothing(on: Events) -> None:
    """The second one finds the note of the first only when that has committed."""
    second: list[asyncio.Task[bool]] = []

    async def write(_: Any) -> None:
        second.append(asyncio.create_task(on.ports.inbox.accept("filler", "1", whole(on))))
        await lock_waits(on.schema)

    assert await on.ports.inbox.accept("filler", "1", whole(on, write))
    assert not await second[0]
    assert await on.state() == (1, 0, 0)


async def test_the_later_of_two_does_all_when_the_first_fails(on: Events) -> None:
    """It waited for a note that never was."""
    second: list[asyncio.Task[bool]] = []

    async def write(_: Any) -> None:
        second.append(asyncio.create_task(on.ports.inbox.accept("filler", "1", whole(on))))
        await lock_waits(on.schema)
        raise ValueError

    with pytest.raises(ValueError):
        await on.ports.inbox.accept("filler", "1", whole(on, write))
    assert await second[0]
    assert (await sacks(on), await on.state()) == (["first"], (1, 0, 0))


@pytest.mark.parametrize("commits", [True, False])
async def test_events_alone_wait_for_whoever_accepts_the_same(on: Events, *, commits: bool) -> None:
    """One statement, which stores its events where the first one failed, and none where it did not."""
    fault, alone = None if commits else ValueError("mine"), Effect(events=[event("b"), event("b")])
    second: list[asyncio.Task[bool]] = []

    async def write(_: Any) -> None:
        second.append(asyncio.create_task(on.ports.inbox.accept("filler", "1", alone)))
        await lock_waits(on.schema)
        if fault is not None:
            raise fault

    with pytest.raises(ValueError, match="mine") if fault else nullcontext():
        await on.ports.inbox.accept("filler", "1", whole(on, write))
    assert await second[0] is not commits
    assert await on.state() == (1 if commits else 2, 0, 0)


async def test_an_effect_of_events_alone_is_one_statement(on: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the round trips of a transaction; nothing, too."""
    sent = statements(monkeypatch)
    for effect in (Effect(events=[event("a")]), Effect()):
        await on.ports.inbox.accept("filler", str(len(sent)), effect)
    assert sent == ["accept_events", "note_handled"]


async def test_who_accepts_the_same_signals_in_another_order_deadlocks_with_nobody(on: Events) -> None:
    """Many effects with the same keys, forwards and backwards: all are accepted, each signal is the first one's."""
    keys = [(f"k{number}", str(number)) for number in range(8)]
    effects = [Effect(signals=keys if number % 2 else keys[::-1]) for number in range(12)]
    accepted = await asyncio.gather(
        *(on.ports.inbox.accept("filler", str(number), effect) for number, effect in enumerate(effects))
    )
    assert accepted == [True] * 12


@pytest.mark.parametrize("message_id", ["x" * 5_000, "\0", "\ud800", "é" * 600, ""])
async def test_ids_that_no_index_holds_are_known_again(on: Events, message_id: str) -> None:
    """Others make ids as they like: long ones, with NUL or half characters; each is told from its neighbour."""
    assert await on.ports.inbox.accept("filler", message_id, Effect())
    assert await on.ports.inbox.handled("filler", message_id)
    assert not await on.ports.inbox.accept("filler", message_id, Effect())
    assert not await on.ports.inbox.handled("filler", message_id + "1")
    assert not await on.ports.inbox.handled("other", message_id)
