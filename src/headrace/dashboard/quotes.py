"""Where a value stands in its document: its quote with the text around it, cut to what fits beside the value."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.apps.papers.page.texts import DocumentText
from headrace.apps.papers.result import Finding

#: Characters of text on both sides of a quote, and of the quote itself.
REACH, MOST = 160, 400


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A quote in its surroundings; these are empty where the text is not at hand or is another by now."""

    quote: str
    before: str = ""
    after: str = ""
    #: whether the quote is longer than what is shown
    cut: bool = False
    #: such as "3" or "3–4"; empty in a document without pages
    pages: str = ""
    #: whether the quote was found just there
    held: bool = False
    section: str = ""


def excerpt(finding: Finding, text: DocumentText | None) -> Excerpt | None:
    """Return the place of a finding; None of one that quotes nothing.

    >>> from headrace.apps.papers.result import Status
    >>> found = Finding(status=Status.FOUND, value=40, quote="40 people", page=1, char_start=9, char_end=18)
    >>> shown = excerpt(found, DocumentText("We asked 40 people. Two left.", ()))
    >>> shown.before, shown.quote, shown.after
    ('We asked ', '40 people', '. Two left.')
    """
    if not finding.quote:
        return None
    quote, section = finding.quote[:MOST], finding.section or ""
    cut = len(finding.quote) > MOST
    start, end = finding.char_start, finding.char_end
    if text is None or start is None or end is None or not text.holds(finding.quote, start, end):
        return Excerpt(quote, cut=cut, pages=str(finding.page or ""), section=section)
    before, after = text.text[max(start - REACH, 0) : start], text.text[end : end + REACH]
    return Excerpt(
        quote, f"…{before}" if start > REACH else before, f"{after}…" if end + REACH < len(text.text) else after,
        cut=cut, pages=_pages(finding, text, end), held=True, section=section,
    )  # fmt: skip


def _pages(finding: Finding, text: DocumentText, end: int) -> str:
    if finding.page is None:
        return ""
    last = text.page_at(end - 1)
    return str(finding.page) if last is None or last.number <= finding.page else f"{finding.page}–{last.number}"
