"""Loaded by every Python process that has this folder on PYTHONPATH: tasks are held or fail, as REPORT_FAULTS says.

A fault is TASK:WHEN[:NUMBER]; several stand apart by commas. WHEN is `before`, `after` (it has done everything, and its
result is not stored yet) or `fail`. From the call with the number on, 1 if none is given, each call in this process is
held until the process is killed, or fails. A call that is held leaves a mark TASK.* in REPORT_MARKS.

REPORT_SOFT are the seconds that an answer of the model may take.

Tasks that take a processor run in children of a worker: those load this file, too.
"""

from __future__ import annotations

import asyncio
import functools
import os
import tempfile
from typing import Any

_FAULTS = {
    name: (when, int(number[0]) if number else 1)
    for name, when, *number in (fault.split(":") for fault in os.environ.get("REPORT_FAULTS", "").split(",") if fault)
}


async def _hold(name: str) -> None:
    tempfile.mkstemp(prefix=f"{name}.", dir=os.environ["REPORT_MARKS"])
    await asyncio.Event().wait()


def _spoilt(name: str, function: Any) -> Any:
    when, first = _FAULTS[name]
    calls = 0

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        now = calls >= first
        if now and when == "fail":
            raise RuntimeError(f"{name} was told to fail")
        if now and when == "before":
            await _hold(name)
        result = await function(*args, **kwargs)
        if now:
            await _hold(name)
        return result

    return call


def _begin() -> None:
    from headrace.engine.registry import TaskDef

    finish = TaskDef.__post_init__

    def finish_and_spoil(self: TaskDef) -> None:
        finish(self)
        if self.name in _FAULTS:
            object.__setattr__(self, "function", _spoilt(self.name, self.function))

    TaskDef.__post_init__ = finish_and_spoil  # type: ignore[method-assign]


def _hurry(seconds: float) -> None:
    from headrace.apps.report import opening

    opening.SOFT = seconds


if _FAULTS:
    _begin()
if "REPORT_SOFT" in os.environ:
    _hurry(float(os.environ["REPORT_SOFT"]))
