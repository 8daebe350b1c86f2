"""Inserting jobs, each key once."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.model.errors import ConflictError
from headrace.model.job import KEY_LIFETIME, NewJob
from headrace.stores.memory.rows import Job, Key
from headrace.stores.memory.state import State


def insert_jobs(state: State, jobs: Sequence[NewJob]) -> list[UUID]:
    """Insert all of `jobs`, or none when a key conflicts; return the id under which each is stored."""
    expires_at = state.now() + KEY_LIFETIME
    keys: dict[tuple[str, str], Key] = {}
    ids: list[UUID] = []
    new: list[NewJob] = []
    for job in jobs:
        stored = _stored_key(state, job, keys)
        if stored is not None:
            ids.append(stored.id)
            continue
        if job.key is not None:
            keys[job.spec.task, job.key] = Key(job.id, job.body_hash, expires_at)
        ids.append(job.id)
        new.append(job)
    state.keys.update(keys)
    for job in new:
        insert_job(state, job)
    return ids


def _stored_key(state: State, job: NewJob, new: dict[tuple[str, str], Key]) -> Key | None:
    if job.key is None:
        return None
    scope = (job.spec.task, job.key)
    stored = new.get(scope) or known_key(state, *scope)
    if stored is not None and not job.has_body(stored.body_hash):
        raise ConflictError
    return stored


def known_key(state: State, scope: str, key: str) -> Key | None:
    """Return what `key` stands for, unless it has expired."""
    stored = state.keys.get((scope, key))
    if stored is None or (stored.expires_at is not None and stored.expires_at <= state.now()):
        return None
    return stored


def insert_job(state: State, new: NewJob) -> None:
    """Insert a job without a look at its key; one that is stored already, even finished, is left alone."""
    if new.id not in state.jobs and new.id not in state.finished:
        row = Job(new.id, new.spec, new.args, created_at=state.now(), run_at=new.run_at)
        row.run_id, row.node = new.run_id, new.node
        state.add(row)
