"""The log of a review: one line for each change of a decision, never altered, only added to.

It is what counts: the current decisions are read from it, and all other files of a review can be made from it again. So
that a sheet is read back whole or not at all, new lines are added to a copy that takes the place of the log at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from headrace.apps.papers.output.lines import Place, ValueLine
from headrace.apps.papers.output.model import iso_utc
from headrace.apps.papers.review.decisions import OPEN, Answer, Decision
from headrace.apps.papers.review.errors import ReviewError
from headrace.apps.papers.review.lock import locked
from headrace.apps.sheets.files import written_whole

LOG = "review-log.jsonl"
#: In place of a sheet: decided over the service, or on a page of it.
SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the log: who decided what of which value, and what stood there before."""

    at: datetime
    who: str
    place: Place
    document: str
    #: Of the value that was looked at.
    digest: str
    before: Decision
    after: Decision
    #: The file that was read back, or `SERVICE`.
    sheet: str

    @property
    def what(self) -> str:
        """The change in one word."""
        if self.after.answer is not Answer.OPEN:
            return self.after.answer.value
        return "commented" if self.before.answer is Answer.OPEN else "reopened"

    def to_json(self, original: Mapping[str, Any]) -> dict[str, Any]:
        """A JSON-able mapping, with what was extracted."""
        return {
            "at": iso_utc(self.at),
            "who": self.who,
            "what": self.what,
            **asdict(self.place),
            "document": self.document,
            "digest": self.digest,
            "extracted": dict(original),
            "from": self.before.to_json(),
            "to": self.after.to_json(),
            "sheet": self.sheet,
        }


@dataclass(frozen=True, slots=True)
class _Entry:
    place: Place
    digest: str
    decision: Decision

    @classmethod
    def read(cls, text: str) -> Self:
        data = json.loads(text)
        place = Place(data["document_id"], data["group"], data["row"], data["field"])
        return cls(place, data["digest"], Decision.from_json(data["to"]))


class ReviewLog:
    """The log in the folder of a run's results."""

    def __init__(self, out: Path) -> None:
        self._path = out / LOG

    def decisions(self, lines: Sequence[ValueLine]) -> dict[Place, Decision]:
        """What is decided of each value today; a value that changed since is open again. Raises ReviewError."""
        latest = self._latest()
        return {line.place: latest.get((line.place, line.digest), OPEN) for line in lines}

    def add(self, changes: Sequence[dict[str, Any]]) -> None:
        """Add lines, all of them or none."""
        self._append("".join(json.dumps(change, ensure_ascii=True) + "\n" for change in changes).encode())

    def take_over(self, other: Path) -> None:
        """Add the lines of the log in another folder, if there is one, which then has none any more."""
        waiting = ReviewLog(other)
        if other.resolve() == self._path.parent.resolve() or not waiting.exists():
            return
        with locked(other), locked(self._path.parent):
            self._append(waiting._content())
            waiting._path.unlink(missing_ok=True)

    def exists(self) -> bool:
        """Whether anything was ever decided."""
        return self._path.exists()

    def _append(self, new: bytes) -> None:
        before = self._content()
        with written_whole(self._path) as temporary:
            temporary.write_bytes(before + new)

    def _content(self) -> bytes:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""

    def _latest(self) -> Mapping[tuple[Place, str], Decision]:
        try:
            stat = self._path.stat()
        except FileNotFoundError:
            return {}
        return _latest_of(self._path, (stat.st_ino, stat.st_size, stat.st_mtime_ns))


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a log: its first bytes, told by their digest, and what these say last of each value."""

    size: int = 0
    digest: bytes = sha256().digest()
    lines: int = 0
    latest: Mapping[tuple[Place, str], Decision] = field(default_factory=dict)

    def begins(self, content: bytes) -> bool:
        """Whether a log begins with what is known."""
        return sha256(memoryview(content)[: self.size]).digest() == self.digest


#: Of the logs that were read last: long ones are read on each look at a page, and only ever grow.
_KNOWN: dict[Path, _Known] = {}
_MOST_KNOWN = 4


@lru_cache(maxsize=_MOST_KNOWN)
def _latest_of(path: Path, _state: tuple[int, ...]) -> Mapping[tuple[Place, str], Decision]:
    """What a log says last of each value; whoever changes a log replaces its file, so that its state is another."""
    content, known = path.read_bytes(), _KNOWN.get(path, _Known())
    if not known.begins(content):
        known = _Known()
    latest, lines = dict(known.latest), content[known.size :].splitlines()
    for number, line in enumerate(lines, start=known.lines + 1):
        try:
            entry = _Entry.read(line.decode())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ReviewError(
                f"{path}, line {number}: must be as it was written, for it holds what people decided; "
                "restore the file from a copy"
            ) from None
        latest[entry.place, entry.digest] = entry.decision
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[path] = _Known(len(content), sha256(content).digest(), known.lines + len(lines), latest)
    return latest
