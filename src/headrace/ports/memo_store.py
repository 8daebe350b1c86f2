"""The memo: paid answers, kept so that nothing is bought twice."""

from __future__ import annotations

from typing import Protocol

from headrace.model.llm import StoredAnswer


class MemoStore(Protocol):
    """Write-once by key. An answer is accepted from anyone, even from a session that is dead by now."""

    async def load_answer(self, key: str) -> StoredAnswer | None:
        """The answer under this key (64 hex digits), or None."""
        ...

    async def store_answer(self, key: str, answer: StoredAnswer) -> StoredAnswer:
        """Keep the answer durably; when it returns, the answer is committed.

        The first writer wins: where the key is taken, nothing changes. Returns the answer that stands.
        """
        ...
