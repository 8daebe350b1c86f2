"""What the first screen says of the data, in both languages, the worst first."""

from __future__ import annotations

import pytest

from headrace.apps.report.data.cases import DataWarning, Ingested, ParseIssue, ValidationReport
from headrace.apps.report.data.document import Lang, ReportDocument
from headrace.apps.report.ingest.issues import MAX_ISSUES
from headrace.apps.report.ingest.validation import USED, USED_OF_FAILING, WARN_ISSUES
from headrace.apps.report.output.notices import MOST_WARNINGS, notices_of
from headrace.apps.report.output.view import View
from headrace.apps.report.tasks.ingest import result_of
from tests.unit.report_documents import document

EVERY = (
    DataWarning(rule="unused_sheet", count=1_234, what="Bugs"),
    DataWarning(rule="suite_counts", count=1_000, of=1_250, what="Cart: tests"),
    *(DataWarning(rule=f"missing_{name}", count=1_400, of=2_000) for name in USED),
    *(DataWarning(rule=f"missing_{name}", count=1_100, of=1_200, what="failing cases") for name in USED_OF_FAILING),
    *(DataWarning(rule=rule, count=1_050, of=2_000) for rule in WARN_ISSUES),
)


def lines(lang: Lang, *warned: DataWarning, rejected: int = 0) -> tuple[str, ...]:
    """Return the lines of the notice about the data."""
    made: ReportDocument = document(lang=lang)
    validation = made.validation.model_copy(update={"warned": warned, "rejected": rejected})
    (notice,) = (
        one for one in notices_of(View(made.model_copy(update={"validation": validation}))) if one.kind == "data"
    )
    return notice.lines


@pytest.mark.parametrize("warning", EVERY, ids=lambda warning: warning.rule)
def test_every_warning_is_in_the_language_of_the_report(warning: DataWarning) -> None:
    """Whatever its figures are."""
    langs: tuple[Lang, ...] = ("en", "zh")
    for lang in langs:
        told = lines(lang, warning, rejected=1)
        if warning.rule not in ("missing_status", "unknown_status"):
            assert f"{warning.count:,}" in told[-1]
            assert "missing_" not in told[-1] and not any(rule in told[-1] for rule in WARN_ISSUES)
    if warning.rule not in ("missing_status", "unknown_status"):
        assert not any(word in told[-1] for word in (" cases", " in ", " of ")), told[-1]


def test_the_worst_stands_first() -> None:
    """Unknown results, rejected rows, sheets that were not used, results that differ, and then the rest."""
    told = lines("en", EVERY[0], DataWarning(rule="differing_results", count=3, of=2_000), *EVERY[2:], rejected=1_016)
    assert "no known result" in told[0]
    assert told[1] == "1,016 rows gave no case"
    assert "Bugs" in told[2] and "differ" in told[3]
    assert len(told) == MOST_WARNINGS + 1


def test_unknown_results_are_told_once() -> None:
    """The line that has them all stands for those without a result and those that no synonym explains."""
    told = lines("en", *(one for one in EVERY if one.rule in ("missing_status", "unknown_status")))
    assert len(told) == 1


def test_warnings_as_text() -> None:
    """So programs and the command have them."""
    assert [str(one) for one in (EVERY[0], EVERY[1], EVERY[2])] == [
        "unused_sheet: Bugs, 1,234 rows",
        "suite_counts: Cart: tests says 1,250, 1,000 were read",
        "missing_title: 1,400 of 2,000 cases",
    ]
    assert str(DataWarning(rule="missing_id", count=3, of=9)) == "missing_id: 3 in 9 cases"


def test_issues_are_all_counted() -> None:
    """Also those beyond the ones that are kept."""
    kept = tuple(ParseIssue(sheet="a", rule="bad_date") for _ in range(3))
    found = Ingested(cases=(), issues=kept, validation=ValidationReport(issues={"bad_date": MAX_ISSUES + 7}))
    assert result_of("job", found, {"normalized_cases_ref": "a"}).metrics["issues"] == MAX_ISSUES + 7
