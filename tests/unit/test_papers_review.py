"""Reviews: sheets go out, come back from a spreadsheet program, and are taken whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from headrace.apps.papers.output.forms import write_forms
from headrace.apps.papers.output.model import Row
from headrace.apps.papers.result import Status
from headrace.apps.papers.review.errors import MAX_TOLD, ReviewError, SheetError
from headrace.apps.papers.review.log import LOG
from headrace.apps.papers.review.reading_back import ReadBack, read_back
from headrace.cli.root import cli
from tests.unit.papers_reports import DOCUMENT_A, found, report, rows
from tests.unit.papers_sheets import Filled, fill_csv, fill_xlsx, read_csv, read_xlsx

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SIZE, COUNTRY, BEGUN = ("a.pdf", None, "size"), ("a.pdf", None, "country"), ("a.pdf", None, "begun")
DOSE, DRUG = ("a.pdf", 1, "dose"), ("a.pdf", 2, "drug")
DISPUTE, UNCLEAR = ("b <i>.txt", None, "size"), ("b <i>.txt", None, "design")
FORMS = pytest.mark.parametrize("form", ["xlsx", "csv"])


def by(name: str, **cells: Any) -> dict[str, Any]:
    """Return the cells that a person fills in."""
    return {**cells, "reviewer": name}


DONE: Filled = {
    SIZE: by("AB", accept="yes"),
    COUNTRY: by("AB", accept="no", edited_value="Sweden", comment="see page 2\nfootnote"),
    DOSE: by("CD", edited_value="0.2 g"),
    DRUG: by("AB", accept="no"),
    DISPUTE: by("CD", accept="second"),
    UNCLEAR: by("AB", edited_value="Crossover"),
    ("b <i>.txt", None, "harms"): by("AB", edited_value="[Not reported]"),
}


def filled(out: Path, form: str, cells: Filled, *, to: str | None = None) -> Path:
    """Fill in the sheet of a run and return it, under another name if one is given."""
    fill = fill_xlsx if form == "xlsx" else fill_csv
    return fill(out / f"review.{form}", cells, to=out / f"{to}.{form}" if to else None)


def again(out: Path, sheet: Path, **options: Any) -> ReadBack:
    """Read a sheet back at a known moment."""
    return read_back(sheet, out, **{"now": NOW, **options})


def mistakes(out: Path, sheet: Path) -> list[str]:
    """Read a wrong sheet and return what is told; nothing must have changed."""
    before = contents(out)
    with pytest.raises(SheetError) as refused:
        again(out, sheet)
    assert contents(out) == before
    assert "nothing was changed" in str(refused.value)
    return [str(mistake) for mistake in refused.value.mistakes]


def contents(out: Path) -> dict[str, bytes]:
    """Return every file of the folder."""
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def verified(out: Path) -> dict[tuple[str, int | None, str], dict[str, Any]]:
    """Return the lines of verified.jsonl."""
    lines = [json.loads(line) for line in (out / "verified.jsonl").read_text().splitlines()]
    return {(line["document"], line["row"] or None, line["field"]): line for line in lines}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with the results of a run."""
    write_forms(report(), tmp_path)
    return tmp_path


@FORMS
def test_decisions_come_back_from_a_spreadsheet_program(out: Path, form: str) -> None:
    """Accepted, edited and rejected values stand beside what was extracted, with who decided and when."""
    done = again(out, filled(out, form, DONE))
    assert dict(done.changes) == {"accepted": 3, "edited": 3, "rejected": 1}
    said = {place: line["review"] for place, line in verified(out).items()}
    assert (said[SIZE]["answer"], said[SIZE]["value"], said[SIZE]["reviewer"]) == ("accepted", 1200, "AB")
    assert (said[COUNTRY]["value"], said[COUNTRY]["comment"]) == ("Sweden", "see page 2\nfootnote")
    assert verified(out)[COUNTRY]["extracted"]["value"] == "Norway"
    assert verified(out)[COUNTRY]["extracted"]["quote"] == "Norway 🧪 of"
    assert (said[DOSE]["value"], said[DOSE]["decided_at"]) == (200, "2026-03-01T12:00:00Z")
    assert (said[DRUG]["answer"], said[DRUG]["value"]) == ("rejected", None)
    assert (said[DISPUTE]["candidate"], said[DISPUTE]["value"]) == ("second", 42)
    assert said[UNCLEAR]["value"] == "crossover"
    assert said[BEGUN]["answer"] == "open"
    assert len(verified(out)) == len(read_csv(out / "results.csv"))


