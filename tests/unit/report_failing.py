"""Failed cases for the tests of clustering."""

from __future__ import annotations

from headrace.apps.report.data.cases import Case, Source, Status


def failed(case_id: str, error: str = "", **more: str) -> Case:
    """A failed case with an error text; `actual`, `title`, `module`, `severity` and so on by name."""
    source = Source(sheet="Cases", row=2)
    return Case(case_id=case_id, error=error, status=Status.FAILED, source=source, **more)


def prose(case_id: str, actual: str, **more: str) -> Case:
    """A failed case with what a tester wrote."""
    return failed(case_id, actual=actual, **more)
