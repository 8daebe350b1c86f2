"""The record of a run as names and values, for people: in the workbook and on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.apps.papers.output.cells import shown
from headrace.apps.papers.output.model import Report
from headrace.apps.papers.record import run_json


def run_facts(report: Report) -> list[tuple[str, Any]]:
    """The record of the run as names and values, the shortest answer to "what made this?" first."""
    record, template, summary = report.record, report.template, report.summary()
    facts: list[tuple[str, Any]] = [
        ("tool", record.tool),
        ("written at (UTC)", record.written_at.strftime("%Y-%m-%d %H:%M:%S")),
        ("model", ", ".join(record.models)),
        ("prompt version", ", ".join(record.prompt_versions)),
        ("template", template.name),
        ("template version", str(template.version)),
        ("template digest", template.digest),
        ("readers", ", ".join(record.readers)),
        ("run", record.run_id),
        ("batch", record.batch_id),
    ]
    counts = ["input_files", "duplicates", "skipped", "documents", "extracted", "unreadable", "failed", "disagreements"]
    facts += [(name.replace("_", " "), summary[name]) for name in counts]
    facts += [(f"fields {status.replace('_', ' ')}", count) for status, count in summary["fields"].items()]
    facts += [(f"rows {group}", count) for group, count in summary["rows"].items()]
    facts += [(name.replace("_", " "), count) for name, count in summary["usage"].items()]
    whole = run_json(report)
    for key in ("begun_at", "ended_at", "models", "parameters", "verification", "money", "orphaned"):
        facts += _flat(key.replace("_", " "), whole[key])
    return facts


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Each leaf of a record with the path to it as its name; items of lists are numbered from 1."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name} {str(key).replace('_', ' ')}", inner)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for number, inner in enumerate(value, start=1):
            yield from _flat(f"{name} {number}" if len(value) > 1 else name, inner)
    else:
        yield name, shown(value) if isinstance(value, list) else value
