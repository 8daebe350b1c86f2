"""The checker reports every defect it is there for: evidence is forged, one defect at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.faults.checker import (
    Connections,
    Evidence,
    ProvesNothingError,
    Verdict,
    acknowledged_jobs,
    check,
    judge,
    read_tables,
    require_enough,
)
from tests.faults.effects import EffectClient, EffectServer, read_log
from tests.faults.failpoints import Action, Failpoint, format_points, parse_points
from tests.faults.site import Site

NOW = datetime(2030, 1, 1, tzinfo=UTC)
JOB, OTHER, BATCH, SESSION, DEAD = (UUID(int=number) for number in range(1, 6))


def job(job_id: UUID = JOB, number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a row of a job that succeeded at its second attempt."""
    row = {
        "id": job_id, "task": "mark", "state": "succeeded", "attempt": 2, "session": SESSION, "batch_id": None,
        "ordinal": None, "retry_of": None, "args": json.dumps({"args": [number], "kwargs": {}}),
        "result": json.dumps([number, 2]),
    }  # fmt: skip
    return {**row, **changes}


def line(event: str, at: float, attempt: int = 2, job_id: UUID = JOB, session: UUID = SESSION) -> dict[str, Any]:
    """Return a line of the effect log, `at` so many seconds after NOW."""
    facts = {"event": event, "job": str(job_id), "attempt": attempt, "session": str(session), "task": "mark"}
    return {**facts, "at": NOW.timestamp() + at}


def ids_of(*ids: UUID) -> frozenset[UUID]:
    """Return ids as a verdict gives them."""
    return frozenset(ids)


def item(ordinal: int, job_id: UUID) -> dict[str, Any]:
    """Return a row of an item of the batch."""
    return job(job_id, 10 + ordinal, batch_id=BATCH, ordinal=ordinal, task="other")


def evidence() -> Evidence:
    """Return what the witnesses say of a job whose first session died, and of a batch of two with a callback."""
    callback = job(UUID(int=20), task="closed", args=json.dumps({"args": [str(BATCH)], "kwargs": {}}))
    batch = {"id": BATCH, "state": "closed", "round": 1, "total": 2, "on_close": json.dumps({"task": "closed"})}
    return Evidence(
        acknowledged=[
            {"jobs": [str(JOB)], "key": "k"}, {"batch": str(BATCH), "count": 2, "key": "b"}, {"answer": ["a", "text"]}
        ],
        effects=[
            line("start", 0, 1, session=DEAD), line("start", 5), line("end", 6),
            {"event": "step", "job": str(JOB), "values": ["x"], "at": NOW.timestamp()},
        ],
        final=[job(), item(0, UUID(int=10)), item(1, UUID(int=11)), callback],
        batches=[batch],
        sessions=[
            {"id": DEAD, "expires_at": NOW + timedelta(seconds=4)},
            {"id": SESSION, "expires_at": NOW + timedelta(seconds=60)},
        ],
        steps=[{"job_id": JOB, "value": '"x"'}],
        answers={"a": "text"},
        digests_before={JOB: "d"}, digests={JOB: "d", OTHER: "e"},
    )  # fmt: skip


def test_evidence_without_a_defect_is_clean() -> None:
    """A job that was rescued from a dead session, and a batch that closed once, are no defect."""
    verdict = judge(evidence())
    assert verdict.clean, verdict
    assert str(verdict) == "clean"


def test_a_batch_that_nobody_sent_whole_is_not_stuck() -> None:
    """Its submitter died unanswered: the next one continues it, and no closer may touch it."""
    found = evidence()
    found.batches = [*found.batches, {"id": OTHER, "state": "abandoned", "round": 1, "total": None, "on_close": None}]
    assert judge(found).clean


def forge(**changes: Any) -> Callable[[Evidence], None]:
    """Return what replaces whole parts of the evidence."""

    def change(found: Evidence) -> None:
        for name, value in changes.items():
            setattr(found, name, value)

    return change


