"""The count of calls: what was asked how often, in memory and, if wanted, in a file that survives every crash."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from headrace.testing.provider.asked import Asked
from headrace.testing.provider.faults import Call, Strike

_EXCERPT_LENGTH = 120


@dataclass(slots=True, kw_only=True)
class CallRecord:
    """One call as the server saw it."""

    #: Number among all calls, from 1.
    number: int
    #: Number among the calls of equal content, from 1.
    attempt: int
    #: The content's key: equal requests have equal keys.
    key: str
    #: Seconds of the monotonic clock when it arrived.
    received_at: float
    #: The fault that struck it, by name.
    fault: str | None
    #: `open`, then `answered` (the whole reply was sent), `failed` (an error was sent), `aborted` (no whole reply) or
    #: `refused` (429, by a quota).
    outcome: str = "open"


class CallLog:
    """All calls of one server. `path`: an append-only JSON-lines file, forced to disk line by line."""

    def __init__(self, path: Path | None = None) -> None:
        self.records: list[CallRecord] = []
        #: Text of each content, by key.
        self.contents: dict[str, str] = {}
        self._attempts: Counter[str] = Counter()
        #: What the script of faults counts: calls that no quota refused.
        self._admitted = 0
        self._admissions: Counter[str] = Counter()
        self._file: IO[str] | None = None if path is None else path.open("a", encoding="utf-8")

    def admit(self, request: Asked) -> Call:
        """Count a call that no quota refused, as the script of faults numbers it."""
        self._admitted += 1
        self._admissions[request.key] += 1
        return Call(self._admitted, self._admissions[request.key], request.key, request.text)

    def open(self, request: Asked, strike: Strike | None) -> CallRecord:
        """Record a call that arrived, before it is answered."""
        self._attempts[request.key] += 1
        self.contents.setdefault(request.key, request.text)
        record = CallRecord(
            number=len(self.records) + 1,
            attempt=self._attempts[request.key],
            key=request.key,
            received_at=time.monotonic(),
            fault=strike.kind.value if strike else None,
        )
        self.records.append(record)
        self._write({"event": "received", "call": record.number, "key": record.key, "fault": record.fault})
        return record

    def close(self, record: CallRecord, outcome: str) -> None:
        """Record how a call ended."""
        record.outcome = outcome
        self._write({"event": outcome, "call": record.number, "key": record.key})

    def count(self, containing: str = "") -> int:
        """Calls whose messages hold these words."""
        return sum(containing in self.contents[record.key] for record in self.records)

    def per_content(self, containing: str = "") -> list[dict[str, Any]]:
        """Calls and whole answers of each content, most often asked first."""
        calls, answered = Counter[str](), Counter[str]()
        for record in self.records:
            calls[record.key] += 1
            answered[record.key] += record.outcome == "answered"
        return [
            {"key": key, "calls": number, "answered": answered[key], "excerpt": self.contents[key][-_EXCERPT_LENGTH:]}
            for key, number in calls.most_common()
            if containing in self.contents[key]
        ]

    def outcomes(self) -> dict[str, int]:
        """Calls by outcome."""
        return dict(Counter(record.outcome for record in self.records))

    def answered_per_content(self) -> Counter[str]:
        """Whole answers by content, of those that have one."""
        return Counter(record.key for record in self.records if record.outcome == "answered")

    def clear(self) -> None:
        """Forget all calls; the file keeps them."""
        self.records.clear()
        self.contents.clear()
        self._attempts.clear()
        self._admissions.clear()
        self._admitted = 0

    def release(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps({**line, "at": time.time()}) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())


def read_log(path: Path) -> Counter[str]:
    """Calls per content key, from a log file. Also while the server runs, and after it was killed.

    >>> read_log(Path("calls.jsonl"))  # doctest: +SKIP
    Counter({'6f1c…': 2, '90aa…': 1})
    """
    counts: Counter[str] = Counter()
    # What follows the last line's end was being written when the server was killed.
    for line in path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines():
        entry = json.loads(line)
        counts[entry["key"]] += entry["event"] == "received"
    return counts
