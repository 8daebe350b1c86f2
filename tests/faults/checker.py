"""The verdict over a site after its faults: set algebra over three witnesses that know nothing of one another.

The clients' log says what was acknowledged, the effect log what handlers did (kept by a process of its own), the tables
what the system believes; they are read by a connection and statements of the checker's own. `judge` is pure, so that
forged evidence can show that it reports every defect.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise
from typing import Any
from uuid import UUID

import asyncpg

from tests.faults import redis_witness
from tests.faults.redis_witness import is_redis
from tests.faults.site import Site

#: Fewer acknowledged jobs, or a smaller share of the planned faults, prove nothing.
LEAST_ACKNOWLEDGED, LEAST_FIRED = 1_000, 0.9

Line = Mapping[str, Any]


class ProvesNothingError(AssertionError):
    """A campaign in which too little happened counts as failed."""


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections on the server: before the first process and after the last, and of the workers when all is quiet."""

    before: int = 0
    after: int = 0
    working: int = 0
    #: As many as the pools of the workers may hold together.
    allowed: int = 0
    #: For more than a second, while the workers have nothing to do.
    idle_in_transaction: int = 0


@dataclass
class Evidence:
    """All that the witnesses say. Rows are those of the tables, as mappings by column."""

    acknowledged: Sequence[Line] = ()
    effects: Sequence[Line] = ()
    live: Sequence[Line] = ()
    final: Sequence[Line] = ()
    batches: Sequence[Line] = ()
    sessions: Sequence[Line] = ()
    steps: Sequence[Line] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    #: Digests of final rows: when they were first seen, and now.
    digests_before: Mapping[UUID, str] = field(default_factory=dict)
    digests: Mapping[UUID, str] = field(default_factory=dict)
    connections: Connections = Connections()


