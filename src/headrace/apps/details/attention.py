"""What somebody should know of batches that have not ended: nobody may be there who makes them, or it is paused."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.apps.details.mode import REASON
from headrace.apps.details.names import FLOWS_QUEUE, INTAKE_QUEUE, SUBTASKS_QUEUE
from headrace.model.sentence import Sentence, say

if TYPE_CHECKING:
    from headrace import App
    from headrace.model.session import SessionView

QUEUES = (INTAKE_QUEUE, FLOWS_QUEUE, SUBTASKS_QUEUE)
#: How often it is looked who works.
LOOK_SECONDS = 1.0
WAITING, RUNNING = "waiting", "running"


def unserved(sessions: Iterable[SessionView]) -> tuple[str, ...]:
    """Return the queues of details that no live worker serves."""
    served = {queue for session in sessions if session.alive for queue in session.queues}
    return tuple(queue for queue in QUEUES if queue not in served)


def sentences_of(idle: Collection[str], paused: Mapping[str, str | None]) -> list[Sentence]:
    """Return what to say of queues without a worker, and of those that are paused, by why.

    That there are to be no parts in single-call mode is usual.

    >>> [str(one) for one in sentences_of([], {"details.intake": "upgrade", "details.subtasks": REASON})]
    ['details.intake is paused (upgrade): `headrace queue resume details.intake` once that is over']
    """
    said = []
    if idle:
        said.append(say(
            "no live worker serves {queues}; start one: `headrace worker headrace.apps.details.worker:app`",
            queues=", ".join(idle),
        ))  # fmt: skip
    for queue, why in paused.items():
        if not (queue == SUBTASKS_QUEUE and why == REASON):
            said.append(say(
                "{queue} is paused ({reason}): `headrace queue resume {queue}` once that is over",
                queue=queue, reason=why or say("no reason given"),
            ))  # fmt: skip
    return said


def with_attention(
    shown: Mapping[str, Any], idle: Collection[str], paused: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """Return what is shown of a batch with `attention`; one that nobody works on waits, though it has begun.

    `paused`: queues that are paused, by why.

    >>> with_attention({"status": "running"}, QUEUES)["status"], with_attention({"status": "completed"}, QUEUES)
    ('waiting', {'status': 'completed', 'attention': ''})
    """
    status = shown["status"]
    if status not in (WAITING, RUNNING):
        return {**shown, "attention": ""}
    waits = len(idle) == len(QUEUES)
    return {**shown, "status": WAITING if waits else status, "attention": _joined(sentences_of(idle, paused or {}))}


def _joined(said: Iterable[Sentence]) -> str:
    return "; ".join(map(str, said))


class Attention:
    """Knows which queues of details nobody serves, or are paused, at the cost of one look a second."""

    def __init__(self, app: App) -> None:
        self._app, self._looked_at = app, 0.0
        self._idle: tuple[str, ...] = ()
        self._paused: dict[str, str | None] = {}

    async def words(self) -> str:
        """Return what to say of them. Raises StoreUnavailableError."""
        return _joined(await self.sentences())

    async def sentences(self) -> list[Sentence]:
        """Return what to say of them, for whoever puts it into other words. Raises StoreUnavailableError."""
        await self._look()
        return sentences_of(self._idle, self._paused)

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
        self._paused = {
            queue: states[queue].paused_reason for queue in QUEUES if queue in states and states[queue].paused
        }
        self._looked_at = time.monotonic()
