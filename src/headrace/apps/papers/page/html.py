"""The page itself: our markup, style and script, and between them only what was escaped.

Its content security policy lets the one script and the one style of ours run, known by their hashes, and nothing else:
no connection, image, font, frame, form, or inline handler. So even a hole in the escaping would give nobody a script.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from headrace.apps.papers.output.facts import run_facts
from headrace.apps.papers.output.lines import Place, ValueLine, lines_of
from headrace.apps.papers.output.model import Report
from headrace.apps.papers.page.data import DocumentData, index_of, script_json, whole_texts
from headrace.apps.papers.page.texts import Texts
from headrace.apps.papers.review.decisions import Decision
from headrace.apps.sheets.files import written_whole

_HERE = Path(__file__).parent
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

Decisions = Mapping[Place, Decision]


def write_page(path: Path, report: Report, *, texts: Texts, decisions: Decisions) -> None:
    """Write the page of a run; the file appears whole or not at all. Documents are written one after the other."""
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        before, after = _shell(report)
        file.write(before)
        for block in _blocks(report, texts, decisions):
            file.write(block)
        file.write(after)


def _shell(report: Report) -> tuple[str, str]:
    """The page before and after its data."""
    script, style = _own("page.js"), _own("page.css")
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    filled = {
        "POLICY": html.escape(policy),
        "TITLE": text_of(f"{report.template.name}, version {report.template.version}"),
        "STYLE": style,
        "SUMMARY": text_of(_summary(report)),
        "RECORD": "\n".join(_record(report)),
        "SCRIPT": script,
    }
    before, _, after = _own("page.html").partition("@@DATA@@\n")
    return _fill(before, filled), _fill(after, filled)


def _fill(markup: str, filled: Mapping[str, str]) -> str:
    # In one pass: what is filled in is never looked at again.
    return re.sub(r"@@([A-Z]+)@@", lambda match: filled[match[1]], markup)


def _own(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def text_of(words: object) -> str:
    """Words as text of HTML, also within attributes: escaped, controls shown as replaced.

    >>> text_of('<b title="x">&')
    '&lt;b title=&quot;x&quot;&gt;&amp;'
    """
    return html.escape(_CONTROLS.sub("\ufffd", str(words)))


def _summary(report: Report) -> str:
    record, summary = report.record, report.summary()
    counts = [f"{summary['extracted']} of {summary['documents']} documents extracted"]
    counts += [f"{count} {name.replace('_', ' ')}" for name, count in summary["fields"].items() if count]
    made = [record.tool, ", ".join(record.models) or "no model", record.written_at.strftime("%Y-%m-%d %H:%M UTC")]
    return " · ".join([*made, *counts])


def _record(report: Report) -> Iterator[str]:
    for name, value in run_facts(report):
        shown = "" if value is None else value
        yield f"<div><dt>{text_of(name)}</dt><dd>{text_of(shown)}</dd></div>"


def _blocks(report: Report, texts: Texts, decisions: Decisions) -> Iterator[str]:
    grouped: dict[str, list[ValueLine]] = {
        document_id: list(lines)
        for document_id, lines in groupby(
            lines_of(report.template, report.rows), key=lambda line: line.place.document_id
        )
    }
    lines = [grouped.get(row.document_id, []) for row in report.rows]
    yield _block("index", index_of(report, lines, decisions))
    whole = whole_texts(report.rows)
    for number, (row, values) in enumerate(zip(report.rows, lines, strict=True)):
        if row.result is None:
            continue
        data = DocumentData(values, texts.find(row.document_id, row.result.reader, row.path), decisions)
        yield _block(f"values-{number}", data.values())
        yield _block(f"text-{number}", data.pages(whole=row.document_id in whole))


def _block(name: str, value: object) -> str:
    return f'<script type="application/json" id="{name}">{script_json(value)}</script>\n'
