"""Where the table of test cases is in a sheet, and which rows of it are cases."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter

from headrace.apps.report.data.cases import Case, Ingested, Status
from headrace.apps.report.errors import NoCasesError
from headrace.apps.report.ingest.labels import meaning_of
from headrace.apps.report.ingest.reading import read_file
from headrace.apps.report.ingest.words import header_key, headers, words
from tests.unit.report_files import ROWS, Table, ods, xls, xlsx

DECORATED = (
    "{}",
    " {} ",
    "{}*",
    "* {}",
    "{}（必填）",
    "{} (required)",
    "【{}】",
    "{}：",
    "{}\n",
)


def read(tmp_path: Path, rows: Table, **how: Any) -> Ingested:
    """Read a workbook of these rows."""
    return read_file(xlsx(tmp_path / "cases.xlsx", rows, **how))


def ids(found: Ingested) -> list[str]:
    """Return the ids of the cases."""
    return [case.case_id for case in found.cases]


@pytest.mark.parametrize("field", words()["fields"])
def test_every_synonym_is_understood_however_it_is_written(field: str) -> None:
    """Case, width, space, signs and remarks such as "(required)" are no matter."""
    assert field in Case.model_fields
    for word in words()["fields"][field]:
        wide = "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in word)
        assert unicodedata.normalize("NFKC", wide) == word
        for spelled in (word.upper(), word.lower(), wide, word.replace(" ", "_"), " ".join(word)):
            for pattern in DECORATED:
                meaning = meaning_of(pattern.format(spelled))
                assert meaning is not None and meaning.field == field, (word, pattern.format(spelled))


def test_no_word_stands_for_two_fields() -> None:
    """Else what a column means would depend on the order of a file."""
    listed = [(header_key(word), field) for field, all_words in words()["fields"].items() for word in all_words]
    assert {key: headers()[key][0] for key, _ in listed} == dict(listed)


@pytest.mark.parametrize(
    "text", ["", "Weather", "通过", "TC-1", "Result of the whole test run in the third round of it, see below"]
)
def test_other_texts_are_no_headers(text: str) -> None:
    """Values, other words and sentences mean no field."""
    assert meaning_of(text) is None


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("耗时(s)", 1),
        ("耗时（分钟）", 60),
        ("Duration (min)", 60),
        ("duration_ms", 0.001),
        ("Time/s", 1),
        ("Time [h]", 3600),
    ],
)
def test_units_of_headers(text: str, unit: float) -> None:
    """A header may say in which unit durations are given."""
    meaning = meaning_of(text)
    assert meaning is not None and (meaning.field, meaning.unit) == ("duration_seconds", unit)


def test_a_header_below_titles_and_notes(tmp_path: Path) -> None:
    """Rows above it are passed over; rows are counted as people do."""
    found = read(tmp_path, [["Report of release 4", None], [None, None], ["By Ada", "in March"], *ROWS])
    assert [(case.case_id, case.source.row) for case in found.cases] == [("TC-1", 5), ("TC-2", 6)]
    assert found.validation.sheets[0].header_rows == (4,)


def test_a_header_of_two_rows_with_merged_cells(tmp_path: Path) -> None:
    """Groups above and columns that go over both rows are told apart by what is merged."""
    rows = [
        ["Report", None, None, None, None],
        ["编号", "模块", "执行信息", None, None],
        [None, None, "执行结果", "执行人", "耗时(min)"],
        ["A-1", "登录", "通过", "张伟", 2],
    ]
    merges = [(0, 0, 0, 4), (1, 0, 2, 0), (1, 1, 2, 1), (1, 2, 1, 4)]
    found = read(tmp_path, rows, merges=merges)
    (case,) = found.cases
    assert (case.case_id, case.module, case.executor, case.duration_seconds) == ("A-1", "登录", "张伟", 120)
    assert found.validation.sheets[0].header_rows == (2, 3)


def test_a_header_of_two_rows_whose_words_belong_together(tmp_path: Path) -> None:
    """The upper word and the lower one may make the header only together, also where a format tells no merged cells."""
    rows = [["Test Case", None, "Expected", "Run"], ["ID", "Title", "Result", "Status"], ["1", "Log in", "Home", "ok"]]
    for path in (xlsx(tmp_path / "a.xlsx", rows), ods(tmp_path / "a.ods", rows)):
        (case,) = read_file(path).cases
        assert (case.case_id, case.title, case.expected, case.status) == ("1", "Log in", "Home", Status.PASSED)


def test_values_of_the_first_case_are_no_second_row_of_the_header(tmp_path: Path) -> None:
    """A result below a header of results is a case, whatever else its word could mean."""
    found = read(tmp_path, [["ID", "Title", "Steps", "Round 1"], ["1", "a", "b", "Passed"], ["2", "c", "d", "Failed"]])
    assert ids(found) == ["1", "2"]


def test_of_two_columns_for_a_field_the_better_word_counts(tmp_path: Path) -> None:
    """The other column is kept beside."""
    found = read(tmp_path, [["序号", "用例编号", "用例标题", "状态", "执行结果"], [1, "A-7", "登录", "已评审", "通过"]])
    (case,) = found.cases
    assert (case.case_id, case.status) == ("A-7", Status.PASSED)
    assert case.extra == {"序号": "1", "状态": "已评审"}
    assert set(found.validation.sheets[0].ignored_columns) == {"序号", "状态"}


@pytest.mark.parametrize(
    ("weak", "strong", "field"),
    [
        ("No.", "用例编号", "case_id"),
        ("ID", "Test Case ID", "case_id"),
        ("Status", "执行结果", "status"),
        ("结果", "执行结果", "status"),
        ("Name", "用例标题", "title"),
        ("日期", "Execution Date", "executed_at"),
        ("Owner", "执行人", "executor"),
    ],
)
def test_words_of_many_meanings_give_way(weak: str, strong: str, field: str) -> None:
    """Whatever the language, the word that says more is the better header."""
    ranks = [meaning.rank for text in (strong, weak) if (meaning := meaning_of(text)) and meaning.field == field]
    assert len(ranks) == 2 and ranks[0] < ranks[1]


def test_columns_that_mean_nothing_are_kept_by_their_headers(tmp_path: Path) -> None:
    """Also where two of them have one name."""
    found = read(tmp_path, [["ID", "Result", "Weather", "Weather"], ["1", "ok", "sun", "rain"]])
    assert found.cases[0].extra == {"Weather": "sun", "Weather (2)": "rain"}


def test_merged_cells_of_the_body_go_down_and_not_across(tmp_path: Path) -> None:
    """A module that is merged over rows is every row's; a text that is merged over columns is the first one's alone."""
    rows = [
        ["ID", "Module", "Title", "Remark"],
        ["1", "Pay", "a", None],
        ["2", None, "b", None],
        ["3", None, "c", None],
    ]
    found = read(tmp_path, rows, merges=[(1, 1, 2, 1), (3, 2, 3, 3)])
    assert [case.module for case in found.cases] == ["Pay", "Pay", ""]
    assert found.cases[2].remark == ""
    found = read_file(xls(tmp_path / "a.xls", [[value or "" for value in row] for row in rows]))
    assert [case.module for case in found.cases] == ["Pay", "", ""]


def test_modules_go_down_where_merged_cells_are_not_told(tmp_path: Path) -> None:
    """Where most rows lack a module, the one above is theirs; where few do, they have none."""
    rows = [
        ["ID", "Module", "Title"],
        ["1", "Pay", "a"],
        *[[str(n), None, "b"] for n in range(2, 5)],
        ["5", "Cart", "c"],
    ]
    found = read_file(ods(tmp_path / "a.ods", rows))
    assert [case.module for case in found.cases] == ["Pay", "Pay", "Pay", "Pay", "Cart"]
    rows[2][1] = rows[3][1] = "Login"
    assert [case.module for case in read_file(ods(tmp_path / "a.ods", rows)).cases] == [
        "Pay",
        "Login",
        "Login",
        "",
        "Cart",
    ]


def test_rows_that_are_no_cases(tmp_path: Path) -> None:
    """Headers that are repeated, totals, headings and empty rows are passed over; all but empty ones are told of."""
    rows = [
        *ROWS,
        [None, None, None, None],
        ["Payment cases", None, None, None],
        ROWS[0],
        ["TC-3", "Total price is shown", "Cart", "Pass"],
        ["合计：", 3, None, None],
        [None, "Pass rate: 66%", None, None],
        ["Total", "3", "2", "1"],
        ["编制人：张伟", "审核人：李娜", None, "2026年3月"],
    ]
    found = read(tmp_path, rows)
    assert ids(found) == ["TC-1", "TC-2", "TC-3"]
    assert found.validation.issues == {"not_a_case": 2, "repeated_header": 1, "total_row": 3}
    assert (found.validation.rows, found.validation.rejected) == (9, 6)
    assert [(issue.row, issue.rule) for issue in found.issues][:2] == [(5, "not_a_case"), (6, "repeated_header")]


STEPS = [
    ["ID", "Title", "Steps", "Expected", "Status"],
    ["1", "Log in", "open", "form", "pass"],
    [None, None, "send", "home", "fail"],
    [None, None, "wait", "home", "pass"],
    ["2", "Log out", "click", "gone", "pass"],
    [None, None, "back", "form", "pass"],
    [None, None, None, None, None],
    ["3", "Idle", "wait", "out", "pass"],
    [None, "Idle long", "wait more", "out", "pass"],
]


def test_a_row_for_each_step(tmp_path: Path) -> None:
    """Rows under one merged id, or with steps and no name, are one case: steps are joined, the worst result counts."""
    for path in (xlsx(tmp_path / "a.xlsx", STEPS, merges=[(1, 0, 3, 0), (1, 1, 3, 1)]), ods(tmp_path / "a.ods", STEPS)):
        found = read_file(path)
        assert [(case.case_id, case.status.value, case.source.row) for case in found.cases] == [
            ("1", "failed", 2),
            ("2", "passed", 5),
            ("3", "passed", 8),
            (f"{found.cases[3].source.sheet}-9", "passed", 9),
        ]
        assert (found.cases[0].steps, found.cases[0].expected) == ("open\nsend\nwait", "form\nhome")
        assert (found.validation.rows, found.validation.rejected) == (7, 0)
        assert found.validation.issues == {"missing_id": 1}


def test_titles_of_their_own_below_a_merged_id_are_cases(tmp_path: Path) -> None:
    """Whatever is merged, another title is another case."""
    rows = [["ID", "Title", "Status"], ["1", "a", "ok"], [None, "b", "ng"]]
    assert ids(read(tmp_path, rows, merges=[(1, 0, 2, 0)])) == ["1", "1#2"]


def test_an_export_of_a_tool_in_chinese(tmp_path: Path) -> None:
    """The state of a case, such as "正常", is not taken for its result."""
    head = (
        "用例编号,所属产品,所属模块,用例标题,前置条件,步骤,预期,优先级,用例类型,用例状态,最后执行人,最后执行时间,结果"
    )
    path = tmp_path / "a.csv"
    path.write_bytes(
        f"{head}\n12,商城,/登录(#3),登录,,1. 打开,成功,1,功能测试,正常,张伟,2026-03-05 10:00:00,失败\n".encode(
            "gb18030"
        )
    )
    (case,) = read_file(path).cases
    assert (case.status, case.priority, case.executor) == (Status.FAILED, "P1", "张伟")
    assert case.executed_at == "2026-03-05T10:00:00" and case.extra["用例状态"] == "正常"


def test_sheets_are_joined_and_hidden_ones_named(tmp_path: Path) -> None:
    """Every sheet that shows gives its cases; of the others the report says why not."""
    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        for name in ("Web", "API", "Old", "Notes", "Empty"):
            sheet = book.add_worksheet(name)
            for number, row in enumerate(ROWS if name not in ("Notes", "Empty") else []):
                sheet.write_row(number, 0, row)
            if name == "Old":
                sheet.hide()
            if name == "Notes":
                sheet.write(0, 0, "Nothing of importance")
    found = read_file(path)
    assert ids(found) == ["TC-1", "TC-2", "TC-1#2", "TC-2#2"]
    reasons = {sheet.name: sheet.reason for sheet in found.validation.sheets if not sheet.used}
    assert list(reasons) == ["Old", "Notes", "Empty"]
    assert "hidden" in reasons["Old"] and "fields of test cases" in reasons["Notes"] and "empty" in reasons["Empty"]
    assert [sheet.hidden for sheet in found.validation.sheets] == [False, False, True, False, False]
    found = read_file(path, sheets=["Old"])
    assert [case.source.sheet for case in found.cases] == ["Old", "Old"]
    assert {sheet.name for sheet in found.validation.sheets if "not among" in sheet.reason} == {
        "Web",
        "API",
        "Notes",
        "Empty",
    }
    with pytest.raises(
        NoCasesError, match=r"there is no sheet 'web', got the sheets 'Web', 'API', .*Name one of these"
    ):
        read_file(path, sheets=["web"])


def test_a_file_without_cases_says_why(tmp_path: Path) -> None:
    """Each sheet is named with its reason."""
    with pytest.raises(NoCasesError, match=r"Cases: no row of the first 50 names the fields of test cases"):
        read(tmp_path, [["a", "b"], ["c", "d"]])
    with pytest.raises(NoCasesError, match=r"Cases: there are no cases below its header"):
        read(tmp_path, ROWS[:1])


@pytest.mark.parametrize(
    "rows",
    [
        [["序号", "版本", "日期", "描述", "修改人"], [1, "V1.0", "2026-03-05", "初稿", "张伟"]],
        [["Module", "Total", "Passed", "Failed", "Pass rate"], ["Login", 10, 9, 1, "90%"]],
        [["Name", "Date", "Notes"], ["Ada", "2026-03-05", "on leave"]],
    ],
)
def test_tables_of_something_else_are_no_cases(rows: Table, tmp_path: Path) -> None:
    """A history of versions, a summary and a list of people have columns of the same names."""
    with pytest.raises(NoCasesError):
        read(tmp_path, rows)


def test_ids_are_given_once(tmp_path: Path) -> None:
    """A repeated one has a number behind it, a missing one is made of sheet and row, and none of them meets another."""
    rows = [
        ["ID", "Title", "Result"],
        *[[value, "a", "ok"] for value in ("7", "7", None, 7.0, "7#2", "Cases-4", "1.0")],
    ]
    found = read(tmp_path, rows)
    assert ids(found) == ["7", "7#2", "Cases-4", "7#3", "7#2#2", "Cases-4#2", "1"]
    assert found.validation.issues == {"duplicate_id": 4, "missing_id": 1}


def test_formulas_give_their_stored_results(tmp_path: Path) -> None:
    """One without a result, or with an error, is told of with its place; the cell counts as empty."""
    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Cases")
        for number, row in enumerate([["ID", "Title", "Result", "Duration"], *[[str(n), "a"] for n in range(1, 5)]]):
            sheet.write_row(number, 0, row)
        for row, value in enumerate(["ok", "#REF!", "", "ok"], 1):
            sheet.write_formula(row, 2, "=A1", None, value)
        sheet.write_formula(1, 3, "=A1", None, 1.5)
    found = read_file(path)
    assert [case.status.value for case in found.cases] == ["passed", "unknown", "unknown", "passed"]
    assert found.cases[0].duration_seconds == 1.5
    assert [(issue.row, issue.column, issue.value, issue.rule) for issue in found.issues] == [
        (3, "Result", "#REF!", "broken_cell"),
        (4, "Result", "", "formula_without_value"),
    ]


def test_formulas_that_no_program_has_calculated(tmp_path: Path) -> None:
    """Files of libraries have formulas without results."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["ID", "Title", "Result"], ["1", "a", '=IF(1=1,"ok","ng")']):
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    assert read_file(tmp_path / "a.xlsx").validation.issues == {"formula_without_value": 1}
