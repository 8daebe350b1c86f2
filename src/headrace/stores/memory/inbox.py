"""The inbox in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from headrace.model.errors import ConfigError
from headrace.model.inbox import Effect
from headrace.model.session import LeaderTerm
from headrace.ports.notifier import Notifier
from headrace.stores.memory import intake, signalling
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.outbox_rows import EVENTS, known_by
from headrace.stores.memory.state import State, atomic


class MemoryInbox:
    """`ports.inbox.Inbox` over a dict; the port says what each verb promises."""

    #: There is no connection that a user could write on.
    writes = False

    def __init__(self, state: State, notifier: Notifier) -> None:
        self._state, self._notifier = state, notifier
        #: When each consumer handled each message.
        self._notes: dict[tuple[str, str], datetime] = {}

    @atomic
    async def handled(self, consumer: str, message_id: str) -> bool:
        """Whether a consumer has handled a message."""
        return (consumer, message_id) in self._notes

    @atomic
    async def accept(self, consumer: str, message_id: str, effect: Effect) -> bool:
        """Note a message and store its effect, or neither."""
        return not self._accept(consumer, [message_id], effect)

    @atomic
    async def handled_among(self, consumer: str, message_ids: Sequence[str]) -> frozenset[str]:
        """Return those of messages that a consumer has handled."""
        return self._noted(consumer, message_ids)

    @atomic
    async def accept_batch(self, consumer: str, message_ids: Sequence[str], effect: Effect) -> frozenset[str]:
        """Note messages and store their effect, or neither."""
        return self._accept(consumer, message_ids, effect)

    def _noted(self, consumer: str, message_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(message_id for message_id in message_ids if (consumer, message_id) in self._notes)

    def _accept(self, consumer: str, message_ids: Sequence[str], effect: Effect) -> frozenset[str]:
        noted = self._noted(consumer, message_ids)
        if not noted:
            for topic in sorted(self._store(effect)):
                self._notifier.hint(topic)
            self._notes.update(dict.fromkeys(((consumer, one) for one in message_ids), self._state.now()))
        return noted

    def _store(self, effect: Effect) -> set[str]:
        """Store an effect and return the topics of its hints; what cannot be stored is found out before anything is."""
        if effect.writes:
            raise ConfigError("The memory store has no connection to write on. Use in_transaction with PostgreSQL.")
        for outgoing in effect.events:
            known_by(outgoing)
        intake.insert_jobs(self._state, effect.jobs)
        self._state.outbox.insert(effect.events, self._state.now())
        queues = {job.spec.queue for job in effect.jobs}
        for key, payload in effect.signals:
            queues |= signalling.send(self._state, key, payload) or set()
        return {f"queue:{queue}" for queue in queues} | ({EVENTS} if effect.events else set())

    @atomic
    async def prune_inbox(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old notes; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return 0
        until = self._state.now() - older_than
        old = list(islice((key for key, noted_at in self._notes.items() if noted_at <= until), limit))
        for key in old:
            del self._notes[key]
        return len(old)
