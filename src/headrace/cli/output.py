"""Standard output: JSON for machines, tables for people, colour only on terminals."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.plain import plain
from headrace.cli.tables import GAP, Fitted, Give, cell_width, fit, note_of, packed
from headrace.engine.queries import to_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

#: Tables that are not read on a terminal are not cut to its width.
WIDE = 1_000
STYLES = {
    **dict.fromkeys(("succeeded", "success", "ok", "live", "closed", "active"), "green"),
    **dict.fromkeys(("failed", "fail"), "red"),
    **dict.fromkeys(
        ("cancelled", "cancelling", "abandoned", "partial", "warn", "paused", "undeclared", "inactive"), "yellow"
    ),
    **dict.fromkeys(("running", "parked", "open", "sealed"), "cyan"),
}

_KEEP_ALL = Give()

json_option = click.option("--json", "as_json", is_flag=True, show_default=False, help="Write JSON.")


def print_json(value: Any) -> None:
    """Write a value as one line of JSON."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    click.echo(json.dumps(to_json(value), ensure_ascii=encoding != "utf8"))


def print_text(text: str) -> None:
    """Write a line for people; what a terminal would obey is shown instead."""
    click.echo(plain(text))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], give: Give = _KEEP_ALL) -> None:
    """Write a table for people. Numbers are set right, words of `STYLES` in their colour.

    On a terminal columns give way as `give` says, and where that is not enough each row is a block of its fields.
    """
    values = [list(row) for row in rows]
    cells = [[cell(value) for value in row] for row in values]
    fitted = fit(columns, [[text.plain for text in row] for row in cells], width=terminal_width(), give=give)
    out = console()
    if fitted is None:
        _print_blocks(out, columns, cells, give)
        return
    out.width = max(out.width, fitted.width)
    out.print(_table(columns, cells, fitted, numbers=_numbers(values)))
    if fitted.left_out:
        for line in packed(note_of(fitted.left_out), out.width):
            out.print(line, style="dim")


def _numbers(values: Sequence[Sequence[object]]) -> set[int]:
    """Return the places of columns that hold numbers only."""
    return {
        place for place, column in enumerate(zip(*values, strict=True))
        if all(isinstance(value, int | float) or value == "" for value in column)
    }  # fmt: skip


def _table(columns: Sequence[str], cells: Sequence[Sequence[Text]], fitted: Fitted, *, numbers: set[int]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, width in fitted.widths.items():
        table.add_column(
            columns[place], justify="right" if place in numbers else "left", overflow="fold", width=width
        )  # fmt: skip
    for row in cells:
        table.add_row(*(row[place] for place in fitted.widths))
    return table


def _print_blocks(out: Console, columns: Sequence[str], cells: Sequence[Sequence[Text]], give: Give) -> None:
    for number, row in enumerate(cells):
        if number:
            out.print()
        _print_block(out, dict(zip(columns, row, strict=True)), give, style="bold")


def _print_block(out: Console, fields: Mapping[str, Text], give: Give, *, style: str) -> None:
    """Write a line for each field that has a value; a value that has no room beside its title stands below it."""
    from rich.table import Table

    indent = max(map(cell_width, fields)) + GAP
    for title, text in ((title, text) for title, text in fields.items() if text.plain):
        if give.least(title, [text.plain]) > out.width - indent:
            out.print(title, style=style)
            out.print(text, soft_wrap=True)
        else:
            line = Table.grid()
            line.add_column(width=indent, no_wrap=True, style=style)
            line.add_column(overflow="fold")
            line.add_row(title, text)
            out.print(line)


def print_facts(facts: Mapping[str, object]) -> None:
    """Write names and values below each other; None is left out."""
    fields = {name: cell(value) for name, value in facts.items() if value is not None}
    _print_block(console(), fields, Give(prose=tuple(fields)), style="dim")


def console() -> Console:
    """Return a console on standard output, as wide as what is written where that is no terminal."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            # Ended by `run_guarded`, as for every other command.
            raise BrokenPipeError

    return Piped(highlight=False, markup=False, emoji=False, width=terminal_width() or WIDE)


def terminal_width() -> int | None:
    """Return how wide the terminal is that standard output goes to; None where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def cell(value: object) -> Text:
    """Return a value as a cell of a table."""
    from rich.text import Text

    text = plain(_shown(value)).expandtabs(4)
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


def one_line(text: str, limit: int = 80) -> str:
    """Return a text as one line of at most `limit` characters.

    >>> one_line("no such\\n  page"), one_line("abcdef", 3)
    ('no such page', 'ab…')
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def shorten(text: str, limit: int = 400) -> str:
    """Return at most `limit` characters, and how many more there are.

    >>> shorten("abcdef", 3)
    'abc… (3 characters more; --json shows all)'
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} characters more; --json shows all)"
