"""Intake of jobs: grouped by specification, idempotent by id and by key, in one script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from headrace.model.errors import ConflictError, InvalidInputError
from headrace.model.job import KEY_LIFETIME, JobSpec, NewJob
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import micros, parse_id, span, spec_fields, to_json

#: Bytes of arguments that one call may have. A script takes them as one value, of which servers take 512 MB, escaped
#: and in UTF-8, and nothing else runs while it does.
MAX_CALL_BYTES = 64 * 1024 * 1024


def check_size(field: str, texts: Sequence[str]) -> None:
    """Refuse arguments that are more than one script should take."""
    if (
        sum(map(len, texts)) > MAX_CALL_BYTES // 4
        and (size := sum(len(text.encode()) for text in texts)) > MAX_CALL_BYTES
    ):
        raise InvalidInputError(
            field,
            f"must have no more than {MAX_CALL_BYTES >> 20} MiB of arguments in one call on Redis: stream them, as "
            "app.submit does with a generator, or pass references to what is large",
            f"{size / (1 << 20):.1f} MiB",
        )


async def insert_jobs(namespace: Namespace, jobs: Sequence[NewJob], *, channel: str = "", hint: str = "") -> list[UUID]:
    """Insert all of `jobs`, or none when a key conflicts; return, in order, the id under which each is stored."""
    if not jobs:
        return []
    check_size("jobs", [job.args for job in jobs])
    groups = _group_by_spec(jobs)
    ordered = [job for _, group in groups for job in group] if len(groups) > 1 else jobs
    text = to_json([_group(spec, group) for spec, group in groups])
    conflict, *known = await namespace.run("insert_jobs", text, span(KEY_LIFETIME), channel, hint)
    if conflict:
        raise ConflictError
    stored = {id(ordered[place - 1]): parse_id(found) for place, found in zip(known[::2], known[1::2], strict=True)}
    return [stored.get(id(job), job.id) for job in jobs]


def _group_by_spec(jobs: Sequence[NewJob]) -> list[tuple[JobSpec, Sequence[NewJob]]]:
    if len(jobs) == 1:
        return [(jobs[0].spec, jobs)]
    groups: dict[JobSpec, list[NewJob]] = {}
    known: dict[int, list[NewJob]] = {}
    for job in jobs:
        group = known.get(id(job.spec))
        if group is None:
            group = known[id(job.spec)] = groups.setdefault(job.spec, [])
        group.append(job)
    return list(groups.items())


def _group(spec: JobSpec, jobs: Sequence[NewJob]) -> dict[str, Any]:
    keyed = any(job.key is not None for job in jobs)
    timed = any(job.run_at is not None for job in jobs)
    of_runs = any(job.run_id is not None for job in jobs)
    return {
        "spec": spec_fields(spec),
        "ids": [job.id.hex for job in jobs],
        "args": [job.args for job in jobs],
        "run_ats": [0 if job.run_at is None else micros(job.run_at) for job in jobs] if timed else [],
        "keys": [job.key or "" for job in jobs] if keyed else [],
        "hashes": [job.body_hash for job in jobs] if keyed else [],
        "formers": [job.former_hash for job in jobs] if keyed and any(job.former_hash for job in jobs) else [],
        "runs": ["" if job.run_id is None else job.run_id.hex for job in jobs] if of_runs else [],
        "nodes": [job.node or "" for job in jobs] if of_runs else [],
    }
