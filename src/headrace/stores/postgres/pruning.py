"""Removing what is older than its retention, in bounded slices."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headrace.model.session import SESSION_RETENTION, LeaderTerm
from headrace.model.spend import SPEND_RETENTION
from headrace.model.stats import Pruned, Retention
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.terms import fetch_under

#: Rows of history that one statement looks at.
SEEN = 1_000


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
            "calls": ("prune_calls", retention.kept_answers),
            "spool": ("prune_call_items", retention.kept_answers),
            "spend": ("prune_spend", SPEND_RETENTION),
        }
        for kind, (name, kept) in kinds.items():
            removed[kind] = len(await fetch_under(database, term, name, retention=kept, limit=limit))
        # Tags that say nothing are not worth counting.
        await fetch_under(database, term, "prune_shares", limit=limit)
    return Pruned(removed)


async def _prune_finished(
    database: Database, retention: Retention, *, limit: int, queue: str | None, term: LeaderTerm | None
) -> int:
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("prune_failed", {"queue": row["queue"], "state": row["state"], "retention": getattr(retention, row["state"])})
        for row in await database.fetch("list_failed_kinds")
        if queue in (None, row["queue"])
    ]
    kinds.append(("prune_succeeded", {"queue": queue, "retention": retention.succeeded}))
    removed, before = 0, -1
    # What repeated a job that went just now may go too.
    while before < removed < limit:
        before = removed
        for name, values in kinds:
            removed += await _prune_kind(database, term, name, values, limit=limit - removed)
    return removed


async def _prune_kind(
    database: Database, term: LeaderTerm | None, name: str, values: dict[str, Any], *, limit: int
) -> int:
    """Walk what is old enough in slices of `SEEN`, a transaction each, past what must stay."""
    removed, after = 0, None
    while removed < limit:
        rows = await fetch_under(database, term, name, **values, after=after, slice=SEEN, limit=limit - removed)
        if not rows or rows[0]["last"] is None:
            break
        removed += rows[0]["removed"]
        after = rows[0]["last"]
    return removed
