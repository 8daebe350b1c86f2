"""What cells mean: results, priorities, severities, dates, durations; and what is told of those that mean nothing."""

from __future__ import annotations

import string
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.apps.report.data.cases import Status
from headrace.apps.report.ingest.cells import key_of
from headrace.apps.report.ingest.issues import MAX_ISSUES, RULES, IssueBook, Place
from headrace.apps.report.ingest.reading import read_file
from headrace.apps.report.ingest.values.dates import is_day_first, when_of
from headrace.apps.report.ingest.values.durations import seconds_of
from headrace.apps.report.ingest.values.levels import level_of, status_of
from headrace.apps.report.ingest.words import meanings, words
from tests.unit.report_files import xlsx

STATUS_WORDS = [(word, status) for status, listed in words()["status"].items() for word in listed]


@pytest.mark.parametrize(("word", "status"), STATUS_WORDS)
def test_every_synonym_of_a_result(word: str, status: str) -> None:
    """Case, width, space and signs around a word are no matter."""
    wide = "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in word)
    for spelled in (word, word.upper(), word.title(), wide, f" {word}\n", f"{word}.", f"[{word}]", f"{word}！"):
        assert status_of(spelled, "Status") == Status(status), spelled


@pytest.mark.parametrize(
    "text",
    [
        "不通过",
        "未通过",
        "没通过",
        "not passed",
        "Not OK",
        "不合格",
        "通过失败",
        "pass/fail",
        "passed?failed",
        "基本通过",
    ],
)
def test_what_contains_a_pass_is_none(text: str) -> None:
    """Only a whole word counts."""
    assert status_of(text, "Status") in (None, Status.FAILED)


@given(st.text(alphabet=string.ascii_letters + string.digits + " 不未通过失败成功√×()/-:", max_size=12))
@settings(max_examples=300, deadline=None)
def test_no_text_passes_but_the_words_that_say_so(text: str) -> None:
    """Whatever stands in a cell, it is passed only where the word, without a remark in brackets, is one of the list."""
    if status_of(text, "Status") is Status.PASSED:
        assert (
            meanings("status").get(key_of(text)) == "passed"
            or meanings("status")[key_of(text.split("(")[0])] == "passed"
        )


@pytest.mark.parametrize(
    ("cell", "header", "status"),
    [
        ("通过（复测）", "", Status.PASSED),
        ("Pass (round 2)", "", Status.PASSED),
        ("Pass (step 3 failed)", "", None),
        ("通过（有问题）", "", None),
        ("失败(已提单)", "", Status.FAILED),
        (True, "", Status.PASSED),
        (False, "", Status.FAILED),
        ("Y", "是否通过", Status.PASSED),
        ("no", "Passed?", Status.FAILED),
        (1, "是否通过", Status.PASSED),
        ("Y", "Status", None),
        (1, "Status", None),
        ("70%", "Status", None),
        (None, "Status", None),
    ],
)
def test_results_that_need_more_than_a_word(cell: Any, header: str, status: Status | None) -> None:
    """Remarks in brackets, truth values, and answers to a header that asks."""
    assert status_of(cell, header) is status


@pytest.mark.parametrize(
    "text",
    [
        *("Pass?", "通过？", "Ok?", "!OK", "！通过", "[!OK]", "通过(60%)", "P(0/5)", "Pass (1/5 steps)", "通过(暂)"),
        *("Pass (TBD)", "Pass (waived)", "通过（豁免）", "Pass (see bug 7)", "Pass (retest?)", "通过(复测中)", "✔?"),
        *("Pass (pending)", "Pass (on Chrome only)", "通过(见遗留问题)", "Pass (4/5)", "Pass (0/0)", "P (?)", "OK %"),
    ],
)
def test_a_pass_in_doubt_is_unknown(text: str) -> None:
    """Signs of a question or of the contrary, and remarks that may take the pass back."""
    assert status_of(text, "Status") is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "通过(复测)",
            "Pass (Retest)",
            "Pass (re-tested OK)",
            "通过（第2轮）",
            "通过(第二次)",
            "Pass (manual)",
            "P (5/5)",
        ),
        *("Pass (see attachment)", "通过(详见备注)", "Pass (100%)", "通过(Pass)", "Pass (2026-03-05)", "Pass!", "OK."),
    ],
)
def test_a_pass_with_a_harmless_remark_stays_one(text: str) -> None:
    """How, when and in which round it passed is no matter."""
    assert status_of(text, "Status") is Status.PASSED


