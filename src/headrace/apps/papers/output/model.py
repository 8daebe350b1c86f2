"""What the files of a run say, before it is XLSX or JSONL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace.apps.papers.dual import Disagreement, queue_of
from headrace.apps.papers.orphans import Orphans
from headrace.apps.papers.result import Asking, DocumentResult, Status, TokenCount
from headrace.apps.papers.template import Template


@dataclass(frozen=True, slots=True)
class Row:
    """One document: extracted (`completed`, with a result), or not (`error` or `pending`, with a reason)."""

    document_id: str
    name: str
    duplicates: tuple[str, ...] = ()
    state: str = "pending"
    reason: str = ""
    message: str = ""
    #: The file itself gave no text: another extraction would not help.
    unreadable: bool = False
    result: DocumentResult | None = None
    #: Where the file lies; None where only results are known.
    path: Path | None = None

    def ended(self, state: str, reason: str, message: str, *, unreadable: bool = False) -> Row:
        """Return the row of a document without a result."""
        return replace(self, state=state, reason=reason, message=message, unreadable=unreadable)

    def extracted(self, result: DocumentResult) -> Row:
        """Return the row of an extracted document."""
        return replace(self, state="completed", result=result)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a person should know of one file."""

    name: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What people have verified of a run's values; every value is in one of the four counts."""

    accepted: int = 0
    edited: int = 0
    #: Wrong, without a right value in their place.
    rejected: int = 0
    #: None where nobody knows how many values there are.
    still_open: int | None = None
    #: Who did, in the order of the alphabet.
    by: tuple[str, ...] = ()
    first_at: datetime | None = None
    last_at: datetime | None = None

    @property
    def verified(self) -> int:
        """How many values a person has confirmed or corrected."""
        return self.accepted + self.edited

    def to_json(self) -> dict[str, Any]:
        """A JSON-able mapping, instants in UTC.

        >>> Verification(accepted=2, edited=1, still_open=4, by=("AB",)).to_json()["verified"]
        3
        """
        return {
            "verified": self.verified,
            "by": list(self.by),
            "accepted": self.accepted,
            "edited": self.edited,
            "rejected": self.rejected,
            "open": self.still_open,
            "first_at": iso_utc(self.first_at),
            "last_at": iso_utc(self.last_at),
        }


def iso_utc(moment: datetime | None) -> str | None:
    """An instant in UTC as records write it, to the second; None for none.

    >>> iso_utc(datetime.fromisoformat("2026-01-02T03:04:05+01:00"))
    '2026-01-02T02:04:05Z'
    """
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What made the results: enough to report and to repeat the run."""

    tool: str
    run_id: str
    batch_id: str
    written_at: datetime
    models: tuple[str, ...]
    prompt_versions: tuple[str, ...]
    readers: tuple[str, ...]
    input_files: int
    duplicates: int
    #: Files that no reader takes or that could not be opened.
    skipped: int
    begun_at: datetime | None = None
    #: None while documents are left to extract.
    ended_at: datetime | None = None
    #: Each model with its provider and the version and digest of its prompts.
    asked: tuple[Asking, ...] = ()
    #: The options that decide what was asked, by name.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    verification: Verification = field(default_factory=Verification)
    #: Calls whose answer nobody saw; None: nobody looked.
    orphans: Orphans | None = None


@dataclass(frozen=True)
class Report:
    """A whole run."""

    template: Template
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    record: RunRecord

    @cached_property
    def usage(self) -> TokenCount:
        """Tokens and calls of all documents."""
        return sum((row.result.usage for row in self.rows if row.result is not None), TokenCount())

    @cached_property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """The queue of what two extractions say differently, under the names the documents have today."""
        known = {row.document_id: row.result.model_copy(update={"name": row.name}) for row in self.rows if row.result}
        return queue_of(known)

    def count(self, status: Status) -> int:
        """Return how many fields of all documents have a status."""
        return sum(row.result.count(status) for row in self.rows if row.result is not None)

    def count_rows(self, group: str) -> int:
        """Return how many rows of a group all documents have."""
        return sum(len(row.result.rows.get(group, [])) for row in self.rows if row.result is not None)

    def summary(self) -> dict[str, Any]:
        """Return the counts of the run, as JSON-able values."""
        return {
            "input_files": self.record.input_files,
            "documents": len(self.rows),
            "duplicates": self.record.duplicates,
            "skipped": self.record.skipped,
            "extracted": sum(row.result is not None for row in self.rows),
            "unreadable": sum(row.unreadable for row in self.rows),
            "failed": sum(row.state != "completed" and not row.unreadable for row in self.rows),
            "fields": {status.value: self.count(status) for status in Status},
            "rows": {group.name: self.count_rows(group.name) for group in self.template.rows},
            "disagreements": len(self.disagreements),
            "verified": self.record.verification.verified,
            "usage": self.usage.model_dump(),
            "usd": self.usage.dollars,
            "orphaned": None if self.record.orphans is None else self.record.orphans.to_json(),
        }
