"""What somebody should know of batches that have not ended: nobody may be there who makes them, or it is paused."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.apps.details.mode import REASON
from headrace.apps.details.names import FLOWS_QUEUE, INTAKE_QUEUE, SUBTASKS_QUEUE

if TYPE_CHECKING:
    from headrace import App
    from headrace.model.session import SessionView

QUEUES = (INTAKE_QUEUE, FLOWS_QUEUE, SUBTASKS_QUEUE)
#: How often it is looked who works.
LOOK_SECONDS = 1.0
WAITING, RUNNING = "waiting", "running"
_FIX = "start one: `headrace worker headrace.apps.details.worker:app`"


def unserved(sessions: Iterable[SessionView]) -> tuple[str, ...]:
    """Return the queues of details that no live worker serves."""
    served = {queue for session in sessions if session.alive for queue in session.queues}
    return tuple(queue for queue in QUEUES if queue not in served)


def in_words(idle: Collection[str]) -> str:
    """Return what to say of queues without a worker, and what to do; "" where there are none.

    >>> in_words(["details.flows"])
    'no live worker serves details.flows; start one: `headrace worker headrace.apps.details.worker:app`'
    """
    return f"no live worker serves {', '.join(idle)}; {_FIX}" if idle else ""


def paused_words(paused: Mapping[str, str | None]) -> str:
    """Return what to say of queues that are paused, by why; that there are to be no parts in single-call mode is usual.

    >>> paused_words({"details.intake": "upgrade", "details.subtasks": REASON})
    'details.intake is paused (upgrade): `headrace queue resume details.intake` once that is over'
    """
    told = [
        f"{queue} is paused ({why or 'no reason given'}): `headrace queue resume {queue}` once that is over"
        for queue, why in paused.items()
        if not (queue == SUBTASKS_QUEUE and why == REASON)
    ]
    return "; ".join(told)


def with_attention(shown: Mapping[str, Any], idle: Collection[str], paused: str = "") -> dict[str, Any]:
    """Return what is shown of a batch with `attention`; one that nobody works on waits, though it has begun.

    `paused`: what is said of queues that are paused.

    >>> with_attention({"status": "running"}, QUEUES)["status"], with_attention({"status": "completed"}, QUEUES)
    ('waiting', {'status': 'completed', 'attention': ''})
    """
    status = shown["status"]
    if status not in (WAITING, RUNNING):
        return {**shown, "attention": ""}
    waits = len(idle) == len(QUEUES)
    return {**shown, "status": WAITING if waits else status, "attention": _joined(idle, paused)}


def _joined(idle: Collection[str], paused: str) -> str:
    return "; ".join(filter(None, (in_words(idle), paused)))


class Attention:
    """Knows which queues of details nobody serves, or are paused, at the cost of one look a second."""

    def __init__(self, app: App) -> None:
        self._app, self._looked_at = app, 0.0
        self._idle: tuple[str, ...] = ()
        self._paused = ""

    async def words(self) -> str:
        """Return what to say of them. Raises StoreUnavailableError."""
        await self._look()
        return _joined(self._idle, self._paused)

    async def on(self, shown: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is shown of a batch, with `attention`. Raises StoreUnavailableError."""
        if shown["status"] in (WAITING, RUNNING):
            await self._look()
        return with_attention(shown, self._idle, self._paused)

    async def _look(self) -> None:
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        stores = self._app.runtime.stores
        self._idle = unserved(await stores.inspect.list_sessions())
        states = await stores.control.queue_states()
        paused = {queue: states[queue].paused_reason for queue in QUEUES if queue in states and states[queue].paused}
        self._paused = paused_words(paused)
        self._looked_at = time.monotonic()
