"""What was wrong with the file, and what was made of it."""

from __future__ import annotations

from typing import NamedTuple

from headrace.apps.report.data.cases import ParseIssue

#: Every rule with what it says to people. The value and its place stand beside.
RULES = {
    "unknown_status": "No synonym explains this result: the case counts as unknown, never as passed.",
    "differing_results": "Columns of results differ: that of the best word counts, and of several rounds the last.",
    "unknown_priority": "No synonym explains this priority: it is left empty.",
    "unknown_severity": "No synonym explains this severity: it is left empty.",
    "bad_date": "This is no date of the years 1990 to 2100: it is left empty.",
    "ambiguous_date": "Day and month could be exchanged: it was read as the reference says.",
    "bad_duration": "This is no duration: it is left empty.",
    "duplicate_id": "An earlier case has this id: a number was put behind it.",
    "missing_id": "The case has no id: one was made of its sheet and row.",
    "broken_cell": "The formula of this cell gives an error: the cell counts as empty.",
    "formula_without_value": "No result of this formula is stored: open the file in Excel, save it and give it again.",
    "text_cut": "The text is longer than a cell may be: its end was left out.",
    "repeated_header": "The row repeats the header: it gives no case.",
    "total_row": "The row is a total: it gives no case.",
    "not_a_case": "The row has neither a title nor anything that was done: it gives no case.",
    "defect_row": "The row is of a list of defects below the cases: it gives no case.",
    "suite_counts": "A suite says other numbers than its cases add up to: what has no case is in no figure.",
    "more_issues": "There are more issues than are kept: the counts by rule have them all.",
}
MAX_ISSUES, MAX_VALUE = 5_000, 200


class Place(NamedTuple):
    """Where something stands: row 0 is of the sheet as a whole."""

    sheet: str
    row: int = 0
    column: str = ""


class IssueBook:
    """Counts every issue, and keeps the first thousands of them."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._kept: list[ParseIssue] = []

    def add(self, rule: str, place: Place, value: str = "") -> None:
        """Add an issue of one of `RULES`."""
        self.counts[rule] = self.counts.get(rule, 0) + 1
        if len(self._kept) < MAX_ISSUES:
            self._kept.append(
                ParseIssue(**place._asdict(), value=_short(value), rule=rule, message=RULES[rule]),
            )

    def kept(self) -> tuple[ParseIssue, ...]:
        """Return the issues that are kept; the last says how many more there are."""
        more = sum(self.counts.values()) - len(self._kept)
        if not more:
            return tuple(self._kept)
        last = ParseIssue(sheet="", rule="more_issues", value=f"and {more:,} more", message=RULES["more_issues"])
        return (*self._kept, last)


def _short(value: str) -> str:
    return value if len(value) <= MAX_VALUE else value[: MAX_VALUE - 1] + "…"