@dataclass(frozen=True)
class Verdict:
    """What went wrong; all of it must be empty. Each value names the culprits."""

    #: acknowledged and nowhere to be found: ids of jobs and batches, batches with fewer items, paid answers
    lost: frozenset[Any] = frozenset()
    #: after the quiet period: jobs that are not final, and batches that nobody closed
    stuck: frozenset[UUID] = frozenset()
    #: in both tables at once
    twice_final: frozenset[UUID] = frozenset()
    #: final rows that changed or vanished
    changed: frozenset[UUID] = frozenset()
    #: numbers with more than one job, and keys that stood for more than one id
    doubled_jobs: dict[Any, int] = field(default_factory=dict)
    #: batches whose rounds and callbacks are not as many
    callbacks: dict[UUID, tuple[int, int]] = field(default_factory=dict)
    #: batches with ordinals that are there twice, or not at all: jobs, ordinals
    items: dict[UUID, tuple[int, int]] = field(default_factory=dict)
    #: jobs with more than one retry
    retries: dict[UUID, int] = field(default_factory=dict)
    #: jobs of which two attempts saw different values of their steps, or others than are stored
    steps: frozenset[UUID] = frozenset()
    #: successes that no handler of that attempt reported, or whose result is that of another attempt
    unfounded: frozenset[UUID] = frozenset()
    #: attempts that were started twice: job and attempt
    started_twice: frozenset[tuple[UUID, int]] = frozenset()
    #: attempts that began while the one before still ran under a valid lease
    overlaps: frozenset[tuple[UUID, int]] = frozenset()
    #: caps and concurrency keys under which more attempts ran at once than they allow: the most that did
    crowded: dict[str, int] = field(default_factory=dict)
    #: submits that were refused although nobody else used their keys
    false_conflicts: tuple[str, ...] = ()
    #: connections that nobody gave back, and transactions that nobody ended
    leaks: dict[str, int] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not any(getattr(self, entry.name) for entry in fields(self))

    def __str__(self) -> str:
        wrong = {entry.name: getattr(self, entry.name) for entry in fields(self) if getattr(self, entry.name)}
        return "clean" if not wrong else f"NOT CLEAN: {wrong}"


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict over evidence that was taken after a quiet period."""
    live = {row["id"] for row in evidence.live}
    final = Counter(row["id"] for row in evidence.final)
    return Verdict(
        lost=_lost(evidence, live | set(final)),
        stuck=stuck(evidence),
        twice_final=frozenset(key for key, count in final.items() if count > 1 or key in live),
        changed=frozenset(
            key for key, digest in evidence.digests_before.items() if evidence.digests.get(key) != digest
        ),
        doubled_jobs=_doubled_jobs(evidence),
        callbacks=_callbacks(evidence),
        items=_items(evidence),
        retries=_more_than_once(row["retry_of"] for row in _jobs(evidence) if row["retry_of"]),
        steps=_steps(evidence),
        unfounded=_unfounded(evidence),
        started_twice=_started_twice(evidence),
        overlaps=_overlaps(evidence),
        crowded=_crowded(evidence),
        false_conflicts=tuple(line["error"] for line in evidence.acknowledged if "error" in line),
        leaks=_leaks(evidence.connections),
    )


def acknowledged_jobs(lines: Iterable[Line]) -> int:
    """Return how many jobs were acknowledged; a batch that was acknowledged again after a kill counts once."""
    single = {job for line in lines for job in line.get("jobs", ())}
    counts: dict[str, int] = defaultdict(int)
    for line in lines:
        if "batch" in line:
            counts[line["batch"]] = max(counts[line["batch"]], line["count"])
    return len(single) + sum(counts.values())


def require_enough(evidence: Evidence, *, planned: int, fired: int) -> None:
    """Raise ProvesNothingError for a campaign with too few acknowledged jobs or too few of its faults."""
    jobs = acknowledged_jobs(evidence.acknowledged)
    if jobs < LEAST_ACKNOWLEDGED:
        raise ProvesNothingError(f"{jobs} jobs were acknowledged; fewer than {LEAST_ACKNOWLEDGED} prove nothing")
    if planned == 0 or fired < LEAST_FIRED * planned:
        raise ProvesNothingError(
            f"{fired} of {planned} planned faults fired; less than {LEAST_FIRED:.0%} prove nothing"
        )


def stuck(evidence: Evidence) -> frozenset[UUID]:
    """Return jobs that are not final, and batches that nobody closed.

    A batch whose submitter died before it sent everything stays open or abandoned: that is for its next submitter.
    """
    acknowledged = {UUID(str(line["batch"])) for line in evidence.acknowledged if "batch" in line}
    waiting = {
        batch["id"]
        for batch in evidence.batches
        if batch["state"] != "closed" and (batch["id"] in acknowledged or batch["state"] not in ("open", "abandoned"))
    }
    return frozenset({row["id"] for row in evidence.live} | waiting)


def _jobs(evidence: Evidence) -> list[Line]:
    return [*evidence.live, *evidence.final]


def _lost(evidence: Evidence, known: set[UUID]) -> frozenset[Any]:
    totals = {batch["id"]: batch["total"] or 0 for batch in evidence.batches}
    lost: set[Any] = set()
    for line in evidence.acknowledged:
        lost |= {UUID(str(job)) for job in line.get("jobs", ())} - known
        if "batch" in line and totals.get(UUID(str(line["batch"])), -1) < line["count"]:
            lost.add(UUID(str(line["batch"])))
        if "answer" in line and evidence.answers.get(line["answer"][0]) != line["answer"][1]:
            lost.add(line["answer"][0])
    return frozenset(lost)


def _doubled_jobs(evidence: Evidence) -> dict[Any, int]:
    numbers = (number for row in _jobs(evidence) if not row["retry_of"] and (number := _number(row)) is not None)
    ids = {(line["key"], str(line.get("batch", line.get("jobs")))) for line in evidence.acknowledged if "key" in line}
    return _more_than_once(numbers) | _more_than_once(key for key, _ in ids)


def _number(row: Line) -> Any:
    """Return the number that a job was submitted with, or the fire time it was made for: no two jobs share one."""
    call = json.loads(row["args"])
    first = call["args"][0] if call["args"] else call["kwargs"].get("number")
    if "scheduled_at" in call:
        return row["task"], first, call["scheduled_at"]
    return (row["task"], first) if isinstance(first, int) else None


def _callbacks(evidence: Evidence) -> dict[UUID, tuple[int, int]]:
    calls: Counter[tuple[str, str]] = Counter()
    for row in _jobs(evidence):
        arguments = json.loads(row["args"])["args"]
        if row["batch_id"] is None and not row["retry_of"] and arguments and isinstance(arguments[0], str):
            calls[row["task"], arguments[0]] += 1
    wrong = {}
    for batch in evidence.batches:
        if batch["on_close"] is None:
            continue
        rounds = batch["round"] if batch["state"] == "closed" else batch["round"] - 1
        made = calls[json.loads(batch["on_close"])["task"], str(batch["id"])]
        if rounds != made:
            wrong[batch["id"]] = (rounds, made)
    return wrong


def _items(evidence: Evidence) -> dict[UUID, tuple[int, int]]:
    ordinals: dict[UUID, list[int]] = defaultdict(list)
    for row in _jobs(evidence):
        if row["batch_id"] and not row["retry_of"]:
            ordinals[row["batch_id"]].append(row["ordinal"])
    return {
        batch["id"]: (len(ordinals[batch["id"]]), len(set(ordinals[batch["id"]])))
        for batch in evidence.batches
        if batch["state"] == "closed" and sorted(ordinals[batch["id"]]) != list(range(batch["total"]))
    }


def _steps(evidence: Evidence) -> frozenset[UUID]:
    stored: dict[UUID, set[str]] = defaultdict(set)
    for row in evidence.steps:
        stored[row["job_id"]].add(row["value"])
    seen = [
        (UUID(line["job"]), set(map(json.dumps, line["values"])))
        for line in evidence.effects
        if line["event"] == "step"
    ]
    return frozenset(job for job, values in seen if values != stored[job])


def _attempts(evidence: Evidence, *events: str) -> dict[tuple[UUID, int], list[Line]]:
    """Return the lines of some events by job and attempt; lines of handlers that do not name them are left out."""
    found: dict[tuple[UUID, int], list[Line]] = defaultdict(list)
    for line in evidence.effects:
        if line["event"] in events and "job" in line:
            found[UUID(line["job"]), line["attempt"]].append(line)
    return found


def _unfounded(evidence: Evidence) -> frozenset[UUID]:
    ended = _attempts(evidence, "end")
    reporting = {line["task"] for line in evidence.effects if "task" in line}
    return frozenset(
        row["id"]
        for row in evidence.final
        if row["state"] == "succeeded"
        and row["task"] in reporting
        and ((row["id"], row["attempt"]) not in ended or json.loads(row["result"])[1] != row["attempt"])
    )


def _started_twice(evidence: Evidence) -> frozenset[tuple[UUID, int]]:
    return frozenset(key for key, lines in _attempts(evidence, "start").items() if len(lines) > 1)


def _overlaps(evidence: Evidence) -> frozenset[tuple[UUID, int]]:
    """Return attempts whose forerunner still ran: not reported over, and its session's lease not over either."""
    starts, ends = _attempts(evidence, "start"), _ends(evidence)
    attempts: dict[UUID, list[int]] = defaultdict(list)
    for job, attempt in starts:
        attempts[job].append(attempt)
    found = set()
    for job, numbers in attempts.items():
        ordered = sorted(numbers)
        for former, later in pairwise(ordered):
            if starts[job, later][0]["at"] < ends[job, former]:
                found.add((job, later))
    return frozenset(found)


