"""The signal store port on Redis: what wakes parked jobs. One script per verb, so that no wake-up is lost."""

from __future__ import annotations

from datetime import timedelta

from headrace.model.session import LeaderTerm
from headrace.stores.redis import pruning
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.notifier import RedisNotifier


class RedisSignalStore:
    """Durable signals."""

    def __init__(self, namespace: Namespace, notifier: RedisNotifier) -> None:
        self._namespace, self._notifier = namespace, notifier

    async def send_signal(self, key: str, payload: str) -> bool:
        """Store a signal, wake whoever is parked on it, then hint; return False when the key had its signal before."""
        queues = await self._namespace.run("send_signal", key, payload)
        if queues == 0:
            return False
        for queue in queues:
            self._notifier.hint(f"queue:{queue}")
        return True

    async def read_signal(self, key: str) -> str | None:
        """Return the signal of a key, if it has come."""
        payload: str | None = await self._namespace.run("read_signal", key)
        return payload

    async def prune_signals(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` signals that came longer ago. A key nobody waits for any more is not kept anyway."""
        return await pruning.prune_signals(self._namespace, older_than, limit=limit, term=term)
