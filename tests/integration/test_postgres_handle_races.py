"""Races on resume handles: a handle and its events never miss each other, and of all ends there is one."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta

import pytest

from headrace.model.errors import ConflictError, HandleExpiredError
from headrace.model.event import Event
from headrace.model.job import JobState, Park
from headrace.model.resume_handle import HandleState, HandleView, NewHandle, NotedEvent, signal_key
from headrace.ports.handle_store import HandleStore
from headrace.ports.stores import Stores
from tests.integration.postgres_setup import claim, connection, done, enqueue, register, schema_stores, statements
from tests.integration.test_postgres_lock_order import deadlocks
from tests.integration.test_postgres_races import lock_waits

DONE, ASKED = "A.B.Done", "A.B.Asked"
MINUTE, NEVER = timedelta(minutes=1), timedelta(days=1)
HOLD_HANDLE = 'SELECT FROM "{schema}".flow_resume_handles FOR UPDATE'
HOLD_ONE = 'SELECT FROM "{schema}".flow_resume_handles WHERE correlation_id = $1 FOR UPDATE'


def new(correlation_id: str, count: int = 1, *, timeout: timedelta = NEVER, target: str = "") -> NewHandle:
    """Return a handle, whose token is its correlation id."""
    return NewHandle(correlation_id, (DONE,), count, timeout, (ASKED,), token_hash=correlation_id, target=target)


def result(correlation_id: str, number: int) -> NotedEvent:
    """Return a result that a request caused."""
    return NotedEvent(
        Event(DONE, "B", "b", number, correlation_id, f"r{correlation_id}{number}", id=f"{correlation_id}{number}")
    )


def dead(correlation_id: str, number: int) -> NotedEvent:
    """Return the dead letter of a request."""
    return NotedEvent(
        Event(ASKED, "B", "b", None, correlation_id, id=f"r{correlation_id}{number}"), dead=True, agent="x"
    )


async def signal(stores: Stores, correlation_id: str) -> str | None:
    """Return the state that the signal of a handle tells."""
    text = await stores.signals.read_signal(signal_key(correlation_id))
    return None if text is None else str(json.loads(text)["state"])


async def test_handles_and_events_at_once_never_miss_each_other() -> None:
    """Fifty handles with three events and dead letters each, in any order, some twice: all are resolved."""
    before = deadlocks()
    async with schema_stores(max_pool_size=20) as (_, stores):
        assert stores.events is not None
        handles, names = stores.events.handles, [f"c{number}" for number in range(50)]
        calls: list[Awaitable[HandleView | None]] = []
        for name in names:
            calls += [handles.register_handle(new(name, 4)) for _ in range(2)]
            calls += [handles.note_event(result(name, number)) for number in (0, 1, 2, 0)]
            # The first died of one agent, and was answered all the same; the fourth was not.
            calls += [handles.note_event(dead(name, number)) for number in (0, 3)]
        random.Random(7).shuffle(calls)
        await asyncio.gather(*calls)
        views = [await handles.get_handle(name) for name in names]
        told = Counter([await signal(stores, name) for name in names])
        kept = [len(await handles.noted_events(name)) for name in names]
    assert Counter(view and (view.state, view.arrived) for view in views) == {(HandleState.RESOLVED, 4): 50}
    assert told == {"resolved": 50}
    assert set(kept) <= {4, 5}
    assert deadlocks() == before


async def test_what_comes_with_each_event_is_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody waits for it: a handle, its events, and its end with the signal, without a transaction of several."""
    async with schema_stores() as (_, stores):
        assert stores.events is not None
        handles, sent = stores.events.handles, statements(monkeypatch)
        await handles.note_event(result("c", 0))
        await handles.register_handle(new("c", 2))
        await handles.note_event(result("c", 1))
        assert sent == ["note_event", "register_handle", "note_event"]
        assert await signal(stores, "c") == "resolved"


