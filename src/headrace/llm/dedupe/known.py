"""The names of a scope as one process knows them, arranged for comparing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from headrace.llm.dedupe.numerals import form_of


@dataclass(slots=True)
class Entry:
    """A name that is taken."""

    key: str
    name: str
    owner: UUID
    #: its place in the order in which names were taken
    order: int


@dataclass(slots=True)
class Group:
    """The names of a scope whose numerals are the same: only these are compared with one another."""

    texts: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


class KnownNames:
    """Names in the order in which they were taken, by key and by numerals."""

    def __init__(self) -> None:
        self._by_key: dict[str, Entry] = {}
        self._groups: dict[tuple[str, ...], Group] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, key: str, name: str, owner: UUID) -> None:
        """Add a name at the end; one that is known keeps its place and gets the owner."""
        if known := self._by_key.get(key):
            known.name, known.owner = name, owner
            return
        self._count += 1
        entry = self._by_key[key] = Entry(key, name, owner, self._count)
        form = form_of(key)
        group = self._groups.setdefault(form.numerals, Group())
        group.texts.append(form.text)
        group.entries.append(entry)

    def forget_after(self, order: int) -> None:
        """Forget the names that were added last, behind a place in the order."""
        while len(self._by_key) and next(reversed(self._by_key.values())).order > order:
            key, _ = self._by_key.popitem()
            group = self._groups[form_of(key).numerals]
            del group.texts[-1], group.entries[-1]
        self._count = order

    @property
    def end(self) -> int:
        """Return the place of the name that was added last."""
        return self._count

    def find(self, key: str) -> Entry | None:
        """Return the name with this key."""
        return self._by_key.get(key)

    def group(self, numerals: tuple[str, ...]) -> Group:
        """Return the names with these numerals."""
        return self._groups.get(numerals) or Group()

    def names(self) -> list[str]:
        """Return all names in order."""
        return [entry.name for entry in self._by_key.values()]

    def without(self, owner: UUID) -> KnownNames:
        """Return these names less those of an owner."""
        return self.of(entry for entry in self._by_key.values() if entry.owner != owner)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> KnownNames:
        """Return these entries, numbered anew."""
        known = cls()
        for entry in entries:
            known.add(entry.key, entry.name, entry.owner)
        return known
