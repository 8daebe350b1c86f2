"""Paid answers on Redis."""

from __future__ import annotations

from headrace.model.llm import StoredAnswer
from headrace.stores.redis.namespace import Namespace


class RedisMemoStore:
    """Write-once by key; accepted from anyone."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def load_answer(self, key: str) -> StoredAnswer | None:
        """The answer under this key, or None."""
        text = await self._namespace.run("load_answer", key)
        return None if text is None else StoredAnswer.decode(text)

    async def store_answer(self, key: str, answer: StoredAnswer) -> StoredAnswer:
        """Keep the answer unless the key is taken; returns the one that stands."""
        return StoredAnswer.decode(await self._namespace.run("store_answer", key, answer.encode()))
