"""A tree from the XML of a stranger, within bounds.

Nothing is fetched: external entities and parameter entities are refused, a DTD that is only named is not read. Entities
that a file declares itself may stand for a few plain characters and nothing else, so nothing expands without bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.entities import html5
from typing import NoReturn
from xml.parsers import expat

from headrace.apps.papers.documents.model import MAX_CHARS, Reason

MAX_DEPTH = 120
MAX_ELEMENTS = 500_000
#: Characters that an entity declared in the file may stand for.
MAX_ENTITY_CHARS = 64
_CHUNK_BYTES = 64 * 1024
_ENCODING_ERRORS = (
    expat.errors.codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING],
    expat.errors.codes[expat.errors.XML_ERROR_INCORRECT_ENCODING],
)


class XmlError(Exception):
    """The XML cannot be read, or must not be. Fetch the file again from its publisher."""

    def __init__(self, reason: Reason, message: str, root: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        #: The outermost element, as far as one was seen.
        self.root = root


@dataclass(slots=True)
class Node:
    """An element: names without prefix, its text and elements in order."""

    tag: str
    attributes: dict[str, str]
    parts: list[Node | str] = field(default_factory=list)

    def nodes(self) -> Iterator[Node]:
        """The elements directly in it."""
        return (part for part in self.parts if isinstance(part, Node))

    def all(self, *tags: str) -> list[Node]:
        """The elements directly in it with one of these names."""
        return [node for node in self.nodes() if node.tag in tags]

    def first(self, *path: str) -> Node | None:
        """The first element at a path of names below it."""
        node: Node | None = self
        for tag in path:
            node = next(iter(node.all(tag)), None) if node is not None else None
        return node

    def walk(self) -> Iterator[Node]:
        """It and everything below it, in order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(list(node.nodes())))


def parse_xml(content: bytes) -> Node:
    """The root of a file. Raises XmlError.

    >>> parse_xml(b"<a>1 &lt; <b>2</b></a>").parts
    ['1 < ', Node(tag='b', attributes={}, parts=['2'])]
    """
    return _Builder().parse(content)


class _Builder:
    def __init__(self) -> None:
        self._open: list[Node] = []
        self._root: Node | None = None
        self._elements = self._chars = 0

    def parse(self, content: bytes) -> Node:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._entity
        parser.AttlistDeclHandler = self._attribute
        parser.SkippedEntityHandler = self._skipped
        # Makes names such as &nbsp; known to be declared elsewhere, so that they arrive as skipped instead of failing.
        parser.UseForeignDTD(True)
        try:
            for at in range(0, len(content), _CHUNK_BYTES):
                parser.Parse(content[at : at + _CHUNK_BYTES], False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            reason = Reason.BAD_ENCODING if error.code in _ENCODING_ERRORS else Reason.DAMAGED
            self._refuse(reason, f"is no whole XML (line {error.lineno}: {expat.ErrorString(error.code)})")
        except (LookupError, ValueError) as error:
            self._refuse(Reason.BAD_ENCODING, f"is in an encoding that cannot be read ({error}); save it as UTF-8")
        if self._root is None:
            self._refuse(Reason.DAMAGED, "is no whole XML (it holds no element)")
        return self._root

    def _refuse(self, reason: Reason, message: str) -> NoReturn:
        raise XmlError(reason, message, self._root.tag if self._root is not None else "")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if len(self._open) >= MAX_DEPTH:
            self._refuse(Reason.TOO_LARGE, f"nests its elements deeper than {MAX_DEPTH}")
        if self._elements > MAX_ELEMENTS:
            self._refuse(Reason.TOO_LARGE, f"has more than {MAX_ELEMENTS:,} elements")
        node = Node(name.rpartition(":")[2], attributes)
        if self._open:
            self._open[-1].parts.append(node)
        else:
            self._root = node
        self._open.append(node)

    def _end(self, name: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        self._chars += len(text)
        # Indentation counts too, so more than the text of the largest document.
        if self._chars > 2 * MAX_CHARS:
            self._refuse(Reason.TOO_LARGE, f"holds more than {2 * MAX_CHARS:,} characters")
        if self._open:
            self._open[-1].parts.append(text)

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if not is_parameter:
            self._text(html5.get(f"{name};", f"&{name};"))

    def _entity(self, name: str, is_parameter: bool, value: str | None, *outside: str | None) -> None:
        notation = outside[-1]
        if is_parameter or (value is None and notation is None):
            self._refuse(Reason.UNSAFE, f"declares the entity {name!r}, which is to be read from elsewhere")
        if value is not None and (len(value) > MAX_ENTITY_CHARS or "&" in value or "<" in value):
            self._refuse(Reason.UNSAFE, f"declares the entity {name!r}, which is more than a few plain characters")

    def _attribute(self, element: str, name: str, kind: str, default: str | None, required: bool) -> None:
        if default is not None and len(default) > MAX_ENTITY_CHARS:
            self._refuse(Reason.UNSAFE, f"declares a long default for the attribute {name!r}")
