"""Sending a signal, alone or within another step."""

from __future__ import annotations

from headrace.stores.memory.state import State
from headrace.stores.memory.waiting_room import Signal


def send(state: State, key: str, payload: str) -> set[str] | None:
    """Store the first signal of a key, wake whoever waits for it, and return their queues; None: there was one."""
    room = state.parked
    if key in room.signals:
        return None
    room.signals[key] = Signal(payload, state.now())
    woken = list(room.waiting.get(key, {}).values())
    for job in woken:
        state.queue_up(job, state.now())
    return {job.spec.queue for job in woken}
