"""Names in memory."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.model.known_names import ClaimedNames, KnownName, NewName
from headrace.stores.memory.state import State, atomic


class MemoryNameStore:
    """`ports.name_store.NameStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state

    @atomic
    async def claim_names(self, scope: str, names: Sequence[NewName], *, seen: int) -> ClaimedNames:
        """Take what is free, or return what the caller has not seen."""
        owners = {new.owner for new in names}
        newer = [known for known in self._state.names.after(scope, seen) if known.owner not in owners]
        if newer:
            return ClaimedNames(newer=tuple(newer))
        return ClaimedNames(self._state.names.take(scope, names))

    @atomic
    async def list_names(self, scope: str, *, after: int = 0) -> list[KnownName]:
        """Return the names of a scope."""
        return self._state.names.after(scope, after)

    @atomic
    async def release_names(self, scope: str, owner: UUID) -> int:
        """Give back the names of an owner."""
        return self._state.names.release(scope, owner)