def also(part: str, *more: Any) -> Callable[[Evidence], None]:
    """Return what adds to a part of the evidence."""
    return lambda found: setattr(found, part, [*getattr(found, part), *more])


def without(part: str, index: int) -> Callable[[Evidence], None]:
    """Return what takes one line away from a part of the evidence."""
    return lambda found: setattr(found, part, [row for at, row in enumerate(getattr(found, part)) if at != index])


DEFECTS: list[tuple[str, Callable[[Evidence], None]]] = [
    ("lost", also("acknowledged", {"jobs": [str(OTHER)]})),
    ("lost", also("acknowledged", {"batch": str(OTHER), "count": 1})),
    ("lost", also("acknowledged", {"batch": str(BATCH), "count": 3})),
    ("lost", also("acknowledged", {"answer": ["a", "another text"]})),
    ("stuck", also("live", job(OTHER, 2, state="ready"))),
    ("stuck", also("batches", {"id": OTHER, "state": "sealed", "round": 1, "total": 0, "on_close": None})),
    ("stuck", lambda found: found.batches[0].update(state="abandoned")),  # type: ignore[attr-defined]
    ("twice_final", also("live", job(state="running"))),
    ("twice_final", also("final", job())),
    ("changed", forge(digests={JOB: "another"})),
    ("changed", forge(digests={})),
    ("doubled_jobs", also("final", job(OTHER, task="mark", state="failed"))),
    ("doubled_jobs", also("acknowledged", {"jobs": [str(UUID(int=10))], "key": "k"})),
    ("callbacks", without("final", 3)),
    ("callbacks", also("final", job(OTHER, task="closed", args=json.dumps({"args": [str(BATCH)], "kwargs": {}})))),
    ("items", without("final", 1)),
    ("items", also("final", item(1, OTHER))),
    ("retries", also("final", *(job(UUID(int=30 + n), 1, retry_of=JOB, state="failed") for n in range(2)))),
    ("steps", also("effects", {"event": "step", "job": str(JOB), "values": ["y"], "at": 0.0})),
    ("steps", forge(steps=[])),
    ("unfounded", without("effects", 2)),
    ("unfounded", lambda found: setattr(found, "final", [job(result="[1, 1]"), *found.final[1:]])),
    ("started_twice", also("effects", line("start", 5.5))),
    ("overlaps", forge(sessions=[{"id": DEAD, "expires_at": NOW + timedelta(seconds=5.5)}])),
    ("crowded", also("effects", {**line("start", 5.5, job_id=OTHER), "room": {"cap": 0}})),
    ("false_conflicts", also("acknowledged", {"error": "the key was used before"})),
    ("leaks", forge(connections=Connections(before=1, after=2))),
    ("leaks", forge(connections=Connections(before=1, working=22, allowed=20))),
    ("leaks", forge(connections=Connections(idle_in_transaction=1))),
]
_LIVE = """INSERT INTO jobs (id, sort_at, created_at, priority, max_attempts, state, queue, task, args)
  VALUES ($1, now(), now(), 5, 1, 'ready', 'default', 'mark', '{"args": [], "kwargs": {}}')"""
_FINAL = """INSERT INTO finished_jobs (id, created_at, finished_at, attempt, priority, failures, crashes, max_attempts,
  at_most_once, cancel_requested, state, queue, task, args)
  VALUES ($1, now(), now(), 1, 5, 0, 0, 1, false, false, 'failed', 'default', 'mark', '{"args": [], "kwargs": {}}')"""


@pytest.mark.parametrize(("name", "forgery"), DEFECTS)
def test_a_forged_defect_is_reported(name: str, forgery: Callable[[Evidence], None]) -> None:
    """Each defect shows under its own name."""
    found = evidence()
    forgery(found)
    verdict = judge(found)
    assert getattr(verdict, name), name
    assert not verdict.clean
    assert name in str(verdict)


