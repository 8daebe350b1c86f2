"""The files of a run: complete, whole or absent, and harmless in a spreadsheet."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers.output.jsonl import write_jsonl
from headrace.apps.papers.output.model import Problem, Report, Row, RunRecord
from headrace.apps.papers.output.xlsx import write_xlsx
from headrace.apps.papers.result import Alignment, DocumentResult, FieldResult, Status, TokenCount
from headrace.apps.papers.template import Value, parse_template
from headrace.apps.sheets.cells import MAX_CELL_CHARS, safe_text
from headrace.apps.sheets.files import written_whole

TEMPLATE = parse_template("""
name: study
version: 3
fields:
  - {name: size, type: integer, unit: people, description: How many}
  - {name: note, type: text, description: What was said}
  - {name: blinded, type: boolean, description: Whether}
  - {name: harms, type: list, description: Harms}
""")
EVIL = '=HYPERLINK("http://example.invalid","click")'


def found(value: Value, quote: str = "The quote.") -> FieldResult:
    """Return a field with its evidence."""
    return FieldResult(
        value=value, status=Status.FOUND, quote=quote, page=2, char_start=10, char_end=20, alignment=Alignment.EXACT
    )


def result_of(**fields: FieldResult) -> DocumentResult:
    """Return a document's result; fields that are not given are not reported."""
    silent = FieldResult(status=Status.NOT_REPORTED)
    everything = {field.name: fields.get(field.name, silent) for field in TEMPLATE.fields}
    return DocumentResult(
        document_id="d1", name="a.pdf", fields=everything,
        pages=2, characters=100, reader="r 1", model="m", prompt_version="p", template="study", template_version=3,
        template_digest=TEMPLATE.digest, usage=TokenCount(input_tokens=7, output_tokens=3, calls=2, reused=1),
    )  # fmt: skip


def report_of(*rows: Row, problems: tuple[Problem, ...] = ()) -> Report:
    """Return a report of these rows."""
    record = RunRecord(
        tool="headrace 1", run_id="run", batch_id="batch", written_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        models=("m",), prompt_versions=("p",), readers=("r 1",), input_files=5, duplicates=1, skipped=1,
    )  # fmt: skip
    return Report(TEMPLATE, rows, problems, record)


def sheets(path: Path) -> dict[str, list[list[Any]]]:
    """Return the cells of every sheet of a workbook."""
    book = openpyxl.load_workbook(path)
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}


DONE = Row("d1", "a.pdf", ("copy.pdf",)).extracted(
    result_of(size=found(1200), note=found("fine"), blinded=found(False), harms=found(["a", "b"]))
)
BAD = Row("d2", "b.pdf").ended("error", "encrypted", "is encrypted", unreadable=True)


def test_the_workbook_holds_the_whole_run(tmp_path: Path) -> None:
    """Documents, fields with evidence, problems and the record of the run are sheets of one workbook."""
    report = report_of(DONE, BAD, problems=(Problem("b.pdf", "encrypted", "is encrypted"),))
    write_xlsx(tmp_path / "out.xlsx", report)
    book = sheets(tmp_path / "out.xlsx")
    assert list(book) == ["Documents", "Fields", "Disagreements", "Problems", "Run"]
    assert book["Documents"][0][:4] == ["document", "state", "reason", "size (people)"]
    assert book["Documents"][1][:7] == ["a.pdf", "completed", None, 1200, "fine", False, "a; b"]
    assert book["Documents"][2][:4] == ["b.pdf", "error", "encrypted", None]
    header, first = book["Fields"][0], book["Fields"][1]
    fields = dict(zip(header, first, strict=True))
    assert (fields["quote"], fields["page"], fields["char_start"], fields["char_end"], fields["alignment"]) == (
        "The quote.", 2, 10, 20, "exact",
    )  # fmt: skip
    assert book["Problems"][1] == ["b.pdf", "encrypted", "is encrypted"]
    run = {row[0]: row[1] for row in book["Run"]}
    assert (run["model"], run["prompt version"], run["template version"]) == ("m", "p", "3")
    assert (run["template digest"], run["written at (UTC)"]) == (TEMPLATE.digest, "2026-01-02 03:04:05")
    counts = ("input files", "duplicates", "extracted", "unreadable", "failed", "fields found", "input tokens", "calls")
    assert [run[name] for name in counts] == [5, 1, 1, 1, 0, 4, 7, 2]


