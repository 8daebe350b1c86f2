"""How good the data are, and how the report was made."""

from __future__ import annotations

from typing import Any

from headrace.apps.report.data.cases import SheetReport
from headrace.apps.report.output.tables.base import Column, Table, columns
from headrace.apps.report.output.view import View


def completeness(view: View) -> Table:
    """How many cases lack each field."""
    word = view.word
    rows = [
        [word(f"column.{one.field}"), word("about.failing" if one.failing_only else "about.all"), one.of, one.present,
         one.missing]
        for one in view.stats.completeness
    ]  # fmt: skip
    return Table(
        "completeness", (*columns("field", "asked"), *columns("of", "present", "missing", kind="number")), rows
    )


def sheets(view: View) -> Table:
    """What became of each sheet of the file."""
    names = (
        *columns("sheet", "used", "reason", "hidden", "header_rows"), *columns("rows", "cases", kind="number"),
        *columns("columns", "ignored", kind="long"),
    )  # fmt: skip
    return Table("sheets", names, [_sheet(view, one) for one in view.document.validation.sheets])


def _sheet(view: View, one: SheetReport) -> list[Any]:
    def told(whether: bool) -> str:
        return view.word("yes" if whether else "no")

    understood = ", ".join(f"{view.word.label('column', field)}: {header}" for field, header in one.columns.items())
    header_rows = ", ".join(str(row) for row in one.header_rows)
    return [one.name, told(one.used), one.reason, told(one.hidden), header_rows, one.rows, one.cases, understood,
            ", ".join(one.ignored_columns)]  # fmt: skip


def issues(view: View) -> Table:
    """Every row that was repaired or refused, and why."""
    names = (Column("sheet"), Column("row", "number"), *columns("column", "value", "issue_rule", "message"))
    rows = [[one.sheet, one.row or None, one.column, one.value, one.rule, one.message] for one in view.document.issues]
    return Table("issues", names, rows)


def run_facts(view: View) -> Table:
    """How the report was made."""
    document, word = view.document, view.word
    run, file = document.run, document.input
    facts: dict[str, Any] = {
        "title": document.title, "file": file.name, "sha256": file.sha256, "size": file.size, "job_id": run.job_id,
        "created_at": run.created_at, "tool": run.tool, "model": run.model or word("none.model"),
        "prompt_version": run.prompt_version, "calls": run.calls, "reused": run.reused,
        "input_tokens": run.input_tokens, "output_tokens": run.output_tokens,
        "usd": word("none.price") if run.usd is None else run.usd, "left_out": document.content.left_out,
    }  # fmt: skip
    rows = [[word(f"fact.{name}"), value] for name, value in facts.items()]
    rows += [[word("fact.option", name=name), value] for name, value in run.options.items()]
    rows += [
        [word("fact.degraded"), f"{word.label('stage', one.stage)}: {one.missing}/{one.total} ({one.reason})"]
        for one in document.degraded
    ]
    return Table("run", columns("fact", "value"), rows)
