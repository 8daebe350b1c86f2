"""Removing what is older than its retention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import TypeVar
from uuid import UUID

from headrace.model.batch import BatchState
from headrace.model.calls import LIVE
from headrace.model.job import JobState
from headrace.model.session import SESSION_RETENTION
from headrace.model.spend import SPEND_RETENTION
from headrace.model.stats import Pruned, Retention
from headrace.stores.memory.ledger import day_of
from headrace.stores.memory.rows import Finished
from headrace.stores.memory.state import State

K = TypeVar("K")
V = TypeVar("V")


def prune_jobs(state: State, retention: Retention, *, limit: int, queue: str | None) -> Pruned:
    """Remove at most `limit` rows of each kind; with `queue`, jobs of that queue only."""
    removed = {"jobs": _prune_finished(state, retention, limit, queue)}
    if queue is None:
        removed["batches"] = _prune_batches(state, retention, limit)
        removed["keys"] = _remove(state.keys, _expired_keys(state), limit)
        removed["sessions"] = _remove(state.sessions, _gone_sessions(state), limit)
        removed["answers"] = _remove(state.answers, _old_answers(state, retention), limit)
        removed |= _prune_ledger(state, retention, limit)
    return Pruned(removed)


def _prune_finished(state: State, retention: Retention, limit: int, queue: str | None) -> int:
    kept = {
        JobState.SUCCEEDED: retention.succeeded,
        JobState.FAILED: retention.failed,
        JobState.CANCELLED: retention.cancelled,
    }
    now = state.now()
    old = (row for row in state.finished.values() if row.finished_at <= now - kept[row.state])
    # Removing while walking: an original is older in the table than its retries, which may go once it went.
    rows: list[Finished] = []
    for row in list(old):
        if len(rows) < limit and queue in (None, row.job.spec.queue) and _removable(state, row):
            rows.append(row)
            for table in (state.finished, state.attempts, state.logs, state.steps, state.retries):
                table.pop(row.job.id, None)
    for batch_id in {row.job.batch_id for row in rows} - {None}:
        assert batch_id is not None
        _reindex_batch(state, batch_id)
    return len(rows)


def _removable(state: State, row: Finished) -> bool:
    """Whether a job of a run is settled, the batch is closed and the job repeats none that is kept.

    Without its retry that one would count.
    """
    if row.job.id in state.runs.unsettled or row.job.retry_of in state.finished:
        return False
    return row.job.batch_id is None or state.batches[row.job.batch_id].state is BatchState.CLOSED


def _reindex_batch(state: State, batch_id: UUID) -> None:
    batch = state.batches[batch_id]
    batch.ended = [row for row in batch.ended if row.job.id in state.finished]
    batch.counts = Counter(row.state for row in batch.ended if row.job.id not in state.retries)


def _prune_batches(state: State, retention: Retention, limit: int) -> int:
    """Remove closed batches whose jobs are gone, with their keys; an empty one is kept as long as its success."""
    until = state.now() - retention.succeeded
    old = (
        batch
        for batch in state.batches.values()
        if batch.closed_at is not None and batch.closed_at <= until and not batch.live and not batch.ended
    )
    batches = list(islice(old, limit))
    for batch in batches:
        del state.batches[batch.new.id]
        if batch.new.key is not None:
            state.keys.pop((f"batch:{batch.new.spec.task}", batch.new.key), None)
    return len(batches)


def prune_runs(state: State, *, older_than: timedelta, limit: int) -> int:
    """Remove final runs that ended longer ago, and graphs that no run has any more."""
    runs, until = state.runs, state.now() - older_than
    old = [run for run in runs.rows.values() if run.finished_at is not None and run.finished_at <= until][:limit]
    for run in old:
        del runs.rows[run.new.id]
        if run.new.key is not None:
            del runs.keys[run.new.workflow, run.new.key]
    used = {run.new.snapshot for run in runs.rows.values()}
    for snapshot in {run.new.snapshot for run in old} - used:
        del runs.graphs[snapshot]
    return len(old)


def prune_signals(state: State, *, older_than: timedelta, limit: int) -> int:
    """Remove signals that came longer ago."""
    signals, until = state.parked.signals, state.now() - older_than
    return _remove(signals, (key for key, signal in signals.items() if signal.came_at <= until), limit)


def _expired_keys(state: State) -> Iterator[tuple[str, str]]:
    now = state.now()
    return (scope for scope, key in state.keys.items() if key.expires_at is not None and key.expires_at <= now)


def _gone_sessions(state: State) -> Iterator[UUID]:
    until = state.now() - SESSION_RETENTION
    return (session for session, row in state.sessions.items() if row.expires_at <= until)


def _old_answers(state: State, retention: Retention) -> Iterator[str]:
    until = state.now() - retention.kept_answers
    return (key for key, stored_at in state.answers.items() if stored_at <= until)


def _prune_ledger(state: State, retention: Retention, limit: int) -> dict[str, int]:
    """Remove ended calls and what is spooled as old as answers may be, and sums that no budget needs."""
    ledger, now = state.ledger, state.now()
    until = now - retention.kept_answers
    calls = (key for key, call in ledger.calls.items() if call.state not in LIVE and call.opened_at <= until)
    parts = [(key, number) for key, kept in ledger.spool.items() for number, part in kept.items()
             if part.stored_at <= until][:limit]  # fmt: skip
    for key, number in parts:
        del ledger.spool[key][number]
    first = day_of(now - SPEND_RETENTION)
    sums = [(scope, row) for scope, rows in ledger.spent.items() if scope not in ledger.budgets
            for row in rows if row[0] < first][:limit]  # fmt: skip
    for scope, row in sums:
        del ledger.spent[scope][row]
    return {"calls": _remove(ledger.calls, calls, limit), "spool": len(parts), "spend": len(sums)}


def _remove(table: dict[K, V], keys: Iterable[K], limit: int) -> int:
    chosen = list(islice(keys, limit))
    for key in chosen:
        del table[key]
    return len(chosen)
