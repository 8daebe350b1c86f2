"""Canonical ids of agents, and the other names they are known by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from headrace.model.errors import ConfigError, InvalidInputError, NotFoundError

_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def canonical_id(name: str) -> str:
    """Return the canonical form of an agent's name: lower case, letters and digits alone. Raises InvalidInputError.

    >>> canonical_id("character_expert"), canonical_id("WorldBuilder")
    ('characterexpert', 'worldbuilder')
    """
    if not isinstance(name, str) or not _ALIAS.fullmatch(name):
        raise InvalidInputError("agent id", "must be 1 to 64 letters, digits and . _ -", name)
    return re.sub(r"[^a-z0-9]", "", name.lower())


class AgentIds:
    """Which agents there are, by canonical id and by alias.

    >>> ids = AgentIds()
    >>> ids.add("character_expert", aliases=["names"])
    'characterexpert'
    >>> ids.resolve("character-expert"), ids.resolve("names")
    ('characterexpert', 'characterexpert')
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._ids: dict[str, tuple[str, ...]] = {}

    def add(self, name: str, *, aliases: Iterable[str] = ()) -> str:
        """Register an agent and return its canonical id. Raises InvalidInputError, ConfigError for a name in use."""
        own = canonical_id(name)
        names = (name, *aliases)
        for alias in (own, *names):
            taken = self._names.get(alias, self._names.get(canonical_id(alias), own))
            if taken != own or (own in self._ids and alias == own):
                raise ConfigError(f"the agent name {alias!r} is in use by agent {taken!r}; give one of them another")
        self._ids[own] = tuple(dict.fromkeys(alias for alias in names if alias != own))
        self._names.update(dict.fromkeys((own, *names), own) | {canonical_id(alias): own for alias in names})
        return own

    def resolve(self, name: str) -> str:
        """Return the canonical id behind an id or alias. Raises NotFoundError naming what there is."""
        found = self._names.get(name) or (self._names.get(canonical_id(name)) if _ALIAS.fullmatch(name) else None)
        if found is None:
            near = get_close_matches(name, sorted(self._names), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(self._ids)) or 'none'}"
            raise NotFoundError(f"no agent {name!r}; {hint}")
        return found

    def aliases(self, own: str) -> tuple[str, ...]:
        """Return the other names of an agent as they were given."""
        return self._ids[own]

    def __iter__(self) -> Iterator[str]:
        """Walk the canonical ids."""
        return iter(self._ids)
