"""The sections of a document, and where to look for what a hint names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.apps.papers.documents.model import Document


class SectionKind(StrEnum):
    """What a section is about, whatever its title."""

    #: All that stands above the abstract: title, authors, where it was published.
    TITLE = "title"
    ABSTRACT = "abstract"
    INTRODUCTION = "introduction"
    METHODS = "methods"
    RESULTS = "results"
    DISCUSSION = "discussion"
    CONCLUSION = "conclusion"
    REFERENCES = "references"
    FUNDING = "funding"
    #: Acknowledgements, appendices, and every title that says nothing of this list.
    OTHER = "other"


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

    A hint is a kind (`methods`), a word of a title (`participants`), or several of them. The stretches never overlap.
    """
    wanted = [hint] if isinstance(hint, str) else list(hint or ())
    words = [word.casefold().strip() for word in wanted]
    spans: list[tuple[int, int]] = []
    for section in document.sections:
        if not any(word and (section.kind == word or word in section.title.casefold()) for word in words):
            continue
        if spans and spans[-1][1] >= section.char_start:
            spans[-1] = (spans[-1][0], section.char_end)
        else:
            spans.append((section.char_start, section.char_end))
    return spans or [(0, len(document.text))]
