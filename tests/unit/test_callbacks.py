"""The callback service and the loops beside it: what is noted, passed over, expired, woken and pruned."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from headrace.engine.events import callbacks
from headrace.engine.events.callbacks import Callbacks
from headrace.engine.loops.handle_sweeper import HandleSweeper
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.waking import WakeLoop
from headrace.engine.telemetry import Telemetry
from headrace.event_settings import EventSettings
from headrace.model.envelopes import encode
from headrace.model.envelopes.dead_letters import dead_letter
from headrace.model.errors import HeadraceError, StoreUnavailableError
from headrace.model.event import Event, Message, outgoing
from headrace.model.inbox import Effect
from headrace.model.resume_handle import HandleState, HandleView, NewHandle, NotedEvent
from headrace.ports.bus import Delivery
from headrace.ports.stores import EventStores, Stores
from headrace.ports.waker import Woken
from headrace.settings import Settings
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from headrace.wiring.pruning import prune_loops

ASKED, MADE, OTHER = "Shop.Order.Asked", "Shop.Order.Made", "Shop.Order.Seen"
HOUR = timedelta(hours=1)
TOPIC = "outbox.event.ShopOrder"


@pytest.fixture
def clock() -> FakeClock:
    """A clock that the test moves."""
    return FakeClock()


@pytest.fixture
def stores(clock: FakeClock) -> Stores:
    """Empty stores."""
    return open_memory_stores(clock)


@pytest.fixture
def events(stores: Stores) -> EventStores:
    """What they have for events."""
    assert stores.events is not None
    return stores.events


@pytest.fixture
def telemetry() -> Telemetry:
    """Counters."""
    return Telemetry()


class Shelf:
    """A cache that remembers everything, and how often it was asked."""

    def __init__(self) -> None:
        self.kept: dict[str, HandleView] = {}

    async def get(self, correlation_id: str) -> HandleView | None:
        """Return what was put."""
        return self.kept.get(correlation_id)

    async def put(self, handle: HandleView) -> None:
        """Keep it."""
        self.kept[handle.correlation_id] = handle

    async def close(self) -> None:
        """Nothing to end."""


def event(type_: str = MADE, correlation_id: str | None = "c-1", **facts: object) -> Event:
    """Return an event."""
    return replace(Event(type_, "ShopOrder", "o-1", correlation_id=correlation_id), **facts)  # type: ignore[arg-type]


def delivered(what: Event | Message) -> Delivery:
    """Return an event or a message as it is received."""
    message = encode(what, "headrace", "/test", TOPIC) if isinstance(what, Event) else what
    return Delivery(message, 0, 0)


def foreign(**changes: object) -> Delivery:
    """Return an event that others wrote, with what we would not write."""
    message = encode(event(), "headrace", "/test", TOPIC)
    return delivered(replace(message, value=json.dumps({**json.loads(message.value or b""), **changes}).encode()))


def dead(request: Event, agent: str = "packer") -> Delivery:
    """Return the dead letter of a request as it is received."""
    letter = dead_letter(
        delivered(request).message, partition=0, offset=0, agent=agent, kind="ValueError", error="no", attempts=3,
        suffix=".dlt",
    )  # fmt: skip
    assert letter.message is not None
    return delivered(letter.message)


def handle(correlation_id: str = "c-1", **facts: object) -> NewHandle:
    """Return a handle to register."""
    return replace(NewHandle(correlation_id, (MADE,), 1, HOUR), **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize("early", [False, True], ids=["event after handle", "event before handle"])
async def test_a_result_resolves_its_handle(events: EventStores, telemetry: Telemetry, early: bool) -> None:
    """Whichever comes first; the handle is counted once, and what comes after its end costs no question."""
    service = Callbacks(events.handles, None, telemetry, ".dlt")
    if not early:
        await events.handles.register_handle(handle())
    result = event()
    await service.take(delivered(result))
    await service.take(delivered(result))
    view = await events.handles.register_handle(handle())
    await service.take(delivered(event()))
    assert (view.state, view.arrived) == (HandleState.RESOLVED, 1)
    assert [noted.event.id for noted in await events.handles.noted_events("c-1")] == [result.id]
    counts = {"headrace.handles.note": 3} if early else {"headrace.handles.note": 1, "headrace.handles.pass": 2}
    assert telemetry.snapshot() == {**counts, "headrace.handles.resolve": 1}


async def test_what_a_known_handle_does_not_expect_costs_no_question(
    events: EventStores, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its types never change: the request that it is an answer to is passed over once the handle is known."""
    service = Callbacks(events.handles, None, telemetry, ".dlt")
    await events.handles.register_handle(handle(expect_count=2))
    await service.take(delivered(event()))
    monkeypatch.setattr(events.handles, "note_event", None)
    await service.take(delivered(event(ASKED)))
    assert telemetry.snapshot() == {"headrace.handles.note": 1, "headrace.handles.pass": 1}