@pytest.mark.parametrize(
    ("text", "status"), [("✔️", "passed"), ("☑️", "passed"), ("✅\ufe0e", "passed"), ("✖️", "failed")]
)
def test_signs_that_are_drawn_as_pictures(text: str, status: str) -> None:
    """What asks for the drawing of a sign tells no other sign."""
    assert status_of(text, "Status") == Status(status)


@pytest.mark.parametrize("cell", ["Y?", "!Y", "是？", "-1", -1, "1%", 0.1])
def test_answers_in_doubt_are_no_pass(cell: Any) -> None:
    """Below a header that asks, too."""
    assert status_of(cell, "是否通过") is not Status.PASSED


@pytest.mark.parametrize("group", ["priority", "severity"])
def test_every_synonym_of_a_level(group: str) -> None:
    """Numbers may be numbers, and a level may say the same twice."""
    for level, listed in words()[group].items():
        for word in listed:
            assert level_of(f" {word.upper()} ", group) == level
            if word.isdigit():
                assert level_of(float(word), group) == level_of(int(word), group) == level


@pytest.mark.parametrize(
    ("cell", "group", "level"),
    [
        ("P1 - High", "priority", "P1"),
        ("高(P1)", "priority", "P1"),
        ("S2/严重", "severity", "major"),
        ("看情况", "priority", None),
        ("as high as you like it", "priority", None),
        (True, "priority", None),
        ("", "severity", None),
        (9, "severity", None),
    ],
)
def test_levels_of_several_words(cell: Any, group: str, level: str | None) -> None:
    """The first part that means a level decides."""
    assert level_of(cell, group) == level


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        (datetime(2026, 3, 5, 14, 30), "2026-03-05T14:30:00"),
        (datetime(2026, 3, 5), "2026-03-05"),
        (date(2026, 3, 5), "2026-03-05"),
        (46086, "2026-03-05"),
        (46086.5, "2026-03-05T12:00:00"),
        ("46086", "2026-03-05"),
        (20260305, "2026-03-05"),
        ("20260305", "2026-03-05"),
        ("2026-03-05", "2026-03-05"),
        ("2026/3/5", "2026-03-05"),
        ("2026.3.5 9:05", "2026-03-05T09:05:00"),
        ("2026-03-05T14:30:07.123Z", "2026-03-05T14:30:07"),
        ("2026-03-05 14:30:07 +08:00", "2026-03-05T14:30:07"),
        ("2026年3月5日", "2026-03-05"),
        ("2026年03月05日 14时30分", "2026-03-05T14:30:00"),
        ("２０２６／３／５", "2026-03-05"),
        ("05.03.2026", "2026-03-05"),
        ("25/03/2026", "2026-03-25"),
        ("03/25/2026", "2026-03-25"),
        ("03/25/2026 2:30 PM", "2026-03-25T14:30:00"),
        ("5 Mar 2026", "2026-03-05"),
        ("March 5th, 2026", "2026-03-05"),
        ("05-Mar-2026", "2026-03-05"),
        ("03/03/2026", "2026-03-03"),
    ],
)
def test_dates(cell: Any, found: str) -> None:
    """Every way of writing a date that is certain."""
    when = when_of(cell, day_first=False)
    assert when is not None and (when.text, when.is_ambiguous) == (found, False)


@pytest.mark.parametrize(
    "cell",
    [
        "2026-02-30",
        "昨天",
        "2026/13/01",
        "13/13/2026",
        "1899-12-31",
        7,
        -1,
        True,
        timedelta(1),
        "26/3/5",
        "",
        "5 Foo 2026",
    ],
)
def test_what_is_no_date(cell: Any) -> None:
    """Days that are not, other years, and anything else."""
    assert when_of(cell, day_first=False) is None


def test_days_and_months_that_could_be_exchanged() -> None:
    """They are read month first, or day first where the column has a date that begins with its day; it is told."""
    for day_first, found in ((False, "2026-03-04"), (True, "2026-04-03")):
        when = when_of("03/04/2026", day_first)
        assert when is not None and (when.text, when.is_ambiguous) == (found, True)
    assert is_day_first(["03/04/2026", "25/03/2026", None, 5])
    assert not is_day_first(["03/04/2026", "25/03/2026", "03/25/2026"])
    assert not is_day_first(["03/04/2026", "25.03.2026"])


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 12, 31)))
@settings(max_examples=100, deadline=None)
def test_a_date_is_the_same_however_it_is_written(moment: datetime) -> None:
    """Text and number of one time give one date."""
    at = moment.replace(microsecond=0)
    serial = (at - datetime(1899, 12, 30)) / timedelta(days=1)
    forms = (
        at,
        serial,
        at.isoformat(),
        f"{at:%Y/%m/%d %H:%M:%S}",
        f"{at:%d.%m.%Y %H:%M:%S}",
        f"{at:%d %b %Y %H:%M:%S}",
    )
    whole = at.isoformat() if at.time() != datetime.min.time() else at.date().isoformat()
    assert {when.text for form in forms if (when := when_of(form, day_first=False))} == {whole}


