"""What the commands of flows write: tables and lines for people, JSON for machines, files."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from headrace import ConfigError
from headrace.nodes.registry import broken_entries

#: Tables that are not read on a terminal are not cut to its width.
_WIDE = 1_000

json_option = click.option("--json", "as_json", is_flag=True, show_default=False, help="Write JSON.")


class OutputError(ConfigError):
    """A file that was asked for cannot be written. Name another."""

    code = "output"


def tell(text: str = "", *, err: bool = False) -> None:
    """Write a line for people; what a terminal would obey is shown instead."""
    click.echo(plain(text), err=err)


def tell_json(value: Any) -> None:
    """Write a value as one line of JSON."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    click.echo(json.dumps(value, ensure_ascii=encoding != "utf8"))


def tell_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table for people; columns of numbers are set right, the last column is wrapped where it is long."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [["" if value is None else value for value in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, title in enumerate(columns):
        numbers = bool(cells) and all(isinstance(row[place], int | float) or row[place] == "" for row in cells)
        table.add_column(title, justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(plain(str(value))) for value in row))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE
    Console(highlight=False, markup=False, emoji=False, width=width).print(table)


def broken_types() -> list[dict[str, str]]:
    """Return the entry points of packages whose node types cannot be used, for machines."""
    return [{"entry": one.name, "package": one.package, "why": one.why} for one in broken_entries()]


def tell_broken() -> None:
    """Write the entry points of packages whose node types cannot be used."""
    for one in broken_entries():
        tell(f"note: the node types of {one.name}, of the package {one.package}, cannot be used: {one.why}")


def plain(text: str) -> str:
    """Return text without anything a terminal would obey.

    >>> plain("red: \\x1b[31m!")
    'red: \\\\x1b[31m!'
    """
    return "".join(sign if sign.isprintable() or sign in "\n\t" else ascii(sign)[1:-1] for sign in text)


def shorten(text: str, most: int = 400) -> str:
    """Return a text of at most `most` signs, and how many more there are.

    >>> shorten("abcdef", 3)
    'abc… (3 more)'
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more)"


def write_text(path: Path, text: str) -> None:
    """Write a file of UTF-8. Raises OutputError."""
    try:
        # Lone surrogates are texts of JSON and no UTF-8.
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}); name another file") from None


def write_json(path: Path, value: Any) -> None:
    """Write a value as a file of JSON that people can read. Raises OutputError."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Return JSON that people can read, with a line feed at its end; it holds any text there is.

    >>> json_text({"name": "\\ud800"})
    '{\\n  "name": "\\\\ud800"\\n}\\n'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2)
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    return text + "\n"
