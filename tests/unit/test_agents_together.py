"""Agents that handle several events in one call: one effect for all, and only the bad one goes alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headrace import App, Backoff, InvalidInputError, StoreUnavailableError
from headrace.engine.events.batch_runner import BatchRunner, Entry, shares_of
from headrace.events import Agent, Event, EventsContext
from headrace.model.event import Message
from headrace.model.inbox import Effect
from headrace.ports.bus import Delivery
from headrace.ports.inbox import Inbox
from tests.unit.test_agents import ANSWERED, ASKED, TOPIC, World, asked, delivered, world

CLOSED = "Test.Thing.Closed"


def of(number: int, key: str = "t-1", type_: str = ASKED) -> Delivery:
    """Return an event as it is received, at an offset of its own."""
    event = replace(asked(number), aggregate_id=key, type=type_)
    return replace(delivered(event), offset=number)


@asynccontextmanager
async def together(**options: Any) -> AsyncIterator[World]:
    """Open an app with one agent that takes several events at once."""
    async with world(batch_size=100, **options) as at:
        yield at


async def take(at: World, *deliveries: Delivery) -> list[int]:
    """Handle messages together, then alone what is left; return the numbers of the latter."""
    runner = at.runner
    left = await BatchRunner(runner).take(deliveries)
    for delivery in left:
        await runner.take(delivery)
    return [delivery.offset for delivery in left]


def numbers(events: Sequence[Event]) -> list[int]:
    """Return what events say."""
    return [event.payload["number"] for event in events]


async def test_a_call_takes_all_and_has_one_effect() -> None:
    """Each event has its followers, keys and notes; what comes again is passed over."""
    async with together() as at:
        calls: list[list[int]] = []

        @at.agent.on(ASKED)
        async def handle(events: list[Event], ctx: EventsContext) -> None:
            calls.append(numbers(events))
            assert numbers(ctx.events) == numbers(events)
            assert (ctx.agent, ctx.attempt, ctx.resources) == ("worldbuilder", 1, "given")
            ctx.signal("called", len(events))
            for event in events:
                assert ctx.of(event).idempotency_key == f"worldbuilder:{event.id}"
                ctx.of(event).emit(ANSWERED, {"to": event.payload["number"]})

        await take(at, of(1, "a"), of(2, "b"), of(1, "a"), of(3, "a"))
        await take(at, of(2, "b"), of(4, "b"))
        followers = [row.event for row in await at.outbox()]
        assert [(one.aggregate_id, one.causation_id) for one in followers] == [
            ("a", "e-1"), ("b", "e-2"), ("a", "e-3"), ("b", "e-4"),
        ]  # fmt: skip
        assert calls == [[1, 2, 3], [4]]
        assert await at.app.runtime.stores.signals.read_signal("called") == "3"
        assert at.counted() == {"calls": 2, "handle": 4, "repeat": 2}


async def test_a_bad_event_goes_alone_and_the_others_on() -> None:
    """Only it is tried again by the policy, and is a dead letter in the end; a sync handler too."""
    async with together() as at:
        tried: list[list[int]] = []

        @at.agent.on(ASKED)
        def handle(events: list[Event], ctx: EventsContext) -> None:
            tried.append(numbers(events))
            ctx.signal(f"handled-{numbers(events)}")
            if 2 in numbers(events):
                raise ValueError("two is bad")

        assert await take(at, of(1), of(2), of(3)) == [1, 2, 3]
        assert tried == [[1, 2, 3], [1], [2], [2], [2], [3]]
        [letter] = await at.outbox()
        assert (letter.topic, letter.message.header("dlt-attempts")) == (f"{TOPIC}.dlt", "3")
        assert await at.app.runtime.stores.signals.read_signal("handled-[2]") is None
        assert await at.app.runtime.stores.signals.read_signal("handled-[3]") is not None


async def test_what_is_no_event_is_a_dead_letter_alone() -> None:
    """The call has the others; tombstones and types without a handler are passed over."""
    async with together() as at:

        @at.agent.on(ASKED, where=lambda event: event.payload["number"] != 1 / (event.payload["number"] - 4))
        async def handle(events: list[Event], ctx: EventsContext) -> None:
            assert numbers(events) == [1, 3]

        garbage = Delivery(Message(TOPIC, "k", b"\xff{"), 0, 2)
        tombstone = Delivery(Message(TOPIC, "k", None), 0, 5)
        assert await take(at, of(1), garbage, of(3), of(4), tombstone, of(6, type_=CLOSED)) == [2, 4]
        kinds = [row.message.header("dlt-error-kind") for row in await at.outbox()]
        assert kinds == ["bad_envelope", "ZeroDivisionError"]
        assert at.counted() == {"calls": 1, "handle": 2, "ignore": 2, "dead_letter": 2}


async def test_events_of_a_key_stay_in_order_across_handlers() -> None:
    """What stands behind a failed one under its key waits for it, though another handler takes it."""
    async with together() as at:
        handled: list[int] = []

        @at.agent.on(ASKED)
        async def ask(events: list[Event], ctx: EventsContext) -> None:
            if numbers(events) != [1] and 1 in numbers(events):
                raise ValueError("not together")
            handled.extend(numbers(events))

        @at.agent.on(CLOSED)
        async def close(events: list[Event], ctx: EventsContext) -> None:
            handled.extend(numbers(events))

        left = await take(at, of(1, "a"), of(2, "a", CLOSED), of(3, "b", CLOSED), of(4, "c"))
        assert left == [1, 2, 4]
        assert handled.index(3) == 0 and handled.index(1) < handled.index(2)
        assert sorted(handled) == [1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(20))
def test_calls_keep_the_order_of_each_key(seed: int) -> None:
    """Whatever comes, and with no more calls than the longest change of handlers of one key needs, or the handlers."""
    chance = Random(seed)
    handlers = [lambda events, ctx: None, lambda events, ctx: 1]
    entries = [
        Entry(of(number, key), replace(asked(number), aggregate_id=key), chance.choice(handlers), f"e-{number}")
        for number in range(40)
        for key in [f"k{chance.randrange(5)}"]
    ]
    shares = shares_of(entries)
    called = [entry for share in shares for entry in share.entries]
    assert all(entry.handler is share.handler for share in shares for entry in share.entries)
    for key in {entry.lane for entry in entries}:
        offsets = [entry.delivery.offset for entry in called if entry.lane == key]
        assert offsets == [entry.delivery.offset for entry in entries if entry.lane == key]
    assert len(called) == len(entries)
    assert len(shares) <= len(entries) // 2


class Racing:
    """An inbox where others note an event between the look at it and its effect, and that is away now and then."""

    def __init__(self, inbox: Inbox, *taken: str) -> None:
        self._inbox, self._taken, self.writes, self.away = inbox, taken, False, 0

    async def handled_among(self, consumer: str, message_ids: Sequence[str]) -> frozenset[str]:
        """Answer as it is by now."""
        self._fail()
        return await self._inbox.handled_among(consumer, message_ids)

    async def accept_batch(self, consumer: str, message_ids: Sequence[str], effect: Effect) -> frozenset[str]:
        """Let others be first."""
        self._fail()
        for one in self._taken:
            await self._inbox.accept(consumer, one, Effect())
        return await self._inbox.accept_batch(consumer, message_ids, effect)

    def _fail(self) -> None:
        if self.away:
            self.away -= 1
            raise StoreUnavailableError("away")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inbox, name)


async def test_what_others_handled_meanwhile_is_left_out_of_the_next_call() -> None:
    """Nothing of the first call is stored, and the rest is handled again."""
    async with together() as at:
        calls: list[list[int]] = []
        at.inbox = Racing(at.inbox, "e-2")  # type: ignore[assignment]

        @at.agent.on(ASKED)
        async def handle(events: list[Event], ctx: EventsContext) -> None:
            calls.append(numbers(events))
            for event in events:
                ctx.of(event).emit(ANSWERED, event.payload["number"])

        assert await take(at, of(1), of(2), of(3)) == []
        assert calls == [[1, 2, 3], [1, 3]]
        assert [row.event.payload for row in await at.outbox()] == [1, 3]
        assert at.counted() == {"calls": 2, "repeat": 1, "handle": 2}


async def test_an_outage_is_waited_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither that of the inbox nor one within the handler sends events to be handled alone."""
    monkeypatch.setattr("headrace.engine.events.agent_runner.STORE_PAUSES", (0.001, 0.001))
    async with together(retry=Backoff.none()) as at:
        calls: list[int] = []
        at.inbox = racing = Racing(at.inbox)  # type: ignore[assignment]
        racing.away = 2

        @at.agent.on(ASKED)
        async def handle(events: list[Event], ctx: EventsContext) -> None:
            calls.append(len(events))
            racing.away = 2
            if len(calls) < 4:
                raise StoreUnavailableError("away")

        assert await take(at, of(1), of(2)) == []
        assert calls == [2] * 4 and at.counted() == {"calls": 4, "handle": 2}


