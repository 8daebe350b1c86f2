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
    #: Distributions that must be installed.
    needs: tuple[str, ...] = ()
    redis: bool = False
    #: Jobs of a drain and of a bulk enqueue, as a share of the usual number: for those that need minutes otherwise.
    share: float = 1.0
    #: The folder whose `headrace` its worker imports; empty: the one this process imports.
    source: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a workload, as the table shows it."""

    key: str
    name: str
    unit: str
    more_is_better: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One kind of measurement."""

    about: str
    #: MODULE:function(contender, order); empty where raw loops alone take part.
    target: str
    #: The first is the one compared by default.
    figures: tuple[Figure, ...]
    #: Left out by --quick.
    slow: bool = False


_HERE = "headrace.bench"
_RAW = f"{_HERE}.raw"
_CONTENDERS = f"{_HERE}.contenders"
_PEER = ("drain", "enqueue", "latency", "memory")

CONTENDERS: Mapping[str, Entry] = {
    "raw-plain": Entry(
        kind=Kind.RAW,
        about="asyncpg, one connection, batches of 100, claim and delete in two transactions, no fence, no history",
        loops={"drain": f"{_RAW}:drain_plain"},
    ),
    "raw-delete": Entry(
        kind=Kind.RAW,
        about="the same with a fence on each row and at each delete: what history and results are measured against",
        loops={"drain": f"{_RAW}:drain_delete", "drain-deep": f"{_RAW}:drain_delete"},
    ),
    "raw-ours": Entry(
        kind=Kind.RAW,
        about="the shipped claim and finish statements on the shipped schema, batches of 100: fences, history, results",
        loops={
            "drain": f"{_RAW}:drain_ours",
            "drain-deep": f"{_RAW}:drain_ours",
            "statements": f"{_RAW}:statements",
            "statements-deep": f"{_RAW}:statements",
        },
    ),
    "raw-insert": Entry(
        kind=Kind.RAW,
        about="asyncpg, plain table: unnest of 1,000 rows a statement, and one awaited row after another",
        loops={"enqueue": f"{_RAW}:insert"},
    ),
    "headrace": Entry(
        kind=Kind.OURS,
        about="one `headrace worker` process, default settings (10 slots); bulk by `app.submit`, 10,000 a call",
        target=f"{_CONTENDERS}.ours:Headrace",
        workloads=("drain", "enqueue", "latency", "scatter", "memory", "kill", "kill-apart", "gated"),
    ),
    "headrace-400": Entry(
        kind=Kind.OURS,
        about="the same with `--concurrency 400`",
        target=f"{_CONTENDERS}.ours:HeadraceWide",
        workloads=("drain", "drain-deep"),
    ),
    "headrace-batch": Entry(
        kind=Kind.OURS,
        about="the same with `--concurrency 400`, all jobs items of one batch",
        target=f"{_CONTENDERS}.ours:HeadraceBatch",
        workloads=("drain",),
    ),
    "headrace-redis": Entry(
        kind=Kind.OURS,
        about="one `headrace worker` process on the Redis store, default settings (10 slots); bulk by `app.submit`",
        target=f"{_CONTENDERS}.ours:HeadraceRedis",
        needs=("hiredis",),
        redis=True,
        workloads=("drain", "enqueue", "latency", "scatter", "kill", "gated"),
    ),
    "headrace-redis-100": Entry(
        kind=Kind.OURS,
        about="the same with `--concurrency 100`, as many as BullMQ, taskiq and SAQ have",
        target=f"{_CONTENDERS}.ours:HeadraceRedisWide",
        needs=("hiredis",),
        redis=True,
        workloads=("drain", "drain-deep"),
    ),
    "pgqueuer": Entry(
        kind=Kind.PEER,
        about="batches of 100, no cap on concurrent tasks, one asyncpg connection, uvloop as its command line uses",
        target=f"{_CONTENDERS}.pgqueuer:PgQueuer",
        needs=("pgqueuer",),
        workloads=("drain", "drain-deep", "enqueue", "latency", "memory", "kill"),
    ),
    "procrastinate": Entry(
        kind=Kind.PEER,
        about="concurrency 10, a pool of 10 psycopg connections, LISTEN/NOTIFY",
        target=f"{_CONTENDERS}.procrastinate:Procrastinate",
        needs=("procrastinate",),
        workloads=_PEER,
        share=0.05,
    ),
    "dbos": Entry(
        kind=Kind.PEER,
        about="one queue without limits, polled every 0.1 s, async workflows; bulk: many enqueues in one transaction",
        target=f"{_CONTENDERS}.dbos:Dbos",
        needs=("dbos",),
        workloads=(*_PEER, "scatter"),
        share=0.05,
    ),
    "oban": Entry(
        kind=Kind.PEER,
        about="a queue of 100 at once, a pool of 10 psycopg connections, uvloop where installed (Python 3.12 or newer)",
        target=f"{_CONTENDERS}.oban:Oban",
        needs=("oban",),
        workloads=_PEER,
        share=0.1,
    ),
    "celery": Entry(
        kind=Kind.PEER,
        about="Redis; prefork of 2, prefetch 64 each, results kept, acknowledged early (its default)",
        target=f"{_CONTENDERS}.celery:Celery",
        needs=("celery", "redis"),
        redis=True,
        workloads=(*_PEER, "scatter"),
        share=0.05,
    ),
    "dramatiq": Entry(
        kind=Kind.PEER,
        about="Redis; 2 processes of 8 threads, no results (its default)",
        target=f"{_CONTENDERS}.dramatiq:Dramatiq",
        needs=("dramatiq", "redis"),
        redis=True,
        workloads=(*_PEER, "scatter"),
        share=0.1,
    ),
    "taskiq": Entry(
        kind=Kind.PEER,
        about="a Redis stream; 2 processes, 100 at once each, results kept",
        target=f"{_CONTENDERS}.taskiq:Taskiq",
        needs=("taskiq", "taskiq-redis"),
        redis=True,
        workloads=_PEER,
        share=0.2,
    ),
    "bullmq": Entry(
        kind=Kind.PEER,
        about="Redis, Node; one process, concurrency 100, finished jobs kept (its default)",
        target=f"{_CONTENDERS}.bullmq:BullMQ",
        needs=("node:bullmq", "redis"),
        redis=True,
        workloads=("drain", "drain-deep", "enqueue", "latency"),
    ),
    "saq": Entry(
        kind=Kind.PEER,
        about="Redis; one process, concurrency 100",
        target=f"{_CONTENDERS}.saq:Saq",
        needs=("saq", "redis"),
        redis=True,
        workloads=(*_PEER, "scatter"),
        share=0.1,
    ),
}

