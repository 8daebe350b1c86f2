"""Removing what is older than its retention, in bounded slices."""

from __future__ import annotations

from datetime import timedelta

from headrace.model.session import SESSION_RETENTION, LeaderTerm
from headrace.model.stats import Pruned, Retention
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.terms import fetch_under


async def prune_jobs(
    database: Database, retention: Retention, *, limit: int, queue: str | None, term: LeaderTerm | None
) -> Pruned:
    """Do what `JobStore.prune_jobs` promises; each kind of row in transactions of its own."""
    removed = {"jobs": await _prune_finished(database, retention, limit=limit, queue=queue, term=term)}
    if queue is None:
        kinds = {
            "batches": ("prune_batches", retention.succeeded),
            "keys": ("prune_keys", timedelta()),
            "sessions": ("prune_sessions", SESSION_RETENTION),
            "answers": ("prune_answers", retention.kept_answers),
        }
        for kind, (name, kept) in kinds.items():
            removed[kind] = len(await fetch_under(database, term, name, retention=kept, limit=limit))
    return Pruned(removed)


async def _prune_finished(
    database: Database, retention: Retention, *, limit: int, queue: str | None, term: LeaderTerm | None
) -> int:
    removed = before = 0
    kinds = [row for row in await database.fetch("list_finished_kinds") if queue in (None, row["queue"])]
    while removed < limit:
        for row in kinds:
            rows = await fetch_under(
                database,
                term,
                "prune_finished",
                queue=row["queue"],
                state=row["state"],
                retention=getattr(retention, row["state"]),
                limit=limit - removed,
            )
            removed += len(rows)
        if removed == before:
            break
        # What repeated a job that went just now may go too.
        before = removed
    return removed