@FORMS
def test_the_record_and_the_log_tell_who_decided_what(out: Path, form: str) -> None:
    """run.json counts every value once; the log has a line for each decision, from what to what."""
    sheet = filled(out, form, DONE)
    again(out, sheet)
    told = json.loads((out / "run.json").read_text())["verification"]
    assert (told["verified"], told["accepted"], told["edited"], told["rejected"]) == (6, 3, 3, 1)
    assert told["verified"] + told["rejected"] + told["open"] == len(verified(out))
    assert (told["by"], told["last_at"]) == (["AB", "CD"], "2026-03-01T12:00:00Z")
    log = [json.loads(line) for line in (out / LOG).read_text().splitlines()]
    assert len(log) == 7
    (dose,) = [line for line in log if line["field"] == "dose"]
    assert (dose["who"], dose["what"], dose["sheet"], dose["row"]) == ("CD", "edited", sheet.name, 1)
    assert (dose["extracted"]["value"], dose["from"]["answer"], dose["to"]["value"]) == (100, "open", 200)


@FORMS
def test_the_same_sheet_twice_changes_nothing(out: Path, form: str) -> None:
    """Not a byte differs after the second time, whenever it is."""
    sheet = filled(out, form, DONE)
    again(out, sheet)
    before = contents(out)
    done = again(out, sheet, now=NOW + timedelta(days=1))
    assert not done.changes
    assert contents(out) == before


def test_verified_values_are_a_table_too(out: Path) -> None:
    """verified.csv has the decision and what was extracted in one line."""
    again(out, filled(out, "xlsx", DONE))
    lines = {(line["document"], line["field"]): line for line in read_csv(out / "verified.csv") if not line["group"]}
    size = lines["a.pdf", "country"]
    assert (size["review"], size["verified_value"], size["value"], size["quote"]) == (
        "edited", "Sweden", "Norway", "Norway 🧪 of",
    )  # fmt: skip
    harms = lines["b <i>.txt", "harms"]
    assert (harms["review"], harms["verified_says"], harms["verified_value"]) == ("accepted", "not_reported", "")


def test_disagreements_come_first_with_both_quotes(out: Path) -> None:
    """Then what is unclear, then the others by documents; both candidates stand side by side."""
    first, second, third, *_ = read_xlsx(out / "review.xlsx")
    assert (first["status"], first["value"], first["second_value"]) == ("needs_review", 40, 42)
    assert (first["quote"], first["second_quote"]) == ("Only 40 or", "40 or 42 people")
    assert second["status"] == "unclear"
    assert third["document"] == "a.pdf"
    assert [row["key"] for row in read_xlsx(out / "review.xlsx")] == [
        row["key"] for row in read_csv(out / "review.csv")
    ]


