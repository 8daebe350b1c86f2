"""Invariants of batches: each round closes once, only when sealed and done, with its one callback, and promptly."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.model.batch import BatchOutcome, BatchState
from headrace.model.job import JobState
from headrace.stores.memory.rows import Batch
from headrace.testing.simulation.faults import Request
from headrace.testing.simulation.loop import Actor
from headrace.testing.simulation.referee import Referee

APPENDABLE = (BatchState.OPEN, BatchState.ABANDONED)
DONE = (BatchState.SEALED, BatchState.CANCELLING)
REOPENING = ("retry_failed", "reopen_batch", "retry_job", "retry_queue")
#: From the call that ended a batch's last job to its close, when nothing goes wrong; journeys come on top.
PROMPT_SECONDS = 0.5
PROMPT_JOURNEYS = 25


@dataclass(slots=True)
class SeenBatch:
    """A batch as the last call left it."""

    state: BatchState
    round: int
    appended: int
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A batch that is done: since when, and who ended its last job or sealed it."""

    since: float
    actor: Actor


class BatchRules:
    """Keeps its own account of every batch and compares."""

    def __init__(self, referee: Referee) -> None:
        self._referee, self._state = referee, referee.state
        self._seen: dict[UUID, SeenBatch] = {}
        self._closes: Counter[tuple[UUID, int]] = Counter()
        #: The batch of each callback.
        self._called: dict[UUID, UUID] = {}
        self._due: dict[UUID, Due] = {}

    def before(self, request: Request) -> None:
        """Nothing to prepare."""

    def after(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        """Check every batch: there are few."""
        for job_id in moved:
            self._count_callback(job_id)
        for batch_id, batch in self._state.batches.items():
            self._look(batch_id, batch, request)
        for batch_id in [gone for gone in self._seen if gone not in self._state.batches]:
            if self._seen.pop(batch_id).state is not BatchState.CLOSED or request.verb != "prune_jobs":
                self._referee.breach("conservation", f"{request.verb} removed batch {batch_id}")

    def _count_callback(self, job_id: UUID) -> None:
        job = self._state.jobs.get(job_id)
        # A first look at it: it was just inserted.
        if job is not None and job.spec.task == "called" and not job.attempt and not job.failures:
            self._called.setdefault(job_id, UUID(json.loads(job.args)["args"][0]))

    def _look(self, batch_id: UUID, batch: Batch, request: Request) -> None:
        before = self._seen.get(batch_id)
        if before is None:
            before = self._seen[batch_id] = SeenBatch(BatchState.OPEN, 1, batch.appended)
        if batch.state is BatchState.CLOSED and before.state is not BatchState.CLOSED:
            self._check_close(batch_id, batch, before, request)
        elif before.state is BatchState.CLOSED and batch.state is not BatchState.CLOSED:
            if batch.round != before.round + 1 or request.verb not in REOPENING:
                self._breach("a batch closes once per round", batch_id, f"was opened again by {request.verb}")
        elif batch.closed_at != before.closed_at and batch.state is BatchState.CLOSED:
            self._breach("a batch closes once per round", batch_id, f"was closed again by {request.verb}")
        if batch.appended != before.appended and before.state not in APPENDABLE:
            self._breach("a sealed batch takes no items", batch_id, f"was {before.state} and took items")
        before.state, before.round, before.appended = batch.state, batch.round, batch.appended
        before.closed_at = batch.closed_at
        self._note_due(batch_id, batch, request)

    def _breach(self, invariant: str, batch_id: UUID, what: str) -> None:
        self._referee.breach(invariant, f"batch {batch_id} {what}")

    def _check_close(self, batch_id: UUID, batch: Batch, before: SeenBatch, request: Request) -> None:
        self._closes[batch_id, batch.round] += 1
        if self._closes[batch_id, batch.round] > 1:
            self._breach("a batch closes once per round", batch_id, f"closed again in round {batch.round}")
        new_and_sealed = request.verb == "create_batch" and batch.total == 0
        if before.state not in DONE and not new_and_sealed:
            self._breach("only sealed batches close", batch_id, f"was {before.state} and is closed")
        live = [job.id for job in self._state.jobs.values() if job.batch_id == batch_id]
        if live or batch.total != batch.appended:
            self._breach(
                "only finished batches close", batch_id, f"of {batch.total} items closed with {live} unfinished"
            )
        if batch.outcome is not self._outcome(batch_id, batch, before):
            self._breach("outcomes tell what happened", batch_id, f"closed as {batch.outcome}")
        callbacks = sum(called == batch_id for called in self._called.values())
        closes = sum(count for (closed, _), count in self._closes.items() if closed == batch_id)
        if batch.new.on_close is not None and callbacks != closes:
            self._breach(
                "one callback per round", batch_id, f"closed {closes} times and was called back {callbacks} times"
            )
        self._check_prompt(batch_id, request)

    def _outcome(self, batch_id: UUID, batch: Batch, before: SeenBatch) -> BatchOutcome:
        rows = [row for row in self._state.finished.values() if row.job.batch_id == batch_id]
        repeated = {row.job.retry_of for row in rows}
        ends = Counter(row.state for row in rows if row.job.id not in repeated)
        allowed = batch.new.policy.max_failed
        if allowed is not None and ends[JobState.FAILED] > allowed:
            return BatchOutcome.FAILED
        if before.state is BatchState.CANCELLING:
            return BatchOutcome.CANCELLED
        if not ends[JobState.FAILED] and not ends[JobState.CANCELLED]:
            return BatchOutcome.SUCCEEDED
        return BatchOutcome.PARTIAL if ends[JobState.SUCCEEDED] else BatchOutcome.FAILED

    def _note_due(self, batch_id: UUID, batch: Batch, request: Request) -> None:
        if batch.state not in DONE or batch.live:
            self._due.pop(batch_id, None)
        elif batch_id not in self._due:
            self._due[batch_id] = Due(self._referee.loop.now, request.actor)

    def _check_prompt(self, batch_id: UUID, request: Request) -> None:
        """The aggregator may close only what somebody else could not."""
        due = self._due.get(batch_id)
        if due is None or request.verb != "sweep_batches":
            return
        network, now = self._referee.network, self._referee.loop.now
        patience = PROMPT_SECONDS + PROMPT_JOURNEYS * network.weather.journey
        if network.undisturbed(due.actor, due.since) and now - due.since > patience:
            what = f"was done at {due.since:.3f} by {due.actor} and waited for the safety net"
            self._breach("closing is prompt", batch_id, what)

    def thorough(self) -> None:
        """Nothing beyond each call."""
