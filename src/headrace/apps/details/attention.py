"""What somebody should know of batches that have not ended: nobody may be there who makes them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

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


def with_attention(shown: Mapping[str, Any], idle: Collection[str]) -> dict[str, Any]:
    """Return what is shown of a batch with `attention`; one that nobody works on waits, though it has begun.

    >>> with_attention({"status": "running"}, QUEUES)["status"], with_attention({"status": "completed"}, QUEUES)
    ('waiting', {'status': 'completed', 'attention': ''})
    """
    status = shown["status"]
    if status not in (WAITING, RUNNING):
        return {**shown, "attention": ""}
    return {**shown, "status": WAITING if len(idle) == len(QUEUES) else status, "attention": in_words(idle)}


class Attention:
    """Knows which queues of details nobody serves, at the cost of one look a second."""

    def __init__(self, app: App) -> None:
        self._app, self._looked_at = app, 0.0
        self._idle: tuple[str, ...] = ()

    async def idle(self) -> tuple[str, ...]:
        """Return the queues that no live worker serves. Raises StoreUnavailableError."""
        if time.monotonic() - self._looked_at >= LOOK_SECONDS:
            self._idle = unserved(await self._app.runtime.stores.inspect.list_sessions())
            self._looked_at = time.monotonic()
        return self._idle

    async def words(self) -> str:
        """Return what to say of them."""
        return in_words(await self.idle())

    async def on(self, shown: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is shown of a batch, with `attention`."""
        return with_attention(shown, await self.idle() if shown["status"] in (WAITING, RUNNING) else ())