def test_the_workbook_guides_the_person(out: Path) -> None:
    """Lists to choose from, a frozen header with filters, locked columns, wrapped texts, a hidden key."""
    sheet = openpyxl.load_workbook(out / "review.xlsx")["Review"]
    header = [cell.value for cell in sheet[1]]
    letters = {title: sheet[1][index].column_letter for index, title in enumerate(header)}
    assert sheet.freeze_panes == "B2"
    assert sheet.auto_filter.ref
    assert sheet.protection.sheet
    assert sheet.column_dimensions[letters["key"]].hidden
    assert sheet[f"{letters['quote']}2"].protection.locked
    assert sheet[f"{letters['quote']}2"].alignment.wrap_text
    for title in ("accept", "edited_value", "comment", "reviewer"):
        assert not sheet[f"{letters[title]}2"].protection.locked
    choices = {str(rule.sqref): rule.formula1 for rule in sheet.data_validations.dataValidation}
    assert choices[f"{letters['accept']}2"] == '"first,second,no,open"'
    assert '"yes,no,open"' in choices.values()
    design = next(row for row, cells in enumerate(read_xlsx(out / "review.xlsx"), start=2) if cells["type"] == "enum")
    (rule,) = [
        rule for rule in sheet.data_validations.dataValidation if f"{letters['edited_value']}{design}" in rule.sqref
    ]
    listed = openpyxl.load_workbook(out / "review.xlsx")["Choices"]
    column = rule.formula1.split("$")[1]
    assert [listed[f"{column}{row}"].value for row in range(1, 6)] == [
        "parallel", "crossover", "[not reported]", "[not applicable]", "[unclear]",
    ]  # fmt: skip


def wrong(out: Path, **cells: Any) -> list[str]:
    """Return what is told of a sheet with one line filled in."""
    place = cells.pop("place", SIZE)
    return mistakes(out, filled(out, "xlsx", {place: cells}, to="wrong"))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"accept": "maybe"}, "column accept: must be yes, no, open or empty, got 'maybe'"),
        ({"accept": "second"}, "column accept: must be yes, no, open or empty, got 'second'"),
        ({"accept": "yes", "place": DISPUTE}, "must be first, second, no, open or empty, for two extractions differ"),
        ({"accept": "yes", "edited_value": 7}, "must be empty or agree with accept, which is 'yes', got 7.0"),
        ({"accept": "no", "edited_value": 1200}, "must be empty or agree with accept, which is 'no', got 1200.0"),
        ({"accept": "first", "edited_value": 42, "place": DISPUTE}, "which is 'first'"),
        ({"edited_value": "many"}, "edited_value: must be a whole number in people and nothing else, got 'many'"),
        ({"edited_value": 1.5}, "must be a whole number, got 1.5"),
        ({"edited_value": "about 7"}, "must be a whole number in people and nothing else"),
        ({"edited_value": "5 mg"}, "must be in people, and mg cannot be converted"),
        ({"edited_value": "18 months", "place": DOSE}, "must be in mg, and months cannot be converted"),
        ({"edited_value": "1,200", "place": DOSE}, "must be clear, and may be 1.2 or 1200"),
        ({"edited_value": "open-label", "place": UNCLEAR}, "must be one of parallel, crossover, got 'open-label'"),
        ({"edited_value": "perhaps", "place": ("a.pdf", None, "blinded")}, "must be true or false"),
        ({"edited_value": "Mar-21", "place": BEGUN}, "must be a date: YYYY, YYYY-MM or YYYY-MM-DD, got 'Mar-21'"),
        ({"edited_value": "05/03/2021", "place": BEGUN}, "may be 2021-03-05 or 2021-05-03; write YYYY-MM-DD"),
        ({"edited_value": date(2021, 3, 1), "place": BEGUN}, "may be 2021-03 or 2021-03-01"),
        ({"edited_value": date(2021, 1, 2), "place": COUNTRY}, "the spreadsheet program made a date or time of it"),
        ({"edited_value": "x" * 2001, "place": COUNTRY}, "must have at most 2000 characters"),
        ({"accept": "yes", "comment": "x" * 5001}, "column comment: must have at most 5,000 characters"),
    ],
)  # fmt: skip
def test_a_wrong_cell_is_named_with_its_rule(out: Path, cells: dict[str, Any], told: str) -> None:
    """Line, column, rule and value are told, and nothing is changed."""
    (mistake,) = wrong(out, **cells, reviewer="AB")
    assert told in mistake
    assert mistake.startswith("line ")