_PER_SECOND = (Figure("per_second", "", "jobs/s"),)
_STATEMENTS = (
    Figure("share", "of raw-delete", "×"),
    Figure("ours", "", "jobs/s"),
    Figure("delete", "raw-delete beside it", "jobs/s"),
)
_KILL = (
    Figure("seconds", "until all ran", "s", more_is_better=False),
    Figure("lost", "lost", "jobs", more_is_better=False),
    Figure("again", "finished and run again", "jobs", more_is_better=False),
    Figure("unrecorded", "finished, unrecorded at the kill", "jobs", more_is_better=False),
)

WORKLOADS: Mapping[str, Workload] = {
    "statements": Workload(
        about="the shipped statements and the fenced delete-only loop on one server, in turns of a thousand jobs",
        target="", figures=_STATEMENTS,
    ),
    "statements-deep": Workload(
        about="the same, 2.5 times as many waiting", target="", figures=_STATEMENTS, slow=True,
    ),
    "drain": Workload(
        about="jobs that wait when the worker starts, until all are recorded done",
        target=f"{_HERE}.drain:drain", figures=_PER_SECOND,
    ),
    "drain-deep": Workload(
        about="the same, 2.5 times as many waiting",
        target=f"{_HERE}.drain:drain", figures=_PER_SECOND, slow=True,
    ),
    "enqueue": Workload(
        about="until stored: in bulk, one by one, and by 64 callers at once",
        target=f"{_HERE}.enqueue:enqueue",
        figures=(
            Figure("many", "in bulk", "jobs/s"),
            Figure("one", "one by one", "jobs/s"),
            Figure("callers", "64 callers", "jobs/s"),
        ),
    ),
    "latency": Workload(
        about="20 jobs a second, from before the enqueue to the handler's first line",
        target=f"{_HERE}.latency:latency",
        figures=(Figure("p50", "p50", "ms", more_is_better=False), Figure("p99", "p99", "ms", more_is_better=False)),
    ),
    "scatter": Workload(
        about="one job submits 1,000; until the callback for all done starts",
        target=f"{_HERE}.scatter:scatter", figures=(Figure("seconds", "", "s", more_is_better=False),),
    ),
    "memory": Workload(
        about="worker memory (RSS of all its processes), and the first job after its start",
        target=f"{_HERE}.memory:memory",
        figures=(
            Figure("idle_rss", "idle", "MiB", more_is_better=False),
            Figure("growth", "more with jobs waiting", "MiB", more_is_better=False),
            Figure("first_job", "first job after", "s", more_is_better=False),
        ),
        slow=True,
    ),
    "kill": Workload(
        about="kill -9 amid jobs of 10 ms, another worker of the same machine takes over",
        target=f"{_HERE}.takeover:takeover", figures=_KILL, slow=True,
    ),
    "gated": Workload(
        about="drains of gated queues beside plain ones, with and without 50,000 jobs behind a key that is taken",
        target=f"{_HERE}.gated:gated",
        figures=(
            Figure("beside", "plain queue beside a gated one, of plain", "×"),
            Figure("behind", "other keys, without ÷ with 50,000 behind one", "×", more_is_better=False),
            Figure("fair", "eight fair shares, of plain", "×"),
            Figure("keys", "twenty keys, of plain", "×"),
            Figure("plain", "plain", "jobs/s"),
        ),
        slow=True,
    ),
    "kill-apart": Workload(
        about="the same, the dead worker in a pid namespace of its own, as on another machine",
        target=f"{_HERE}.takeover:takeover_apart", figures=_KILL, slow=True,
    ),
}  # fmt: skip
