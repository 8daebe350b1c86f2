"""Workbooks in which text is never taken for anything else."""

from __future__ import annotations

from pathlib import Path

import xlsxwriter
from xlsxwriter.workbook import Workbook


def new_workbook(path: Path) -> Workbook:
    """A workbook in which text is never taken for a formula, a link or a number."""
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    return xlsxwriter.Workbook(path, options)
