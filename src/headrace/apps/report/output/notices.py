"""What a reader must know before the figures: what ran without the model, and what the data lack."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.apps.report.data.cases import DataWarning, Status
from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.ingest.validation import WARN_ISSUES
from headrace.apps.report.output.view import View
from headrace.apps.report.output.wording import Wording
from headrace.apps.report.stats import check_reconciled

#: Warnings on the first screen; the others are under data quality.
MOST_WARNINGS = 6
_OF_UNKNOWN = ("missing_status", "unknown_status")


@dataclass(frozen=True, slots=True)
class Notice:
    """A headline, its lines, and a command that helps."""

    kind: str
    headline: str
    lines: tuple[str, ...]
    advice: str = ""
    command: str = ""


def is_without_analysis(document: ReportDocument) -> bool:
    """Whether nothing of the analysis is by the model although it was to be."""
    by_model = (
        document.content.by_model
        or any(one.by_model for one in document.defects)
        or any(one.named_by_model for one in document.clusters)
    )
    return bool(document.degraded) and not by_model


def resume_command(document: ReportDocument) -> str:
    """Return the command that fills in only what is missing."""
    return f"headrace report resume {document.run.job_id} --out DIR"


def notices_of(view: View) -> list[Notice]:
    """Return what stands above everything else."""
    found = [_degraded(view), _contradictions(view), _data(view)]
    return [notice for notice in found if notice is not None]


def _degraded(view: View) -> Notice | None:
    document, word = view.document, view.word
    if not document.degraded:
        return None
    headline = word("degraded.whole" if is_without_analysis(document) else "degraded.part")
    lines = []
    for one in document.degraded:
        stage = word.label("stage", one.stage)
        reason = f" ({word.label('reason', one.reason)})" if one.reason else ""
        lines.append(word("degraded.stage", stage=stage, missing=one.missing, total=one.total) + reason)
    return Notice("degraded", headline, tuple(lines), word("degraded.resume"), resume_command(document))


def _contradictions(view: View) -> Notice | None:
    lines = check_reconciled(view.document)
    return Notice("contradiction", view.word("warning.sums"), tuple(lines)) if lines else None


def _data(view: View) -> Notice | None:
    word, validation = view.word, view.document.validation
    lines = []
    if unknown := view.stats.by_status[Status.UNKNOWN]:
        lines.append(word("warning.unknown", count=f"{unknown:,}"))
    if validation.rejected:
        lines.append(word("warning.rejected", count=f"{validation.rejected:,}"))
    # The first line tells of every result that is not known.
    lines += [_told(one, word) for one in validation.warned if not (unknown and one.rule in _OF_UNKNOWN)]
    if not lines:
        return None
    if len(lines) > MOST_WARNINGS:
        lines = [*lines[:MOST_WARNINGS], f"… {word('page.more_warnings', count=len(lines) - MOST_WARNINGS)}"]
    return Notice("data", word("warning.data"), tuple(lines))


def _told(warning: DataWarning, word: Wording) -> str:
    """Return a warning of the reading in the language of the report."""
    count, of = f"{warning.count:,}", f"{warning.of:,}"
    if warning.rule in ("unused_sheet", "suite_counts"):
        return word(f"warning.{warning.rule}", name=warning.what, count=count, of=of)
    if warning.rule in WARN_ISSUES:
        return word("warning.issues", rule=word(f"issue.{warning.rule}"), count=count, of=of)
    key = "warning.missing_failing" if warning.what == "failing cases" else "warning.missing"
    return word(key, field=word.label("column", warning.rule.removeprefix("missing_")), missing=count, of=of)
