"""Tables of values, rows of groups and disagreements: every value once, with its evidence, and harmless."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl

from headrace.apps.papers.output.forms import write_forms
from headrace.apps.papers.output.lines import lines_of
from headrace.apps.papers.output.table import COLUMNS, write_csv
from headrace.apps.papers.output.xlsx import write_xlsx
from headrace.apps.papers.result import DocumentResult, Status
from headrace.apps.papers.template import parse_template
from tests.unit.papers_reports import DOCUMENT_A, DOCUMENT_B, TEMPLATE, report

DOCUMENTS = {document.document_id: document for document in (DOCUMENT_A, DOCUMENT_B)}


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the lines of a table as any program reads them that knows its encoding."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def sheet(path: Path, name: str) -> list[dict[str, Any]]:
    """Return the lines of a sheet by their header."""
    header, *lines = openpyxl.load_workbook(path)[name].iter_rows(values_only=True)
    return [dict(zip([str(title) for title in header], line, strict=True)) for line in lines]


def test_the_long_table_has_a_line_for_every_value(tmp_path: Path) -> None:
    """Fields of documents and of rows are lines with a stable header, and Excel knows the encoding."""
    write_csv(tmp_path / "out.csv", report())
    assert (tmp_path / "out.csv").read_bytes().startswith(b"\xef\xbb\xbfdocument_id,document,group,row,")
    lines = read_csv(tmp_path / "out.csv")
    assert tuple(lines[0]) == COLUMNS
    places = [(line["document"], line["group"], line["row"], line["field"]) for line in lines]
    assert len(places) == len(set(places)) == 6 + 4 + 6
    dose = lines[places.index(("a.pdf", "arm", "1", "dose"))]
    assert (dose["value"], dose["unit"], dose["type"], dose["row_name"]) == ("100", "mg", "number", "Aspirin")
    assert (dose["model"], dose["prompt_version"], dose["template"], dose["template_version"]) == (
        "m-1", "papers-1", "trial", "2",
    )  # fmt: skip
    assert lines[places.index(("a.pdf", "", "", "blinded"))]["value"] == "true"
    assert lines[places.index(("a.pdf", "", "", "harms"))]["agreement"] == "agreed"


def test_every_found_value_stands_in_the_table_with_the_quote_of_its_offsets(tmp_path: Path) -> None:
    """What the offsets of a line cut out of the text is its quote, over line breaks and pages too."""
    write_csv(tmp_path / "out.csv", report())
    found = [line for line in read_csv(tmp_path / "out.csv") if line["status"] == "found"]
    assert len(found) == 9
    for line in found:
        text = DOCUMENTS[line["document_id"]].text
        quote = text[int(line["char_start"]) : int(line["char_end"])]
        assert line["quote"].removeprefix("'") == quote
        assert line["page"]
    assert any("\n" in line["quote"] for line in found)


def test_a_disagreement_has_both_values_and_none_of_its_own(tmp_path: Path) -> None:
    """Nobody takes one candidate for the value: both stand in columns of their own, with quotes and pages."""
    write_csv(tmp_path / "out.csv", report())
    (line,) = [line for line in read_csv(tmp_path / "out.csv") if line["agreement"] == "disagreed"]
    assert (line["value"], line["quote"], line["status"]) == ("", "", "needs_review")
    assert (line["first_value"], line["second_value"]) == ("40", "42")
    assert (line["first_quote"], line["second_quote"], line["second_page"]) == ("Only 40 or", "40 or 42 people", "1")


def test_no_cell_of_the_table_is_a_formula(tmp_path: Path) -> None:
    """Text that a spreadsheet would run is neutralised; a negative number is none of it."""
    rows = report().rows
    assert rows[1].result is not None
    fields = dict(rows[1].result.fields)
    fields["size"] = fields["size"].model_copy(update={"status": Status.FOUND, "value": -5})
    evil = replace(rows[1], name="=cmd", result=rows[1].result.model_copy(update={"fields": fields}))
    write_csv(tmp_path / "out.csv", report(evil))
    lines = read_csv(tmp_path / "out.csv")
    cells = [cell for line in lines for cell in line.values()]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == ["-5"]
    assert lines[0]["document"] == "'=cmd"


def test_rows_have_a_sheet_of_their_own_with_quotes(tmp_path: Path) -> None:
    """A group is a sheet: document, row number, a column for each field, and the quote of each value."""
    write_xlsx(tmp_path / "out.xlsx", report())
    first, second = sheet(tmp_path / "out.xlsx", "Rows arm")
    assert (first["document"], first["row"], first["drug"], first["dose (mg)"]) == ("a.pdf", 1, "Aspirin", 100)
    assert (first["dose quote"], first["dose page"]) == ("Aspirin 100 mg was given.", 2)
    assert (second["row"], second["dose (mg)"], second["dose quote"]) == (2, "[not_reported]", None)


def test_groups_with_long_names_have_sheets_that_differ(tmp_path: Path) -> None:
    """Excel allows 31 characters and no two equal names."""
    names = [f"outcome_of_the_whole_trial_at_{end}" for end in ("week_1", "week_2", "week_3")]
    groups = "\n".join(
        f"  - {{name: {name}, description: d, fields: [{{name: a, type: text, description: d}}]}}" for name in names
    )
    template = parse_template(
        f"name: t\nversion: 1\nfields: [{{name: b, type: text, description: d}}]\nrows:\n{groups}"
    )
    write_xlsx(tmp_path / "out.xlsx", replace(report(), template=template, rows=()))
    titles = [title for title in openpyxl.load_workbook(tmp_path / "out.xlsx").sheetnames if title.startswith("Rows")]
    assert len(titles) == len(set(titles)) == 3
    assert all(len(title) <= 31 for title in titles)


def test_disagreements_are_a_sheet_with_both_sides(tmp_path: Path) -> None:
    """A person sees both values, their quotes, and who said them."""
    write_xlsx(tmp_path / "out.xlsx", report())
    (line,) = sheet(tmp_path / "out.xlsx", "Disagreements")
    assert (line["first value"], line["first quote"], line["first said by"]) == (40, "Only 40 or", "first-1")
    assert (line["second value"], line["second quote"], line["second said by"]) == (42, "40 or 42 people", "second-2")


def test_the_sheet_of_the_run_holds_the_whole_record(tmp_path: Path) -> None:
    """Dates, models with their prompts, parameters, counts, verification and money are all there."""
    write_xlsx(tmp_path / "out.xlsx", report())
    run = {line["what"]: line["value"] for line in sheet(tmp_path / "out.xlsx", "Run")}
    assert (run["begun at"], run["ended at"]) == ("2026-01-02T03:00:00Z", "2026-01-02T03:04:00Z")
    assert (run["models provider"], run["models prompt digest"]) == ("p", "0" * 64)
    assert (run["parameters dual"], run["disagreements"], run["rows arm"]) == ("second-2", 1, 2)
    assert (run["verification verified"], run["money usd"]) == (0, 0)


def test_digests_survive_being_stored_and_tell_changes() -> None:
    """A value read from a file has the digest it was written with; another value, quote or candidate has another."""
    digests = {line.place: line.digest for line in lines_of(TEMPLATE, report().rows)}
    stored = [
        replace(row, result=DocumentResult.from_json(row.result.to_json())) if row.result else row
        for row in report().rows
    ]
    assert {line.place: line.digest for line in lines_of(TEMPLATE, stored)} == digests
    assert len(set(digests.values())) == len(digests)
    line = next(line for line in lines_of(TEMPLATE, report().rows) if line.candidates)
    for update in ({"value": 1}, {"quote": "x"}, {"status": Status.UNCLEAR}, {"candidates": ()}):
        assert replace(line, found=line.found.model_copy(update=update)).digest != line.digest
    assert replace(line, found=line.found.model_copy(update={"char_start": 9})).digest == line.digest


def test_all_forms_are_written(tmp_path: Path) -> None:
    """The paths that are told exist."""
    files = write_forms(report(), tmp_path)
    assert all(file.is_file() for file in files)
    assert {"results.xlsx", "results.csv", "results.jsonl"} <= {file.name for file in files}
