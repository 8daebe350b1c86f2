"""Names that are used once within a scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from headrace.model.known_names import KnownName, NewName


@dataclass(slots=True)
class Names:
    """The names of each scope by key, in the order of taking, and the last number that was given."""

    taken: dict[str, dict[str, KnownName]] = field(default_factory=dict)
    last: Counter[str] = field(default_factory=Counter)

    def after(self, scope: str, position: int) -> list[KnownName]:
        """Return the names of a scope with later positions, in order."""
        return [name for name in self.taken.get(scope, {}).values() if name.position > position]

    def take(self, scope: str, names: Sequence[NewName]) -> dict[str, int]:
        """Take the names whose keys are free, in order, and return the positions of those that are their claimers'."""
        known = self.taken.setdefault(scope, {})
        for new in names:
            if new.key not in known:
                self.last[scope] += 1
                known[new.key] = KnownName(new.key, new.name, new.owner, self.last[scope])
        return {new.key: known[new.key].position for new in names if known[new.key].owner == new.owner}

    def release(self, scope: str, owner: UUID) -> int:
        """Give back the names of an owner."""
        known = self.taken.get(scope, {})
        keys = [key for key, name in known.items() if name.owner == owner]
        for key in keys:
            del known[key]
        return len(keys)