def _ends(evidence: Evidence) -> dict[tuple[UUID, int], float]:
    """Return until when each attempt that was started ran: until it was reported over, or its lease was."""
    leases = {str(row["id"]): row["expires_at"].timestamp() for row in evidence.sessions}
    reported = _attempts(evidence, "end", "stopped")
    ends = {}
    for attempt, lines in _attempts(evidence, "start").items():
        over = min((line["at"] for line in reported.get(attempt, ())), default=float("inf"))
        ends[attempt] = min(over, leases.get(lines[0]["session"], 0.0))
    return ends


def _crowded(evidence: Evidence) -> dict[str, int]:
    """Return what had more attempts at once than its room, with the most there were."""
    ends = _ends(evidence)
    room: dict[str, int] = {}
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for attempt, lines in _attempts(evidence, "start").items():
        for name, most in lines[0].get("room", {}).items():
            room[name] = most
            # At one moment an end comes first; who woke up behind its lease held no place any more.
            began = lines[0]["at"]
            changes[name] += [(began, 1), (max(began, ends[attempt]), -1)]
    most_at_once = {name: max(accumulate(step for _, step in sorted(steps))) for name, steps in changes.items()}
    return {name: count for name, count in most_at_once.items() if count > room[name]}


def _leaks(connections: Connections) -> dict[str, int]:
    found = {
        "connections": max(0, connections.after - connections.before),
        "connections of workers": max(0, connections.working - connections.before - connections.allowed),
        "idle in transaction": connections.idle_in_transaction,
    }
    return {name: count for name, count in found.items() if count}


