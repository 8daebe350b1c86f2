"""Standard output: JSON for machines, tables for people, colour only on terminals."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.plain import plain
from headrace.engine.queries import to_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: Tables that are not read on a terminal are not cut to its width.
WIDE = 1_000
STYLES = {
    **dict.fromkeys(("succeeded", "ok", "live", "closed", "active"), "green"),
    **dict.fromkeys(("failed", "fail"), "red"),
    **dict.fromkeys(("cancelled", "cancelling", "abandoned", "partial", "warn", "paused", "undeclared"), "yellow"),
    **dict.fromkeys(("running", "open", "sealed"), "cyan"),
}

json_option = click.option("--json", "as_json", is_flag=True, show_default=False, help="Write JSON.")


def print_json(value: Any) -> None:
    """Write a value as one line of JSON."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    click.echo(json.dumps(to_json(value), ensure_ascii=encoding != "utf8"))


def print_text(text: str) -> None:
    """Write a line for people; what a terminal would obey is shown instead."""
    click.echo(plain(text))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table for people. Numbers are set right, words of `STYLES` in their colour."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    cells = [list(row) for row in rows]
    for index, column in enumerate(columns):
        number = bool(cells) and all(isinstance(row[index], int | float) or row[index] == "" for row in cells)
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    for row in cells:
        table.add_row(*(cell(value) for value in row))
    console().print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Write names and values below each other; None is left out."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value is not None:
            table.add_row(name, cell(value))
    console().print(table)


def console() -> Console:
    """Return a console on standard output, as wide as what is written where that is no terminal."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            # Ended by `run_guarded`, as for every other command.
            raise BrokenPipeError

    return Piped(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else WIDE)


def cell(value: object) -> Text:
    """Return a value as a cell of a table."""
    from rich.text import Text

    text = plain(_shown(value))
    return Text(text, style=STYLES.get(text, ""))


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return value.astimezone().isoformat(sep=" ", timespec="seconds")
        case timedelta():
            return age(value)
        case float():
            return f"{value:.1f}"
        case _:
            return str(value)


def age(duration: timedelta | None) -> str:
    """Return a duration in its largest two units, as people say it.

    >>> age(timedelta(seconds=3725.4)), age(timedelta(seconds=2.5)), age(timedelta(seconds=0.02)), age(None)
    ('1h2m', '2.5s', '20ms', '')
    """
    if duration is None:
        return ""
    seconds = max(duration.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"
    sizes = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
    whole = int(seconds)
    first = next(index for index, (_, size) in enumerate(sizes) if whole >= size)
    parts = []
    for unit, size in sizes[first : first + 2]:
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def shorten(text: str, limit: int = 400) -> str:
    """Return at most `limit` characters, and how many more there are.

    >>> shorten("abcdef", 3)
    'abc… (3 characters more; --json shows all)'
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} characters more; --json shows all)"
