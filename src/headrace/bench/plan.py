"""The order of measurements: round after round, and in each round every contender in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.bench.catalogue import CONTENDERS, Entry, Kind


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much each workload does."""

    drain: int = 20_000
    deep: int = 50_000

    def of(self, workload: str) -> int:
        """Return the jobs of a workload."""
        return {"drain": self.drain, "drain-deep": self.deep}.get(workload, 0)


QUICK = Sizes(drain=5_000, deep=12_500)


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement: who, what, in which round."""

    round: int
    workload: str
    contender: str
    jobs: int


def interleave(workloads: Sequence[str], contenders: Mapping[str, Entry], sizes: Sizes, rounds: int) -> Iterator[Turn]:
    """Yield A B C, A B C, A B C for one workload after another, so that a drift of the machine meets all alike."""
    for workload in workloads:
        for number in range(1, rounds + 1):
            for name, entry in contenders.items():
                if measures(entry, workload):
                    yield Turn(number, workload, name, _jobs(entry, sizes.of(workload)))


def measures(entry: Entry, workload: str) -> bool:
    """Whether a contender takes part in a workload."""
    return workload in (entry.workloads or entry.loops)


def _jobs(entry: Entry, jobs: int) -> int:
    return max(int(jobs * entry.share), 1) if jobs else 0


def chosen(peers: Sequence[str] | None) -> dict[str, Entry]:
    """Return raw loops, Headrace and the named peers (None: all of them)."""
    return {
        name: entry
        for name, entry in CONTENDERS.items()
        if entry.kind is not Kind.PEER or peers is None or name in peers
    }
