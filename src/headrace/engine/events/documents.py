"""Events and what waits for them as documents, so that the command line and the HTTP service answer alike."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from headrace.engine.queries import to_json
from headrace.model.event import Event, OutboxStats, ParkedEvent
from headrace.model.resume_handle import HandleView, NotedEvent


def event_document(event: Event) -> dict[str, Any]:
    """Return an event with its payload.

    >>> event_document(Event("A.B.C", "AB", "1", {"n": 1}, id="e-1"))["payload"]
    {'n': 1}
    """
    found: dict[str, Any] = to_json({"id": event.id, "type": event.type} | asdict(event))
    return found


def stats_document(stats: OutboxStats) -> dict[str, Any]:
    """Return how full the outbox is.

    >>> stats_document(OutboxStats(waiting=2, oldest_seconds=0.12345))
    {'waiting': 2, 'held': 0, 'parked': 0, 'oldest_seconds': 0.123}
    """
    return asdict(stats) | {"oldest_seconds": round(stats.oldest_seconds, 3)}


def parked_document(parked: ParkedEvent) -> dict[str, Any]:
    """Return a row that no bus takes."""
    found: dict[str, Any] = to_json(asdict(parked))
    return found


def handle_document(view: HandleView) -> dict[str, Any]:
    """Return a handle; what came with its token as JSON."""
    found: dict[str, Any] = to_json(asdict(view))
    return found | {"payload": None if view.payload is None else json.loads(view.payload)}


def noted_document(noted: NotedEvent) -> dict[str, Any]:
    """Return an event that is kept for a handle."""
    return {"event": event_document(noted.event), "dead": noted.dead, "agent": noted.agent, "error": noted.error}
