"""The order of measurements: round after round, and in each round every contender in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product

from headrace.bench.catalogue import CONTENDERS, WORKLOADS, Entry, Kind
from headrace.model.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much each workload does."""

    drain: int = 20_000
    deep: int = 50_000
    bulk: int = 50_000
    gated: int = 10_000
    scatter: int = 1_000
    waiting: int = 10_000
    kill: int = 2_000
    #: Seconds of enqueueing one by one, and as many by 64 callers.
    enqueue_seconds: float = 0.7
    latency_seconds: float = 2.5

    def jobs(self, workload: str) -> int:
        """Return the jobs of a workload."""
        jobs = {
            "statements": self.drain,
            "drain": self.drain,
            "drain-deep": self.deep,
            "statements-deep": self.deep,
            "enqueue": self.bulk,
            "gated": self.gated,
            "scatter": self.scatter,
            "memory": self.waiting,
            "kill": self.kill,
            "kill-apart": self.kill,
        }
        return jobs.get(workload, 0)

    def seconds(self, workload: str) -> float:
        """Return how long a workload goes on, where time and not jobs bounds it."""
        return {"enqueue": self.enqueue_seconds, "latency": self.latency_seconds}.get(workload, 0.0)

    def with_drain(self, jobs: int) -> Sizes:
        """Return them with another drain, and the deep one in its proportion."""
        return replace(self, drain=jobs, deep=jobs * 5 // 2)


QUICK = Sizes(
    drain=5_000, deep=12_500, bulk=10_000, gated=2_000, scatter=300, waiting=2_000, kill=500, enqueue_seconds=0.3,
    latency_seconds=1.0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement: who, what, in which round."""

    round: int
    workload: str
    contender: str
    jobs: int
    seconds: float


def interleave(workloads: Sequence[str], contenders: Mapping[str, Entry], sizes: Sizes, rounds: int) -> Iterator[Turn]:
    """Yield A B C, A B C, A B C for one workload after another, so that a drift of the machine meets all alike.

    Of one contender `drain` and `drain-deep` follow one another: they are compared too.
    """
    for _, family in groupby(workloads, key=lambda workload: workload.partition("-")[0]):
        kin = list(family)
        for number, (name, entry) in product(range(1, rounds + 1), contenders.items()):
            for workload in kin:
                if measures(entry, workload):
                    yield Turn(number, workload, name, _jobs(entry, workload, sizes), sizes.seconds(workload))


def measures(entry: Entry, workload: str) -> bool:
    """Whether a contender takes part in a workload."""
    return workload in (entry.workloads or entry.loops)


def _jobs(entry: Entry, workload: str, sizes: Sizes) -> int:
    scaled = workload in ("drain", "drain-deep", "enqueue")
    return int(sizes.jobs(workload) * (entry.share if scaled else 1))


def chosen_contenders(peers: str) -> dict[str, Entry]:
    """Return raw loops, Headrace and the peers of `all`, `none` or `NAME,…`. Raises InvalidInputError."""
    known = [name for name, entry in CONTENDERS.items() if entry.kind is Kind.PEER]
    fixed: dict[str, list[str]] = {"all": known, "none": []}
    wanted = fixed[peers] if peers in fixed else names(peers, known, field="--peers")
    return {name: entry for name, entry in CONTENDERS.items() if entry.kind is not Kind.PEER or name in wanted}


def chosen_workloads(only: str | None, *, quick: bool) -> tuple[str, ...]:
    """Return the workloads of `NAME,…`, or all (that are quick) without. Raises InvalidInputError."""
    if only is not None:
        return tuple(names(only, list(WORKLOADS), field="--only"))
    return tuple(name for name, workload in WORKLOADS.items() if not (quick and workload.slow))


def names(text: str, known: Sequence[str], *, field: str) -> list[str]:
    """Return the names of a list with commas. Raises InvalidInputError for one that is not known.

    >>> names("drain, enqueue", ["drain", "enqueue", "latency"], field="--only")
    ['drain', 'enqueue']
    """
    found = [name.strip() for name in text.split(",") if name.strip()]
    for name in found:
        if name not in known:
            raise InvalidInputError(field, f"must name some of {', '.join(known)}", name)
    if not found:
        raise InvalidInputError(field, f"must name some of {', '.join(known)}", text)
    return list(dict.fromkeys(found))
