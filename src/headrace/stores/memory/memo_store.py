"""Paid answers in this process's memory, for tests and inline mode."""

from __future__ import annotations

from headrace.model.llm import StoredAnswer


class MemoryMemoStore:
    """Write-once by key, like the durable ones; forgets everything with the process."""

    def __init__(self) -> None:
        self._answers: dict[str, str] = {}

    async def load_answer(self, key: str) -> StoredAnswer | None:
        """The answer under this key, or None."""
        text = self._answers.get(key)
        return None if text is None else StoredAnswer.decode(text)

    async def store_answer(self, key: str, answer: StoredAnswer) -> StoredAnswer:
        """Keep the answer unless the key is taken; returns the one that stands."""
        return StoredAnswer.decode(self._answers.setdefault(key, answer.encode()))