@pytest.mark.parametrize("handle_first", [True, False])
async def test_a_handle_and_its_event_that_wait_for_one_another(*, handle_first: bool) -> None:
    """Both stand before the same row, held by another: whoever passes first, the other one sees it."""
    async with schema_stores() as (schema, stores), connection() as other:
        assert stores.events is not None
        handles = stores.events.handles
        await handles.note_event(result("c", 0))
        transaction = other.transaction()
        await transaction.start()
        await other.execute(HOLD_HANDLE.format(schema=schema))
        calls: list[Awaitable[HandleView | None]] = [
            handles.register_handle(new("c", 2)),
            handles.note_event(result("c", 1)),
        ]
        tasks = []
        for number, call in enumerate(calls if handle_first else calls[::-1], 1):
            tasks.append(asyncio.ensure_future(call))
            await lock_waits(schema, number)
        await transaction.commit()
        await asyncio.gather(*tasks)

        view = await handles.get_handle("c")
        assert view is not None
        assert (view.state, view.arrived) == (HandleState.RESOLVED, 2)
        assert await signal(stores, "c") == "resolved"


async def test_of_all_ends_there_is_one() -> None:
    """Result, time, cancel and token of forty handles at once: one state, told by signal, answer and list alike."""
    before, names = deadlocks(), [f"c{number}" for number in range(40)]
    async with schema_stores(max_pool_size=20) as (_, stores):
        assert stores.events is not None
        handles, chance = stores.events.handles, random.Random(3)
        for name in names:
            await handles.register_handle(new(name, timeout=timedelta(), target="prefect:1"))
        calls = [call for name in names for call in ends(handles, name)]
        chance.shuffle(calls)
        calls[20:20] = [handles.expire_handles(limit=4) for _ in range(4)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        views = [await handles.get_handle(name) for name in names]
        told = [await signal(stores, name) for name in names]
        wakes = await asyncio.gather(*(handles.due_wakes(limit=9, again_in=MINUTE) for _ in range(8)))
    assert told == [view and view.state for view in views]
    assert None not in told
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    assert [error for error in errors if not isinstance(error, ConflictError | HandleExpiredError)] == []
    assert len(errors) == len(names) - sum(view is not None and view.payload is not None for view in views)
    woken = [view.correlation_id for views in wakes for view in views]
    assert len(woken) == len(set(woken))
    assert deadlocks() == before


def ends(handles: HandleStore, name: str) -> list[Awaitable[object]]:
    """Return one call of each way that ends a handle, but for its time."""
    return [handles.note_event(result(name, 0)), handles.cancel_handle(name), handles.resolve_by_token(name, "1")]


async def test_targets_that_another_process_wakes_are_passed_over() -> None:
    """A row that an open transaction holds keeps nobody waiting: the others are woken meanwhile, that one later."""
    async with schema_stores() as (schema, stores), connection() as other:
        assert stores.events is not None
        handles = stores.events.handles
        for name in ("a", "b"):
            await handles.register_handle(new(name, target=f"prefect:{name}"))
            await handles.cancel_handle(name)
        transaction = other.transaction()
        await transaction.start()
        await other.execute(HOLD_ONE.format(schema=schema), "a")
        async with asyncio.timeout(20):
            free = await handles.due_wakes(limit=9, again_in=MINUTE)
        await transaction.rollback()
        held = await handles.due_wakes(limit=9, again_in=MINUTE)
    assert [[view.correlation_id for view in views] for views in (free, held)] == [["b"], ["a"]]


async def test_jobs_that_park_while_their_handles_end_all_go_on() -> None:
    """Thirty jobs park on the signals of handles whose results, or time, come at that moment: none stays parked."""
    before, count = deadlocks(), 30
    async with schema_stores(max_pool_size=20) as (_, stores):
        assert stores.events is not None
        handles, session = stores.events.handles, await register(stores)
        await enqueue(stores, count)
        jobs = await claim(stores, session, count)
        names = [f"c{number}" for number in range(count)]
        for number, name in enumerate(names):
            await handles.register_handle(new(name, timeout=timedelta() if number % 2 else NEVER))
        calls: list[Awaitable[object]] = [
            stores.jobs.complete_jobs(session, [replace(ending, park=Park(signal_key(name)))])
            for ending, name in zip(done(jobs, JobState.PARKED), names, strict=True)
        ]
        calls += [handles.note_event(result(name, 0)) for name in names[::2]]
        calls += [handles.expire_handles(limit=6) for _ in range(3)]
        random.Random(5).shuffle(calls)
        await asyncio.gather(*calls)
        # An expiry passes over what others hold at that moment.
        while await handles.expire_handles(limit=count):
            pass
        again = await claim(stores, session, count)
    assert sorted(job.id for job in again) == sorted(job.id for job in jobs)
    assert deadlocks() == before