async def test_a_call_that_takes_too_long_is_stopped() -> None:
    """It is an error like any other."""
    async with together(timeout="20ms", retry=Backoff.none()) as at:

        @at.agent.on(ASKED)
        async def handle(events: list[Event], ctx: EventsContext) -> None:
            if 2 in numbers(events):
                await asyncio.Event().wait()

        assert await take(at, of(1), of(2)) == [1, 2]
        assert at.counted() == {"calls": 1, "handle": 1, "dead_letter": 1}


async def test_events_go_the_whole_way_together() -> None:
    """A worker's agent takes what waits in few calls, in the order of each key."""
    app, seen = App("memory://"), asyncio.Event()
    agent = Agent(app, "world_builder", batch_size=50, max_wait="2s")
    calls: list[list[tuple[str, int]]] = []
    app.task(name="idle")(lambda: None)

    @agent.on(ASKED)
    async def handle(events: list[Event], ctx: EventsContext) -> None:
        calls.append([(event.aggregate_id, event.payload["number"]) for event in events])
        if sum(map(len, calls)) == 400:
            seen.set()

    async with app:
        for number in range(400):
            await app.emit(ASKED, {"number": number}, aggregate_id=f"k{number % 7}")
        async with app.worker(grace="1s"), asyncio.timeout(20):
            await seen.wait()
    assert max(map(len, calls)) <= 50 and len(calls) <= 40
    for key in range(7):
        mine = [number for call in calls for name, number in call if name == f"k{key}"]
        assert mine == list(range(key, 400, 7))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 5, "max_wait": "6s"}, "max_wait must be at most 5 s"),
        ({"max_wait": "1s"}, "max_wait must come with batch_size"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    """When the agent is declared."""
    with pytest.raises(InvalidInputError, match=text):
        Agent(App("memory://"), "world_builder", **options)


def test_a_handler_must_take_a_list_and_a_context() -> None:
    """A mistake is told when the handler is registered."""
    with pytest.raises(InvalidInputError, match="a list of events and an EventsContext"):
        Agent(App("memory://"), "world_builder", batch_size=5).on(ASKED)(lambda events: None)  # type: ignore[arg-type,misc]
