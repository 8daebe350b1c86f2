"""Sections of a text whose headings are only lines: of PDFs, plain text and Markdown.

A heading is a line of its own with a known name, or one that looks like the headings with known names do: numbered, in
capitals, or in taller letters. Rather one heading too few than one in the middle of a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.apps.papers.documents.sections import Section
from headrace.apps.papers.documents.titles import SectionKind, kind_of, plain_title, split_number

#: Longer lines are no headings.
MAX_HEADING_CHARS = 100
_MAX_WORDS = 12
#: A structured abstract is no longer than this.
_MAX_ABSTRACT_CHARS = 6_000

_LINE = re.compile(r"[^\n]+")
_HASHES = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
#: Names that may be followed by their text on the same line.
_RUN_IN = re.compile(
    r"(abstract|summary|摘\s*要|keywords|key words|关键词|funding(?: statement| information)?|financial support"
    r"|基金项目|acknowledge?ments?|致谢|conflicts? of interests?|competing interests?)\s*[:.:—–-]+\s*\S",
    re.IGNORECASE,
)
_KEYWORDS = re.compile(r"(?:keywords|key words|index terms|关\s*键\s*词)\b", re.IGNORECASE)
_IN_ABSTRACT = {
    SectionKind.INTRODUCTION,
    SectionKind.METHODS,
    SectionKind.RESULTS,
    SectionKind.DISCUSSION,
    SectionKind.CONCLUSION,
}


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that begins a section."""

    title: str
    kind: SectionKind | None
    start: int
    level: int
    #: Height of its letters where that is known and more than usual, else 0.
    size: float = 0.0
    is_numbered: bool = False
    is_upper: bool = False


def find_sections(text: str, tall: Mapping[int, float] | None = None) -> tuple[Section, ...]:
    """The sections of a text; none if it has no headings. `tall` says where lines in taller letters begin.

    >>> [(s.title, s.kind.value) for s in find_sections("A title\\n\\nMethods\\nWe did.\\n\\nResults\\nIt fell.\\n")]
    [('A title', 'title'), ('Methods', 'methods'), ('Results', 'results')]
    """
    lines = [(match.start(), match[0]) for match in _LINE.finditer(text)]
    # In a PDF a # is a # and no markup.
    headings = (_in_markdown(lines) if tall is None else []) or _in_lines(text, lines, tall or {})
    return _sections(text, _without_abstract_parts(headings))


def _in_markdown(lines: Sequence[tuple[int, str]]) -> list[Heading]:
    found = [(start, match) for start, line in lines if (match := _HASHES.match(line))]
    headings = [Heading(match[2], kind_of(match[2]), start, len(match[1])) for start, match in found]
    if headings and headings[0].level == 1 and headings[0].kind is None:
        headings[0] = replace(headings[0], kind=SectionKind.TITLE)
        if all(heading.level > 1 for heading in headings[1:]):
            # The title stands above the chapters; they are no parts of it.
            return [headings[0], *(replace(heading, level=heading.level - 1) for heading in headings[1:])]
    return headings


def _in_lines(text: str, lines: Sequence[tuple[int, str]], tall: Mapping[int, float]) -> list[Heading]:
    known = [heading for start, line in lines if (heading := _known(line, start, tall)) is not None]
    if not any(heading.kind is not SectionKind.OTHER for heading in known):
        return []
    first = known[0].start
    references = next((h.start for h in known if h.kind is SectionKind.REFERENCES), len(text))
    after = next((h.start for h in known if h.start > references), len(text))
    others: list[Heading] = []
    for start, line in lines:
        if start > first and not references <= start < after and not any(h.start == start for h in known):
            heading = _like_known(line, start, tall, known)
            if heading is not None and not _goes_on(text, others, heading):
                others.append(heading)
    return sorted([*known, *others], key=lambda heading: heading.start)


def _known(line: str, start: int, tall: Mapping[int, float]) -> Heading | None:
    line = line.strip()
    if _RUN_IN.match(line) and not _KEYWORDS.match(line) and _opens(line):
        name = re.split(r"\s*[:.:—–-]", line, maxsplit=1)[0]
        return Heading(name, kind_of(name), start, 1, tall.get(start, 0.0))
    if len(line) > MAX_HEADING_CHARS or line.endswith((".", ",", ";", "。")) or not (kind := kind_of(line)):
        return None
    number, title = split_number(line)
    if not _opens(title):
        return None
    level = max(1, len(re.findall(r"\d+", number)))
    return Heading(line, kind, start, level, tall.get(start, 0.0), bool(number), title.isupper())


