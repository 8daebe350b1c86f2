"""Nodes while a graph is being made: ids are given last, so that names which people chose win."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headrace.canvas.references import Reference, Source
from headrace.model.errors import InvalidInputError
from headrace.model.graph.conditions import Condition
from headrace.model.graph.nodes import MAIN_PORT, Graph, Node

_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_ID = 64


@dataclass(slots=True, eq=False)
class Draft:
    """A node to be."""

    kind: type[Node]
    #: What its id is made from; `name` is the one that people chose.
    base: str
    name: str | None = None
    #: Fields of the node that may have references in them, and ...
    templates: dict[str, Any] = field(default_factory=dict)
    #: ... those that have none.
    fields: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    #: The graph within it, made already, or still being made.
    body: Graph | Sketch | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """A way on from a node."""

    draft: Draft
    port: str = MAIN_PORT
    when: Condition | None = None

    @property
    def plain(self) -> bool:
        """Whether it is always taken when the node succeeded."""
        return self.port == MAIN_PORT and self.when is None


@dataclass(frozen=True, slots=True)
class Flow:
    """What stands before a part: the ways that lead to it, and what it is given."""

    #: A template; GIVEN where it is left to the engine, NOTHING where nothing is given.
    value: Any
    ends: tuple[End, ...] = ()
    #: How many of the ends have to lead to what comes next; None: all.
    need: int | None = None


@dataclass(slots=True, eq=False)
class Sketch:
    """A graph being made."""

    #: What its first parts find before them.
    start: Flow
    #: The sketch of the whole workflow; None: it is this one.
    whole: Sketch | None = None
    drafts: list[Draft] = field(default_factory=list)
    #: The ways that lead to each node.
    incoming: dict[Draft, list[End]] = field(default_factory=dict)
    #: What comes behind each part of it, by token; None: it stands here more than once.
    placed: dict[object, Flow | None] = field(default_factory=dict)
    #: Tokens of all parts of the workflow, kept by the whole.
    tokens: set[object] = field(default_factory=set)
    #: What comes behind all of it.
    end: Flow | None = None

    def add(self, draft: Draft, flow: Flow) -> Flow:
        """Add a node behind what stands before it, and return what comes behind it."""
        self.drafts.append(draft)
        self.incoming[draft] = list(flow.ends)
        if draft.options.get("join") is None and flow.need is not None:
            draft.options["join"] = flow.need
        return Flow(Reference(Source.OUTPUT, draft), (End(draft),))

    def mark(self, token: object, behind: Flow) -> None:
        """Remember what comes behind a part."""
        self.placed[token] = None if token in self.placed else behind
        (self.whole or self).tokens.add(token)

    def within(self, start: Flow) -> Sketch:
        """Return the sketch of a graph within this one."""
        return Sketch(start, self.whole or self)


def name_drafts(drafts: list[Draft]) -> None:
    """Give every draft of a graph its id: `parse`, `parse-2`, `parse-3`. Raises InvalidInputError."""
    taken: set[str] = set()
    for draft in drafts:
        if draft.name is not None:
            if draft.name in taken:
                raise InvalidInputError("name", "must be that of one node in a workflow", draft.name)
            taken.add(draft.name)
            draft.id = draft.name
    numbers: dict[str, Iterator[str]] = {}
    for draft in drafts:
        if draft.name is None:
            free = numbers.setdefault(draft.base, _numbered(draft.base))
            draft.id = next(name for name in free if name not in taken)
            taken.add(draft.id)


def _numbered(base: str) -> Iterator[str]:
    stem = _OTHER.sub("-", base)[:_LONGEST_ID] or "node"
    yield stem
    number = 1
    while True:
        number += 1
        yield f"{stem[: _LONGEST_ID - 1 - len(str(number))]}-{number}"
