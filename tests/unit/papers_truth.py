"""What must hold of every result of papers, whatever a model said."""

from __future__ import annotations

import json

from headrace.apps.papers.documents import Document
from headrace.apps.papers.locate import align
from headrace.apps.papers.result import Alignment, DocumentResult, Finding, Status
from headrace.apps.papers.template import Template

STANDS_THERE = ("text", "number", "integer", "date")


def assert_real(document: Document, template: Template, result: DocumentResult) -> None:
    """Every field is there, every quote is cut from the text, found only with a quote, and all of it can be stored."""
    assert list(result.fields) == [field.name for field in template.fields]
    assert list(result.rows) == [group.name for group in template.rows]
    for group in template.rows:
        for row in result.rows[group.name]:
            assert list(row) == [field.name for field in group.fields]
    for cell in result.cells():
        field = template.field_at(cell.group, cell.field)
        for finding in (cell.found, *cell.found.candidates):
            assert_located(document, finding)
            if finding.status is Status.FOUND and field.type in STANDS_THERE:
                assert finding.value is not None
                assert align(field, finding.value, finding.quote or "").alignment is not Alignment.NONE
    stored = json.dumps(result.to_json(), allow_nan=False, ensure_ascii=False)
    stored.encode("utf-8")
    assert "\\u0000" not in stored
    assert DocumentResult.from_json(json.loads(stored)) == result


def assert_located(document: Document, finding: Finding) -> None:
    """A quote is what its offsets cut out; a found value has one."""
    if finding.quote is not None:
        assert finding.char_start is not None
        assert finding.quote == document.text[finding.char_start : finding.char_end]
        assert finding.page == document.page_of(finding.char_start)
    if finding.status is Status.FOUND:
        assert finding.value is not None
        assert finding.quote
