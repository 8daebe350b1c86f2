"""The record of a run as JSON: what was used, on what, when, with what outcome, and who verified it.

It answers what guidance for evidence synthesis asks of work with language models: tool, model, version, prompts, date,
and human verification. A price that nobody knows is `unknown`, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.apps.papers.output.model import Report, iso_utc
from headrace.apps.papers.result import Asking, DocumentResult, TokenCount
from headrace.apps.papers.template import Template

#: Of the form of run.json; raised when a key changes its meaning.
FORMAT = 1
UNKNOWN = "unknown"


def run_json(report: Report) -> dict[str, Any]:
    """The whole record of a run, JSON-able."""
    record, summary = report.record, report.summary()
    name, _, version = record.tool.partition(" ")
    counts = ("input_files", "duplicates", "skipped", "documents", "extracted", "unreadable", "failed", "disagreements")
    return {
        "format": FORMAT,
        "tool": {"name": name, "version": version},
        "run_id": record.run_id,
        "batch_id": record.batch_id,
        "begun_at": iso_utc(record.begun_at),
        "ended_at": iso_utc(record.ended_at),
        "written_at": iso_utc(record.written_at),
        "models": [asking.model_dump() for asking in record.asked],
        "template": _template(report.template),
        "readers": list(record.readers),
        "parameters": dict(record.parameters),
        "counts": {name: summary[name] for name in counts} | {"fields": summary["fields"], "rows": summary["rows"]},
        "verification": record.verification.to_json(),
        "usage": report.usage.model_dump(include={"input_tokens", "output_tokens", "calls", "reused"}),
        "money": money(report.usage),
        "orphaned": None if record.orphans is None else record.orphans.to_json(),
    }


def money(usage: TokenCount) -> dict[str, Any]:
    """What was spent in US dollars, with the calls that have no known price.

    >>> money(TokenCount(calls=2, cost_nano=1_500_000, unpriced=1))
    {'usd': 'unknown', 'usd_known': 0.0015, 'unpriced_calls': 1}
    """
    dollars = usage.dollars
    return {
        "usd": UNKNOWN if dollars is None else dollars,
        "usd_known": usage.cost_nano / 1e9,
        "unpriced_calls": usage.unpriced,
    }


def askings(results: Iterable[DocumentResult]) -> tuple[Asking, ...]:
    """Who was asked, each once; results of earlier versions know the model and the prompts' version only."""
    found: dict[Asking, None] = {}
    for result in results:
        for asking in result.asked or (Asking(model=result.model, prompt_version=result.prompt_version),):
            found.setdefault(asking)
    return tuple(found)


def _template(template: Template) -> Mapping[str, Any]:
    return {
        "name": template.name,
        "version": template.version,
        "digest": template.digest,
        "fields": len(template.fields),
        "rows": {group.name: len(group.fields) for group in template.rows},
        # All of it: what was asked can be read, and a review checked, without the file it came from.
        "content": template.model_dump(mode="json", exclude_defaults=True),
    }
