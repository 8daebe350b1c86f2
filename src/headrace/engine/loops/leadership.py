"""Leadership: one process does what must be done by one.

Guaranteed: at most one valid term by the store's clock; every write of the leader names its term and is refused once
another began. Not guaranteed: that a leader knows at once that it was replaced.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from headrace.engine.loops.loop import Loop
from headrace.model.errors import StoreUnavailableError
from headrace.model.session import LeaderTerm, Role
from headrace.ports.stores import Stores

TERM_LEASE = timedelta(seconds=10)


class Leadership(Loop):
    """Keeps trying to lead; `term` is the proof while this process does."""

    name = "leadership"

    def __init__(
        self, stores: Stores, session: UUID, interval: timedelta = timedelta(seconds=3), *, role: Role = Role.ENGINE
    ) -> None:
        super().__init__(interval)
        self._stores = stores
        self._session = session
        self._role = role
        self.term: LeaderTerm | None = None

    async def step(self) -> None:
        """Become or stay the leader."""
        try:
            self.term = await self._stores.sessions.lead(self._session, lease=TERM_LEASE, role=self._role)
        except StoreUnavailableError:
            self.term = None
            raise

    async def resign(self) -> None:
        """Let another process lead at once."""
        term, self.term = self.term, None
        if term is not None:
            await self._stores.sessions.resign(term)
