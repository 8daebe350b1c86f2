"""Sentences of scientific text, with exact offsets: `text[char_start:char_end] == sentence.text`, always.

Rules, no model: a full stop ends a sentence unless it belongs to an abbreviation, an initial or a number. Headings,
list items and table rows are sentences of their own. Nothing is lost: every word lies in exactly one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.apps.papers.documents.model import Document

#: A longer stretch without an end of sentence (a table, a list of references) is cut at a space.
MAX_SENTENCE_CHARS = 1_200

#: So far back of a full stop its word is looked for.
_LOOK_BACK = 80

Span = tuple[int, int]

_LINE = re.compile(r"[^\n]+")
#: What stands at the beginning of a line that is no continuation of the line before.
_ITEM = re.compile(r"\s*(?:[-*+•·▪◦–—]\s+|\(?\d{1,3}[.)]\s+|\(?[a-z][)]\s+|#{1,6}\s+|>\s+|\|)")
_HEADING = re.compile(r"\s*#{1,6}\s")
#: Between the cells of a table without bars at its edges.
_CELL = " | "
_ONLY_MARKS = re.compile(r"[\W_]*")
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]+[」』”）]*")
_WORD_BEFORE = re.compile(r"([^\s(\[\"'“‘«]*)$")
#: Never end a sentence, whatever follows.
_NEVER_END = re.compile(
    r"(?:e\.g|i\.e|cf|vs|viz|resp|dr|prof|mr|mrs|ms|st|approx|ca|eds?|incl|excl|sp|spp|subsp|var|al|fig[s]?|tabs?|eqs?"
    r"|refs?|secs?|suppl|ch|vol|nos?|pp?|v|ver|art|dept|univ|max|min|avg|temp|conc|wt|mol|equiv)",
    re.IGNORECASE,
)
#: Of those, the ones that do end a sentence when a capital word follows that usually begins one.
_MAY_END = re.compile(r"(?:al|sp|spp|max|min|no|v|conc|temp|wt|eq|art|ch|mol)", re.IGNORECASE)
_OPENERS = re.compile(
    r"[\"“(]?(?:The|This|These|Those|That|We|Our|It|Its|In|On|At|For|From|To|All|Both|Each|Every|No|Of|One|Two|However"
    r"|Here|There|Their|They|After|Before|During|While|When|Although|As|By|An?|If|Thus|Then|With|Participants|Patients"
    r"|Results|Data)\b"
)
#: "vitamin C." ends a sentence although "J." alone is an initial.
_LETTERED = re.compile(
    r"\b(?:vitamin|group|groups|hepatitis|type|factor|grade|class|arm|arms|table|panel|site|plot|treatment|cohort|and|or"
    r"|phase|step|coenzyme|immunoglobulin|sample|variety|°)\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a document; `number` counts from 1."""

    number: int
    text: str
    char_start: int
    char_end: int
    page: int

    @property
    def line(self) -> str:
        """The text on one line, as shown to a model."""
        return " ".join(self.text.split())


def split_document(document: Document) -> tuple[Sentence, ...]:
    """The sentences of a document, in order.

    >>> from headrace.apps.papers.documents import Document
    >>> document = Document.of_pages("a.txt", b"", ["We saw 1.5 g, cf. Fig. 2. It fell."], reader="test")
    >>> [sentence.text for sentence in split_document(document)]
    ['We saw 1.5 g, cf. Fig. 2.', 'It fell.']
    """
    text = document.text
    return tuple(
        Sentence(number, text[start:end], start, end, document.page_of(start))
        for number, (start, end) in enumerate(sentence_spans(text), start=1)
    )


def sentence_spans(text: str) -> list[Span]:
    """Start and end of every sentence, in order and without overlap; between them there are only spaces and marks."""
    spans: list[Span] = []
    for block in _blocks(text):
        for span in _sentences_of(text, block):
            spans += _cut_to_length(text, span)
    return [span for span in (_trimmed(text, span) for span in spans) if span is not None]