@pytest.mark.parametrize(
    ("cell", "unit", "seconds"),
    [
        ("1m30s", 1, 90),
        ("1h 2m 3s", 1, 3723),
        ("00:01:30", 1, 90),
        ("1:30", 1, 90),
        ("0:00:01.5", 1, 1.5),
        ("90", 1, 90),
        ("1,234.5", 1, 1234.5),
        ("1.5 min", 1, 90),
        ("90秒", 1, 90),
        ("1分30秒", 1, 90),
        ("2小时", 1, 7200),
        ("500ms", 1, 0.5),
        ("５００毫秒", 1, 0.5),
        ("1,5 h", 1, 5400),
        (90, 1, 90),
        (1.5, 60, 90),
        ("1.5", 60, 90),
        ("30s", 60, 30),
        (timedelta(seconds=90), 60, 90),
        (0, 1, 0),
    ],
)
def test_durations(cell: Any, unit: float, seconds: float) -> None:
    """Numbers count in the unit of the header; clocks, words and times of Excel do not need it."""
    assert seconds_of(cell, unit) == seconds


@pytest.mark.parametrize(
    "cell", ["很快", "-5", -5, "1m30x", "m", "", None, True, float("nan"), float("inf"), date(2026, 3, 5)]
)
def test_what_is_no_duration(cell: Any) -> None:
    """Words, less than nothing, and units that are none."""
    assert seconds_of(cell) is None


def test_everything_that_is_wrong_is_told_with_its_place(tmp_path: Path) -> None:
    """Sheet, row as people count, header and value stand in the issue, and the case is there all the same."""
    rows = [
        ["ID", "Title", "Result", "Priority", "Severity", "Date", "Duration"],
        ["1", "a", "maybe", "?!", "who knows", "soon", "long"],
        ["2", "b", "ok", 1, "S1", "03/04/2026", 3],
    ]
    found = read_file(xlsx(tmp_path / "a.xlsx", rows))
    assert [(issue.row, issue.column, issue.value, issue.rule) for issue in found.issues] == [
        (2, "Result", "maybe", "unknown_status"),
        (2, "Priority", "?!", "unknown_priority"),
        (2, "Severity", "who knows", "unknown_severity"),
        (2, "Date", "soon", "bad_date"),
        (2, "Duration", "long", "bad_duration"),
        (3, "Date", "03/04/2026", "ambiguous_date"),
    ]
    assert all(issue.message == RULES[issue.rule] and issue.sheet == "Cases" for issue in found.issues)
    assert found.cases[0].status is Status.UNKNOWN
    report = found.validation
    assert report.missing["status"] == 1 and report.missing["executor"] == 2
    assert "missing_executor: 2 of 2 cases" in report.warnings
    assert "unknown_status: 1 in 2 cases" in report.warnings


def test_issues_are_counted_beyond_those_that_are_kept() -> None:
    """Of thousands the last says how many more there are; a value is cut."""
    book = IssueBook()
    for number in range(MAX_ISSUES + 1_234):
        book.add("bad_date", Place("Cases", number), "x" * 500)
    kept = book.kept()
    assert len(kept) == MAX_ISSUES + 1
    assert (kept[-1].rule, kept[-1].value) == ("more_issues", "and 1,234 more")
    assert book.counts == {"bad_date": MAX_ISSUES + 1_234}
    assert len(kept[0].value) == 200


def test_texts_are_stripped_of_what_does_not_show(tmp_path: Path) -> None:
    """Spaces around, line ends of other systems and control characters are gone; markup and formulas are text."""
    rows = [["ID", "Title", "Steps"], ["1", "  <script>alert(1)</script> ", "a\r\nb\x0b\x00 c\u200b"], [2, "=1+1", 3.0]]
    (first, second) = read_file(xlsx(tmp_path / "a.xlsx", rows)).cases
    assert first.title == "<script>alert(1)</script>" and "\x0b" not in first.steps and first.steps.startswith("a\nb")
    assert (second.case_id, second.title, second.steps) == ("2", "=1+1", "3")
