"""The report as Markdown, for `benchmarks/README.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.bench.report import COLUMNS, TARGET_COLUMNS, conditions, result_rows, target_rows


def to_markdown(report: Mapping[str, Any]) -> str:
    """Return conditions, results and targets as Markdown."""
    verdict = "valid" if report["valid"] else "**INVALID, do not quote:** " + "; ".join(report["invalid_because"])
    parts = [
        f"{report['at'][:10]}, {report['rounds']} rounds; {verdict}.",
        "\n".join(f"- {line}" for line in conditions(report)),
        "\n".join(_table(COLUMNS, result_rows(report))),
        "\n".join(_table(["met", *TARGET_COLUMNS[1:]], target_rows(report))),
    ]
    return "\n\n".join(parts) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
