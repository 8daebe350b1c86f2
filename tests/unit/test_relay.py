"""The relay: order per key, what is refused and what waits behind it, and what happens while somebody is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from headrace.engine.events import parked_lanes
from headrace.engine.loops import relay as relay_module
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.relay import Relay, RelayOptions
from headrace.engine.telemetry import Telemetry
from headrace.model.envelopes import decode
from headrace.model.errors import BusUnavailableError, StoreUnavailableError
from headrace.model.event import Event, Message, Outgoing, outgoing
from headrace.model.ids import uuid7
from headrace.model.session import Role
from headrace.ports.bus import BEHIND, Bus, Subscription, SubscriptionOptions
from headrace.ports.outbox import Outbox
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.waiting import wait_until

TOPIC = "outbox.event.Thing"


@dataclass
class ScriptedBus(Bus):
    """Takes messages, refuses those of some ids, and is away so often."""

    taken: list[Message] = field(default_factory=list)
    calls: int = 0
    away: int = 0
    refuses: set[str] = field(default_factory=set)
    #: Ids of what it does not take for now, with its answer.
    later: dict[str, str] = field(default_factory=dict)
    #: Whether it keeps back what follows a refused one.
    keeps_back: bool = True
    #: Cleared, nothing is answered.
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def publish(self, messages: Sequence[Message]) -> list[str | None]:
        """Take what is not refused."""
        self.calls += 1
        if self.away:
            self.away -= 1
            raise BusUnavailableError("away")
        await self.answers.wait()
        stopped: set[str] = set()
        return [self._answer(message, stopped) for message in messages]

    def _answer(self, message: Message, stopped: set[str]) -> str | None:
        if message.key in stopped and self.keeps_back:
            return BEHIND
        if message.header("id") in self.later:
            stopped.add(message.key)
            return self.later[message.header("id") or ""]
        if message.header("id") in self.refuses:
            stopped.add(message.key)
            return "too large"
        self.taken.append(message)
        return None

    async def subscribe(self, options: SubscriptionOptions) -> Subscription:
        """Nobody reads here."""
        raise AssertionError(options)

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def said(self) -> list[str]:
        """Keys and payloads of what was taken, such as "a1"."""
        events = [decode(message) for message in self.taken]
        return [f"{event.aggregate_id}{event.payload}" for event in events if event]


class World:
    """Memory stores, one leader and its relay."""

    def __init__(self, batch: int = 100) -> None:
        self.clock = FakeClock()
        self.stores: Stores = open_memory_stores(self.clock)
        assert self.stores.events is not None
        self.outbox: Outbox = self.stores.events.outbox
        self.bus, self.telemetry = ScriptedBus(), Telemetry()
        self.bus.answers.set()
        self.options = RelayOptions(batch=batch)
        self.leadership = Leadership(self.stores, uuid7(), role=Role.RELAY)
        self.relay = self.another(self.leadership)
        self.ids: dict[str, str] = {}

    def another(self, leadership: Leadership) -> Relay:
        """Return a relay of this world."""
        return Relay(self.outbox, self.bus, leadership, self.telemetry, self.options)

    async def put(self, *names: str, kind: str = "Thing") -> None:
        """Insert events of a topic; "a1" is the event 1 of the key a."""
        events = [Event("Shop.Thing.Happened", kind, name[0], int(name[1:])) for name in names]
        self.ids |= {name: event.id for name, event in zip(names, events, strict=True)}
        await self.outbox.insert_events([outgoing(event) for event in events])

    async def states(self) -> tuple[int, int, int]:
        """Return how many wait, are held and are parked."""
        stats = await self.outbox.outbox_stats()
        return stats.waiting, stats.held, stats.parked

    async def release(self, *, drop: bool = False) -> None:
        """Let all parked rows go."""
        parked = await self.outbox.list_parked(limit=100)
        await self.outbox.release_parked([one.position for one in parked], drop=drop)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Return a world whose relay leads."""
    made = World()
    await made.leadership.step()
    yield made
    await made.relay.stop()


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tries follow each other at once."""
    monkeypatch.setattr(relay_module, "PAUSES", (0.0, 0.0))


async def test_what_waits_is_sent_in_its_order(world: World) -> None:
    """Rows leave the outbox, their events stay in the log, and both are counted."""
    await world.put("a1", "b1", "a2", "b2")
    await world.relay.step()
    assert world.bus.said == ["a1", "b1", "a2", "b2"]
    assert world.bus.taken[0].topic == TOPIC
    assert await world.states() == (0, 0, 0)
    assert world.telemetry.snapshot() == {"headrace.events.publish": 4, "headrace.events.waiting": 0}
    await world.relay.step()
    assert world.bus.calls == 1


async def test_events_are_written_as_the_options_say(world: World) -> None:
    """A message that is sent as it is, such as a dead letter, is left alone."""
    world.options = RelayOptions(form="cloudevents", source="/shop")
    letter = Message("t.dlt", "k", b"?", (("dlt-topic", "t"),))
    await world.put("a1")
    await world.outbox.insert_events([Outgoing("t.dlt", "k", message=letter)])
    await world.another(world.leadership).step()
    assert world.bus.taken[0].header("content-type") == "application/cloudevents+json"
    assert world.bus.taken[1] == letter


@pytest.mark.parametrize("keeps_back", [True, False])
async def test_what_follows_a_refused_event_waits(world: World, *, keeps_back: bool) -> None:
    """Within the call that refuses it, as far as the bus can keep it back; in later ones always."""
    await world.put("a1", "a2", "a3", "b1")
    world.bus.refuses, world.bus.keeps_back = {world.ids["a2"]}, keeps_back
    await world.relay.step()
    assert world.bus.said == (["a1", "b1"] if keeps_back else ["a1", "a3", "b1"])
    assert await world.states() == (0, int(keeps_back), 1)
    await world.put("a4", "b2")
    await world.relay.step()
    assert world.bus.said[-1] == "b2"
    assert await world.states() == (0, int(keeps_back) + 1, 1)
    assert world.telemetry.value("headrace.events.park") == 1


@pytest.mark.parametrize(("drop", "rest"), [(False, ["a1", "a2", "a3", "a4"]), (True, ["a2", "a3", "a4"])])
async def test_what_an_operator_lets_go_comes_first(world: World, *, drop: bool, rest: list[str]) -> None:
    """The released one at its place, or dropped, then what was held, then what came later."""
    await world.put("a1", "a2")
    world.bus.refuses = {world.ids["a1"]}
    await world.relay.step()
    await world.put("a3")
    await world.relay.step()
    world.bus.refuses = set()
    await world.release(drop=drop)
    await world.put("a4")
    for _ in range(2):
        await world.relay.step()
    assert world.bus.said == rest


async def test_what_is_let_go_while_a_batch_is_sorted_is_not_overtaken(world: World) -> None:
    """A later row that was read before the release is left for the next batch."""
    await world.put("a1", "a2")
    world.bus.refuses = {world.ids["a1"]}
    await world.relay.step()
    await world.put("a3", "b1")
    world.bus.refuses = set()
    read = world.outbox.waiting_events

    async def read_and_let_go(**asked: Any) -> list[object]:
        rows = await read(**asked)
        await world.release()
        return list(rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.outbox), "waiting_events", lambda _, **asked: read_and_let_go(**asked))
        await world.relay.step()
    assert world.bus.said == ["b1"]
    await world.relay.step()
    assert world.bus.said == ["b1", "a1", "a2", "a3"]


@pytest.mark.parametrize("most", [1, 100_000])
async def test_a_new_leader_knows_of_parked_rows(world: World, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """What its predecessor parked holds what comes later, also where there is more of it than is learnt."""
    monkeypatch.setattr(parked_lanes, "MOST_LEARNT", most)
    await world.put("a1", "c1")
    world.bus.refuses = {world.ids["a1"], world.ids["c1"]}
    await world.relay.step()
    await world.leadership.resign()
    leadership = Leadership(world.stores, uuid7(), role=Role.RELAY)
    await leadership.step()
    await world.put("a2", "b1", "c2")
    await world.another(leadership).step()
    assert world.bus.said == ["b1"]
    assert await world.states() == (0, 2, 2)


async def test_a_leader_that_leads_again_learns_what_was_parked_meanwhile(world: World) -> None:
    """Its knowledge is of its term only."""
    await world.put("b1")
    await world.relay.step()
    await world.leadership.resign()
    second = Leadership(world.stores, uuid7(), role=Role.RELAY)
    await second.step()
    await world.put("a1")
    world.bus.refuses = {world.ids["a1"]}
    await world.another(second).step()
    await second.resign()
    await world.leadership.step()
    await world.put("a2")
    await world.relay.step()
    assert (world.bus.said, await world.states()) == (["b1"], (0, 1, 1))


async def test_the_key_of_a_row_is_that_of_its_message(world: World) -> None:
    """Whoever inserts a row may order events by another key than their aggregate."""
    await world.outbox.insert_events([Outgoing(TOPIC, "tenant-1", Event("Shop.Thing.Happened", "Thing", "a"))])
    await world.relay.step()
    assert world.bus.taken[0].key == "tenant-1"


async def test_an_event_that_cannot_be_written_is_parked(world: World) -> None:
    """What stands behind it in the batch is not sent; other keys are."""
    await world.put("a1", "a2", "b1")
    rows = world.stores.events.outbox._table.rows  # type: ignore[union-attr]
    bad = next(iter(rows.values()))
    bad.outgoing = Outgoing(TOPIC, "a", Event("Shop.Thing.Happened", "Thing", "a", float("nan")))
    await world.relay.step()
    assert world.bus.said == ["b1"]
    assert await world.states() == (0, 1, 1)
    [parked] = await world.outbox.list_parked(limit=1)
    assert "payload must be JSON" in parked.error


@pytest.mark.usefixtures("no_pauses")
async def test_nothing_is_parked_while_the_bus_is_away(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """It is said once, and everything goes out in order once the bus is back."""
    world.bus.away = 5
    await world.put("a1", "b1", "a2")
    with caplog.at_level(logging.WARNING):
        world.relay.start()
        await wait_until(lambda: len(world.bus.said) == 3)
    assert world.bus.said == ["a1", "b1", "a2"]
    assert world.bus.calls == 6
    assert caplog.text.count("the bus does not take them") == 1
    assert world.telemetry.value("headrace.events.park") == 0


@pytest.mark.usefixtures("no_pauses")
async def test_what_the_bus_has_is_taken_out_however_long_that_takes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away after the publication does not make it a second one."""
    mark, tries = world.outbox.mark_published, iter([False, False, True])

    async def fail_twice(positions: Sequence[int]) -> None:
        if not next(tries):
            raise StoreUnavailableError
        await mark(positions)

    monkeypatch.setattr(type(world.outbox), "mark_published", lambda _, positions: fail_twice(positions))
    await world.put("a1")
    await world.relay.step()
    assert (world.bus.calls, await world.states()) == (1, (0, 0, 0))


