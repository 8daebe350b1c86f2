"""Read a schema file of ours: its statements, each with the comment above it, and the elements of a table.

It knows the form that such files are written in, and no more: what it does not know stops it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_COMMENT = re.compile(r"\s*--\s?(.*)$")
_HEAD = re.compile(r"CREATE (?:UNIQUE )?(TABLE|INDEX|FUNCTION|PROCEDURE|TYPE) (?:\{schema\}\.)?(\w+)")
_STORAGE = re.compile(r"\) WITH \(([^()]*)\)$")
_COLUMN = re.compile(r'(\w+) (.+?)(?: COLLATE "C")?( NOT NULL)?(?: DEFAULT (.+?))?( NOT NULL)?( PRIMARY KEY)?$')


@dataclass(frozen=True, slots=True)
class Statement:
    """One CREATE: of what, its name, what the comment above says, and its text as lines."""

    kind: str
    name: str
    about: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole statement on one line, without comments."""
        return squeezed(" ".join(_COMMENT.sub("", line) for line in self.lines)).rstrip(";")

    @property
    def storage(self) -> str:
        """What a table says of how it is stored."""
        found = _STORAGE.search(self.text)
        return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    required: bool
    default: str
    about: str


def squeezed(text: str) -> str:
    """Return a text with single blanks.

    >>> squeezed(" a   (\\n b )")
    'a (b)'
    """
    return re.sub(r"\(\s+|\s+\)", lambda found: found[0].strip(), " ".join(text.split()))


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a file in their order. Raises ValueError: something else than a CREATE stands there."""
    about: list[str] = []
    lines: list[str] = []
    for line in text.splitlines():
        if lines:
            lines.append(line)
        elif not line.strip():
            about = []
        elif line.startswith("--"):
            about.append(line.removeprefix("--").strip())
        else:
            lines = [line]
        if lines and is_whole(lines):
            yield statement(lines, about)
            about, lines = [], []
    if lines:
        raise ValueError(f"a statement has no end: {lines[0]}")


def is_whole(lines: list[str]) -> bool:
    """Return whether a statement ends with its last line: bodies of functions stand between `$$`."""
    quotes = sum(line.count("$$") for line in lines)
    return quotes % 2 == 0 and _COMMENT.sub("", lines[-1]).rstrip().endswith(";")


def statement(lines: list[str], about: list[str]) -> Statement:
    """Return a statement by its lines and those of the comment above it."""
    head = _HEAD.match(lines[0])
    if head is None:
        raise ValueError(f"this is no statement that a schema of ours has: {lines[0]}")
    return Statement(head[1], head[2], " ".join(about), tuple(lines))


def elements(table: Statement) -> Iterator[tuple[str, str]]:
    """Yield the columns and constraints of a table, each with its comment."""
    text, about, depth = "", "", 0
    for line, following in pairwise(table.lines[1:]):
        comment = _COMMENT.search(line)
        said = squeezed(_COMMENT.sub("", line))
        if depth == 0 and said.startswith(")"):
            return
        about = " ".join(part for part in (about, comment[1].strip() if comment else "") if part)
        text = f"{text} {said}".strip()
        depth += said.count("(") - said.count(")")
        if text and depth == 0 and (text.endswith(",") or following.startswith(")")):
            yield text.rstrip(","), about
            text, about = "", ""


def column(text: str, about: str) -> Column | None:
    """Return a column by its text; None: it is a constraint.

    >>> column("total int DEFAULT 0", "").default
    '0'
    """
    if text.startswith("CONSTRAINT "):
        return None
    found = _COLUMN.fullmatch(text)
    if found is None:
        raise ValueError(f"this is no column: {text}")
    required = any(found[number] for number in (3, 5, 6))
    return Column(found[1], found[2], required, found[4] or "", about)