def test_somebody_must_have_decided(out: Path) -> None:
    """A decision without a name is refused, unless one is given for all; a name alone decides nothing."""
    assert "column reviewer: must say who decided" in wrong(out, accept="yes")[0]
    done = again(out, filled(out, "xlsx", {SIZE: {"accept": "yes"}, DOSE: by("CD")}, to="named"), reviewer="EF")
    assert dict(done.changes) == {"accepted": 1}
    assert verified(out)[SIZE]["review"]["reviewer"] == "EF"


def test_every_mistake_of_a_sheet_is_told_and_good_lines_wait(out: Path) -> None:
    """One wrong line holds back the whole sheet; a line with two mistakes has two."""
    sheet = filled(out, "csv", DONE | {BEGUN: {"accept": "x", "document": "z.pdf", "edited_value": "soon"}})
    told = mistakes(out, sheet)
    assert ["column document" in told[0], "column accept" in told[1], "column reviewer" in told[2]] == [True] * 3
    assert "must stay as it was written, 'a.pdf', got 'z.pdf'" in told[0]
    assert not (out / "verified.jsonl").exists()
    assert not (out / LOG).exists()


def test_lines_of_mistakes_count_as_spreadsheets_do(out: Path) -> None:
    """A quote with line breaks is one line."""
    lines = read_csv(out / "review.csv")
    at = next(number for number, line in enumerate(lines, start=2) if line["field"] == "harms" and line["quote"])
    assert "\n" in lines[at - 2]["quote"]
    after = lines[at - 1]
    place = (after["document"], int(after["row"]) if after["row"] else None, after["field"])
    (told,) = mistakes(out, fill_csv(out / "review.csv", {place: by("AB", accept="x")}))
    assert told.startswith(f"line {at + 1}, column accept")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("", "column key: must be the key that was written there, in a hidden column, got nothing"),
        ("tampered", "must be the key that was written there"),
        ("review1:other:d:::", "must be the key that was written there"),
        ("other run", "must be of the run 0123456789ab in this folder, and is of ffffffffffff"),
        ("other place", "must be of a value of this run"),
        ("twice", "must stand in one line only, and stands in line"),
    ],
)
def test_keys_that_do_not_belong_are_refused(out: Path, key: str, told: str) -> None:
    """A line without its key, of another run, of no value, or a copy of another line is noticed."""

    def change(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        real = lines[5]["key"]
        lines[5]["key"] = {
            "other run": real.replace("0123456789ab", "f" * 12),
            "other place": real.replace(lines[5]["field"], "no_field"),
            "twice": lines[4]["key"],
        }.get(key, key)
        return lines

    (mistake,) = mistakes(out, fill_csv(out / "review.csv", {}, to=out / "wrong.csv", change=change))
    assert told in mistake


@FORMS
def test_a_sheet_of_another_run_is_one_mistake(out: Path, tmp_path_factory: pytest.TempPathFactory, form: str) -> None:
    """Not a mistake for each line: how many do not belong, the first of them, and what to do."""
    other, there = tmp_path_factory.mktemp("other"), report()
    write_forms(replace(there, record=replace(there.record, run_id="f" * 64)), other)
    sheet = filled(other, form, {SIZE: by("AB", accept="yes")})
    (told,) = mistakes(out, sheet)
    count = len(read_csv(other / "review.csv"))
    assert told.startswith("line 2, column key: must be of the run 0123456789ab in this folder")
    assert f"; {count} of {count} lines do not belong to the results there: name with --out the folder" in told
    with pytest.raises(SheetError, match=f"{sheet.name} has 1 mistake"):
        again(out, sheet)


def test_lines_that_do_not_belong_hide_no_other_mistakes(out: Path) -> None:
    """Lines of each kind are told once, the mistakes of those that belong one by one."""

    def change(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for line in lines[1:3]:
            line["key"] = line["key"].replace("0123456789ab", "f" * 12)
        for line in lines[3:6]:
            line["key"] = ""
        lines[0] |= {"accept": "?", "reviewer": "AB"}
        return lines

    told = mistakes(out, fill_csv(out / "review.csv", {}, to=out / "wrong.csv", change=change))
    assert [line.partition(":")[0] for line in told] == [f"line {n}, column {c}" for n, c in PLACES]
    assert "; 2 of " in told[0]
    assert "; 3 of " in told[1]


PLACES = [(3, "key"), (5, "key"), (2, "accept")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trial.yaml", b"name: trial\nversion: 1\nfields:\n  - {name: size, type: integer, description: How many}\n"),
        ("notes.md", b"# Notes\n\nNothing, in particular.\n"),
        ("results.json", b'{"document": "a"}\n'),
        ("quoted.yaml", b'name: "trial" no\n'),
        ("paper.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
    ],
)
def test_a_file_that_is_no_sheet_is_one_mistake(out: Path, name: str, content: bytes) -> None:
    """Not a mistake for each column: the file, what it must be, and which file to take."""
    (out / name).write_bytes(content)
    with pytest.raises(ReviewError) as refused:
        again(out, out / name)
    told = str(refused.value)
    assert "\n" not in told
    assert str(out / name) in told
    assert "must be CSV" in told
    assert "XLSX" in told
    assert "Name the review.xlsx or review.csv" in told


@FORMS
def test_a_value_typed_over_is_noticed(out: Path, form: str) -> None:
    """What was extracted is not overwritten by mistake: the right value belongs into its own column."""
    (told,) = mistakes(out, filled(out, form, {SIZE: by("AB", accept="yes", value="1300")}, to="wrong"))
    assert "column value: must stay as it was written, 1200; write the right value into edited_value" in told


def test_columns_sorted_apart_from_their_keys_are_noticed(out: Path) -> None:
    """A program that sorts without the hidden column would give every decision to another value."""

    def change(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        keys = [line["key"] for line in lines]
        lines.sort(key=lambda line: line["field"])
        return [{**line, "key": key, "accept": "no", "reviewer": "AB"} for line, key in zip(lines, keys, strict=True)]

    told = mistakes(out, fill_csv(out / "review.csv", {}, to=out / "wrong.csv", change=change))
    assert sum("column field: must stay as it was written" in mistake for mistake in told) > 5


def test_sorting_whole_lines_is_fine(out: Path) -> None:
    """The order of lines, and lines that were deleted, mean nothing."""
    filled(out, "csv", DONE)
    fill_csv(out / "review.csv", {}, change=lambda lines: [line for line in reversed(lines) if line["accept"]])
    assert dict(again(out, out / "review.csv").changes) == {"accepted": 2, "edited": 1, "rejected": 1}


@pytest.mark.parametrize(
    ("place", "typed", "value"),
    [
        (SIZE, 1300.0, 1300),
        (SIZE, "1300", 1300),
        (SIZE, "1300 people", 1300),
        (SIZE, "forty", 40),
        (DOSE, "1,5", 1.5),
        (DOSE, "0.1005 g", 100.5),
        (BEGUN, 2021.0, "2021"),
        (BEGUN, date(2021, 3, 5), "2021-03-05"),
        (BEGUN, datetime(2021, 3, 5), "2021-03-05"),
        (BEGUN, "5 March 2021", "2021-03-05"),
        (BEGUN, "2021-04", "2021-04"),
        (COUNTRY, 12.0, "12"),
        (COUNTRY, "'=Peru", "=Peru"),
        (COUNTRY, "=Peru", "=Peru"),
        (("a.pdf", None, "blinded"), False, False),
        (("a.pdf", None, "blinded"), "No", False),
        (("a.pdf", None, "harms"), "rash; nausea ;; rash", ["rash", "nausea"]),
        (UNCLEAR, "PARALLEL", "parallel"),
        (SIZE, "[not reported]", None),
    ],
)
def test_what_a_spreadsheet_program_made_of_a_value_is_understood(
    out: Path, place: tuple[str, int | None, str], typed: Any, value: Any
) -> None:
    """Numbers that became 1300.0, dates that became dates, and texts that look like formulas are what was meant."""
    sheet = filled(out, "xlsx", {place: by("AB", edited_value=typed)}, to="edited")
    again(out, sheet)
    said = verified(out)[place]["review"]
    assert (said["answer"], said["value"], type(said["value"])) == ("edited", value, type(value))


def test_a_value_typed_once_more_is_accepted(out: Path) -> None:
    """What equals the value, or one of two candidates, is no edit: its evidence counts."""
    cells = {
        SIZE: by("AB", edited_value=1200.0),
        DISPUTE: by("AB", edited_value=40),
        BEGUN: by("AB", edited_value="2021-03"),
    }
    again(out, filled(out, "xlsx", cells))
    said = {place: line["review"] for place, line in verified(out).items()}
    assert [said[place]["answer"] for place in cells] == ["accepted"] * 3
    assert (said[DISPUTE]["candidate"], said[DISPUTE]["value"]) == ("first", 40)


def test_a_csv_that_excel_saved_again_is_read(out: Path) -> None:
    """Semicolons, another header case, reformatted numbers, booleans and dates are no edits of what was extracted."""

    def change(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for line in lines:
            line["value"] = {"2021-03": "Mrz 21", "true": "TRUE"}.get(line["value"], line["value"])
            line["quote"] = line["quote"].replace("\n", "\r\n")
        return lines

    sheet = fill_csv(
        out / "review.csv", {BEGUN: by("AB", accept="Yes")}, change=change, encoding="utf-8", delimiter=";"
    )
    assert dict(again(out, sheet).changes) == {"accepted": 1}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xff\xfe\x00bad", "must be CSV in UTF-8, or XLSX, and is neither"),
        (b"PK\x03\x04 broken", "cannot be read as a workbook"),
        (b'accept,"field\n', "is not CSV at line"),
    ],
)
def test_what_is_no_sheet_is_refused(out: Path, content: bytes, told: str) -> None:
    """Another encoding or a broken file is told with what to do."""
    (out / "wrong.csv").write_bytes(content)
    with pytest.raises(ReviewError, match=told):
        again(out, out / "wrong.csv")


def test_other_workbooks_and_tables_are_refused(out: Path) -> None:
    """The results themselves are no review sheets, and a folder without results cannot be reviewed."""
    with pytest.raises(ReviewError, match="has no sheet 'Review'"):
        again(out, out / "results.xlsx")
    with pytest.raises(ReviewError, match=r"is no review sheet.*got 'document_id,document,group"):
        again(out, out / "results.csv")
    with pytest.raises(SheetError, match="line 1, column accept: must stand once in the header"):
        (out / "less.csv").write_text((out / "review.csv").read_text("utf-8-sig").replace("accept", "verdict", 1))
        again(out, out / "less.csv")
    with pytest.raises(SheetError, match="must be the header"):
        (out / "empty.csv").write_text("")
        again(out, out / "empty.csv")
    with pytest.raises(ReviewError, match="cannot be read: No such file"):
        again(out, out / "missing.csv")
    for folder in (out / "nowhere", out.parent):
        with pytest.raises(ReviewError, match="--out must be a folder with the results"):
            again(folder, out / "review.csv")


def test_many_mistakes_are_told_in_part(out: Path) -> None:
    """A sheet that is wrong throughout is not told line by line without end."""
    lines = read_csv(out / "review.csv")
    every = {
        (line["document"], int(line["row"]) if line["row"] else None, line["field"]): by("A", accept="?")
        for line in lines
    }
    with pytest.raises(SheetError) as refused:
        again(out, fill_csv(out / "review.csv", every))
    assert len(refused.value.mistakes) == len(lines)
    assert len(str(refused.value).splitlines()) == 1 + min(len(lines), MAX_TOLD)


def changed(**update: Any) -> Sequence[Row]:
    """Return the rows of a run in which the size of a document is another one today."""
    first, *others = rows()
    assert first.result is not None
    size = found(DOCUMENT_A, 1250, "A trial in Norway").model_copy(update=update)
    result = first.result.model_copy(update={"fields": first.result.fields | {"size": size}})
    return (replace(first, result=result), *others)


def test_a_value_that_changed_since_is_open_again(out: Path) -> None:
    """Results that were extracted anew keep what was decided, but not of values that are others now."""
    old = filled(out, "xlsx", DONE, to="old")
    again(out, old)
    write_forms(report(*changed()), out)
    assert verified(out)[SIZE]["review"]["answer"] == "open"
    assert verified(out)[COUNTRY]["review"]["answer"] == "edited"
    told = json.loads((out / "run.json").read_text())["verification"]
    assert (told["accepted"], told["edited"]) == (2, 3)
    (mistake,) = mistakes(out, old)
    assert "column value: must be the value of today, 1250; it changed since the sheet was written" in mistake
    assert mistake.endswith("got 1200.0")


def test_offsets_alone_are_no_change(out: Path) -> None:
    """Another version of a reader may move a quote; what people decided of it stands."""
    again(out, filled(out, "xlsx", DONE))
    first, *others = rows()
    assert first.result is not None
    moved = first.result.fields["size"].model_copy(update={"char_start": 5, "char_end": 9})
    result = first.result.model_copy(update={"fields": first.result.fields | {"size": moved}})
    write_forms(report(replace(first, result=result), *others), out)
    assert verified(out)[SIZE]["review"]["answer"] == "accepted"


@FORMS
def test_a_new_sheet_has_what_is_decided_and_reading_it_changes_nothing(out: Path, form: str) -> None:
    """Decided lines come last, filled in; read back they say nothing new, and never undo what others decided since."""
    again(out, filled(out, form, DONE))
    write_forms(report(), out)
    sheet = out / f"review.{form}"
    lines = read_xlsx(sheet) if form == "xlsx" else read_csv(sheet)
    assert [bool(line["accept"]) for line in lines] == [False] * (len(lines) - 7) + [True] * 7
    before = contents(out)
    assert not again(out, sheet).changes
    assert contents(out) == before
    newer = filled(out, form, {SIZE: by("EF", accept="no")}, to="newer")
    assert again(out, newer).overruled == 1
    assert not again(out, sheet).changes
    assert verified(out)[SIZE]["review"]["reviewer"] == "EF"


def test_a_decision_can_be_taken_back_or_changed(out: Path) -> None:
    """`open` takes it back, an emptied cell of a newer sheet too; the log keeps all of it."""
    again(out, filled(out, "xlsx", {SIZE: by("AB", accept="yes"), DOSE: by("AB", accept="yes")}))
    again(out, filled(out, "xlsx", {SIZE: by("AB", accept="open")}))
    assert verified(out)[SIZE]["review"]["answer"] == "open"
    write_forms(report(), out)
    again(out, filled(out, "xlsx", {DOSE: by("AB", accept=None)}))
    assert verified(out)[DOSE]["review"]["answer"] == "open"
    whats = [json.loads(line)["what"] for line in (out / LOG).read_text().splitlines()]
    assert whats == ["accepted", "accepted", "reopened", "reopened"]


def test_an_empty_line_and_a_comment_decide_nothing(out: Path) -> None:
    """An older, emptier sheet does not undo what was decided; a comment keeps the answer and who gave it."""
    filled(out, "xlsx", {}, to="blank")
    remark = filled(out, "xlsx", {SIZE: by("CD", comment="odd")}, to="remark")
    again(out, filled(out, "xlsx", DONE))
    assert not again(out, out / "blank.xlsx").changes
    done = again(out, remark, now=NOW + timedelta(days=1))
    said = verified(out)[SIZE]["review"]
    assert (said["answer"], said["reviewer"], said["comment"]) == ("accepted", "AB", "odd")
    assert said["decided_at"] == "2026-03-01T12:00:00Z"
    assert done.overruled == 0
    last = json.loads((out / LOG).read_text().splitlines()[-1])
    assert (last["who"], last["to"]["comment"]) == ("CD", "odd")


def test_the_log_is_only_added_to(out: Path) -> None:
    """What it held is its beginning for ever."""
    again(out, filled(out, "csv", {SIZE: by("AB", accept="yes")}))
    before = (out / LOG).read_bytes()
    again(out, filled(out, "csv", {SIZE: by("CD", accept="no")}))
    after = (out / LOG).read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 2


def test_a_log_that_was_damaged_is_no_empty_log(out: Path) -> None:
    """What people decided is never silently forgotten."""
    again(out, filled(out, "csv", DONE))
    (out / LOG).write_text((out / LOG).read_text() + "{half")
    with pytest.raises(ReviewError, match=r"review-log\.jsonl, line 8"):
        again(out, out / "review.csv")


def test_files_lost_between_are_made_again(out: Path) -> None:
    """The log decides: after a crash behind it, reading the sheet again completes the other files."""
    sheet = filled(out, "csv", DONE)
    record = (out / "run.json").read_bytes()
    again(out, sheet)
    whole = contents(out)
    (out / "run.json").write_bytes(record)
    (out / "verified.jsonl").unlink()
    assert not again(out, sheet).changes
    assert contents(out) == whole


@FORMS
def test_work_that_nobody_read_back_is_not_overwritten(out: Path, form: str) -> None:
    """A run that ends again writes its sheet under another name while one holds decisions; else it replaces it."""
    sheet = filled(out, form, DONE)
    work = sheet.read_bytes()
    files = write_forms(report(), out)
    assert sheet.read_bytes() == work
    assert out / f"review-2.{form}" in files
    write_forms(report(), out)
    assert not (out / f"review-3.{form}").exists()
    again(out, sheet)
    assert sheet in write_forms(report(), out)
    sheet.write_bytes(b"what is this")
    write_forms(report(), out)
    assert sheet.read_bytes() == b"what is this"


def test_hostile_words_stay_words(out: Path) -> None:
    """Names and comments of a sheet are harmless in the table that comes of it; controls are dropped."""
    again(out, filled(out, "xlsx", {SIZE: by("=cmd", accept="yes", comment="@SUM(A1)\u202e")}))
    (line,) = [line for line in read_csv(out / "verified.csv") if line["reviewer"]]
    assert (line["reviewer"], line["comment"]) == ("'=cmd", "'@SUM(A1)")
    assert verified(out)[SIZE]["review"]["reviewer"] == "=cmd"


def test_what_needs_no_answer_can_be_confirmed(out: Path) -> None:
    """That a document does not say, or is unclear, is verified like a value."""
    silent = ("a.pdf", 2, "dose")
    again(out, filled(out, "xlsx", {silent: by("AB", accept="yes"), UNCLEAR: by("AB", accept="yes")}))
    assert [verified(out)[place]["review"]["says"] for place in (silent, UNCLEAR)] == [
        Status.NOT_REPORTED, Status.UNCLEAR,
    ]  # fmt: skip


def command(*arguments: object) -> int:
    """Run the command line and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["papers", "review", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_command_tells_what_it_did(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts for people, one JSON document for machines."""
    sheet = filled(out, "xlsx", DONE)
    assert command(sheet, "--out", out) == 0
    told = capsys.readouterr().out
    assert "read: 3 accepted, 3 edited, 1 rejected" in told.replace("\n", " ")
    assert "6 values verified (3 accepted, 3 edited), 1 rejected, 9 still open" in told
    assert command(sheet, "--out", out, "--json") == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["changes"], done["verification"]["verified"]) == ({}, 6)


def test_the_command_ends_with_2_for_a_wrong_sheet(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mistakes go to standard error, for machines with column and rule."""
    sheet = filled(out, "csv", {SIZE: by("AB", accept="x"), DOSE: by("AB", accept="y", edited_value=3)})
    assert command(sheet, "--out", out) == 2
    assert "has 2 mistakes, and nothing was changed:\n  line " in capsys.readouterr().err
    assert command(sheet, "--out", out, "--json") == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["code"], error["field"]) == ("invalid_sheet", "accept")
    assert command(out / "none.csv", "--out", out) == 2
