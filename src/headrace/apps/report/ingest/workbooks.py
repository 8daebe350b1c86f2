"""Sheets of workbooks (xlsx, xls, ods), read by a process that ends: see `sheet_child`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import IO, Any

from headrace.apps.report.ingest import limits, sheet_child
from headrace.apps.report.ingest.cells import Broken, Cell, Grid, Rows
from headrace.apps.report.ingest.libraries import library_folder
from headrace.apps.report.ingest.refusing import no_cases, short, unreadable, unsafe

#: By its path and isolated: it imports a library alone, and starts in a twentieth of a second.
_CHILD = sheet_child.__file__
_ANEW = "Save it anew as XLSX"


def read_workbook(path: Path, *, kind: str, unpacked: int, sheets: Sequence[str]) -> list[Grid]:
    """Return the sheets: those that are named, else all. Rows of hidden ones are read only where they are named.

    Raises UnreadableFileError, UnsafeFileError (a password), NoCasesError (a sheet that is not there).
    """
    how = {
        **{"path": str(path.resolve()), "kind": kind, "sheets": list(sheets)},
        "library": library_folder("python_calamine", "python-calamine"),
        **{"memory": limits.child_memory(unpacked), "seconds": limits.child_seconds(unpacked)},
        **{"max_rows": limits.MAX_ROWS, "max_columns": limits.MAX_COLUMNS},
        **{"max_cells": limits.MAX_CELLS, "max_chars": limits.MAX_CHARS, "max_merges": limits.MAX_MERGES},
    }
    with _answers(how) as lines:
        return _grids(path, _checked(path, lines), sheets)


def check_names(path: Path, wanted: Sequence[str], there: Sequence[str]) -> None:
    """Raise NoCasesError for a sheet that is not there."""
    unknown = [name for name in wanted if name not in there]
    if unknown:
        named = ", ".join(repr(short(name)) for name in there[:50])
        raise no_cases(path, f"there is no sheet {short(unknown[0])!r}", f"the sheets {named}", "Name one of these")


class _Watch:
    """Ends a process that lets its reader wait too long; the time that the reader takes for itself is none of its."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        #: None: nobody waits.
        self._since: float | None = None
        self._ended = Event()
        Thread(target=self._look, args=(limits.TIMEOUT,), daemon=True).start()

    def lines(self, out: IO[bytes]) -> Iterator[bytes]:
        """Yield the lines that the process writes."""
        while True:
            self._since = monotonic()
            line = out.readline()
            self._since = None
            if not line:
                return
            yield line

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _look(self, most: float) -> None:
        while not self._ended.wait(min(1.0, most / 4)):
            since = self._since
            if since is not None and monotonic() - since > most:
                self._child.kill()


@contextmanager
def _answers(how: dict[str, Any]) -> Iterator[Iterator[Any]]:
    """Give what a process answers, line by line; it has ended when the block has."""
    command = [sys.executable, "-I", _CHILD]
    with subprocess.Popen(  # noqa: S603 (our own file, by its path)
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdin and child.stdout
        watch = _Watch(child)
        try:
            with suppress(BrokenPipeError):
                child.stdin.write(json.dumps(how).encode() + b"\n")
                child.stdin.close()
            yield _parsed(watch.lines(child.stdout))
        finally:
            watch.end()
            child.kill()


def _parsed(lines: Iterator[bytes]) -> Iterator[Any]:
    for line in lines:
        # A process that was ended may have written half of a line.
        with suppress(ValueError):
            yield json.loads(line)


def _checked(path: Path, lines: Iterator[Any]) -> Iterator[Any]:
    """Yield the lines up to the end. Raises what an error among them says, and where the end is missing."""
    for line in lines:
        if isinstance(line, dict) and "error" in line:
            raise _error(path, line)
        if isinstance(line, dict) and line.get("end"):
            return
        yield line
    raise unreadable(path, "reading must not take much more memory or time than its size", "damage or more", _ANEW)


def _error(path: Path, line: dict[str, Any]) -> Exception:
    if line["error"] == "password":
        return unsafe(path, "it must not be encrypted", "a workbook with a password", "Save it without a password")
    if line["error"] == "damaged":
        return unreadable(path, "the workbook must be whole", short(line["why"]), _ANEW)
    if line["error"] == "memory":
        return unreadable(path, "reading must not take much more memory than its size", "more", _ANEW)
    if line["error"] == "merges":
        rule = f"a sheet must have at most {limits.MAX_MERGES:,} ranges of merged cells"
        return unreadable(path, rule, f"{line['count']:,} in {short(line['sheet'])!r}", "Split it")
    rule = (
        f"a file must have at most {limits.MAX_ROWS:,} rows and {limits.MAX_COLUMNS:,} columns in a sheet, and "
        f"{limits.MAX_CELLS:,} cells and {limits.MAX_CHARS:,} characters in all"
    )
    size = f"{line['height']:,} rows and {line['width']:,} columns" if "height" in line else "more characters"
    return unreadable(path, rule, f"{size} up to sheet {short(line['sheet'])!r}", "Split it")


def _grids(path: Path, lines: Iterator[Any], wanted: Sequence[str]) -> list[Grid]:
    listed: dict[str, bool] = {}
    grids: dict[str, Grid] = {}
    rows: Rows = []
    broken: dict[int, list[tuple[int, str]]] = {}
    for line in lines:
        if isinstance(line, list):
            rows.append(_row(line, broken.get(len(rows), [])))
        elif "sheets" in line:
            listed = line["sheets"]
            check_names(path, wanted, list(listed))
        else:
            rows = []
            broken = {}
            for row, column, what in line["broken"]:
                broken.setdefault(row, []).append((column, what))
            merges = line["merges"]
            told = None if merges is None else tuple((r0, c0, r1, c1) for r0, c0, r1, c1 in merges)
            grids[line["sheet"]] = Grid(line["sheet"], rows, told, listed[line["sheet"]])
    # In the order of the workbook, with the ones that were not read: they are told of as well.
    return [grids.get(name) or Grid(name, [], hidden=hidden) for name, hidden in listed.items()]


def _row(cells: list[Any], broken: list[tuple[int, str]]) -> list[Cell]:
    row = [_cell(cell) for cell in cells]
    for column, what in broken:
        if column < len(row):
            row[column] = Broken(what)
    return row


def _cell(value: Any) -> Cell:
    if isinstance(value, dict):
        return timedelta(seconds=value["seconds"]) if "seconds" in value else _date(value["date"])
    cell: Cell = value
    return cell


def _date(text: str) -> Cell:
    return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
