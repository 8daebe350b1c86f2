"""Dead letters on a real broker of the Kafka protocol: looked at and put back, each once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from headrace.buses.kafka import KafkaBus
from headrace.engine.events.redriving import Patience, Redriving
from headrace.model.envelopes import encode
from headrace.model.envelopes.dead_letters import dead_letter
from headrace.model.event import Event, Message
from tests.backends.kafka import kafka_settings, shared_broker
from tests.integration.kafka_reading import new_topic
from tests.unit.engine_app import quick_app


@pytest.fixture
async def bus() -> AsyncIterator[KafkaBus]:
    """A bus on the broker of this process."""
    bus = KafkaBus(kafka_settings(shared_broker()))
    yield bus
    await bus.close()


def letter(topic: str, number: int) -> Message:
    """Return a dead letter of a topic."""
    sent = encode(Event("Shop.Order.Paid", "ShopOrder", f"o-{number % 2}", id=f"e-{number}"), "headrace", "/x", topic)
    row = dead_letter(sent, partition=0, offset=number, agent="a", kind="K", error="no", attempts=1, suffix=".dlt")
    assert row.message is not None
    return row.message


async def only_time_tells(_: str) -> None:
    """Kafka is not asked how far a group is behind."""


async def test_dead_letters_are_put_back_once_from_kafka(bus: KafkaBus) -> None:
    """A look commits nothing, a redrive with a limit goes on behind the last one, those of a key in their order."""
    topic = new_topic()
    await bus.publish([letter(topic, number) for number in range(10)])
    async with quick_app() as app:
        outbox = app.event_stores.outbox
        redriving = Redriving(bus, outbox, ".dlt", Patience(10.0, 1.0), only_time_tells)
        seen = await replace(redriving, patience=Patience()).look(topic, limit=10)
        assert {one.event_id for one in seen.letters} == {f"e-{number}" for number in range(10)}
        done = len((await redriving.redrive(topic, limit=4)).letters)
        assert done == 4
        # When the broker is slow a redrive ends before it has seen all.
        for _ in range(6):
            done += len((await redriving.redrive(topic, limit=10 - done)).letters)
            if done == 10:
                break
        rows = [row.outgoing for row in await outbox.waiting_events(limit=100)]
    assert (done, {row.topic for row in rows}) == (10, {topic})
    for key in ("o-0", "o-1"):
        own = [row.message.header("id") for row in rows if row.key == key and row.message is not None]
        assert own == [f"e-{number}" for number in range(10) if f"o-{number % 2}" == key]