def _like_known(line: str, start: int, tall: Mapping[int, float], known: Sequence[Heading]) -> Heading | None:
    """A heading with a name of its own, if it looks like those with known names."""
    line = line.strip()
    number, title = split_number(line)
    if not _may_be_title(title) or _KEYWORDS.match(title):
        return None
    size = tall.get(start, 0.0)
    chapter = [heading for heading in known if heading.level == 1]
    depth = len(re.findall(r"\d+", number))
    opens = _opens(title)
    if depth and opens and (size or (depth > 1 or _follows(number, known))):
        return Heading(line, None, start, depth, size, True, title.isupper())
    if size and opens:
        return Heading(line, None, start, 1 if any(0 < h.size <= size + 0.2 for h in chapter) else 2, size)
    if title.isupper() and sum(h.is_upper for h in chapter) > len(chapter) / 2 and len(title) >= 6:
        return Heading(line, None, start, 2, 0.0, False, True)
    return None


def _opens(title: str) -> bool:
    """Whether it begins as a title does: with a capital, or in a script without them."""
    return title[0].isupper() or title[0] > "\u2e7f"


def _may_be_title(title: str) -> bool:
    letters = sum(char.isalpha() for char in title)
    return (
        3 <= len(title) <= MAX_HEADING_CHARS
        and len(title.split()) <= _MAX_WORDS
        and letters >= 0.7 * sum(not char.isspace() for char in title)
        and title[-1] not in ".,;!-。;,"
        and not re.match(r"(?:table|fig(?:ure)?|scheme|box|表|图)\s*\.?\s*[s\d]", title, re.IGNORECASE)
    )


def _follows(number: str, known: Sequence[Heading]) -> bool:
    """Whether known headings are numbered too, and not in this number: else it is an item of a list."""
    taken = {split_number(heading.title)[0].strip(".") for heading in known if heading.is_numbered}
    return bool(taken) and number.strip(".") not in taken and number.strip(".").isdigit() and (
        int(number.strip(".")) <= max((int(n) for n in taken if n.isdigit()), default=0) + 3
    )  # fmt: skip


def _goes_on(text: str, others: Sequence[Heading], heading: Heading) -> bool:
    """Whether it is the second line of a heading."""
    if not others or not heading.size or others[-1].size != heading.size or heading.is_numbered:
        return False
    return text[others[-1].start : heading.start].count("\n") == 1


def _without_abstract_parts(headings: Sequence[Heading]) -> list[Heading]:
    """Mark the parts of a structured abstract as such: their names come again in the text below it."""
    at = next((i for i, heading in enumerate(headings) if heading.kind is SectionKind.ABSTRACT), None)
    if at is None:
        return list(headings)
    last = at
    for index in range(at + 1, len(headings)):
        heading = headings[index]
        far = heading.start - headings[at].start > _MAX_ABSTRACT_CHARS
        if far or heading.is_numbered or heading.kind not in _IN_ABSTRACT:
            break
        later = {other.kind for other in headings[index + 1 :]}
        if heading.kind in later or SectionKind.INTRODUCTION in later:
            last = index
    parts = [replace(heading, kind=SectionKind.ABSTRACT, level=2) for heading in headings[at + 1 : last + 1]]
    return [*headings[: at + 1], *parts, *headings[last + 1 :]]


def _sections(text: str, headings: Sequence[Heading]) -> tuple[Section, ...]:
    sections: list[Section] = []
    if headings and text[: headings[0].start].strip():
        title = next(line for line in text.split("\n") if line.strip()).strip()
        sections.append(Section(title, SectionKind.TITLE, 0, headings[0].start))
    above: list[Section] = []
    begins_body = False
    for index, heading in enumerate(headings):
        end = headings[index + 1].start if index + 1 < len(headings) else len(text)
        above = [section for section in above if section.level < heading.level]
        kind = heading.kind or SectionKind.OTHER
        if kind is SectionKind.OTHER and above:
            kind = above[-1].kind
        if kind is SectionKind.ABSTRACT and begins_body and plain_title(heading.title) == "summary":
            kind = SectionKind.CONCLUSION
        begins_body = begins_body or kind in _IN_ABSTRACT
        section = Section(heading.title, kind, heading.start, end, heading.level)
        sections.append(section)
        if kind is not SectionKind.TITLE:
            above.append(section)
    return tuple(sections)
