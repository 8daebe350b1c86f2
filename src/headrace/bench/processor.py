"""Processor time and memory of processes, by /proc; Linux only, nothing elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def cpu_seconds(pid: int | None) -> float | None:
    """Return the processor time of a process, of those below it that ended and of those that run."""
    if pid is None or not _PROC.joinpath(str(pid), "stat").exists():
        return None
    ticks = sum(_ticks(entry) for entry in (pid, *_descendants(pid)))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> dict[str, float]:
    """Return the memory of a process: resident (`rss`) and with shared pages by share (`pss`), in MiB."""
    lines = (_PROC / str(pid) / "smaps_rollup").read_text("utf-8").splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {"rss": sizes["Rss"] / 1024, "pss": sizes["Pss"] / 1024}


def tree_memory_mib(pid: int) -> dict[str, float]:
    """Return the memory of a process and of all below it."""
    total = {"rss": 0.0, "pss": 0.0}
    for member in (pid, *_descendants(pid)):
        try:
            sizes = memory_mib(member)
        except (FileNotFoundError, ProcessLookupError):
            continue
        total = {kind: total[kind] + sizes[kind] for kind in total}
    return total


def _descendants(pid: int) -> list[int]:
    children = _children(pid)
    return [*children, *(below for child in children for below in _descendants(child))]


def _ticks(pid: int) -> int:
    try:
        text = (_PROC / str(pid) / "stat").read_text("ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # The name in the second field may hold blanks and brackets, so fields are counted from its end.
    return sum(int(ticks) for ticks in text.rpartition(")")[2].split()[11:15])


def _children(pid: int) -> list[int]:
    tasks = _PROC / str(pid) / "task"
    try:
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text("ascii").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
