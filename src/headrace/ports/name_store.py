"""The name store port: names that are used once within a scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from headrace.model.known_names import ClaimedNames, KnownName, NewName


class NameStore(Protocol):
    """A unique index of normalised names in each scope. All methods raise StoreUnavailableError."""

    async def claim_names(self, scope: str, names: Sequence[NewName], *, seen: int) -> ClaimedNames:
        """Take for each owner the names whose keys are free, in order, unless there are names the caller has not seen.

        `seen`: the highest position among the names that the caller compared its own with. Where the scope holds later
        ones, of owners that claim nothing here, nothing is taken and those are returned, in their order. A name that
        its owner has already is taken again, so that a claim can be repeated; of equal keys in one claim the first gets
        the name. All in one step: of two callers with equal keys one gets the name, and nobody takes a name without
        having compared it with all that were taken before.
        """
        ...

    async def list_names(self, scope: str, *, after: int = 0) -> list[KnownName]:
        """Return the names of a scope with positions above `after`, in their order."""
        ...

    async def release_names(self, scope: str, owner: UUID) -> int:
        """Give back the names of an owner, for work that is thrown away; return how many."""
        ...
