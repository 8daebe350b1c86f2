"""Where a quote stands, in words: page 3, top left."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.apps.papers.documents.model import Page
from headrace.apps.papers.page.texts import DocumentText
from headrace.apps.papers.result import Finding, QuoteBox

#: A quote this wide, as a share of its page, stands neither left nor right.
_WIDE = 0.55


def where(finding: Finding, text: DocumentText | None) -> str:
    """The page of a quote, or its pages, and where on the page it begins, as far as that is known.

    >>> from headrace.apps.papers.result import Status
    >>> page = Page(3, 0, 100, width=600, height=800)
    >>> finding = Finding(status=Status.UNCLEAR, page=3, char_start=0, char_end=9, boxes=((3, 50, 40, 200, 52),))
    >>> where(finding, DocumentText("x" * 100, (page,)))
    'page 3, top left'
    """
    if finding.page is None:
        return ""
    last = finding.page
    first_page: Page | None = None
    if text is not None and finding.char_start is not None and finding.char_end is not None:
        first_page = text.page_at(finding.char_start)
        last_page = text.page_at(max(finding.char_start, finding.char_end - 1))
        last = last_page.number if last_page is not None else last
    pages = f"page {finding.page}" if last <= finding.page else f"pages {finding.page} to {last}"
    boxes = [box for box in finding.boxes if box[0] == finding.page]
    words = _on_page(boxes, first_page) if first_page is not None else ""
    return f"{pages}, {words}" if words else pages


def _on_page(boxes: Sequence[QuoteBox], page: Page) -> str:
    if not boxes or page.width <= 0 or page.height <= 0:
        return ""
    left, right = min(box[1] for box in boxes) / page.width, max(box[3] for box in boxes) / page.width
    middle = (boxes[0][2] + boxes[0][4]) / 2 / page.height
    height = "top" if middle < 1 / 3 else "bottom" if middle > 2 / 3 else "middle"
    centre = (left + right) / 2
    if right - left > _WIDE or 0.42 <= centre <= 0.58:
        return height
    return f"{height} {'left' if centre < 0.5 else 'right'}"
