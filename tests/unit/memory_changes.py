"""Changes of the buffer table as Debezium sends them, in its forms."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from headrace.model.event import Message

TOPIC = "memory.headrace_memory.buffer_zone"


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a row that waits in a buffer."""
    facts = {
        "id": str(UUID(int=number)), "user_id": f"u-{number}", "blob_id": str(UUID(int=number + 10**6)),
        "blob_type": "chat", "token_size": 10 * number, "status": "idle", "flush_id": None,
        "created_at": "2026-05-01T12:00:00Z", "updated_at": "2026-05-01T12:00:00.25Z",
    }  # fmt: skip
    return facts | changes


def change(after: dict[str, Any] | None, *, op: str = "c", lsn: int = 1_000, **source: Any) -> dict[str, Any]:
    """Return the value of a change."""
    place = {
        "version": "3.0.0.Final", "connector": "postgresql", "name": "memory", "ts_ms": 1_777_636_800_000,
        "snapshot": "false", "db": "memory", "sequence": f'["{lsn - 8}","{lsn}"]', "schema": "headrace_memory",
        "table": "buffer_zone", "txId": 7, "lsn": lsn, "xmin": None,
    }  # fmt: skip
    return {
        "before": None, "after": after, "source": place | source, "transaction": None, "op": op,
        "ts_ms": 1_777_636_800_100,
    }  # fmt: skip


def key_of(value: dict[str, Any]) -> str:
    """Return the key of a change: the primary key as JSON."""
    row = value["after"] or value["before"] or {}
    return json.dumps({"id": row.get("id")})


def bare(value: dict[str, Any], topic: str = TOPIC) -> Message:
    """Return a change as it is sent with schemas.enable=false."""
    return Message(topic, key_of(value), json.dumps(value).encode())


def with_schema(value: dict[str, Any], topic: str = TOPIC) -> Message:
    """Return a change as it is sent with its schema."""
    schema = {"type": "struct", "fields": [], "optional": False, "name": "memory.buffer_zone.Envelope"}
    key = json.dumps({"schema": schema, "payload": json.loads(key_of(value))})
    return Message(topic, key, json.dumps({"schema": schema, "payload": value}).encode())


def cloudevent(value: dict[str, Any], topic: str = TOPIC) -> Message:
    """Return a change as Debezium's converter for CloudEvents sends it."""
    source = value["source"]
    body = {
        "id": f"name:{source['name']};lsn:{source['lsn']};txId:{source['txId']}", "specversion": "1.0",
        "source": "/debezium/postgresql/memory", "type": "io.debezium.connector.postgresql.DataChangeEvent",
        "time": "2026-05-01T12:00:00.000Z", "datacontenttype": "application/json",
        "iodebeziumop": value["op"], "iodebeziumversion": source["version"],
        "iodebeziumconnector": source["connector"], "iodebeziumname": source["name"],
        "iodebeziumtsms": str(source["ts_ms"]), "iodebeziumsnapshot": source["snapshot"],
        "iodebeziumdb": source["db"], "iodebeziumschema": source["schema"], "iodebeziumtable": source["table"],
        "iodebeziumtxId": str(source["txId"]), "iodebeziumlsn": str(source["lsn"]), "iodebeziumxmin": None,
        "data": {"before": value["before"], "after": value["after"]},
    }  # fmt: skip
    headers = (("content-type", "application/cloudevents+json"),)
    return Message(topic, key_of(value), json.dumps(body).encode(), headers)
