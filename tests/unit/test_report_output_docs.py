"""The reference of what reports write lists just what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.apps.report.charts.building import CHARTS
from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.output.tables.trend import MOVES
from headrace.apps.report.output.wording import wording
from headrace.apps.report.output.xlsx import SHEETS
from headrace.apps.report.stats import Stats, Thresholds
from headrace.apps.report.stats.gate import CRITERIA, judge
from headrace.apps.report.stats.values import Rates

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/report-output.md"
#: Each list: the heading that it stands below, the number of its table there, and what it must be.
LISTS = {
    ("Rates", 0): list(Rates.model_fields),
    ("Exit criteria", 0): list(CRITERIA),
    ("Sheets", 0): list(SHEETS),
    ("Charts", 0): list(CHARTS),
    ("JSON members", 0): [name.removesuffix("_") for name in ReportDocument.model_fields],
    ("JSON members", 1): list(Stats.model_fields),
    ("Trend", 0): list(MOVES),
}


def tables(heading: str) -> list[list[list[str]]]:
    """Return the rows of the tables below a heading, without their heads."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [
        [[cell.strip() for cell in row.strip("|").split("|")] for row in block.splitlines()[2:]] for block in blocks
    ]


@pytest.mark.parametrize("heading, number", LISTS)
def test_lists_are_those_of_the_code(heading: str, number: int) -> None:
    """In the same order."""
    rows = tables(heading)[number]
    assert [row[0].strip("`") for row in rows] == LISTS[heading, number]


def test_names_of_sheets_and_definitions_of_rates_are_those_of_the_outputs() -> None:
    """In both languages."""
    for row in tables("Sheets")[0]:
        assert row[1:3] == [wording(lang)(f"sheet.{row[0].strip('`')}") for lang in ("en", "zh")]
    for name, definition in tables("Rates")[0]:
        assert wording("en")(f"rate.help.{name.strip('`')}") == definition


def test_defaults_of_criteria_are_those_of_the_code() -> None:
    """And the criteria are judged in the order in which they are listed."""
    usual = Thresholds()
    assert [row[2] for row in tables("Exit criteria")[0]] == [
        f"{usual.pass_rate_of_executed:g} %",
        f"{usual.execution_rate:g} %",
        f"{usual.failed_urgent} of {', '.join(usual.urgent)}",
        f"{usual.blocked_most_urgent} of {', '.join(usual.most_urgent)}",
    ]
    assert tuple(one.name for one in judge((), usual).criteria) == CRITERIA