def _more_than_once(values: Iterable[Any]) -> dict[Any, int]:
    return {value: count for value, count in Counter(values).items() if count > 1}


_OF_JOBS = "id, task, state, attempt, failures, crashes, session, batch_id, ordinal, retry_of, args::text"
_TABLES = {
    "live": f"SELECT {_OF_JOBS} FROM jobs",
    "final": f"SELECT {_OF_JOBS}, result::text FROM finished_jobs",
    "batches": "SELECT id, state, round, total, on_close::text FROM batches",
    "sessions": "SELECT id, pid, expires_at FROM sessions",
    "steps": "SELECT job_id, value::text FROM steps",
}
_DIGESTS = "SELECT id, md5(f::text) AS digest FROM finished_jobs AS f"
_ANSWERS = "SELECT key, answer::json -> 'answer' ->> 'text' AS text FROM answers"
_LEADER = "SELECT session FROM leader WHERE expires_at > now()"
_RUNNING = (
    "SELECT count(*) FROM jobs AS j JOIN sessions AS s ON s.id = j.session WHERE j.state = 'running' AND s.pid = $1"
)
_CONNECTIONS = (
    "SELECT count(*) AS count, count(*) FILTER"
    " (WHERE state LIKE 'idle in transaction%' AND state_change < now() - interval '1 second') AS idle"
    " FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


async def read_tables(dsn: str, schema: str) -> Evidence:
    """Return what the tables say."""
    if is_redis(dsn):
        return Evidence(**await redis_witness.read_rows(dsn, schema))
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    try:
        rows: dict[str, Any] = {name: await connection.fetch(text) for name, text in _TABLES.items()}
        digests = {row["id"]: row["digest"] for row in await connection.fetch(_DIGESTS)}
        answers = {row["key"]: row["text"] for row in await connection.fetch(_ANSWERS)}
        return Evidence(**rows, digests=digests, answers=answers)
    finally:
        await connection.close()


async def read_digests(dsn: str, schema: str) -> dict[UUID, str]:
    """Return a digest of every final row."""
    if is_redis(dsn):
        return await redis_witness.read_digests(dsn, schema)
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    try:
        return {row["id"]: row["digest"] for row in await connection.fetch(_DIGESTS)}
    finally:
        await connection.close()


async def read_leader(dsn: str, schema: str) -> UUID | None:
    """Return who leads now."""
    if is_redis(dsn):
        return await redis_witness.read_leader(dsn, schema)
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    try:
        leader: UUID | None = await connection.fetchval(_LEADER)
        return leader
    finally:
        await connection.close()


async def count_running(dsn: str, schema: str, pid: int) -> int:
    """Return how many jobs run under the sessions of a process."""
    if is_redis(dsn):
        return await redis_witness.count_running(dsn, schema, pid)
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    try:
        count: int = await connection.fetchval(_RUNNING, pid)
        return count
    finally:
        await connection.close()


async def read_connections(dsn: str) -> tuple[int, int]:
    """Return how many connections others have to the server, and how many of them are idle in a transaction."""
    if is_redis(dsn):
        return await redis_witness.read_connections(dsn)
    connection = await asyncpg.connect(dsn)
    try:
        row = await connection.fetchrow(_CONNECTIONS)
        assert row is not None
        return row["count"], row["idle"]
    finally:
        await connection.close()


async def check(site: Site, acknowledged: Iterable[UUID] = ()) -> Verdict:
    """Return the verdict over every job of the site, those `acknowledged` to a submitter in particular."""
    evidence = await read_tables(site.server.dsn, site.schema)
    evidence.acknowledged = [{"jobs": list(acknowledged)}]
    return judge(evidence)
