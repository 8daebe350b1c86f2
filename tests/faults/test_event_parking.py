"""Events that a broker does not take: parked visibly, their key alone waits, and they leave once that is mended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from headrace import App
from headrace.buses.kafka import KafkaBus
from headrace.engine.events.parts import EventParts
from headrace.event_settings import EventSettings
from headrace.model.event import Message
from headrace.settings import QueueSettings, Settings
from headrace.wiring import migrate
from tests.backends.kafka import kafka_settings, shared_broker
from tests.backends.postgres import empty_schema
from tests.backends.server import shared_server
from tests.integration.kafka_reading import new_topic, reading
from tests.waiting import wait_until

#: What the app of these tests may emit; the relay is set up otherwise at first.
WIDE = 8 * 1024 * 1024
LARGE = "x" * (5 * 1024 * 1024)


def settings_of(schema: str, topic: str, **changes: Any) -> Settings:
    """Return settings of an app on real servers; its events go to one topic."""
    queue = QueueSettings(url=shared_server().dsn, schema=schema)
    return Settings(queue=queue, events=kafka_settings(shared_broker(), topic=topic, **changes))


@asynccontextmanager
async def relaying(settings: Settings) -> AsyncIterator[App]:
    """Relay events with these settings, until the block ends."""
    app = App(settings=settings)
    async with app.event_host(EventParts(relay=True)):
        yield app


async def emit(app: App, key: str, *texts: str) -> None:
    """Emit an event of a key for each text."""
    for text in texts:
        await app.emit("Parking.Order.Told", {"text": text}, aggregate_id=key)


async def read(events: EventSettings, count: int) -> dict[str, list[int]]:
    """Return the sizes of all messages of the topic, rounded to MiB, by key."""
    async with reading(events, events.topic, group=uuid4().hex) as reader:
        got = await reader.read_count(count)
    keys = sorted({delivery.message.key for delivery in got})
    return {key: [len(one.message.value or b"") >> 20 for one in got if one.message.key == key] for key in keys}


async def test_an_event_of_five_megabytes_waits_visibly_until_the_relay_may_send_it() -> None:
    """The relay keeps to its own bound; the key of the event waits behind it, others do not."""
    async with empty_schema() as schema:
        topic = new_topic()
        narrow, wide = settings_of(schema, topic), settings_of(schema, topic, max_bytes=WIDE)
        await migrate(narrow)
        async with App(settings=wide) as app:
            await emit(app, "large", "before", LARGE, "after")
            await emit(app, "other", "one", "two")
            async with relaying(narrow):
                assert await read(narrow.events, 3) == {"large": [0], "other": [0, 0]}
                [parked] = await wait_until(lambda: app.event_stores.outbox.list_parked(limit=9))
                await emit(app, "large", "last")
                await emit(app, "other", "three")
                assert await read(narrow.events, 4) == {"large": [0], "other": [0, 0, 0]}
            stats = await app.event_stores.outbox.outbox_stats()
            assert (parked.key, stats.parked) == ("large", 1)
            assert "see events.max_bytes" in parked.error
            async with relaying(wide):
                assert await app.event_stores.outbox.release_parked([parked.position], drop=False)
                assert await read(wide.events, 7) == {"large": [0, 5, 0, 0], "other": [0, 0, 0]}


async def test_events_of_a_topic_that_is_not_there_wait_until_it_was_made() -> None:
    """It may not be made by the relay; once somebody made it, what was parked is released, and leaves in order."""
    async with empty_schema() as schema:
        settings = settings_of(schema, new_topic(), create_topics=False)
        await migrate(settings)
        async with relaying(settings) as app:
            await emit(app, "one", "a", "b")
            await emit(app, "two", "c")
            parked = await wait_until(lambda: _parked(app, 2))
            assert {one.key: one.held for one in parked} == {"one": 1, "two": 0}
            assert "make it, then release the event" in parked[0].error
            maker = KafkaBus(kafka_settings(shared_broker()))
            assert await maker.publish([Message(settings.events.topic, "made", b"")]) == [None]
            await maker.close()
            await app.event_stores.outbox.release_parked([one.position for one in parked], drop=False)
            assert await read(settings.events, 4) == {"made": [0], "one": [0, 0], "two": [0]}


async def _parked(app: App, count: int) -> list[Any]:
    stats = await app.event_stores.outbox.outbox_stats()
    found = await app.event_stores.outbox.list_parked(limit=9)  # afterwards: what waited a moment ago is held by now
    return found if len(found) == count and not stats.waiting else []