def test_a_field_that_is_not_found_says_what_it_is(tmp_path: Path) -> None:
    """An unclear value does not stand in the table of documents as if it were found."""
    unclear = FieldResult(value=3, status=Status.UNCLEAR, note="two numbers")
    write_xlsx(tmp_path / "out.xlsx", report_of(Row("d1", "a.pdf").extracted(result_of(size=unclear))))
    book = sheets(tmp_path / "out.xlsx")
    assert book["Documents"][1][3:5] == ["[unclear]", "[not_reported]"]
    assert dict(zip(book["Fields"][0], book["Fields"][1], strict=True))["note"] == "two numbers"


@pytest.mark.parametrize("text", [EVIL, "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1"])
def test_nothing_runs_as_a_formula(tmp_path: Path, text: str) -> None:
    """Text that a spreadsheet would run is text in every column where documents or models can put it."""
    result = result_of(note=found(text, text), harms=found([text, "b"]))
    problems = (Problem(text, text, text),)
    write_xlsx(tmp_path / "out.xlsx", report_of(Row("d1", text).extracted(result), problems=problems))
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [cell for cell in cells if cell.data_type == "f"]
    shown = [cell.value for cell in cells if isinstance(cell.value, str)]
    assert not [value for value in shown if value.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    with zipfile.ZipFile(tmp_path / "out.xlsx") as archive:
        assert not [name for name in archive.namelist() if b"<f>" in archive.read(name)]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    """A negative number is a number and no neutralised text; one that Excel would round is text."""
    for value, shown in [(-5, -5), (0.25, 0.25), (10**17 + 1, str(10**17 + 1))]:
        write_xlsx(tmp_path / "out.xlsx", report_of(Row("d1", "a").extracted(result_of(size=found(value)))))
        assert sheets(tmp_path / "out.xlsx")["Documents"][1][3] == shown


def test_long_and_odd_text_is_cut_visibly(tmp_path: Path) -> None:
    """A text above Excel's limit ends with a mark; characters that XML lacks are replaced."""
    long, odd = "\N{SNOWMAN WITHOUT SNOW}" * 40_000, "a\x0bb\x00c"
    row = Row("d1", "a").extracted(result_of(note=found(odd, long)))
    write_xlsx(tmp_path / "out.xlsx", report_of(row))
    fields = sheets(tmp_path / "out.xlsx")["Fields"][2]
    assert fields[2] == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    assert fields[4].endswith("[cut]")
    assert len(fields[4]) <= MAX_CELL_CHARS


@given(st.text(alphabet=st.characters(), max_size=50) | st.text("=+-@\t\r\n 1A", max_size=6))
def test_every_text_is_safe_in_a_cell(text: str) -> None:
    """No text begins like a formula, and all of it can be encoded; safe text is left alone."""
    safe = safe_text(text)
    assert not safe.lstrip(" \u00a0").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    safe.encode("utf-8")
    assert safe_text(safe) == safe


def test_the_length_counts_as_excel_does() -> None:
    """Signs beyond the basic plane are two for Excel; the cut never halves one."""
    safe = safe_text("\N{PARTY POPPER}" * 20_000)
    assert len(safe.encode("utf-16-le")) // 2 <= MAX_CELL_CHARS
    assert safe.endswith("[cut]")


def test_jsonl_is_one_line_per_document(tmp_path: Path) -> None:
    """Every line is a document; values stay verbatim there."""
    evil = Row("d3", "renamed.txt").extracted(result_of(note=found(EVIL, "line\u2028one\x85two")))
    write_jsonl(tmp_path / "out.jsonl", report_of(DONE, BAD, evil))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["document_id"] for line in lines] == ["d1", "d2", "d3"]
    assert lines[2]["name"] == "renamed.txt"
    assert lines[0]["duplicates"] == ["copy.pdf"]
    assert lines[0]["fields"]["size"]["value"] == 1200
    assert (lines[1]["state"], lines[1]["reason"]) == ("error", "encrypted")
    assert lines[2]["fields"]["note"]["value"] == EVIL


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """A failure leaves the old file and no debris; the new one has ordinary permissions."""
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), written_whole(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert (path.read_text(), len(list(tmp_path.iterdir()))) == ("old", 1)
    with written_whole(path) as temporary:
        temporary.write_text("new")
    assert (path.read_text(), path.stat().st_mode & 0o400, len(list(tmp_path.iterdir()))) == ("new", 0o400, 1)