def test_every_part_of_the_verdict_has_a_forged_defect() -> None:
    """A part of the verdict that nothing can turn red would be worth nothing."""
    assert {name for name, _ in DEFECTS} == {entry.name for entry in fields(Verdict)}


@pytest.mark.parametrize(("began", "most"), [(5.9, 2), (6.0, 0), (7.0, 0)])
def test_a_cap_is_crowded_only_by_attempts_that_run_at_once(began: float, most: int) -> None:
    """One place is taken from the start of an attempt until it was reported over, or its lease was."""
    found, room = evidence(), {"room": {"cap": 1}}
    first, second = {**line("start", 5), **room}, {**line("start", began, job_id=OTHER), **room}
    found.effects = [first, line("end", 6), second]
    assert judge(found).crowded == ({"cap": most} if most else {})


@pytest.mark.parametrize(
    ("lease_ends", "stops", "overlap"), [(4, None, False), (4, 9, False), (9, None, True), (9, 4, False), (9, 7, True)]
)
def test_attempts_overlap_only_under_a_valid_lease(lease_ends: float, stops: float | None, overlap: bool) -> None:
    """A second attempt may start once the first reported its end, or once its session's lease was over."""
    found = evidence()
    found.sessions = [{"id": DEAD, "expires_at": NOW + timedelta(seconds=lease_ends)}]
    if stops is not None:
        found.effects = [*found.effects, line("stopped", stops, 1)]
    assert bool(judge(found).overlaps) is overlap


def test_a_campaign_in_which_too_little_happened_has_failed() -> None:
    """Fewer than 1,000 acknowledged jobs, no planned fault, or less than 90 % of them, raise."""
    enough = Evidence(acknowledged=[{"batch": "b", "count": 999}, {"batch": "b", "count": 999}, {"jobs": ["1"]}])
    assert acknowledged_jobs(enough.acknowledged) == 1_000
    require_enough(enough, planned=10, fired=9)
    for planned, fired in ((10, 8), (0, 0)):
        with pytest.raises(ProvesNothingError, match="faults"):
            require_enough(enough, planned=planned, fired=fired)
    with pytest.raises(ProvesNothingError, match="999 jobs"):
        require_enough(Evidence(acknowledged=[{"batch": "b", "count": 999}]), planned=10, fired=10)


async def test_forged_tables_are_reported(site: Site) -> None:
    """The checker reads the tables themselves: a row in both of them, one that stays, and one that is nowhere."""
    stays, both, nowhere = ids = [uuid4() for _ in range(3)]
    connection = await asyncpg.connect(site.server.dsn, server_settings={"search_path": site.schema})
    for job_id in (stays, both):
        await connection.execute(_LIVE, job_id)
    await connection.execute(_FINAL, both)
    await connection.close()
    verdict = await check(site, ids)
    assert (verdict.stuck, verdict.lost, verdict.twice_final) == (ids_of(stays, both), ids_of(nowhere), ids_of(both))
    assert set((await read_tables(site.server.dsn, site.schema)).digests) == {both}


async def test_the_effect_log_keeps_lines_of_clients_that_die(tmp_path: Path) -> None:
    """Every line that was receipted is in the file, stamped by the process that keeps it; half a line is not."""
    server = EffectServer(tmp_path / "log")
    client = EffectClient(server.port)
    for number in range(3):
        await client.note("mark", number=number)
    client.close()
    server.stop()
    with (tmp_path / "log").open("ab") as log:
        log.write(b'{"event": "cut')
    lines = read_log(tmp_path / "log")
    assert [entry["number"] for entry in lines] == [0, 1, 2]
    assert all(entry["at"] > 0 for entry in lines)


def test_failpoints_survive_the_way_through_the_environment() -> None:
    """What is armed is what was written."""
    points = [Failpoint("finish_jobs.sql:after"), Failpoint("JobStore.claim_jobs:before", Action.RAISE, 3)]
    assert parse_points(format_points(points)) == points
    assert parse_points("") == []