@pytest.mark.parametrize(("agent", "arrived"), [("packer", 1), ("painter", 0)])
async def test_a_dead_request_counts_for_its_agent(
    events: EventStores, telemetry: Telemetry, agent: str, arrived: int
) -> None:
    """Read from the topic of dead letters, with who gave up and why."""
    await events.handles.register_handle(handle(request_types=(ASKED,), agents=("packer",)))
    await Callbacks(events.handles, None, telemetry, ".dlt").take(dead(event(ASKED), agent))
    view = await events.handles.get_handle("c-1")
    assert view is not None
    assert view.arrived == arrived
    told = [(noted.dead, noted.agent, noted.error) for noted in await events.handles.noted_events("c-1")]
    assert told == [(True, "packer", "no")] * arrived


PASSED_OVER = {
    "no correlation id": delivered(event(correlation_id=None)),
    "no event": delivered(Message(TOPIC, "k", b"{not json")),
    "a tombstone": delivered(Message(TOPIC, "k", None)),
    "no dead letter": delivered(Message(f"{TOPIC}.dlt", "k", b"{}")),
    "a correlation id that no handle can have": foreign(correlation_id="c" * 300),
    "a NUL in its payload": foreign(payload="\0"),
}


@pytest.mark.parametrize("delivery", PASSED_OVER.values(), ids=PASSED_OVER.keys())
async def test_what_is_no_event_of_a_handle_is_passed_over(telemetry: Telemetry, delivery: Delivery) -> None:
    """Without asking the store, and without an error: it is no owner of these topics."""
    await Callbacks(None, None, telemetry, ".dlt").take(delivery)  # type: ignore[arg-type]
    assert telemetry.snapshot() == {"headrace.handles.pass": 1}


class Refusing:
    """A handle store whose first answers are errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.noted = list(errors), 0

    async def note_event(self, noted: NotedEvent) -> HandleView | None:
        """Raise the next error, or note."""
        if self.errors:
            raise self.errors.pop(0)
        self.noted += 1
        return None


async def test_an_outage_is_waited_for(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the store does not answer, the event is noted in the end."""
    monkeypatch.setattr(callbacks, "PAUSES", (0.001, 0.002))
    store = Refusing(*[StoreUnavailableError("away")] * 12)
    await Callbacks(store, None, telemetry, ".dlt").take(delivered(event()))  # type: ignore[arg-type]
    assert (store.noted, telemetry.value("headrace.handles.note")) == (1, 1)