async def test_pauses_grow_and_begin_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to five seconds, shortened at random, and back to the first once the bus answers."""
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("headrace.engine.loops.relay.asyncio.sleep", note)
    world.bus.away = 8
    await world.put("a1")
    for _ in range(9):
        await world.relay.step()
    world.bus.away = 1
    await world.put("a2")
    await world.relay.step()
    bounds = [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 0.2]
    assert len(waits) == len(bounds)
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, bounds, strict=True))


async def test_who_is_stopped_while_a_batch_is_sent_takes_it_out_first(world: World) -> None:
    """A worker that is replaced does not send its last batch twice."""
    world.bus.answers.clear()
    await world.put("a1")
    world.relay.start()
    await wait_until(lambda: world.bus.calls == 1)
    stopping = asyncio.ensure_future(world.relay.stop())
    await asyncio.sleep(0)
    world.bus.answers.set()
    await stopping
    assert (world.bus.said, await world.states()) == (["a1"], (0, 0, 0))


async def test_a_bus_that_does_not_answer_keeps_nobody_from_stopping(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch comes again."""
    monkeypatch.setattr(relay_module, "STOP_SECONDS", 0.01)
    world.bus.answers.clear()
    await world.put("a1")
    world.relay.start()
    await wait_until(lambda: world.bus.calls == 1)
    await world.relay.stop()
    assert (world.bus.said, await world.states()) == ([], (1, 0, 0))


