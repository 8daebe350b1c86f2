"""Normalised test cases, and what was wrong with the rows that they came from."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from headrace.apps.report.data.base import Value


class Status(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    BLOCKED = "blocked"
    #: Skipped, or not run at all.
    SKIPPED = "skipped"
    #: The sheet says nothing, or something that no synonym explains; never counted as passed.
    UNKNOWN = "unknown"


#: Cases of these are looked at for defects.
FAILING = (Status.FAILED, Status.BLOCKED)


class Source(Value):
    """Where a case stands in the file: `row` as people count it in the sheet, from 1."""

    sheet: str
    row: int


class Case(Value):
    """One test case. Texts are stripped; one that is not there is empty."""

    #: Unique in the report: a repeated id gets "#2", "#3" …, a missing one is made of sheet and row.
    case_id: str
    title: str = ""
    #: As the sheet gives it.
    module: str = ""
    #: "P0" (most urgent) to "P4", or empty.
    priority: str = ""
    #: "critical", "major", "minor", "trivial", or empty.
    severity: str = ""
    preconditions: str = ""
    steps: str = ""
    expected: str = ""
    actual: str = ""
    status: Status = Status.UNKNOWN
    executor: str = ""
    #: ISO 8601 without a zone, as far as the sheet knows: "2026-03-05" or "2026-03-05T14:30:00".
    executed_at: str | None = None
    duration_seconds: float | None = None
    environment: str = ""
    #: Of an issue tracker.
    defect_id: str = ""
    remark: str = ""
    #: Message and stack trace, of JUnit files, or of a column that says so.
    error: str = ""
    source: Source
    #: Columns that mean nothing to the report, by their headers.
    extra: dict[str, str] = Field(default={})

    @property
    def fails(self) -> bool:
        """Whether it is looked at for defects."""
        return self.status in FAILING


class ParseIssue(Value):
    """Something in the file that was not as it should be, and what was made of it."""

    sheet: str
    #: From 1, as people count; 0: of the sheet as a whole.
    row: int = 0
    #: The header of the column, or empty.
    column: str = ""
    #: At most 200 characters.
    value: str = ""
    #: The rule it breaks, as a word: "unknown_status", "bad_date", "duplicate_id" …
    rule: str
    #: A sentence for people.
    message: str = ""


class SheetReport(Value):
    """What became of one sheet."""

    name: str
    used: bool
    #: Why not, where it was not used.
    reason: str = ""
    hidden: bool = False
    #: Rows that the header takes, from 1: (3, 4) for a header of two rows below a title.
    header_rows: tuple[int, ...] = ()
    #: Header of each column that was understood, by field of Case.
    columns: dict[str, str] = Field(default={})
    ignored_columns: tuple[str, ...] = ()
    #: Rows that are not empty; where the sheet was used, those of its header are not among them.
    rows: int = 0
    cases: int = 0
    #: Rows that gave no case, and rows that went on with the case above.
    rejected: int = 0
    joined: int = 0


class DataWarning(Value):
    """What of the data belongs on the first screen: outputs put it into the words of their language."""

    #: "unused_sheet", "suite_counts", "missing_" with a field of Case, or a rule of issues.
    rule: str
    count: int
    #: Of how many.
    of: int = 0
    #: Of what: "cases" or "failing cases"; of a sheet or suite its name.
    what: str = "cases"

    def __str__(self) -> str:
        """Return it as programs and English readers have it: "missing_executed_at: 14 of 120 cases"."""
        if self.rule == "unused_sheet":
            return f"{self.rule}: {self.what}, {self.count:,} rows"
        if self.rule == "suite_counts":
            return f"{self.rule}: {self.what} says {self.of:,}, {self.count:,} were read"
        preposition = "of" if self.rule.startswith("missing_") and self.rule != "missing_id" else "in"
        return f"{self.rule}: {self.count:,} {preposition} {self.of:,} {self.what}"


class ValidationReport(Value):
    """How good the data are."""

    sheets: tuple[SheetReport, ...] = ()
    #: Rows of the sheets that were read: cases, rejected and joined ones together.
    rows: int = 0
    cases: int = 0
    #: Rows that gave no case: empty ones are not among them.
    rejected: int = 0
    #: Rows that went on with the case above.
    joined: int = 0
    #: Cases without the field, by field of Case: only fields that reports use.
    missing: dict[str, int] = Field(default={})
    #: Count of issues by rule.
    issues: dict[str, int] = Field(default={})
    #: For the first screen, the worst first.
    warned: tuple[DataWarning, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings as short texts."""
        return tuple(str(one) for one in self.warned)

    @property
    def is_incomplete(self) -> bool:
        """Whether figures rest on incomplete data."""
        return bool(self.warned)


class Ingested(Value):
    """What a file gave."""

    cases: tuple[Case, ...]
    issues: tuple[ParseIssue, ...] = ()
    validation: ValidationReport
