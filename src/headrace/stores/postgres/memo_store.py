"""Paid answers, kept so that nothing is bought twice."""

from __future__ import annotations

from headrace.model.llm import StoredAnswer
from headrace.stores.postgres.database import Database


class PostgresMemoStore:
    """The memo port on PostgreSQL: write-once by key, accepted from anyone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_answer(self, key: str) -> StoredAnswer | None:
        """The answer under this key (64 hex digits), or None."""
        row = await self._database.fetch_one("load_answer", key=key)
        return None if row is None else StoredAnswer.decode(row["answer"])

    async def store_answer(self, key: str, answer: StoredAnswer) -> StoredAnswer:
        """Keep the answer durably and return the one that stands; when it returns, that is committed."""
        while await self._database.fetch_one("store_answer", key=key, answer=answer.encode()) is None:
            # Taken: by an answer that stands, unless that was pruned in this very moment.
            stored = await self.load_answer(key)
            if stored is not None:
                return stored
        return answer