async def test_full_batches_follow_each_other_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval is for an outbox that is empty."""
    world = World(batch=2)
    world.options = RelayOptions(batch=2, interval=timedelta(hours=1))
    await world.leadership.step()
    await world.put("a1", "a2", "a3", "a4", "a5")
    relay = world.another(world.leadership)
    relay.start()
    await wait_until(lambda: len(world.bus.said) == 5)
    await relay.stop()
    assert world.bus.said == ["a1", "a2", "a3", "a4", "a5"]
    assert world.bus.calls == 3


async def test_only_the_leader_sends(world: World) -> None:
    """Another process does nothing, and says that nothing waits for it."""
    await world.put("a1")
    second = Leadership(world.stores, uuid7(), role=Role.RELAY)
    await second.step()
    await world.another(second).step()
    assert world.bus.calls == 0
    assert world.telemetry.value("headrace.events.waiting") == 0


async def test_two_relays_at_once_do_no_harm(world: World) -> None:
    """One that is replaced while it sends brings what the new one sends as well, in order, and parks nothing."""
    await world.put("a1", "a2", "a3")
    world.bus.refuses = {world.ids["a2"]}
    world.bus.answers.clear()
    steps = [asyncio.ensure_future(world.relay.step())]
    await wait_until(lambda: world.bus.calls == 1)
    second = await replaced(world)
    steps.append(asyncio.ensure_future(world.another(second).step()))
    await wait_until(lambda: world.bus.calls == 2)
    world.bus.answers.set()
    await asyncio.gather(*steps)
    assert world.bus.said == ["a1", "a1"]
    assert await world.states() == (0, 1, 1)
    assert world.telemetry.value("headrace.events.park") == 1


async def replaced(world: World) -> Leadership:
    """Let another process lead, which the first one does not know yet."""
    world.clock.advance(timedelta(minutes=1))
    second = Leadership(world.stores, uuid7(), role=Role.RELAY)
    await second.step()
    assert world.leadership.term != second.term is not None
    return second


async def test_a_leader_whose_term_ends_while_it_sends_parks_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The store refuses its word: what it could not send goes on waiting for the new leader."""
    await world.put("a1", "b1")
    world.bus.refuses = {world.ids["a1"]}
    world.bus.answers.clear()
    step = asyncio.ensure_future(world.relay.step())
    await wait_until(lambda: world.bus.calls == 1)
    await replaced(world)
    world.bus.answers.set()
    await step
    assert (world.bus.said, await world.states()) == (["b1"], (1, 0, 0))
    assert "parked" not in caplog.text


@pytest.mark.parametrize("parks", ["the first leader", "the second leader"])
async def test_a_leader_of_a_term_that_is_over_sends_nothing(world: World, parks: str) -> None:
    """However often it tries: it knows of what it parked itself, and cannot know what the next leader parked."""
    await world.put("a1")
    world.bus.refuses = {world.ids["a1"]}
    if parks == "the first leader":
        await world.relay.step()
    second = await replaced(world)
    if parks == "the second leader":
        await world.another(second).step()
    await world.put("a2", "b1")
    for _ in range(3):
        await world.relay.step()
    assert (world.bus.said, await world.states()) == ([], (2, 0, 1))
    await second.resign()
    await world.leadership.step()
    await world.relay.step()
    assert (world.bus.said, await world.states()) == (["b1"], (0, 1, 1))


async def test_what_waits_is_counted_now_and_then(world: World) -> None:
    """The first step counts, the next ones leave it be for a while."""
    world.bus.refuses = set()
    world.options = RelayOptions(batch=1)
    relay = world.another(world.leadership)
    await world.put("a1", "a2", "a3")
    await relay.step()
    assert world.telemetry.value("headrace.events.waiting") == 2
    await relay.step()
    assert world.telemetry.value("headrace.events.waiting") == 2
