"""The running text of a JATS element: markup flattened, formulas as text, marks of citations in brackets kept.

A raised number that only points to a reference or a footnote is left out: 64 with a raised 3 is neither 643 nor 64³.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headrace.apps.papers.documents.formulas import lowered, mathml_text, raised, tex_text
from headrace.apps.papers.documents.xml_tree import Node

#: What a reference of the text to something else points to, where its mark is no part of the sentence.
_MARKS = frozenset({"bibr", "fn", "table-fn", "aff", "corresp", "author-notes", "contrib"})
_SILENT = frozenset(
    {"graphic", "inline-graphic", "media", "object-id", "index-term", "private-char", "permissions", "attrib"}
    | {"long-desc", "alt-text", "processing-meta", "ext-link-id"}
)
_SEPARATORS = re.compile(r"[\s,;\u2010-\u2015−-]*")
#: A formula comes in several forms: the first of these that is there.
_FORMS = ("math", "tex-math", "textual-form")


def inline_text(node: Node) -> str:
    """The text of an element on one line.

    >>> from headrace.apps.papers.documents.xml_tree import parse_xml
    >>> inline_text(parse_xml(b"<p>We saw <b>64</b><sup><xref ref-type='bibr'>3</xref></sup> at 10<sup>2</sup> m.</p>"))
    'We saw 64 at 10² m.'
    """
    return flatten(node.parts)


def flatten(parts: Sequence[Node | str]) -> str:
    """The text of a run of text and elements on one line."""
    writer = _Inline()
    writer.write(parts)
    return tidy("".join(writer.pieces))


def tidy(text: str) -> str:
    """One line, without the space that a left out mark leaves before a stop."""
    return re.sub(r" +(?=[,;](?:\s|$)|\.(?:\s|$))", "", " ".join(text.split()))


class _Inline:
    def __init__(self) -> None:
        self.pieces: list[str] = []

    def write(self, parts: Sequence[Node | str]) -> None:
        left_out = False
        for index, part in enumerate(parts):
            if isinstance(part, str):
                following = parts[index + 1] if index + 1 < len(parts) else None
                # The comma between two marks goes with them.
                if not (left_out and _is_bare_mark(following) and _SEPARATORS.fullmatch(part)):
                    self.pieces.append(part)
                    left_out = left_out and not part
                continue
            left_out = self._is_left_out(part)
            if not left_out:
                self._node(part)

    def _is_left_out(self, node: Node) -> bool:
        if node.tag in _SILENT or _is_raised_mark(node):
            return True
        return _is_bare_mark(node) and not self._stands_free()

    def _stands_free(self) -> bool:
        """Whether a number put here would be read as one by itself: within brackets, or behind a space."""
        before = "".join(self.pieces[-20:])[-300:]
        if not before or before[-1].isspace() or before[-1] in "([":
            return True
        return max(before.rfind("["), before.rfind("(")) > max(before.rfind("]"), before.rfind(")"))

    def _node(self, node: Node) -> None:
        match node.tag:
            case "sup":
                self.pieces.append(raised(inline_text(node)))
            case "sub":
                self.pieces.append(lowered(inline_text(node)))
            case "math":
                self.pieces.append(mathml_text(node))
            case "tex-math":
                self.pieces.append(tex_text("".join(part for part in node.parts if isinstance(part, str))))
            case "alternatives":
                forms = [form for tag in _FORMS for form in node.all(tag)]
                self.write(forms[:1] or node.parts)
            case "break":
                self.pieces.append(" ")
            case "disp-formula" | "label" | "p" | "title":
                self.pieces.append(" ")
                self.write(_label_last(node))
                self.pieces.append(" ")
            case _:
                self.write(node.parts)


def _label_last(node: Node) -> list[Node | str]:
    """A formula's number stands behind it."""
    label = [part for part in node.parts if isinstance(part, Node) and part.tag == "label"]
    if node.tag != "disp-formula" or not label:
        return node.parts
    return [*(part for part in node.parts if part is not label[0]), " ", label[0]]


def _is_mark(node: Node) -> bool:
    return node.tag == "xref" and node.attributes.get("ref-type") in _MARKS


def _is_bare_mark(node: Node | str | None) -> bool:
    """Whether it is a mark of which only a number or sign is to be seen."""
    if not isinstance(node, Node) or not _is_mark(node):
        return False
    return re.fullmatch(r"[\W_]*(?:\d{1,4}[a-z]?|[a-z*†‡§¶])?[\W_]*", _plain(node).strip()) is not None


def _is_raised_mark(node: Node) -> bool:
    if node.tag == "sup":
        marks = [part for part in node.walk() if _is_mark(part)]
        return bool(marks) and _SEPARATORS.fullmatch(_plain(node, without=_MARKS)) is not None
    if not _is_mark(node):
        return False
    inner = [part for part in node.parts if isinstance(part, Node) or part.strip()]
    return bool(inner) and all(isinstance(part, Node) and part.tag == "sup" for part in inner)


def _plain(node: Node, without: frozenset[str] = frozenset()) -> str:
    """All characters below an element, except of marks of these kinds."""
    texts = []
    for part in node.parts:
        if isinstance(part, str):
            texts.append(part)
        elif not (part.tag == "xref" and part.attributes.get("ref-type") in without):
            texts.append(_plain(part, without))
    return "".join(texts)
