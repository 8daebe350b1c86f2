"""Values as cells of HTML. Every word of a file or of the model is escaped here; nothing else makes markup of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from markupsafe import Markup, escape

from headrace.apps.report.data.cases import Status
from headrace.apps.report.output.signs import clean
from headrace.apps.report.output.tables.base import Column, Table
from headrace.apps.report.output.view import View
from headrace.apps.report.output.wording import percent

#: Longer texts are folded; of still longer ones the page shows a part.
FOLDED_FROM = 240
MOST_CHARS = 4_000
LONGEST_WORD = 30
_HEAD = 140
_MOST_IDS = 8
_MOST_CITED = 6
_COUNTED = {"total": "", **{status.value: status.value for status in Status}}


def figure(value: float | None) -> str:
    """Return a number for people."""
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _is_unbroken(value: object) -> bool:
    """Whether a text has a word so long that it must be broken."""
    return isinstance(value, str) and any(len(word) > LONGEST_WORD for word in value.split())


class Cells:
    """Makes cells of a view, with links to its rows and clusters."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._numbers = {case_id: number for number, case_id in enumerate(view.cases, start=1)}
        self._cluster_numbers = {cluster_id: number for number, cluster_id in enumerate(view.clusters, start=1)}

    @cached_property
    def _makers(self) -> Mapping[str, Callable[[Any], Markup]]:
        return {
            "text": self.text,
            "long": self.text,
            "status": self.status,
            "number": lambda value: escape(figure(value)),
            "percent": lambda value: escape(percent(value)),
            "seconds": lambda value: escape(self._view.word.seconds(value)),
            "case": self.case,
            "cases": lambda ids: self.cases(ids, _MOST_IDS),
            "cluster": lambda cluster_id: self.cluster(cluster_id),
        }

    def text(self, value: object) -> Markup:
        """Words; long ones are folded."""
        text = clean("" if value is None else value)
        if len(text) <= FOLDED_FROM:
            return escape(text)
        rest = text[_HEAD:MOST_CHARS]
        if len(text) > MOST_CHARS:
            rest += " " + self._view.word("text.cut", count=len(text))
        return Markup("<details><summary>{} …</summary>{}</details>").format(text[:_HEAD], rest)

    def status(self, value: str) -> Markup:
        """A status as a mark of its colour."""
        return Markup('<span class="status {}">{}</span>').format(value, self._view.word.label("status", value))

    def case(self, case_id: str, *, row: str = "") -> Markup:
        """A link to a case: to its failure where it failed, else to its row among all."""
        case = self._view.cases.get(case_id)
        if case is None:
            return escape(clean(case_id))
        target = row or ("failed" if case.fails else "case")
        return Markup('<a href="#{}-{}">{}</a>').format(target, self._numbers[case_id], clean(case_id))

    def cases(self, ids: Sequence[str], most: int = _MOST_IDS) -> Markup:
        """Links to cases, and how many more there are."""
        links = [self.case(case_id) for case_id in ids[:most]]
        if len(ids) > most:
            links.append(escape(self._view.word("text.more_ids", count=len(ids) - most)))
        return Markup(", ").join(links)

    def cluster(self, cluster_id: str) -> Markup:
        """A link to a cluster by its name."""
        found = self._view.clusters.get(cluster_id)
        if found is None:
            return escape(clean(cluster_id))
        return Markup('<a href="#{}">{}</a>').format(self.anchor(cluster_id), clean(found.name)[:60])

    def anchor(self, cluster_id: str) -> str:
        """Where a cluster stands on the page."""
        return f"cluster-{self._cluster_numbers[cluster_id]}"

    def cited(self, ids: Iterable[str]) -> Markup:
        """Links to what a sentence rests on."""
        known = list(ids)
        links = [self.cluster(one) if one in self._view.clusters else self.case(one) for one in known[:_MOST_CITED]]
        if len(known) > _MOST_CITED:
            links.append(escape(self._view.word("text.more_ids", count=len(known) - _MOST_CITED)))
        return Markup(" ").join(links)

    def rows(self, table: Table) -> Markup:
        """The body of a table."""
        own = table.name in ("cases", "failed")
        return Markup("\n").join(
            self._row(table, row, self._row_id(table.name, row[0]) if own else "") for row in table.rows
        )

    def _row_id(self, table: str, case_id: str) -> str:
        return f"{'case' if table == 'cases' else 'failed'}-{self._numbers[case_id]}"

    def _row(self, table: Table, row: Sequence[Any], row_id: str) -> Markup:
        cells = [self._cell(table, column, value, row) for column, value in zip(table.columns, row, strict=True)]
        start = Markup('<tr id="{}">').format(row_id) if row_id else Markup("<tr>")
        return start + Markup("").join(cells) + Markup("</tr>")

    def _cell(self, table: Table, column: Column, value: Any, row: Sequence[Any]) -> Markup:
        match column.kind:
            case "number" | "percent":
                return Markup('<td class="n">{}</td>').format(self._counted(table, column, value, row))
            case "seconds":
                seconds = "" if value is None else value
                return Markup('<td class="n" data-v="{}">{}</td>').format(seconds, self._makers["seconds"](value))
            case "case":
                row_of = "case" if table.name == "failed" else ""
                return Markup('<td class="i">{}</td>').format(self.case(value, row=row_of))
            case "text" if _is_unbroken(value):
                return Markup('<td class="l">{}</td>').format(self.text(value))
            case "cluster":
                return Markup('<td class="c">{}</td>').format(self.cluster(value))
            case "long":
                return Markup('<td class="l">{}</td>').format(self.text(value))
        return Markup("<td>{}</td>").format(self._makers[column.kind](value))

    def _counted(self, table: Table, column: Column, value: Any, row: Sequence[Any]) -> Markup:
        """A figure; one that counts cases leads to them."""
        shown = self._makers[column.kind](value)
        if not table.rows_of or column.key not in _COUNTED or not value:
            return shown
        word = self._view.word
        name = word.label("status", row[0]) if table.rows_of == "status" else row[0]
        wanted = {table.rows_of: "" if name == word("not_given") else clean(name)}
        if status := _COUNTED[column.key]:
            wanted["status"] = word.label("status", status)
        return self.leading(shown, wanted)

    def leading(self, shown: object, wanted: Mapping[str, str]) -> Markup:
        """A link to the cases with the wanted values."""
        told = json.dumps(wanted, ensure_ascii=False)
        return Markup('<a href="#cases" data-filter="{}">{}</a>').format(told, shown)
