"""Tries of nodes at workflow level that failed or are put off: kept as steps of the run's job, for its next attempt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headrace.model.job import Completion, JobError

#: Names of these steps begin with this: no step of a handler's does, for it begins with a path.
_TRY = "try "


@dataclass(slots=True)
class Tries:
    """What is known of nodes by path."""

    #: Tries that failed.
    failures: Counter[str] = field(default_factory=Counter)
    #: Until when the next one is put off, and why the last one failed.
    until: dict[str, datetime] = field(default_factory=dict)
    errors: dict[str, JobError] = field(default_factory=dict)
    #: The number of the last note.
    _notes: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, steps: Mapping[str, str]) -> Tries:
        """Read what was noted in the steps of a run's job: of each node the last note counts."""
        tries = cls()
        for name, value in steps.items():
            if not name.startswith(_TRY):
                continue
            path, _, number = name.removeprefix(_TRY).rpartition(" ")
            if int(number) > tries._notes[path]:
                tries._notes[path] = int(number)
                tries._read(path, json.loads(value))
        return tries

    def _read(self, path: str, kept: Mapping[str, Any]) -> None:
        self.failures[path], self.until[path] = kept["failures"], datetime.fromisoformat(kept["until"])
        self.errors.pop(path, None)
        if "error" in kept:
            self.errors[path] = JobError(**kept["error"])

    def note(self, path: str, completion: Completion, now: datetime) -> tuple[str, str]:
        """Count a try whose failures are counted already as put off; return the step that keeps it."""
        self._notes[path] += 1
        kept: dict[str, Any] = {"failures": self.failures[path], "until": (now + completion.delay).isoformat()}
        if completion.error is not None:
            kept["error"] = {"kind": completion.error.kind, "message": completion.error.message}
        self._read(path, kept)
        return f"{_TRY}{path} {self._notes[path]}", json.dumps(kept)
