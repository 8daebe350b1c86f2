"""The relay and topics that cannot take messages for now: nothing is lost or parked, and no other topic waits."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from headrace.engine.events import later_topics
from headrace.engine.events.later_topics import LaterTopics
from headrace.engine.loops.relay import RelayOptions
from headrace.model.event import Event, Outgoing
from headrace.ports.bus import LATER
from tests.unit.test_relay import World, world
from tests.waiting import wait_until

__all__ = ["world"]

SICK = "outbox.event.Sick"
ANSWERS = pytest.mark.parametrize("answer", [LATER, f"{LATER}: no leader"])


@pytest.fixture
def one_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a topic be tried again at once."""
    monkeypatch.setattr(later_topics, "PAUSES", (0.0, 0.0))


@ANSWERS
async def test_what_is_for_later_waits_and_the_rest_goes(world: World, answer: str) -> None:
    """What the bus took is marked; the topic is left out of the next batches, with what comes into it meanwhile."""
    await world.put("s1", "s2", "t1", kind="Sick")
    await world.put("a1")
    world.bus.later = {world.ids["s1"]: answer}
    await world.relay.step()
    assert (world.bus.said, await world.states()) == (["t1", "a1"], (2, 0, 0))
    await world.put("s3", "u1", kind="Sick")
    await world.put("a2")
    await world.relay.step()
    assert (world.bus.said, await world.states()) == (["t1", "a1", "a2"], (4, 0, 0))


@pytest.mark.usefixtures("one_pause")
async def test_what_was_for_later_goes_in_its_order(world: World) -> None:
    """Once the topic takes messages again; and what the bus said it was behind was not put by."""
    await world.put("s1", "s2", kind="Sick")
    world.bus.later = {world.ids["s1"]: LATER}
    await world.relay.step()
    world.bus.later = {}
    await world.put("s3", kind="Sick")
    await world.relay.step()
    assert (world.bus.said, await world.states()) == (["s1", "s2", "s3"], (0, 0, 0))


@pytest.mark.usefixtures("one_pause")
async def test_what_stands_behind_a_row_for_later_is_not_parked(world: World) -> None:
    """Refused by the bus or impossible to write: parked now, it would hold the row before it."""
    await world.put("s1", "s2", "t1", "t2", kind="Sick")
    world.bus.keeps_back = False
    world.bus.later = {world.ids["s1"]: LATER, world.ids["t1"]: LATER}
    world.bus.refuses = {world.ids["s2"]}
    rows = world.stores.events.outbox._table.rows  # type: ignore[union-attr]
    last = rows[max(rows)]
    last.outgoing = Outgoing(SICK, "t", Event("Shop.Thing.Happened", "Sick", "t", float("nan")))
    await world.relay.step()
    assert (world.bus.said, await world.states()) == ([], (4, 0, 0))
    world.bus.later = {}
    await world.relay.step()
    assert (world.bus.said, await world.states()) == (["s1", "t1"], (0, 0, 2))


async def test_a_front_of_rows_for_later_holds_up_nothing() -> None:
    """More of them than a batch has; the relay goes on with the others at once, and with them after the pause."""
    world = World(batch=2)
    world.options = RelayOptions(batch=2, interval=timedelta(hours=1))
    await world.leadership.step()
    await world.put(*(f"s{number}" for number in range(5)), kind="Sick")
    world.bus.later = {world.ids["s0"]: LATER}
    await world.put("a1", "a2", "a3")
    relay = world.another(world.leadership)
    relay.start()
    await wait_until(lambda: len(world.bus.said) == 3)
    assert (world.bus.said, await world.states()) == (["a1", "a2", "a3"], (5, 0, 0))
    world.bus.later = {}
    await wait_until(lambda: len(world.bus.said) == 8)
    await relay.stop()
    assert world.bus.said[3:] == ["s0", "s1", "s2", "s3", "s4"]


@pytest.mark.usefixtures("one_pause")
@ANSWERS
async def test_a_topic_that_takes_nothing_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture, answer: str
) -> None:
    """With its name and the reason, as far as the bus gave one."""
    await world.put("s1", kind="Sick")
    world.bus.later = {world.ids["s1"]: answer}
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            await world.relay.step()
    assert world.bus.calls == 4
    [said] = caplog.messages
    assert SICK in said
    assert said.endswith("no leader" if answer != LATER else LATER)


async def test_pauses_of_topics_grow_each_by_itself() -> None:
    """From 0.2 s to 5 s, and anew once the topic answers whatever it says."""
    topics = LaterTopics(logging.getLogger("test"))
    pauses = [topics.note(["s", "a"], {"s": "no leader"}) for _ in range(7)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert topics.left_out() == ["s"]
    assert topics.note(["s", "t"], {"s": "no leader", "t": "no leader"}) == 0.2
    assert topics.left_out() == ["s", "t"]
    assert topics.note(["s", "a"], {}) is None
    assert topics.note(["s"], {"s": "no leader"}) == 0.2
