"""Sheets that hold something else than cases, tables below each other, and what the first screen is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import xlsxwriter

from headrace.apps.report.data.cases import Ingested
from headrace.apps.report.errors import NoCasesError
from headrace.apps.report.ingest.reading import read_file
from tests.unit.report_files import HEADER, ROWS, Table, xlsx

BUGS = [
    ["ID", "Summary", "Component", "Severity", "Status"],
    ["7", "It fails", "Pay", "Major", "Closed"],
    ["8", "It is slow", "Cart", "Minor", "Deferred"],
]
DEFECTS = [
    ["缺陷编号", "标题", "模块", "严重程度", "状态"],
    ["B-1", "支付失败", "支付", "严重", "已关闭"],
    ["B-2", "页面卡顿", "搜索", "一般", "激活"],
]
LONG_BUGS = [
    ["编号", "标题", "优先级", "复现步骤", "预期结果", "负责人", "状态"],
    ["1", "a", "高", "x", "y", "张伟", "已解决"],
]


def book(path: Path, **sheets: Table) -> Path:
    """Write a workbook of several sheets."""
    with xlsxwriter.Workbook(str(path)) as made:
        for name, rows in sheets.items():
            sheet = made.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return path


@pytest.mark.parametrize(
    ("name", "rows"), [("Bugs", BUGS), ("List", BUGS), ("缺陷列表", DEFECTS), ("问题单", LONG_BUGS)]
)
def test_lists_of_defects_are_no_cases(name: str, rows: Table, tmp_path: Path) -> None:
    """They are told of on the first screen, and read where they are named."""
    path = book(tmp_path / "a.xlsx", Cases=ROWS, **{name: rows})
    found = read_file(path)
    assert {case.source.sheet for case in found.cases} == {"Cases"}
    assert found.validation.warnings[0] == f"unused_sheet: {name}, {len(rows)} rows"
    assert "lists defects" in found.validation.sheets[1].reason
    assert len(read_file(path, sheets=[name]).cases) == len(rows) - 1
    with pytest.raises(NoCasesError, match="it lists defects: name it to have it read"):
        read_file(book(tmp_path / "b.xlsx", **{name: rows}))


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        # A severity of cases, results of tests below "Status".
        ("Cases", [["ID", "Title", "Severity", "Status"], ["1", "a", "Major", "Pass"], ["2", "b", "Minor", "Fail"]]),
        # The defect of a case stands behind its title.
        ("用例", [["标题", "步骤", "预期结果", "状态", "缺陷编号"], ["a", "x", "y", "通过", None]]),
        ("Cases", [["No", "Title", "Severity", "Result", "Bug ID"], [1, "a", "Major", "perhaps", "B-1"]]),
        ("Cases", [["ID", "Title", "Severity", "Status"], ["1", "a", "Major", "Not run"]]),
        # Its name says no more than that the sheet is of tests anew.
        ("Bug retest", [["ID", "Title", "Module", "Status"], ["1", "a", "Pay", "Pass"]]),
        ("Debug", [["ID", "Title", "Module", "Status"], ["1", "a", "Pay", "Not run"]]),
    ],
)
def test_lists_of_cases_with_defects_are_read(name: str, rows: Table, tmp_path: Path) -> None:
    """Cases have severities and defects, too."""
    assert len(read_file(xlsx(tmp_path / "a.xlsx", rows, name=name)).cases) == len(rows) - 1


def test_sheets_that_are_not_used_are_told_first(tmp_path: Path) -> None:
    """Also where their header has no cases below; words in one column are notes."""
    path = book(
        tmp_path / "a.xlsx", Cases=ROWS, Runs=[["Build", "Rate"], ["7", "90%"], ["8", "91%"]], Next=ROWS[:1],
        Notes=[["Release 4"], ["by Ada"]],
    )  # fmt: skip
    found = read_file(path)
    assert found.validation.warnings[:2] == ("unused_sheet: Runs, 3 rows", "unused_sheet: Next, 0 rows")
    assert sum("unused" in warning for warning in found.validation.warnings) == 2
    assert not any("unused" in warning for warning in read_file(path, sheets=["Cases"]).validation.warnings)


def test_a_second_table_with_its_columns_in_another_order(tmp_path: Path) -> None:
    """Its header is none of the cases; from there on the columns are those that it says."""
    rows = [
        ["ID", "Title", "Module", "Result"],
        ["A", "log in", "Login", "Pass"],
        [None, None, None, None],
        ["Module", "Result", "ID", "Title", "Weather"],
        ["Pay", "Fail", "B", "pay", "sun"],
        ["Pay", "Pass", "C", "pay again", None],
    ]
    found = read_file(xlsx(tmp_path / "a.xlsx", rows))
    assert [(case.case_id, case.title, case.module, case.status.value) for case in found.cases] == [
        ("A", "log in", "Login", "passed"),
        ("B", "pay", "Pay", "failed"),
        ("C", "pay again", "Pay", "passed"),
    ]
    (sheet,) = found.validation.sheets
    assert (sheet.header_rows, sheet.rows, found.cases[1].source.row) == ((1, 4), 3, 5)
    assert found.cases[1].extra == {"Weather": "sun"} and sheet.ignored_columns == ("Weather",)


def test_two_columns_that_change_places(tmp_path: Path) -> None:
    """Most of the header is the same; what is not decides."""
    rows = [HEADER, ROWS[1], ["Case ID", "Module", "Title", "Status"], ["TC-9", "Pay", "pay", "Fail"], ROWS[0]]
    found = read_file(xlsx(tmp_path / "a.xlsx", rows))
    _, last = found.cases
    assert (last.case_id, last.module, last.title) == ("TC-9", "Pay", "pay")
    # The first order again, and nothing below it.
    assert found.validation.sheets[0].header_rows == (1, 3, 5)


def test_a_table_with_more_columns_below(tmp_path: Path) -> None:
    """The cases above it are not lost; a summary above the cases is none of them."""
    more = [["Priority", "Case ID", "Title", "Module", "Status"], ["P1", "TC-9", "pay", "Pay", "Fail"]]
    found = read_file(xlsx(tmp_path / "a.xlsx", [*ROWS, *more]))
    assert [case.case_id for case in found.cases] == ["TC-1", "TC-2", "TC-9"] and found.cases[2].priority == "P1"
    summary = [["Module", "Priority", "Status", "Count"], ["Pay", "P1", "Pass", 9]]
    found = read_file(xlsx(tmp_path / "a.xlsx", [*summary, *more]))
    assert [case.case_id for case in found.cases] == ["TC-9"]


def test_defects_below_the_cases(tmp_path: Path) -> None:
    """Their rows are told of and are no cases."""
    found = read_file(xlsx(tmp_path / "a.xlsx", [*ROWS, [None], *DEFECTS]))
    assert [case.case_id for case in found.cases] == ["TC-1", "TC-2"]
    assert found.validation.issues == {"defect_row": 2} and adds_up(found)


@pytest.mark.parametrize(
    "row", [["Status", "Name", "Login", "Pass"], ["TC-3", "Title", "Module", "Fail"], ["TC-3", "Result", "Login", "ok"]]
)
def test_cases_whose_words_are_those_of_headers_stay_cases(row: list[str], tmp_path: Path) -> None:
    """A title may well be "Result"."""
    assert len(read_file(xlsx(tmp_path / "a.xlsx", [*ROWS, row])).cases) == 3


def adds_up(found: Ingested) -> bool:
    """Whether every row is a case, was rejected, or went on with the case above."""
    report = found.validation
    return report.rows == len(found.cases) + report.rejected + report.joined


def test_rows_add_up(tmp_path: Path) -> None:
    """Cases, rejected rows and rows of steps are all rows that were read; other sheets have their own."""
    rows = [
        ["ID", "Title", "Steps", "Result"],
        ["1", "a", "x", "Pass"],
        [None, None, "y", "Pass"],
        ["Total", 1, None, None],
    ]
    found = read_file(book(tmp_path / "a.xlsx", Cases=rows, Other=[["a", "b"], ["c", "d"]]))
    assert (found.validation.rows, found.validation.rejected, found.validation.joined) == (3, 1, 1)
    assert adds_up(found)


def test_steps_below_a_header_that_is_repeated_are_not_lost(tmp_path: Path) -> None:
    """A page may end within a case: what failed there is a case whose name is missing."""
    header = ["ID", "Title", "Steps", "Result"]
    rows = [header, ["1", "a", "x", "Pass"], header, [None, None, "y", "Fail"], ["2", "b", "z", "Pass"]]
    found = read_file(xlsx(tmp_path / "a.xlsx", rows))
    assert [case.status.value for case in found.cases] == ["passed", "failed", "passed"]
    assert found.validation.issues == {"missing_id": 1, "repeated_header": 1} and adds_up(found)


@pytest.mark.parametrize(
    "row",
    [
        ["统计", "报表", None, None, None],
        ["Total", "Cart", "add two", "the sum", "perhaps"],
        ["Date: must be valid", "Login", "enter 31/02", None, "perhaps"],
        ["备注：可以为空", "订单", "不填备注", "提交成功", None],
    ],
)
def test_titles_that_begin_as_totals_and_notes_do(row: list[str | None], tmp_path: Path) -> None:
    """What describes a test is one, also where its result is not known."""
    rows = [["Title", "Module", "Steps", "Expected", "Result"], row]
    (case,) = read_file(xlsx(tmp_path / "a.xlsx", rows)).cases
    assert (case.title, case.status.value) == (row[0], "unknown")


@pytest.mark.parametrize(
    "row",
    [
        ["合计", None, None, 12, "10/12"],
        ["Total", "3", "2", "1", None],
        ["编制人：", "张伟", "审核人：", "李娜", None],
        ["备注：共两轮", None, None, None, None],
        ["Prepared by: Ada", "Reviewed by: Bob", None, None, "March"],
        ["日期：", "2026年3月", None, None, None],
    ],
)
def test_totals_and_notes_are_no_cases(row: list[object], tmp_path: Path) -> None:
    """Numbers, names and dates describe no test."""
    rows = [["Title", "Module", "Steps", "Expected", "Result"], ["a", "b", "c", "d", "ok"], row]
    assert len(read_file(xlsx(tmp_path / "a.xlsx", rows)).cases) == 1


def test_no_id_is_a_total(tmp_path: Path) -> None:
    """Where ids stand, what stands beside a total is of the total."""
    rows = [["ID", "Title", "Module", "Result"], ["1", "a", "b", "ok"], ["合计", "通过 1", "失败 0", None]]
    assert read_file(xlsx(tmp_path / "a.xlsx", rows)).validation.issues == {"total_row": 1}
