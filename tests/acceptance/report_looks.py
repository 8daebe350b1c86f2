"""Looking at what `headrace report` wrote: page, workbook and JSON of a folder."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import openpyxl

from headrace.apps.report.output.wording import wording


def text_of(page: Path) -> str:
    """What a reader of the page sees, tags aside."""
    return unescape(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8")))


def rows_of(book: Path) -> dict[str, int]:
    """How many rows each sheet of the workbook has."""
    with book.open("rb") as file:
        opened = openpyxl.load_workbook(file, read_only=True)
        try:
            return {sheet.title: sum(1 for _ in sheet.iter_rows(values_only=True)) for sheet in opened.worksheets}
        finally:
            opened.close()


def cells_of(book: Path, sheet: str) -> list[tuple[object, ...]]:
    """The values of a sheet, row by row."""
    with book.open("rb") as file:
        opened = openpyxl.load_workbook(file, read_only=True)
        try:
            return list(opened[sheet].iter_rows(values_only=True))
        finally:
            opened.close()


def stage_words(lang: str, *stages: str) -> list[str]:
    """What stages are called on the page."""
    word = wording("zh" if lang == "zh" else "en")
    return [word.label("stage", stage) for stage in stages]
