"""Handles and noted events as rows, and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from hashlib import blake2b
from typing import Any

from headrace.model.event import Event
from headrace.model.resume_handle import HandleState, HandleView, NotedEvent

#: What is longer is known by a hash: an entry of an index has its bounds, ids of others have none.
_LONGEST = 200


def handle_view(row: Any) -> HandleView:
    """Return a handle for reading."""
    return HandleView(
        row["correlation_id"], tuple(row["expect_types"]), row["expect_count"], tuple(row["request_types"]),
        tuple(row["agents"]), HandleState(row["state"]), row["arrived"], row["target"], row["wake_at"] is not None,
        row["created_at"], row["expires_at"], row["ended_at"], row["payload"],
    )  # fmt: skip


def noted_values(noted: NotedEvent) -> dict[str, Any]:
    """Return the parameters of `note_event` that are the event's, but for the correlation id."""
    event = noted.event
    return {
        "event_id": _known_as(event.id), "dead": noted.dead, "agent": _known_as(noted.agent),
        "type": _known_as(event.type), "cause": None if event.causation_id is None else _known_as(event.causation_id),
        "noted": _encode(noted),
    }  # fmt: skip


def noted_event(text: str) -> NotedEvent:
    """Return a noted event from its JSON text."""
    document = json.loads(text)
    facts = document.pop("event")
    time = facts.pop("time")
    event = Event(time=None if time is None else datetime.fromisoformat(time), **facts)
    return NotedEvent(event, **document)


def _encode(noted: NotedEvent) -> str:
    """Return a noted event as JSON text. ASCII only: a payload may hold characters that the database refuses."""
    facts = asdict(noted.event)
    facts["time"] = None if noted.event.time is None else noted.event.time.isoformat()
    return json.dumps({"event": facts, "dead": noted.dead, "agent": noted.agent, "error": noted.error})


def _known_as(text: str) -> str:
    """Return what stands for an id of somebody else's in keys: itself, unless it is long or no key may hold it."""
    raw = text.encode("utf-8", "surrogatepass")
    return text if len(raw) <= _LONGEST and text.isprintable() else blake2b(raw, digest_size=32).hexdigest()
