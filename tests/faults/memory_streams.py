"""Streams of changes as a connector sends them, and worse ones: repeated, reordered, with what is not for memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer

from headrace.apps.memory.means import TABLES
from headrace.apps.memory.tables.values import NewBlob
from headrace.model.event import Message
from tests.faults.memory_line import MemoryLine
from tests.unit.memory_changes import bare, change, cloudevent, with_schema

FORMS = (bare, with_schema, cloudevent)
_ROWS = """
SELECT row_to_json(z)::text AS row FROM {s}.buffer_zone AS z WHERE blob_id = ANY ($1::uuid[]) ORDER BY created_at, id
"""
_TELL = """
SELECT {store}.insert_events(
  ids => $1::uuid[], topics => $2::text[], keys => $3::text[], raws => array_fill(true, ARRAY[cardinality($1::uuid[])]),
  types => '{}', aggregate_types => '{}', aggregate_ids => '{}', correlation_ids => '{}', causation_ids => '{}',
  times => '{}', schema_versions => '{}', retry_counts => '{}', payloads => '{}', messages => $4::bytea[],
  header_lists => $5::text[], clock => NULL)
"""


async def insert_and_listen(line: MemoryLine, blobs: Sequence[NewBlob]) -> list[Message]:
    """Insert blobs in one transaction, and return what the trigger told of them."""
    async with TABLES._app.database() as connection, TABLES._app.transaction(connection):
        before = await connection.fetchval(f"SELECT coalesce(max(position), 0) FROM {line.store}.event_outbox")
        await TABLES.on(connection).insert_blobs(blobs)
        told = await connection.fetch(
            f"SELECT topic, key, message FROM {line.store}.event_outbox WHERE position > $1 ORDER BY position", before
        )
    return [Message(row["topic"], row["key"], row["message"]) for row in told]


async def changes_of(line: MemoryLine, blobs: Sequence[NewBlob], transaction: int, chance: Random) -> list[Message]:
    """Return what a connector tells of rows that one transaction inserted, in one of the forms."""
    found = await line.query(_ROWS, [blob.id for blob in blobs])
    form = chance.choice(FORMS)
    return [
        form(
            change(json.loads(one["row"]), lsn=transaction * 1_000 + place, schema=line.schema, txId=transaction),
            line.topic,
        )
        for place, one in enumerate(found)
    ]


def noise(line: MemoryLine, chance: Random) -> list[Message]:
    """Return what is not for memory: rows that went and their tombstones, own updates, rows of snapshots."""
    row = {"id": str(uuid4()), "user_id": "nobody", "blob_type": "chat", "status": "processing"}
    gone = bare(change(None, op="d", lsn=chance.randrange(10**6)) | {"before": row}, line.topic)
    own = with_schema(change({**row, "flush_id": str(uuid4())}, op="u", lsn=chance.randrange(10**6)), line.topic)
    read = bare(change({**row, "status": "idle"}, op="r", lsn=1, snapshot="last"), line.topic)
    return chance.sample([gone, Message(line.topic, gone.key, None), own, read], 2)


def worse(told: Sequence[Message], known: Sequence[Message], extra: Sequence[Message], chance: Random) -> list[Message]:
    """Return a transaction's messages reordered and repeated, with some of before and some that mean nothing."""
    sent = [one for one in told for _ in range(chance.choice((1, 1, 2)))]
    sent += chance.sample(known, min(len(known), 3))
    chance.shuffle(sent)
    for one in extra:
        sent.insert(chance.randrange(len(sent) + 1), one)
    return sent


async def tell_store(line: MemoryLine, messages: Sequence[Message]) -> None:
    """Send messages by the bus of the store."""
    # The bus of the store knows no message without a value: a tombstone is one of brokers.
    sent = [one for one in messages if one.value is not None]
    values: tuple[list[Any], ...] = (
        [uuid4() for _ in sent], [one.topic for one in sent], [one.key for one in sent], [one.value for one in sent],
        [json.dumps([list(header) for header in one.headers]) for one in sent],
    )  # fmt: skip
    await line.connection.execute(_TELL.replace("{store}", line.store), *values)


def tell_kafka(servers: str, messages: Sequence[Message]) -> None:
    """Send messages as a connector does, and wait until the broker has them."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": False})
    for one in messages:
        headers = [(name, value.encode()) for name, value in one.headers]
        producer.produce(one.topic, one.value, one.key.encode(), headers=headers)
        producer.poll(0)
    assert producer.flush(30) == 0
