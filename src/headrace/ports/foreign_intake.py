"""The port of transactional enqueue: jobs inserted on the caller's own connection, inside its transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from uuid import UUID

from headrace.model.event import Outgoing
from headrace.model.job import NewJob


class ForeignIntake(Protocol):
    """Declared absent (None) by stores that are not the caller's database."""

    async def insert_jobs_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[UUID]:
        """Insert on an asyncpg, psycopg or SQLAlchemy connection or session; the jobs exist iff that commits.

        Raises InvalidInputError for a connection of another kind, ConflictError and KeyHeldError as
        `JobStore.insert_jobs`.
        """
        ...

    async def insert_events_on(self, connection: Any, events: Sequence[Outgoing]) -> None:
        """Put events into the outbox on such a connection; they leave iff that commits. Raises InvalidInputError."""
        ...

    def after_commit(self, connection: Any, action: Any) -> bool:
        """Run `action()` once the connection's transaction has committed; False where that cannot be known."""
        ...