def _blocks(text: str) -> Iterator[Span]:
    """Stretches within which a sentence may run on: a paragraph, a heading, a list item, a table row."""
    start = end = None
    widest = max((len(match[0]) for match in _LINE.finditer(text)), default=0)
    for match in _LINE.finditer(text):
        if start is not None and end is not None and _breaks(text, (start, end), match, widest):
            yield start, end
            start = None
        start = match.start() if start is None else start
        end = match.end()
    if start is not None and end is not None:
        yield start, end


def _breaks(text: str, block: Span, line: re.Match[str], widest: int) -> bool:
    start, end = block
    before = text[max(start, text.rfind("\n", start, end) + 1) : end]
    gap = text[end : line.start()]
    return (
        gap.count("\n") > 1
        or not line[0].strip()
        or _ITEM.match(line[0]) is not None
        or _HEADING.match(before) is not None
        or before.lstrip().startswith("|")
        or _are_table_rows(before, line[0])
        or _is_bare_heading(before, line[0], widest)
    )


def _are_table_rows(line: str, following: str) -> bool:
    # One bar alone may be a conditional probability.
    return line.count(_CELL) + following.count(_CELL) > 1 or (_CELL in line and _CELL in following)


def _is_bare_heading(line: str, following: str, widest: int) -> bool:
    # PDFs lose the blank line below a heading: what is left is a short line without a stop before a capital.
    line, following = line.strip(), following.strip()
    if not line or not following or len(line) > min(60, widest * 0.6) or line[-1] in ".,;:!?-–(":
        return False
    return (line[0].isupper() or line[0].isdigit()) and following[0].isupper() and len(line.split()) <= 8


def _sentences_of(text: str, block: Span) -> Iterator[Span]:
    start, stop = block
    if text.count(_CELL, start, stop) > 1 and "\n" not in text[start:stop]:
        yield start, stop  # a row of a table is quoted whole: its cells explain each other
        return
    for match in _END.finditer(text, start, stop):
        if _ends_sentence(text, start, match, stop):
            yield start, match.end()
            start = match.end()
    if start < stop:
        yield start, stop


def _ends_sentence(text: str, start: int, match: re.Match[str], stop: int) -> bool:
    following = text[match.end() : min(stop, match.end() + 40)].lstrip()
    if not following:
        return False  # the block ends here anyway
    if match[0][0] in "。！？":
        return True
    if following[0].islower() or following[0] in ",;)":
        return False
    if not match[0].startswith(".") or match[0].startswith(("..", "…")):
        return True
    before = text[max(start, match.start() - _LOOK_BACK) : match.start()]
    found = _WORD_BEFORE.search(before)
    word = found[1] if found else ""
    return not _is_abbreviation(word, before[: len(before) - len(word)], following)


def _is_abbreviation(word: str, before: str, following: str) -> bool:
    opens = _OPENERS.match(following) is not None
    if len(word) == 1 and word.isupper():
        return _LETTERED.search(before) is None and not opens
    if re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", word):  # U.S., p.m., e.g.
        return not opens or _NEVER_END.fullmatch(word) is not None
    if word.lower() in ("no", "nos", "p", "pp", "v", "ch", "art", "vol"):  # "No. 5", but "It did no."
        return following[0].isdigit()
    if _NEVER_END.fullmatch(word) is None:
        # "1. Introduction": the number of a list item or heading at the very beginning
        return word.isdigit() and len(word) <= 2 and not before.strip()
    return not (opens and _MAY_END.fullmatch(word) is not None)


def _cut_to_length(text: str, span: Span) -> Iterator[Span]:
    start, end = span
    while end - start > MAX_SENTENCE_CHARS:
        limit = start + MAX_SENTENCE_CHARS
        cut = max(text.rfind(mark, start + MAX_SENTENCE_CHARS // 2, limit) for mark in ("\n", "; ", " "))
        cut = cut + 1 if cut > start else limit
        yield start, cut
        start = cut
    yield start, end


def _trimmed(text: str, span: Span) -> Span | None:
    """Without spaces around it and without the mark of a list item; None if only marks are left."""
    start, end = span
    piece = text[start:end]
    item = _ITEM.match(piece)
    if item is not None and not item[0].lstrip()[0].isdigit():
        start += item.end()
        piece = text[start:end]
    if _ONLY_MARKS.fullmatch(piece):
        return None
    start += len(piece) - len(piece.lstrip())
    return start, start + len(piece.strip())
