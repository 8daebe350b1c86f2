"""From a rendered page to a result: values that are found stand in their document, on their page."""

from __future__ import annotations

import re

import pytest

from headrace.apps.papers.documents import Document
from headrace.apps.papers.documents.jats import JatsReader
from headrace.apps.papers.documents.pdf import PdfReader
from headrace.apps.papers.evidence import Claim, settle
from headrace.apps.papers.result import Status
from headrace.apps.papers.sentences import split_document
from headrace.apps.papers.template import TemplateField
from tests.unit.papers_render import STYLES, make_paper, render_jats, render_pdf

FIELD = TemplateField(name="yield", type="number", unit="kg", description="What the mills yielded")


@pytest.mark.parametrize("layout", ["one column", "two columns, by words, ragged, numbered", "three columns", "jats"])
def test_found_values_stand_where_the_result_says(layout: str) -> None:
    """Every value of a known text is found with its sentence and page; a value that is nowhere is never found."""
    paper = make_paper(21)
    if layout == "jats":
        content, quotes = render_jats(paper)
        document = JatsReader().read("a.xml", content)
    else:
        content, quotes = render_pdf(paper, next(style for style in STYLES if style.name == layout))
        document = PdfReader().read("a.pdf", content)
    assert isinstance(document, Document)
    sentences = split_document(document)
    values = [(match[1], quote) for quote in quotes if (match := re.search(r"\(([\d.]+) kg\)", quote.text))]
    assert len(values) > 80
    for value, quote in values[::3]:
        result = settle(FIELD, Claim(Status.FOUND, value), sentences)
        assert result.status is Status.FOUND
        assert result.quote == document.text[result.char_start : result.char_end]
        assert " ".join(str(result.quote).split()) == quote.text
        assert result.page == quote.page
        assert settle(FIELD, Claim(Status.FOUND, f"9{value}"), sentences).status is not Status.FOUND
