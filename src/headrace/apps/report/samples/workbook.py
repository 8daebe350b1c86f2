"""Opens workbooks for writing: the same bytes for the same content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from headrace import ConfigError

_MADE = datetime(2026, 3, 16, tzinfo=UTC)


@contextmanager
def new_workbook(path: Path) -> Iterator[Any]:
    """Give a workbook that is written when the block ends. Raises ConfigError where XlsxWriter is not installed."""
    try:
        xlsxwriter: Any = import_module("xlsxwriter")
    except ImportError:
        message = "XlsxWriter is not installed, which writes workbooks: pip install 'headrace[report]'"
        raise ConfigError(message) from None
    # Texts stay texts: "=…" is no formula and "https:…" no link.
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(str(path), options) as book:
        book.set_properties({"created": _MADE.replace(tzinfo=None), "title": "Headrace sample"})
        yield book
