"""The log of an attempt: the last lines that its handler wrote, bounded, as they are kept beside how it ended."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

#: What `[worker] keep_log_lines` may be at most.
MOST_LINES = 1_000
#: Characters of a line; what is longer is cut.
MAX_LINE = 1_000
#: Bytes of all lines of an attempt as they are stored, which counts instants and levels too.
MAX_BYTES = 16 * 1024
#: Attempts of a job whose lines are kept: one that snoozes for ever would keep them without end.
MAX_ATTEMPTS = 20
CUT = "…"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: when it was written (aware, UTC, by the clock of the process), its level such as `info`, its text."""

    at: datetime
    level: str
    message: str


@dataclass(frozen=True, slots=True)
class AttemptLog:
    """The lines that were kept of an attempt, oldest first; `dropped` lines before them were not."""

    attempt: int
    lines: tuple[LogLine, ...]
    dropped: int = 0


def encode_line(line: LogLine) -> str:
    """Return a line as JSON text, its message cut to `MAX_LINE` characters."""
    message = line.message if len(line.message) <= MAX_LINE else line.message[: MAX_LINE - 1] + CUT
    return json.dumps([line.at.isoformat(), line.level, message], ensure_ascii=False)


def encode_log(lines: Iterable[str], dropped: int) -> str:
    """Return lines, each as `encode_line` made it, as the one JSON text that is stored."""
    return f'{{"dropped":{dropped},"lines":[{",".join(lines)}]}}'


def decode_log(attempt: int, text: str) -> AttemptLog:
    """Return the inverse of `encode_log`.

    >>> decode_log(2, encode_log([], 3))
    AttemptLog(attempt=2, lines=(), dropped=3)
    """
    document = json.loads(text)
    lines = tuple(LogLine(datetime.fromisoformat(at), level, message) for at, level, message in document["lines"])
    return AttemptLog(attempt, lines, document["dropped"])
