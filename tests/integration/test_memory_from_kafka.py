"""Changes of the buffer table from brokers, as Debezium sends them: whatever stream of them, the same looks follow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from confluent_kafka import Producer

from headrace.engine.events.parts import EventParts
from headrace.model.event import Message
from tests.backends.kafka import kafka_settings, shared_broker
from tests.integration.memory_changes_world import World, world
from tests.unit.memory_changes import bare, change, cloudevent, row, with_schema
from tests.waiting import wait_until

FORMS = (bare, with_schema, cloudevent)
#: A group on a busy machine takes its time to notice who is gone.
PATIENCE = timedelta(seconds=60)
#: Rows, a few of each user, in transactions of five.
ROWS, USERS, TOGETHER = 150, 40, 5


def user(number: int) -> str:
    """Return whose row it is."""
    return f"u-{number % USERS}"


def stream(at: World) -> list[list[Message]]:
    """Return what a connector sends: of each transaction its changes, in the order of the log."""
    transactions = []
    for first in range(0, ROWS, TOGETHER):
        changes = [
            change(row(number, user_id=user(number)), lsn=10_000 + number, schema=at.schema, txId=first)
            for number in range(first, first + TOGETHER)
        ]
        transactions.append([FORMS[first // TOGETHER % 3](one, at.topic) for one in changes])
    return transactions


def noise(at: World) -> Iterator[Message]:
    """Yield what is not for memory: own updates, what went and its tombstone, snapshots."""
    for number in range(0, ROWS, 7):
        mine = row(number, user_id="nobody", status="processing", flush_id=row()["id"])
        yield bare(change(mine, op="u", lsn=20_000 + number), at.topic)
        gone = bare(change(None, op="d", lsn=30_000 + number) | {"before": row(number, user_id="nobody")}, at.topic)
        yield gone
        yield Message(at.topic, gone.key, None)
        yield with_schema(change(row(number, user_id="nobody"), op="r", lsn=1, snapshot="last"), at.topic)


def garbage(at: World) -> list[Message]:
    """Return what nobody can read, and what breaks a rule."""
    return [
        Message(at.topic, "k1", b"\xff{"),
        Message(at.topic, "k2", b"[]"),
        bare(change(row(1_001, user_id=None), lsn=40_001), at.topic),
        cloudevent(change(row(1_002, token_size=-1), lsn=40_002), at.topic),
        with_schema(change(row(1_003, updated_at="yesterday"), lsn=40_003), at.topic),
    ]


def send(messages: Sequence[Message]) -> None:
    """Send messages as a connector does, and wait until the broker has them."""
    producer = Producer({"bootstrap.servers": shared_broker().servers, "enable.idempotence": False})
    for one in messages:
        headers = [(name, value.encode()) for name, value in one.headers]
        producer.produce(one.topic, one.value, one.key.encode(), headers=headers)
        producer.poll(0)
    assert producer.flush(30) == 0


async def handled(at: World) -> int:
    """Count the events that were handled, dead letters among them."""
    return int(await at.connection.fetchval(f"SELECT count(*) FROM {at.store}.event_inbox"))


def plain(at: World, chance: Random) -> list[Message]:
    """Each once, in order."""
    return [one for transaction in stream(at) for one in transaction]


def reordered(at: World, chance: Random) -> list[Message]:
    """Changes of a transaction in any order."""
    return [one for transaction in stream(at) for one in chance.sample(transaction, len(transaction))]


def repeated(at: World, chance: Random) -> list[Message]:
    """Some come twice at once, and then all of it again, in another form, with what is not for memory."""
    sent = [one for one in plain(at, chance) for _ in range(chance.choice((1, 1, 2, 3)))]
    others = list(noise(at))
    return sent + others + plain(at, chance) + others


def spoiled(at: World, chance: Random) -> list[Message]:
    """What nobody can read lies everywhere between."""
    sent = plain(at, chance)
    for one in garbage(at):
        sent.insert(chance.randrange(len(sent)), one)
    return sent


@pytest.mark.parametrize("order", [plain, reordered, repeated, spoiled])
async def test_the_same_looks_follow_from_any_stream(order: Any) -> None:
    """Each user once, each change noted once; what is wrong is a dead letter."""
    async with world(trigger=False, events=kafka_settings(shared_broker())) as at:
        app, dead = at.app(), 5 if order is spoiled else 0
        send(order(at, Random(7)))
        async with app.event_host(EventParts(agents=None), grace=2):
            await wait_until(lambda: _are(at, ROWS + dead), PATIENCE)
        async with app:
            assert await at.jobs(app) == await at.pending() == sorted(user(number) for number in range(USERS))
        letters = [dict(json.loads(one["headers"])) for one in await at.told()]
        assert sorted(one["dlt-error-kind"] for one in letters) == ["bad_envelope"] * 2 * bool(dead) + [
            "invalid_input"
        ] * 3 * bool(dead)


async def test_the_same_looks_follow_though_the_consumer_is_cut_off_again_and_again() -> None:
    """It goes on where it was, and repeats what was not committed, without effect."""
    async with world(trigger=False, events=kafka_settings(shared_broker())) as at:
        messages = repeated(at, Random(3))
        cuts = [0, 40, 90, 200, 330, len(messages)]
        for first, last in pairwise(cuts):
            send(messages[first:last])
            before, app = await handled(at), at.app()
            async with app.event_host(EventParts(agents=None), grace=0):
                await wait_until(lambda before=before: _more(at, before), PATIENCE)
        app = at.app()
        async with app.event_host(EventParts(agents=None), grace=2):
            await wait_until(lambda: _are(at, ROWS), PATIENCE)
        async with app:
            assert await at.jobs(app) == await at.pending() == sorted(user(number) for number in range(USERS))


async def _are(at: World, count: int) -> bool:
    return await handled(at) == count


async def _more(at: World, before: int) -> bool:
    return await handled(at) > before or before == ROWS


async def test_snapshots_bring_looks_where_they_are_wanted() -> None:
    """A connector that begins anew reads all rows; incremental ones too."""
    async with world(trigger=False, events=kafka_settings(shared_broker())) as at:
        marks = ["first", "true", "last", "incremental"]
        send(
            [
                bare(change(row(number, user_id=mark), op="r", lsn=1, snapshot=mark), at.topic)
                for number, mark in enumerate(marks)
            ]
        )
        app = at.app(read_snapshots=True)
        async with app.event_host(EventParts(agents=None), grace=2):
            await wait_until(lambda: _are(at, 4), PATIENCE)
        assert await at.pending() == sorted(marks)
