"""The kinds of details there are: how many one call writes, who writes them, and when two names are too alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from headrace.model.errors import InvalidInputError

if TYPE_CHECKING:
    from headrace.llm.dedupe import Rule

#: The agents, by the names their ids are made of.
CHARACTERS, WORLD = "character_expert", "world_builder"
#: The label of figures for all types that are no known kind: whoever asks may invent any number of them.
OTHER = "other"

_TYPE = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Kind:
    """One type of details."""

    name: str
    #: What a prompt calls many of them.
    plural: str
    #: The size of a sub-batch, where the deadline does not ask for a smaller one.
    size: int
    #: Who writes them.
    agent: str
    #: How alike two of their names must be to count as one, and by which measure. Names of a word or two tell much by
    #: their beginnings; of names of several words many begin alike.
    scorer: Literal["jaro_winkler", "ratio"]
    threshold: float
    #: Whether a prompt tells parallel calls apart by initial letters; else by themes.
    by_initials: bool = False

    def rule(self) -> Rule:
        """When two of their names count as one: for `app.names`."""
        # Only who claims names pays for what compares them.
        from headrace.llm.dedupe import Rule, Similarity

        return Rule(similarity=Similarity(self.scorer, self.threshold))

    @property
    def label(self) -> str:
        """What figures call it."""
        return self.name if self.name in KINDS else OTHER


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("character_name", "names of characters", 20, CHARACTERS, "jaro_winkler", 0.95, by_initials=True),
        Kind("location_name", "names of places", 20, WORLD, "jaro_winkler", 0.95, by_initials=True),
        Kind("item", "items", 16, WORLD, "ratio", 0.92),
        Kind("skill", "skills", 10, WORLD, "ratio", 0.92),
        Kind("organization", "organizations", 10, WORLD, "ratio", 0.94),
    )
}
_UNKNOWN = Kind("", "", 20, WORLD, "ratio", 0.92)


def check_type(value: object) -> str:
    """Return `value` if it can be a type of details; it need not be a known one. Raises InvalidInputError.

    >>> check_type("skill"), check_type("ship_name")
    ('skill', 'ship_name')
    """
    if not isinstance(value, str) or not _TYPE.fullmatch(value):
        known = ", ".join(KINDS)
        raise InvalidInputError("type", f"must be one of {known}, or another name of a-z, 0-9 and _", value)
    return value


def kind_of(type_: str) -> Kind:
    """Return the kind of a type; one nobody knows is written 20 at a time, by whoever writes the world.

    >>> kind_of("skill").size, kind_of("ship_name").size, kind_of("ship_name").plural
    (10, 20, 'ship names')
    """
    known = KINDS.get(check_type(type_))
    return known or replace(_UNKNOWN, name=type_, plural=f"{type_.replace('_', ' ').strip()}s")


def base_sizes(type_: str, count: int) -> tuple[int, ...]:
    """Return how many details each sub-batch has by the rule of sizes alone, without a deadline.

    >>> base_sizes("skill", 10), base_sizes("skill", 25), base_sizes("skill", 81)
    ((10,), (9, 8, 8), (17, 16, 16, 16, 16))
    """
    return even_sizes(count, largest_size(type_, count))


def largest_size(type_: str, count: int) -> int:
    """Return the largest sub-batch of a request: the kind's size; of a very large request twice that, 50 at most.

    >>> largest_size("item", 128), largest_size("item", 129), largest_size("character_name", 1_000)
    (16, 32, 40)
    """
    size = kind_of(type_).size
    return min(count, min(2 * size, 50) if count > 8 * size else size)


def even_sizes(count: int, largest: int) -> tuple[int, ...]:
    """Return parts of `count`, none larger than `largest`, as few and as even as can be.

    >>> even_sizes(50, 20), even_sizes(3, 1)
    ((17, 17, 16), (1, 1, 1))
    """
    return even_parts(count, -(-count // largest))


def even_parts(count: int, parts: int) -> tuple[int, ...]:
    """Return `count` in so many parts that differ by one at most, the larger first.

    >>> even_parts(50, 11)
    (5, 5, 5, 5, 5, 5, 4, 4, 4, 4, 4)
    """
    size, longer = divmod(count, parts)
    return (size + 1,) * longer + (size,) * (parts - longer)


def joined_parts(sizes: Sequence[int], largest: int) -> tuple[tuple[int, ...], ...]:
    """Return sizes of calls, in their order, as sub-batches of at most `largest` items, of one call at least.

    >>> joined_parts((5, 5, 5, 5, 4), 10), joined_parts((40, 40), 20)
    (((5, 5), (5, 5), (4,)), ((40,), (40,)))
    """
    parts: list[tuple[int, ...]] = []
    for size in sizes:
        if parts and sum(parts[-1]) + size <= largest:
            parts[-1] += (size,)
        else:
            parts.append((size,))
    return tuple(parts)
