"""Contenders and workloads by name, as data: nothing of them is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a contender is."""

    RAW = "raw"
    OURS = "ours"
    PEER = "peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One contender."""

    kind: Kind
    #: What it is and how it is configured, for the report.
    about: str
    #: MODULE:class of the adapter; empty for raw loops.
    target: str = ""
    #: MODULE:function by workload, for what is not an adapter.
    loops: Mapping[str, str] = field(default_factory=dict)
    #: What an adapter takes part in.
    workloads: tuple[str, ...] = ()
    #: The folder whose `headrace` its worker imports; empty: the one this process imports.
    source: str = ""
    #: Distributions that must be installed.
    needs: tuple[str, ...] = ()
    redis: bool = False
    #: Jobs of a drain, as a share of the usual number: for those that need minutes otherwise.
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One kind of measurement."""

    about: str
    #: MODULE:function(contender, order)
    target: str
    #: The figure that is compared, and whether more is better.
    figure: str
    unit: str
    more_is_better: bool = True


CONTENDERS: Mapping[str, Entry] = {
    "raw-delete": Entry(
        kind=Kind.RAW,
        about="asyncpg, one connection, batches of 100, claim and delete in two transactions, no fence, no history",
        loops={"drain": "headrace.bench.raw:drain_delete", "drain-deep": "headrace.bench.raw:drain_delete"},
    ),
    "raw-fenced": Entry(
        kind=Kind.RAW,
        about="the same with a fence on each row and at each delete",
        loops={"drain": "headrace.bench.raw:drain_fenced"},
    ),
    "raw-ours": Entry(
        kind=Kind.RAW,
        about="the shipped claim and finish statements on the shipped schema: fences, history and results",
        loops={"drain": "headrace.bench.raw:drain_ours", "drain-deep": "headrace.bench.raw:drain_ours"},
    ),
    "headrace": Entry(
        kind=Kind.OURS,
        about="one `headrace worker` process, default settings, plain jobs",
        target="headrace.bench.contenders.ours:Headrace",
        workloads=("drain", "drain-deep"),
    ),
    "headrace-batch": Entry(
        kind=Kind.OURS,
        about="the same, all jobs items of one batch",
        target="headrace.bench.contenders.ours:HeadraceBatch",
        workloads=("drain",),
    ),
}

WORKLOADS: Mapping[str, Workload] = {
    "drain": Workload(
        about="waiting jobs recorded done", target="headrace.bench.drain:drain", figure="per_second", unit="jobs/s"
    ),
    "drain-deep": Workload(
        about="the same, 2.5 times as many waiting", target="headrace.bench.drain:drain", figure="per_second",
        unit="jobs/s",
    ),
}  # fmt: skip
