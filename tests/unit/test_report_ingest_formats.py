"""Test cases out of delimited text and of JUnit XML."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.apps.report.data.cases import Status
from headrace.apps.report.errors import NoCasesError, UnreadableFileError
from headrace.apps.report.ingest import limits
from headrace.apps.report.ingest.reading import read_file

TEXT = '用例编号,用例标题,所属模块,执行结果,备注\nA-1,登录,账号,通过,"一,\n二"\n\nA-2,退出,账号,不通过,😀\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_text_of_every_encoding_and_delimiter(encoding: str, delimiter: str, tmp_path: Path) -> None:
    """Both are told by the content; quotes hold delimiters and line ends, and rows are counted as sheets do."""
    path = tmp_path / "cases.csv"
    path.write_bytes(TEXT.replace(",", delimiter).encode(encoding))
    found = read_file(path)
    assert [(case.case_id, case.status, case.source.row) for case in found.cases] == [
        ("A-1", Status.PASSED, 2),
        ("A-2", Status.FAILED, 4),
    ]
    assert found.cases[0].remark == f"一{delimiter}\n二" and found.cases[1].remark == "😀"
    assert found.cases[0].source.sheet == "cases"


def test_text_of_big_end_first(tmp_path: Path) -> None:
    """UTF-16 is read in both orders, and a file of tabs may be called .tsv."""
    path = tmp_path / "cases.tsv"
    path.write_bytes("\ufeffID\tTitle\tResult\n1\ta\tok\n".encode("utf-16-be"))
    assert len(read_file(path, sheets=["cases"]).cases) == 1
    with pytest.raises(NoCasesError, match="there is no sheet 'other', got the sheets 'cases'"):
        read_file(path, sheets=["other"])


def test_numbers_and_long_texts_in_delimited_text(tmp_path: Path) -> None:
    """All is text there: "1.0" is the id 1, results and durations are words; a text that no cell could hold is cut."""
    path = tmp_path / "a.csv"
    path.write_text(f"ID,Title,Result,Duration\n1.0,{'x' * 40_000},TRUE,1:30\n,b,ok,\n")
    found = read_file(path)
    first, second = found.cases
    assert (first.case_id, len(first.title), first.duration_seconds) == ("1", limits.MAX_TEXT, 90)
    assert second.case_id == "a-3"
    assert found.validation.issues == {"missing_id": 1, "text_cut": 1, "unknown_status": 1}


JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="Cart" hostname="ci-1" timestamp="2026-03-05T10:00:00+02:00">
<properties><property name="a" value="b"/></properties>
<testcase classname="shop.CartTest" name="adds" time="1.25"><system-out>hello</system-out></testcase>
<testcase classname="shop.CartTest" name="fails" time="1,000.5">
  <failure type="AssertionError" message="expected 2 but was 3">AssertionError: expected 2 but was 3
    at shop.CartTest.fails(CartTest.java:7)</failure><system-err>oh</system-err></testcase>
<testcase classname="shop.CartTest" name="breaks" time="soon"><error type="IOError" message="no disk"/></testcase>
<testcase classname="shop.CartTest" name="waits"><skipped message="later"/></testcase>
<testcase classname="shop.CartTest" name="adds" status="notrun"/>
</testsuite><testsuite name="pytest" timestamp="soon"><testcase classname="tests.test_pay" name="pays[1]" time="0">
<rerunFailure message="once">trace</rerunFailure></testcase></testsuite></testsuites>"""


def test_junit(tmp_path: Path) -> None:
    """Suites, classes, endings, messages, traces, times and output are where reports look for them."""
    path = tmp_path / "junit.xml"
    path.write_text(JUNIT)
    found = read_file(path)
    assert [(case.case_id, case.status.value, case.module) for case in found.cases] == [
        ("shop.CartTest.adds", "passed", "Cart"),
        ("shop.CartTest.fails", "failed", "Cart"),
        ("shop.CartTest.breaks", "failed", "Cart"),
        ("shop.CartTest.waits", "skipped", "Cart"),
        ("shop.CartTest.adds#2", "skipped", "Cart"),
        ("tests.test_pay.pays[1]", "passed", "tests.test_pay"),
    ]
    adds, fails, breaks, waits = found.cases[:4]
    assert (adds.executed_at, adds.duration_seconds, adds.environment) == ("2026-03-05T10:00:00", 1.25, "ci-1")
    assert adds.extra == {"classname": "shop.CartTest", "suite": "Cart", "output": "hello"}
    assert fails.actual == "expected 2 but was 3" and fails.duration_seconds == 1000.5
    assert fails.error.count("expected 2 but was 3") == 1 and fails.error.endswith("(CartTest.java:7)")
    assert (breaks.error, breaks.duration_seconds, waits.remark) == ("IOError: no disk", None, "later")
    assert found.validation.issues == {"bad_date": 1, "bad_duration": 1, "duplicate_id": 1}
    assert "priority" not in found.validation.missing
    assert [case.source.row for case in found.cases] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_junit_of_other_encodings(encoding: str, tmp_path: Path) -> None:
    """The file says in which encoding it is; one suite may be the root, and names may have a namespace."""
    path = tmp_path / "a.xml"
    head = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
    path.write_bytes(f'{head}<testsuite xmlns="urn:x"><testcase name="é"/></testsuite>'.encode(encoding))
    (case,) = read_file(path).cases
    assert (case.case_id, case.title, case.status) == ("é", "é", Status.PASSED)


