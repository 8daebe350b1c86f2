"""Dead letters of events: looked at and put back, each once, on the bus of the memory store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from headrace import App
from headrace.engine.events.agent_runner import delivery_id
from headrace.engine.events.redriving import GROUP, Found, Patience, Redriving, put_back, redrives_of
from headrace.model.envelopes import decode, encode
from headrace.model.envelopes.dead_letters import dead_letter
from headrace.model.errors import InvalidInputError, StoreUnavailableError
from headrace.model.event import Event, Message, Outgoing
from headrace.ports.bus import Delivery
from headrace.ports.outbox import Outbox
from headrace.wiring.events import open_bus
from tests.unit.engine_app import quick_app

TOPIC = "outbox.event.ShopOrder"


def letter(number: int, *, key: str = "o-1", redrives: int = 0, agent: str = "biller") -> Message:
    """Return the dead letter of an event."""
    event = Event("Shop.Order.Paid", "ShopOrder", key, {"n": number}, id=f"e-{number}")
    sent = encode(event, "headrace", "/headrace", TOPIC)
    if redrives:
        sent = replace(sent, headers=(*sent.headers, ("redrives", str(redrives))))
    row = dead_letter(
        sent, partition=0, offset=number, agent=agent, kind="ValueError", error="no", attempts=3, suffix=".dlt"
    )
    assert row.message is not None
    return row.message


class World:
    """An app on a memory store with its bus, and dead letters."""

    def __init__(self, app: App) -> None:
        stores = app.event_stores
        self.stores, self.bus = stores, open_bus(app.settings, stores, app.runtime.stores.notifier)
        self.redriving = self.on(stores.outbox)

    def on(self, outbox: Outbox) -> Redriving:
        """Return what puts back through an outbox."""
        return Redriving(self.bus, outbox, ".dlt", Patience(5.0, 5.0), self.backlog)

    async def backlog(self, topic: str) -> int:
        """Return how many dead letters nobody has put back."""
        behind = await self.stores.log.log_backlog(GROUP)
        return sum(count for (name, _), count in behind.items() if name == topic)

    async def waiting(self) -> list[Message]:
        """Return what waits in the outbox."""
        rows = await self.stores.outbox.waiting_events(limit=100)
        return [row.outgoing.message for row in rows if row.outgoing.message is not None]


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    """Return a world."""
    async with quick_app() as app:
        made = World(app)
        yield made
        await made.bus.close()


def numbers(found: Found) -> list[str | None]:
    """Return the ids of the events of dead letters."""
    return [one.event_id for one in found.letters]


async def test_a_look_changes_nothing(world: World) -> None:
    """Each dead letter is shown with its cause, again and again, and nothing is in the outbox."""
    await world.bus.publish([letter(1), letter(2)])
    for _ in range(2):
        found = await world.redriving.look(TOPIC, limit=10)
        assert numbers(found) == ["e-1", "e-2"]
    [first, _] = found.letters
    assert (first.agent, first.kind, first.error, first.attempts, first.redrives) == (
        "biller", "ValueError", "no", 3, 0,
    )  # fmt: skip
    assert (first.type, first.key) == ("Shop.Order.Paid", "o-1")
    assert await world.waiting() == []


async def test_each_is_put_back_once_in_order(world: World) -> None:
    """Key, value and headers are as they were, `redrives` counts, the cause is gone; a second redrive finds nothing."""
    await world.bus.publish([letter(1), letter(2, redrives=1)])
    found = await world.redriving.redrive(TOPIC, limit=10)
    assert (numbers(found), found.foreign, found.returned) == (["e-1", "e-2"], 0, 0)
    first, second = await world.waiting()
    assert (first.topic, first.key, first.header("redrives"), first.header("redriven-for")) == (
        TOPIC, "o-1", "1", "biller",
    )  # fmt: skip
    assert second.header("redrives") == "2"
    assert [name for name, _ in first.headers if name.startswith("dlt-")] == []
    event = decode(first)
    assert event is not None
    assert event.payload == {"n": 1}
    assert delivery_id(Delivery(first, 0, 0), event, "biller") == "e-1 redrives 1"
    assert delivery_id(Delivery(first, 0, 0), event, "another") == "e-1"
    assert (await world.redriving.redrive(TOPIC, limit=10)).letters == []
    assert len(await world.waiting()) == 2


async def test_a_limit_leaves_the_rest(world: World) -> None:
    """The next redrive goes on behind it."""
    await world.bus.publish([letter(number) for number in range(5)])
    assert numbers(await world.redriving.redrive(TOPIC, limit=2)) == ["e-0", "e-1"]
    assert numbers(await world.redriving.look(TOPIC, limit=10)) == ["e-2", "e-3", "e-4"]


async def test_what_is_no_dead_letter_of_the_topic_is_passed_over(world: World) -> None:
    """It is counted, and nothing of it is put anywhere."""
    foreign = Message(f"{TOPIC}.dlt", "o-1", b"?", (("dlt-topic", "another"),))
    await world.bus.publish([foreign, letter(1), Message(f"{TOPIC}.dlt", "o-1", None)])
    found = await world.redriving.redrive(TOPIC, limit=10)
    assert (numbers(found), found.foreign) == (["e-1"], 2)
    assert len(await world.waiting()) == 1


async def test_who_dies_before_the_offsets_are_committed_puts_the_same_back(world: World) -> None:
    """The rows have the same ids, so that an outbox that knows them takes none twice."""
    await world.bus.publish([letter(1)])
    stored: list[Outgoing] = []

    class Dying:
        async def insert_events(self, events: list[Outgoing]) -> None:
            stored.extend(events)
            raise StoreUnavailableError

    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            await world.on(Dying()).redrive(TOPIC, limit=10)  # type: ignore[arg-type]
    assert stored[0].id == stored[1].id
    assert numbers(await world.redriving.redrive(TOPIC, limit=10)) == ["e-1"]


async def test_what_comes_back_meanwhile_is_left(world: World) -> None:
    """A redrive does not go round with a message whose agent refuses it at once."""
    await world.bus.publish([letter(1)])
    outbox = world.stores.outbox

    class Returning:
        async def insert_events(self, events: list[Outgoing]) -> None:
            await outbox.insert_events(events)
            await world.bus.publish([letter(1, redrives=1)])

    async def two(_: str) -> int:
        return 2

    redriving = replace(world.on(Returning()), backlog=two)  # type: ignore[arg-type]
    found = await redriving.redrive(TOPIC, limit=10)
    assert (numbers(found), found.returned) == (["e-1"], 1)
    assert [one.redrives for one in (await world.redriving.look(TOPIC, limit=10)).letters] == [1]


async def test_a_topic_without_dead_letters(world: World) -> None:
    """It ends at once, and does not wait for what nobody sent."""
    assert await world.redriving.redrive("outbox.event.Nothing", limit=10) == Found()


@pytest.mark.parametrize("topic", [f"{TOPIC}.dlt", "outbox.*"])
async def test_the_topic_of_dead_letters_themselves_is_refused(world: World, topic: str) -> None:
    """The error says to name the topic that they came from."""
    with pytest.raises(InvalidInputError, match="the topic that the messages came from"):
        await world.redriving.look(topic, limit=1)


@pytest.mark.parametrize("text", ["", "-1", "x", "٣", "9" * 5_000])
def test_a_count_that_is_none(text: str) -> None:
    """A header that somebody else wrote counts as nothing."""
    message = replace(letter(1), headers=(*letter(1).headers, ("redrives", text)))
    assert redrives_of(message) == 0
    row = put_back(Delivery(message, 0, 0), TOPIC)
    assert row is not None
    assert row.message is not None
    assert row.message.header("redrives") == "1"
