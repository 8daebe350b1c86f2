"""What handlers note for the benchmark: lines of a file named by BENCH_NOTES, each with the time it was written."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "BENCH_NOTES"


@dataclass(frozen=True, slots=True)
class Note:
    """One line: when it was written, in seconds of the system's clock, and its text."""

    at: float
    text: str


def note(text: str) -> None:
    """Append a line; whole even when several processes write and one is killed."""
    descriptor = _descriptor()
    os.write(descriptor, f"{time.time():.6f} {text}\n".encode())


def note_delay(sent: float) -> None:
    """Append the seconds since `sent`, a time of the system's clock."""
    note(f"{time.time() - sent:.6f}")


def read_notes(path: Path) -> list[Note]:
    """Return the lines noted so far."""
    if not path.exists():
        return []
    lines = [line.partition(" ") for line in path.read_text("utf-8").splitlines()]
    return [Note(float(at), text) for at, _, text in lines]


_descriptors: dict[str, int] = {}


def _descriptor() -> int:
    path = os.environ[VARIABLE]
    if path not in _descriptors:
        _descriptors[path] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return _descriptors[path]