def test_junit_without_cases_or_with_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are errors that say so."""
    path = tmp_path / "a.xml"
    path.write_text("<testsuites/>")
    with pytest.raises(NoCasesError, match=r"a\.xml: there must be test cases"):
        read_file(path)
    path.write_text(JUNIT)
    monkeypatch.setattr("headrace.apps.report.ingest.junit.MAX_ROWS", 2)
    with pytest.raises(UnreadableFileError, match="at most 2 test cases"):
        read_file(path)


def test_long_traces_are_cut(tmp_path: Path) -> None:
    """No text is longer than a cell may be, and the file says where one was."""
    path = tmp_path / "a.xml"
    path.write_text(f'<testsuite><testcase name="a"><failure>{"x y " * 20_000}</failure></testcase></testsuite>')
    found = read_file(path)
    assert len(found.cases[0].error) <= limits.MAX_TEXT
    assert found.validation.issues == {"text_cut": 1}


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ('status="failed"', "failed"),
        ('status="FAILED" result="completed"', "failed"),
        ('result="skipped"', "skipped"),
        ('status="run" result="completed"', "passed"),
        ('status="passed"', "passed"),
        ('result="Success"', "passed"),
        ('status="blocked"', "blocked"),
        ('status="inconclusive"', "unknown"),
        ('status="passed?"', "unknown"),
        ('status="passed" result="incomplete"', "unknown"),
        ("", "passed"),
    ],
)
def test_attributes_that_say_how_a_case_ended(case: str, status: str, tmp_path: Path) -> None:
    """A case is passed only where nothing that it says is anything else."""
    path = tmp_path / "a.xml"
    path.write_text(f'<testsuite name="s"><testcase name="a" {case}/></testsuite>')
    found = read_file(path)
    assert found.cases[0].status.value == status
    assert found.validation.issues.get("unknown_status", 0) == (status == "unknown")


def test_a_failure_counts_whatever_the_attributes_say(tmp_path: Path) -> None:
    """And what was skipped did not pass."""
    path = tmp_path / "a.xml"
    path.write_text(
        '<testsuite name="s"><testcase name="a" status="passed"><failure/></testcase>'
        '<testcase name="b" status="passed"><skipped/></testcase>'
        '<testcase name="c" status="failed"><skipped/></testcase></testsuite>'
    )
    assert [case.status.value for case in read_file(path).cases] == ["failed", "skipped", "failed"]


ONE = '<testcase name="a"/>'


@pytest.mark.parametrize(
    ("suites", "warnings"),
    [
        (f'<testsuite name="A" errors="1" tests="5"/><testsuite name="B" tests="1">{ONE}</testsuite>',
         ["A: tests says 5, 0 were read", "A: failures+errors says 1, 0 were read"]),
        (f'<testsuite name="A" tests="2" failures="0">{ONE}</testsuite>', ["A: tests says 2, 1 were read"]),
        (f'<testsuite name="A" tests="1" skipped="1">{ONE}</testsuite>', ["A: skipped says 1, 0 were read"]),
        # What a suite within differs in is told once.
        (f'<testsuite name="O" tests="3"><testsuite name="I" tests="3">{ONE}</testsuite></testsuite>',
         ["I: tests says 3, 1 were read"]),
        (f'<testsuite name="A" tests="9">{ONE}</testsuite>' * 4, ["4 × testsuite: tests says 36, 4 were read"]),
        # Each of these is a way to count that some runner has.
        (f'<testsuite name="O" tests="2"><testsuite name="I" tests="2">{ONE}{ONE}</testsuite></testsuite>', []),
        (f'<testsuite name="O" tests="1">{ONE}<testsuite name="I" tests="2">{ONE}{ONE}</testsuite></testsuite>', []),
        (f'<testsuite name="A" tests="1" skipped="1">{ONE}<testcase name="b"><skipped/></testcase></testsuite>', []),
        (f'<testsuite name="A" failures="1" errors="1">{ONE[:-2]}><failure/><error/></testcase></testsuite>', []),
        (f'<testsuite name="A" tests="many">{ONE}</testsuite>', []),
    ],
)  # fmt: skip
def test_suites_whose_numbers_differ_from_their_cases(suites: str, warnings: list[str], tmp_path: Path) -> None:
    """A suite that broke before its first case has no other trace."""
    path = tmp_path / "a.xml"
    path.write_text(f"<testsuites>{suites}</testsuites>")
    told = [warning for warning in read_file(path).validation.warnings if warning.startswith("suite_counts")]
    assert told == [f"suite_counts: {warning}" for warning in warnings]
