"""Intake of jobs: grouped by specification, idempotent by id and by key.

The same statements run on the store's own connections and, for transactional enqueue, on the caller's
(`foreign.py`): everything here speaks to a `Runner` and opens no transaction itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from headrace.hinting import Ride
from headrace.model.errors import ConflictError, KeyHeldError
from headrace.model.job import KEY_LIFETIME, JobSpec, NewJob
from headrace.model.priority import head_start
from headrace.stores.postgres.database import Database, Transaction
from headrace.stores.postgres.faults import lock_timed_out
from headrace.stores.postgres.queries import Runner

#: Rows of one statement; more are inserted in several of one transaction.
ROWS_PER_STATEMENT = 10_000


async def insert_jobs(database: Database, jobs: Sequence[NewJob], *, retrying: bool) -> list[UUID]:
    """Do what `JobStore.insert_jobs` promises but for the hints; the plain case is one statement."""
    groups = group_by_spec(jobs)
    if not retrying and len(groups) == 1 and len(jobs) <= ROWS_PER_STATEMENT and not _keyed(jobs):
        await _insert_group(database, *groups[0])
        return [job.id for job in jobs]

    async def work(tx: Transaction) -> list[UUID]:
        return await insert_with(tx, jobs, retrying=retrying)

    return await database.run(work) if jobs else []


async def insert_job(runner: Runner, job: NewJob, ride: Ride | None = None) -> None:
    """Insert one job without a key and a run; with a ride, commit and hint in the same statement."""
    channel, payload = (ride.channel, ride.payload) if ride is not None else (None, None)
    await runner.fetch(
        "insert_job", id=job.id, args=job.args, run_at=job.run_at, channel=channel, payload=payload,
        **spec_values(job.spec),
    )  # fmt: skip


async def insert_with(runner: Runner, jobs: Sequence[NewJob], *, retrying: bool) -> list[UUID]:
    """Insert `jobs` inside the runner's transaction and return the id under which each is stored."""
    stored = await _claim_keys(runner, _keyed(jobs))
    fresh = [job for job in jobs if stored.get(_name(job), job.id) == job.id]
    for spec, group in group_by_spec(fresh):
        for start in range(0, len(group), ROWS_PER_STATEMENT):
            await _insert_group(runner, spec, group[start : start + ROWS_PER_STATEMENT])
    if retrying:
        await runner.fetch("drop_finished_again", ids=[job.id for job in fresh])
    return [stored.get(_name(job), job.id) for job in jobs]


def group_by_spec(jobs: Sequence[NewJob]) -> list[tuple[JobSpec, list[NewJob]]]:
    """Return `jobs` by specification, in order of first appearance; equal ones are one, also as two objects."""
    if len(jobs) == 1:
        return [(jobs[0].spec, list(jobs))]
    groups: dict[JobSpec, list[NewJob]] = {}
    known: dict[int, list[NewJob]] = {}
    for job in jobs:
        group = known.get(id(job.spec))
        if group is None:
            group = known[id(job.spec)] = groups.setdefault(job.spec, [])
        group.append(job)
    return list(groups.items())


def spec_values(spec: JobSpec) -> dict[str, Any]:
    """Return the parameters that all jobs of `spec` share."""
    return {
        "queue": spec.queue,
        "task": spec.task,
        "priority": spec.priority,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "at_most_once": spec.at_most_once,
        "lane": spec.gate.text if spec.gate is not None else None,
        "cost": spec.cost if spec.cost != 1 else None,
        "head_start": head_start(spec.priority),
    }


def _keyed(jobs: Sequence[NewJob]) -> list[NewJob]:
    return [job for job in jobs if job.key is not None]


def _name(job: NewJob) -> tuple[str, str] | UUID:
    """Name a job by its key, or by its id where it has none."""
    return (f"job:{job.spec.task}", job.key) if job.key is not None else job.id


async def _insert_group(runner: Runner, spec: JobSpec, jobs: Sequence[NewJob]) -> None:
    of_runs = any(job.run_id is not None for job in jobs)
    if len(jobs) == 1 and not of_runs:
        await insert_job(runner, jobs[0])
        return
    await runner.fetch(
        "insert_jobs" if spec.gate is None else "insert_gated_jobs",
        ids=[job.id for job in jobs],
        args=[job.args for job in jobs],
        run_ats=[job.run_at for job in jobs],
        run_ids=[job.run_id for job in jobs] if of_runs else [],
        nodes=[job.node for job in jobs] if of_runs else [],
        **spec_values(spec),
    )


async def _claim_keys(runner: Runner, jobs: Sequence[NewJob]) -> dict[Any, UUID]:
    """Return the id each key stands for, ours or the one stored before; raise ConflictError for another body."""
    if not jobs:
        return {}
    wanted: dict[Any, NewJob] = {}
    for job in jobs:
        first = wanted.setdefault(_name(job), job)
        _check_body(job, first.body_hash, first.id)
    # In key order, so that two submits with the same keys wait for one another instead of deadlocking.
    names = sorted(wanted)
    values = {"scopes": [scope for scope, _ in names], "keys": [key for _, key in names]}
    ours = await insert_keys(
        runner,
        **values,
        ids=[wanted[name].id for name in names],
        hashes=[wanted[name].body_hash for name in names],
        lifetime=KEY_LIFETIME,
    )
    stored = {name: wanted[name].id for name in names}
    if len(ours) < len(names):
        for scope, key, stored_id, body_hash in await runner.fetch("find_keys", **values):
            _check_body(wanted[scope, key], body_hash, stored_id)
            stored[scope, key] = stored_id
    return stored


async def insert_keys(runner: Runner, *, keys: Sequence[str], **values: Any) -> Sequence[Any]:
    """Return the keys that are ours now; the wait for one that is being inserted by others ends in KeyHeldError.

    `values`: `scopes`, `ids` and `hashes`, which belong to `keys`, in the order of scopes and keys; and the `lifetime`,
    None for as long as what the keys stand for.
    """
    try:
        return await runner.fetch("insert_keys", keys=keys, **values)
    except Exception as error:  # of whichever driver the runner has
        if not lock_timed_out(error):
            raise
        held = f"The idempotency key {keys[0]!r}" if len(keys) == 1 else "One of the idempotency keys"
        raise KeyHeldError(
            f"{held} is held by another transaction, which did not end within the lock timeout; nothing was inserted. "
            "Commit or roll back that transaction, then send the same again."
        ) from error


def _check_body(job: NewJob, body_hash: str, stored_id: UUID) -> None:
    if not job.has_body(body_hash):
        raise ConflictError(
            f"The idempotency key {job.key!r} of task {job.spec.task!r} was used before with another body (job "
            f"{stored_id}). Use a new key, or send the first body again."
        )