async def test_a_pause_in_an_outage_can_be_cancelled(telemetry: Telemetry) -> None:
    """A partition that goes to another member ends it at once."""
    store = Refusing(*[StoreUnavailableError("away")] * 1_000)
    task = asyncio.create_task(Callbacks(store, None, telemetry, ".dlt").take(delivered(event())))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_the_store_refuses_is_passed_over_with_a_word(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    """One event that no store takes does not hold up its partition."""
    store = Refusing(HeadraceError("no room for it"))
    await Callbacks(store, None, telemetry, ".dlt").take(delivered(event(id="e-7")))  # type: ignore[arg-type]
    assert telemetry.snapshot() == {"headrace.handles.pass": 1}
    assert "passed over event e-7" in caplog.text


@pytest.mark.parametrize(
    ("delivery", "asked"),
    [
        (delivered(event()), True),
        (delivered(event(OTHER)), False),
        (dead(event(ASKED)), True),
        (dead(event(ASKED), "painter"), False),
        (dead(event(OTHER)), False),
        (delivered(event(correlation_id="c-2")), True),
    ],
    ids=["its type", "another type", "its request", "another agent", "another request", "another handle"],
)
async def test_the_cache_spares_the_store(
    events: EventStores, telemetry: Telemetry, delivery: Delivery, asked: bool
) -> None:
    """Of a handle that is remembered only its own events reach the store."""
    shelf, known = Shelf(), handle(expect_count=5, request_types=(ASKED,), agents=("packer",))
    shelf.kept["c-1"] = await events.handles.register_handle(known)
    store = Refusing()
    await Callbacks(store, shelf, telemetry, ".dlt").take(delivery)  # type: ignore[arg-type]
    assert store.noted == asked


async def test_what_has_ended_is_remembered(events: EventStores, telemetry: Telemetry) -> None:
    """Every handle that the store returns is put; of one that has ended nothing more reaches the store."""
    shelf = Shelf()
    service = Callbacks(events.handles, shelf, telemetry, ".dlt")
    await events.handles.register_handle(handle())
    await service.take(delivered(event()))
    assert shelf.kept["c-1"].state is HandleState.RESOLVED
    await service.take(delivered(event()))
    assert telemetry.snapshot() == {
        "headrace.handles.note": 1, "headrace.handles.resolve": 1, "headrace.handles.pass": 1,
    }  # fmt: skip


async def test_the_sweeper_ends_what_was_waited_for_in_vain(
    events: EventStores, telemetry: Telemetry, clock: FakeClock
) -> None:
    """At its time and not before; the cache hears of it."""
    shelf = Shelf()
    sweeper = HandleSweeper(events.handles, telemetry, cache=shelf)
    await events.handles.register_handle(handle())
    clock.advance(HOUR - timedelta(seconds=1))
    await sweeper.step()
    assert telemetry.snapshot() == {}
    clock.advance(timedelta(seconds=1))
    await sweeper.step()
    await sweeper.step()
    assert telemetry.snapshot() == {"headrace.handles.expire": 1}
    assert shelf.kept["c-1"].state is HandleState.EXPIRED


class Bell:
    """A waker that answers as it is told, and notes whom it woke."""

    kind = "bell"

    def __init__(self, *answers: Woken | Exception) -> None:
        self.answers, self.woken = list(answers), []  # type: ignore[var-annotated]

    async def wake(self, target: str) -> Woken:
        """Note the target and give the next answer."""
        self.woken.append(target)
        answer = self.answers.pop(0) if self.answers else Woken.DONE
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Nothing to end."""


async def _ended(events: EventStores, *targets: str) -> None:
    for number, target in enumerate(targets):
        await events.handles.register_handle(handle(f"c-{number}", target=target))
        await events.handles.cancel_handle(f"c-{number}")


async def test_targets_are_woken_until_they_go_on(events: EventStores, telemetry: Telemetry, clock: FakeClock) -> None:
    """One that is not ready is tried again after a while, one that is done never again."""
    bell = Bell(Woken.AGAIN, Woken.DONE)
    loop = WakeLoop(events.handles, {"bell": bell}, telemetry)
    await _ended(events, "bell:one", "")
    await loop.step()
    await loop.step()
    assert bell.woken == ["one"]
    clock.advance(timedelta(seconds=6))
    await loop.step()
    clock.advance(timedelta(seconds=6))
    await loop.step()
    assert bell.woken == ["one", "one"]
    assert telemetry.snapshot() == {"headrace.handles.wake": 1}


async def test_a_waker_that_fails_harms_no_other(events: EventStores, telemetry: Telemetry) -> None:
    """The others of the slice are woken and noted; the loop tells of the error as of any."""
    bell = Bell(RuntimeError("a defect"))
    await _ended(events, "bell:one", "bell:two")
    with pytest.raises(RuntimeError, match="a defect"):
        await WakeLoop(events.handles, {"bell": bell}, telemetry).step()
    assert telemetry.value("headrace.handles.wake") == 1


@pytest.mark.parametrize("wakers", [{}, {"bell": Bell()}], ids=["no waker", "another waker"])
async def test_an_unknown_kind_is_told_once_and_left(
    events: EventStores, telemetry: Telemetry, wakers: Mapping[str, Bell], caplog: pytest.LogCaptureFixture,
    clock: FakeClock,
) -> None:  # fmt: skip
    """Somebody else may wake it, at once where this process can wake nothing."""
    await _ended(events, "owl:one")
    loop = WakeLoop(events.handles, wakers, telemetry)
    for _ in range(3):
        await loop.step()
        clock.advance(timedelta(seconds=6))
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [("owl:one" in one.getMessage(), "'owl'" in one.getMessage()) for one in warnings] == [(True, True)]
    assert len(await events.handles.due_wakes(limit=10, again_in=HOUR)) == 1


async def test_old_events_leave_on_the_leader_alone(stores: Stores, events: EventStores, clock: FakeClock) -> None:
    """Logs, notes, messages and handles, each after its own retention."""
    await events.outbox.insert_events([outgoing(event())])
    await events.outbox.mark_published([row.position for row in await events.outbox.waiting_events(limit=9)])
    await events.inbox.accept("agent", "m-1", Effect())
    await events.log.append_messages([delivered(event()).message], partitions=1)
    await _ended(events, "")
    kept = EventSettings(keep_events=HOUR, keep_inbox=2 * HOUR, keep_messages=3 * HOUR, keep_handles=4 * HOUR)
    leadership = Leadership(stores, uuid4())

    async def left() -> list[bool]:
        for pruner in prune_loops(replace(Settings(), events=kept), stores, leadership):
            await pruner.step()
        messages = await events.log.read_messages({(TOPIC, 0): 0}, limit=9)
        handle = await events.handles.get_handle("c-0")
        noted = await events.inbox.handled("agent", "m-1")
        return [bool(await events.outbox.list_events()), noted, bool(messages), handle is not None]

    clock.advance(HOUR)
    assert await left() == [True] * 4
    await leadership.step()
    for gone in range(1, 5):
        assert await left() == [False] * gone + [True] * (4 - gone)
        clock.advance(HOUR)
        await leadership.step()
