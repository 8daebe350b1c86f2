"""Accuracy against a sheet of known values: read strictly, judged fairly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.papers.errors import GoldError
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.gold import Verdict, accuracy, judge, read_gold, write_accuracy
from headrace.apps.papers.output.model import Row
from tests.unit.papers_models import CapableModel, answer
from tests.unit.test_papers_rows import TEMPLATE, TRIAL, arm

HEAD = "document,field,row,value\n"


def sheet(tmp_path: Path, text: str) -> Path:
    """Return a sheet of this text."""
    path = tmp_path / "gold.csv"
    path.write_text(text, encoding="utf-8")
    return path


async def extracted() -> list[Row]:
    """Return the row of one document with two arms."""
    arms = [arm(answer("aspirin", 2), answer(40, 2), answer(100, 2)), arm(answer("placebo", 3), None)]
    said: dict[str, Any] = {"country": answer("Norway", 1), "arm": arms}
    result = await extract_document(TRIAL, TEMPLATE, CapableModel(lambda prompt: said))
    return [Row("d", "trials/a.txt", ("copy.txt",)).extracted(result), Row("e", "broken.pdf")]


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("a.txt,country,,Norway", Verdict.RIGHT),
        ("trials/a.txt,country,,the west of Norway", Verdict.RIGHT),
        ("copy.txt,country,,Sweden", Verdict.WRONG),
        ("a.txt,country,,", Verdict.INVENTED),
        ("a.txt,arm.size,Aspirin,forty", Verdict.RIGHT),
        ("a.txt,arm.size,placebo,38", Verdict.MISSED),
        ("a.txt,arm.size,nobody,38", Verdict.MISSED),
        ("a.txt,arm.dose,placebo,", Verdict.RIGHTLY_NOT_FOUND),
        ("a.txt,arm.dose,aspirin,0.1 g", Verdict.RIGHT),
    ],
)
async def test_values_are_judged(tmp_path: Path, line: str, verdict: Verdict) -> None:
    """Documents by name or file name, rows by their key, values by what they mean."""
    gold = read_gold(sheet(tmp_path, HEAD + line + "\n"), TEMPLATE)
    (one,) = judge(TEMPLATE, await extracted(), gold)
    assert one.verdict is verdict


async def test_accuracy_is_told_by_field_and_in_all(tmp_path: Path) -> None:
    """Counts add up, documents that were not extracted are left out, and what is not right is listed."""
    text = (
        "\ufeffdocument;field;row;value\na.txt;country;;Norway\na.txt;arm.size;aspirin;40\na.txt;arm.size;placebo;38\n"
    )
    gold = read_gold(sheet(tmp_path, text + "broken.pdf;country;;Norway\n"), TEMPLATE)
    judged = judge(TEMPLATE, await extracted(), gold)
    told = accuracy(judged)
    assert (told["values"], told["documents"], told["accuracy"]) == (3, 1, 0.6667)
    assert told["fields"]["arm.size"] == {
        "accuracy": 0.5, "right": 1, "rightly_not_found": 0, "wrong": 0, "missed": 1, "invented": 0, "needs_review": 0,
    }  # fmt: skip
    written = json.loads(write_accuracy(tmp_path, judged).read_text(encoding="utf-8"))
    assert [one["row"] for one in written["not_right"]] == ["placebo"]
    assert accuracy([])["accuracy"] is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("document,value\n", ["line 1", "'field'"]),
        ("", ["line 1", "'document'"]),
        (HEAD + "a,cuntry,,x\n", ["line 2", "'cuntry'"]),
        (HEAD + "a,size,,3\n", ["line 2", "group.name", "'size'"]),
        (HEAD + "a,arm.size,,3\n", ["line 2", "which row", "''"]),
        (HEAD + "a,country,x,y\n", ["line 2", "one value per document", "'x'"]),
        (HEAD + "a,country,,y\n,country,,y\n", ["line 3", "document"]),
        (HEAD + "a,arm.size,x,many\n", ["line 2", "integer", "many"]),
    ],
)
def test_a_fault_of_the_sheet_is_named(tmp_path: Path, text: str, named: list[str]) -> None:
    """A wrong sheet is refused with file, line, rule and value."""
    with pytest.raises(GoldError) as caught:
        read_gold(sheet(tmp_path, text), TEMPLATE)
    for part in ("gold.csv", *named):
        assert part in str(caught.value)


def test_a_sheet_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file, and one that is no text."""
    (tmp_path / "gold.csv").write_bytes(b"\xff\xfe\x00")
    for name, words in (("none.csv", "No such file"), ("gold.csv", "UTF-8")):
        with pytest.raises(GoldError, match=words):
            read_gold(tmp_path / name, TEMPLATE)
