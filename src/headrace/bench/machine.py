"""The machine: what it is, and how quiet it was."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

#: Rounds of the calibration loop; about 30 ms each.
_LOOP = 400_000
WATCHED_SECONDS = 0.3


def describe_machine() -> dict[str, str]:
    """Return processor, cores, memory and kernel."""
    return {
        "cpu": _cpu_model(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory_gib": f"{_memory_gib():.1f}",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


#: Begins the name of a package of Node's, which `make bench` installs into a folder of the environment.
NODE = "node:"


def installed(distribution: str) -> str | None:
    """Return the installed version of a distribution, or of a package of Node's (`node:NAME`), or None."""
    if distribution.startswith(NODE):
        return _installed_in_node(distribution.removeprefix(NODE))
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _installed_in_node(package: str) -> str | None:
    described = Path(sys.prefix, package, "node_modules", package, "package.json")
    if shutil.which("node") is None or not described.is_file():
        return None
    return str(json.loads(described.read_text("utf-8"))["version"])


@dataclass(frozen=True, slots=True)
class Quiet:
    """One look at the machine while the benchmark does nothing."""

    #: Cores that other programs used.
    busy_cores: float
    #: Share of the time the hypervisor gave to others.
    steal: float
    #: Milliseconds of a fixed piece of Python: grows when the processor is slowed down or shared.
    loop_ms: float
    load: float

    def to_json(self) -> dict[str, float]:
        """Return it as the report holds it."""
        return {
            "busy_cores": round(self.busy_cores, 3),
            "steal": round(self.steal, 4),
            "loop_ms": round(self.loop_ms, 2),
            "load": round(self.load, 2),
        }


def look(seconds: float = WATCHED_SECONDS) -> Quiet:
    """Watch the idle machine for some time, then time the calibration loop; blocks."""
    before = _ticks()
    threading.Event().wait(seconds)
    after = _ticks()
    passed = [new - old for new, old in zip(after, before, strict=True)]
    total = sum(passed) or 1
    idle, steal = sum(passed[3:5]), passed[7] if len(passed) > 7 else 0
    cores = os.cpu_count() or 1
    return Quiet(
        busy_cores=(total - idle) / total * cores,
        steal=steal / total,
        loop_ms=min(_time_loop() for _ in range(3)) * 1000,
        load=os.getloadavg()[0],
    )


def _time_loop() -> float:
    begun, total = time.perf_counter(), 0
    for number in range(_LOOP):
        total += number & 7
    return time.perf_counter() - begun


def _ticks() -> list[int]:
    """Return the kernel's counters: user, nice, system, idle, iowait, irq, softirq, steal."""
    try:
        first = Path("/proc/stat").read_text("ascii").splitlines()[0]
    except OSError:
        return [0] * 8
    return [int(field) for field in first.split()[1:9]]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory_gib() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError):
        return 0.0
