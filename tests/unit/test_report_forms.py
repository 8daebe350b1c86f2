"""The last steps of a report: forms that cannot be made take none of the others with them."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.tasks import output
from tests.unit.report_documents import document as document_of


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is stored, in the place of a store."""
    found: list[bytes] = []

    class Files:
        async def put(self, data: bytes) -> dict[str, Any]:
            found.append(data)
            return {"$file": {"sha256": str(len(found)), "bytes": len(data)}}

    async def get(_mark: Any, _kind: Any) -> ReportDocument:
        return document_of("en", 20)

    monkeypatch.setattr(output.shelf, "get", get)
    monkeypatch.setitem(output.app.__dict__, "files", Files())
    return found


async def test_a_workbook_of_the_cases_stands_for_one_that_failed(stored: list[bytes]) -> None:
    """And a plain page for the page."""
    told = await output.store_artifacts.definition.function("J1", {"document_ref": {}}, None, None)
    assert set(told["artifacts"]) == {"json_ref", "html_ref", "xlsx_ref"}
    assert [warning.partition(":")[0] for warning in told["warnings"]] == ["html_failed", "xlsx_failed"]
    assert stored[0].startswith(b"{")
    assert stored[1].startswith(b"<!doctype html>")
    assert stored[2].startswith(b"PK")


async def test_where_no_workbook_can_be_written_at_all_the_report_ends_without_one(
    stored: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What broke the first one may break the smaller one: page and JSON are there."""

    def fail(*_: Any) -> None:
        raise RuntimeError("no disk for workbooks")

    monkeypatch.setattr(output, "write_cases_xlsx", fail)
    told = await output.store_artifacts.definition.function("J1", {"document_ref": {}}, {"html_ref": {}}, None)
    assert set(told["artifacts"]) == {"json_ref", "html_ref"}
    assert told["warnings"] == ["xlsx_failed: the workbook could not be written; page and JSON have everything"]
    assert len(stored) == 1
