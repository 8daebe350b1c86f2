"""The reference of input files says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.apps.report.ingest import delimited, formats, header, issues, limits, validation
from headrace.apps.report.ingest.issues import RULES
from headrace.apps.report.ingest.words import words

DOC = (Path(__file__).parent.parent.parent / "docs" / "reference" / "report-input.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)


def table(heading: str) -> dict[str, str]:
    """Return the rows of the table below a heading."""
    section = DOC.split(f" {heading}\n", 1)[1].split("\n#", 1)[0]
    return dict(ROW.findall(section))


@pytest.mark.parametrize(
    ("heading", "group"),
    [
        ("Words for fields", "fields"),
        ("Words for results", "status"),
        ("Words for priorities", "priority"),
        ("Words for severities", "severity"),
    ],
)
def test_every_word_is_listed(heading: str, group: str) -> None:
    """In the order in which they count, and no other."""
    assert {name: listed.split(" · ") for name, listed in table(heading).items()} == words()[group]


def test_every_rule_is_listed() -> None:
    """With what it says."""
    assert table("Issues") == RULES


def test_units_are_listed() -> None:
    """With their seconds."""
    section = DOC.split("## Durations\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([\d.]+) s \| (.+) \|$", section, re.MULTILINE)
    assert {word: float(seconds) for seconds, listed in rows for word in listed.split(" · ")} == words()["units"]


@pytest.mark.parametrize(
    "figure",
    [
        f"| File | {limits.MAX_BYTES // limits.MIB} MiB |",
        f"{limits.MAX_ENTRIES:,} entries, {limits.MAX_UNPACKED // limits.MIB} MiB unpacked",
        f"less than 1/{limits.MAX_RATIO} of its size (entries of up to {limits.SMALL_PART // limits.MIB} MiB may be)",
        f"{limits.MAX_ROWS:,} rows, {limits.MAX_COLUMNS:,} columns, {limits.MAX_MERGES:,} ranges",
        f"{limits.MAX_CELLS:,} cells, {limits.MAX_CHARS:,} characters",
        f"{limits.MAX_TEXT:,} characters; the rest",
        f"{limits.MAX_ROWS:,} test cases, elements {limits.MAX_DEPTH} deep",
        f"{delimited.MAX_ROW_CHARS:,} characters and {delimited.MAX_ROW_LINES:,} lines in one row",
        f"within {limits.TIMEOUT:.0f} s; processor time and memory by its size: {limits.child_seconds(0)} s and "
        f"{limits.child_memory(0) // limits.MIB} MiB",
        f"first {header.SEARCHED_ROWS} rows, and takes up to {header.MAX_HEADER_ROWS}",
        f"At most {issues.MAX_ISSUES:,} issues",
    ],
)
def test_limits_are_as_the_code_has_them(figure: str) -> None:
    """Each figure stands in the reference."""
    assert figure in " ".join(DOC.split())


def test_formats_and_shares_are_as_the_code_has_them() -> None:
    """Endings, fields that make a header, and shares at which warnings begin."""
    assert set(re.findall(r"`(\.\w+)`", DOC.split("## Limits")[0])) == set(formats.ENDINGS)
    prose = DOC.split("only test cases have:")[1].split(". Of several")[0]
    assert set(re.findall(r"`(\w+)`", prose)) == header.TELLING
    assert validation.WARN_MISSING == 0.1
    shares = {
        rule: share for rule, share in validation.WARN_ISSUES.items() if f"`{rule}`" in DOC.split("## Warnings")[1]
    }
    assert shares == validation.WARN_ISSUES and set(shares.values()) == {0.0, 0.01, 0.1}
