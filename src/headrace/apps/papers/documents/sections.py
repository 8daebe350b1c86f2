"""The sections of a document, and where to look for what a hint names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.apps.papers.documents.titles import SectionKind, kind_of

if TYPE_CHECKING:
    from headrace.apps.papers.documents.model import Document


@dataclass(frozen=True, slots=True)
class Section:
    """`text[char_start:char_end]` of its document, the heading included. Sections follow each other without overlap.

    A section ends where the next heading begins, so a chapter with sub-sections is several sections: a sub-section
    whose own title says nothing has the kind of the chapter it belongs to.
    """

    title: str
    kind: SectionKind
    char_start: int
    char_end: int
    #: 1 for a chapter, 2 for its sub-sections, and so on.
    level: int = 1


def section_at(sections: Sequence[Section], offset: int) -> Section | None:
    """The section that holds the character at `offset`; None where no section does."""
    index = bisect_right(sections, offset, key=lambda section: section.char_start) - 1
    return sections[index] if index >= 0 and offset < sections[index].char_end else None


def sections_for(document: Document, hint: str | Iterable[str] | None) -> list[tuple[int, int]]:
    """Where to look for what a hint names, as stretches of the text in order; the whole document if nowhere.

    A hint is a kind (`methods`, or one of its usual titles), words of a title (`participants`), or several of these.
    The stretches do not overlap.

    >>> from headrace.apps.papers.documents.model import Document
    >>> text = "Mills\\n\\nMethods\\nWe ran.\\n\\nResults\\nIt fell."
    >>> paper = Document.of_pages("a.txt", b"", [text], reader="mine 1.0")
    >>> sections_for(paper, "methods"), sections_for(paper, ["results", "methods"]), sections_for(paper, "cost")
    ([(7, 24)], [(7, 40)], [(0, 40)])
    """
    hints = [hint] if isinstance(hint, str) else list(hint or ())
    chosen = {index for one in hints for index in _named(document.sections, one)}
    spans: list[tuple[int, int]] = []
    for index in sorted(chosen):
        section = document.sections[index]
        if spans and spans[-1][1] >= section.char_start:
            spans[-1] = (spans[-1][0], section.char_end)
        else:
            spans.append((section.char_start, section.char_end))
    return spans or [(0, len(document.text))]


def _named(sections: Sequence[Section], hint: str) -> list[int]:
    word = hint.casefold().strip()
    kind = SectionKind.TITLE if word == SectionKind.TITLE else kind_of(word)
    of_kind = [index for index, section in enumerate(sections) if section.kind is kind is not SectionKind.OTHER]
    # Results and discussion in one have one kind, but both words in their title.
    return of_kind or [index for index, section in enumerate(sections) if word and word in section.title.casefold()]
