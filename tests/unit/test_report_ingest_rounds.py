"""Rows without a name, and sheets with several columns of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.apps.report.ingest.reading import read_file
from tests.unit.report_files import Table, ods, xlsx


def statuses(tmp_path: Path, rows: Table, **how: Any) -> list[str]:
    """Return the results of the cases of a workbook of these rows."""
    return [case.status.value for case in read_file(xlsx(tmp_path / "a.xlsx", rows, **how)).cases]


def test_rows_without_an_id_in_a_sheet_without_titles_are_cases(tmp_path: Path) -> None:
    """Nothing tells them from cases: each that has a result counts; one without goes on with the steps above."""
    rows = [
        ["Case ID", "Steps", "Expected", "Result", "Tester"],
        ["A-1", "open", "form", "Pass", "Ada"],
        [None, "send", "home", "Fail", None],
        [None, "wait", "home", "Fail", "Bob"],
        [None, "look", "home", "perhaps", None],
        ["A-2", "click", "gone", "Pass", "Ada"],
        [None, "back", "form", None, None],
    ]
    for path in (xlsx(tmp_path / "a.xlsx", rows), ods(tmp_path / "a.ods", rows)):
        found = read_file(path)
        assert [case.status.value for case in found.cases] == ["passed", "failed", "failed", "unknown", "passed"]
        assert found.validation.issues == {"missing_id": 3, "unknown_status": 1}
        assert found.cases[4].steps == "click\nback"


@pytest.mark.parametrize(
    ("header", "value"), [("Module", "Pay"), ("Priority", "P1"), ("Tester", "Bob"), ("Date", "2026-03-05")]
)
def test_rows_with_something_of_their_own_are_cases(header: str, value: str, tmp_path: Path) -> None:
    """A row of steps has neither a module nor anyone who executed it."""
    rows = [
        ["ID", "Title", "Steps", "Result", header],
        ["1", "a", "x", "Pass", value],
        [None, None, "y", "Fail", value],
    ]
    assert statuses(tmp_path, rows) == ["passed", "failed"]
    # A merged id names them all the same; a value that was merged down is not their own.
    assert statuses(tmp_path, rows, merges=[(1, 0, 2, 0)]) == ["failed"]
    rows[2] = [None, None, "y", "Fail", None]
    assert statuses(tmp_path, rows, merges=[(1, 4, 2, 4)]) == ["failed"]


TWO_ROUNDS = [
    ["用例编号", "标题", "第一轮", None, "第二轮", None],
    [None, None, "执行结果", "测试人", "执行结果", "测试人"],
    ["1", "a", "通过", "张伟", "失败", "李娜"],
    ["2", "b", "失败", "张伟", "通过", "李娜"],
    ["3", "c", "通过", "张伟", None, None],
    ["4", "d", "失败", "张伟", "-", None],
    ["5", "e", "通过", "张伟", "通过", "李娜"],
    ["6", "f", "通过", "张伟", "再看", "李娜"],
]


def test_the_last_round_counts(tmp_path: Path) -> None:
    """A test that failed in the second round did not pass; where rounds differ, it is told."""
    merges = [(0, 0, 1, 0), (0, 1, 1, 1), (0, 2, 0, 3), (0, 4, 0, 5)]
    found = read_file(xlsx(tmp_path / "a.xlsx", TWO_ROUNDS, merges=merges))
    assert [case.status.value for case in found.cases] == ["failed", "passed", "passed", "failed", "passed", "unknown"]
    told = [(issue.row, issue.column, issue.value) for issue in found.issues if issue.rule == "differing_results"]
    assert told == [
        (3, "执行结果 (2)", "通过 | 失败"),
        (4, "执行结果 (2)", "失败 | 通过"),
        (8, "执行结果 (2)", "通过 | 再看"),
    ]
    assert "differing_results: 3 in 6 cases" in found.validation.warnings
    assert found.cases[0].extra["执行结果 (2)"] == "失败"


@pytest.mark.parametrize(
    ("headers", "values", "status"),
    [
        (["执行结果", "复测结果", "执行结果"], ["通过", None, "失败"], "failed"),
        (["执行结果", "复测结果"], ["通过", "失败"], "failed"),
        (["复测结果", "执行结果"], ["失败", "通过"], "failed"),
        (["执行结果", "复测结果"], ["通过", "N/A"], "passed"),
        (["执行结果", "复测结果"], ["失败", "通过"], "passed"),
        (["第一轮执行结果", "第二轮执行结果"], ["通过", "不通过"], "failed"),
        (["Result", "Retest Result"], ["Pass", "Fail"], "failed"),
        (["Result 1", "Result 2"], ["Pass", "Fail"], "failed"),
        (["Result", "Result (round 2)"], ["Pass", "Fail"], "failed"),
        (["Status (iOS)", "Status (Android)"], ["Pass", "Fail"], "failed"),
        (["Status (iOS)", "Status (Android)"], ["Fail", "Pass"], "failed"),
        (["Status (iOS)", "Status (Android)"], ["perhaps", "Pass"], "unknown"),
        (["Status (iOS)", "Status (Android)", "Retest Result"], ["Fail", "Pass", "Pass"], "passed"),
        (["是否通过", "是否通过"], ["Y", "N"], "failed"),
    ],
)
def test_columns_of_rounds(headers: list[str], values: list[str | None], status: str, tmp_path: Path) -> None:
    """They have one word, or name the round."""
    assert statuses(tmp_path, [["ID", "Title", *headers], ["1", "a", *values]]) == [status]


def test_a_worse_column_that_contradicts_is_told(tmp_path: Path) -> None:
    """It does not count, but nobody should miss it; what is no failure there is nothing to tell."""
    rows = [["ID", "Title", "Status", "执行结果"], ["1", "a", "Fail", "通过"], ["2", "b", "Done", "通过"]]
    found = read_file(xlsx(tmp_path / "a.xlsx", rows))
    assert [case.status.value for case in found.cases] == ["passed", "passed"]
    assert [(issue.row, issue.value, issue.rule) for issue in found.issues] == [(2, "通过 | Fail", "differing_results")]


def test_rounds_of_cases_with_several_rows(tmp_path: Path) -> None:
    """In each round the worst of the steps counts."""
    rows = [
        ["ID", "Title", "Steps", "Result 1", "Result 2"],
        ["1", "a", "x", "Pass", "Pass"],
        [None, None, "y", "Pass", "Fail"],
        [None, None, "z", "Pass", "Pass"],
    ]
    assert statuses(tmp_path, rows) == ["failed"]
