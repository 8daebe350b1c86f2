"""Batches as values: `open → sealed(total) → closed(succeeded | partial | failed | cancelled)`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.ids import uuid7
from headrace.model.job import JobError, JobSpec, JobState

#: Items of one transaction; longer lists and generators are streamed in slices of `SLICE_ITEMS`, or of fewer once their
#: arguments have `SLICE_BYTES`: a slice must not keep a server from everything else.
MAX_ATOMIC_ITEMS = 10_000
SLICE_ITEMS = 1_000
SLICE_BYTES = 16 * 1024 * 1024
#: Items of a batch being cancelled that one transaction settles, and how many of these one call makes at most.
SETTLE_ITEMS = 1_000
MAX_SETTLE_SLICES = 20
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class BatchState(StrEnum):
    """Where a batch stands."""

    #: items are still being appended
    OPEN = "open"
    #: the total is known
    SEALED = "sealed"
    #: no further item starts; what has not run is being cancelled
    CANCELLING = "cancelling"
    #: open, and its submitter was silent for `seal_timeout`: can be continued or cancelled
    ABANDONED = "abandoned"
    #: every item is final
    CLOSED = "closed"


class BatchOutcome(StrEnum):
    """How a closed batch ended."""

    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class ClosePolicy:
    """What failed items do to their batch: nothing (None), or fail it when more than `max_failed` failed."""

    max_failed: int | None = None

    def __post_init__(self) -> None:
        allowed = self.max_failed
        if allowed is not None and (not isinstance(allowed, int) or isinstance(allowed, bool) or allowed < 0):
            raise InvalidInputError("max_failed", "must be a whole number, not negative", allowed)

    @classmethod
    def always(cls) -> ClosePolicy:
        """Run every item; failures are reported, never contagious."""
        return cls()

    @classmethod
    def threshold(cls, max_failed: int) -> ClosePolicy:
        """Fail the batch, and cancel what has not run, once more than `max_failed` items failed."""
        return cls(max_failed)

    @classmethod
    def fail_fast(cls) -> ClosePolicy:
        """Fail the batch on its first failed item."""
        return cls(0)


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch to create. `body_hash` covers task, options and, for lists, the items."""

    spec: JobSpec
    id: UUID = field(default_factory=uuid7)
    key: str | None = None
    body_hash: str = ""
    policy: ClosePolicy = ClosePolicy()
    #: The callback of each close; its first argument is the batch id as text.
    on_close: JobSpec | None = None
    #: JSON text of a second argument for the callback, which is then given a third one too, see `closing_facts`.
    on_close_more: str = ""
    run_at: datetime | None = None


def held_by(batch_id: UUID) -> str:
    """Return what held jobs of a paused batch are parked on: no signal has such a key, for it is not printable.

    >>> held_by(UUID(int=0))
    '\\x1f00000000-0000-0000-0000-000000000000'
    """
    return f"\x1f{batch_id}"


def callback_args(batch_id: UUID, more: str = "", facts: Mapping[str, Any] | None = None) -> str:
    """Return the arguments of the callback of a batch as JSON text; `more` is that of its second one.

    >>> callback_args(UUID(int=0), '{"a":1}', {"round": 2})
    '{"args":["00000000-0000-0000-0000-000000000000",{"a":1},{"round": 2}],"kwargs":{}}'
    """
    others = f",{more},{json.dumps(facts)}" if more else ""
    return f'{{"args":["{batch_id}"{others}],"kwargs":{{}}}}'


@dataclass(frozen=True, slots=True)
class Slice:
    """Consecutive items of a streamed batch: `args[i]` is the item of ordinal `first + i`."""

    batch_id: UUID
    first: int
    args: tuple[str, ...]
    hash: str


def former_total(firsts: Mapping[str, int], *, total: int, known: int, key: str | None) -> int | None:
    """Return the total of a round that was sealed before a later one began; None for the latest round.

    `firsts` are the first ordinals of the named rounds in their order, `known` counts what was appended by now. `key`
    names the round; None is the first one if it can have ended at `total`, else the latest.

    >>> former_total({"b": 2, "c": 5}, total=5, known=9, key="b")
    5
    >>> former_total({"b": 2, "c": 5}, total=9, known=9, key="c") is None
    True
    """
    if key is None:
        return total if total != known and total in firsts.values() else None
    names = list(firsts)
    following = names[names.index(key) + 1 :] if key in firsts else []
    return firsts[following[0]] if following else None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is: items by what became of them, a retried item counted once."""

    total: int | None
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    running: int = 0
    waiting: int = 0

    @property
    def done(self) -> int:
        """Items that are final."""
        return self.succeeded + self.failed + self.cancelled

    @property
    def percent(self) -> int:
        """Final items per hundred; an empty batch is complete."""
        if self.total is None:
            return 0
        return round(100 * self.done / self.total) if self.total else 100


def closing_facts(*, round: int, outcome: BatchOutcome, counts: Progress, closed_at: datetime) -> dict[str, Any]:
    """Return how a round of a batch ended, as callbacks are told: by the time they run another one may have begun.

    >>> counts = Progress(2, succeeded=1, failed=1)
    >>> closing_facts(round=1, outcome=BatchOutcome.PARTIAL, counts=counts, closed_at=_EPOCH)["closed_at"]
    0
    """
    return {
        "round": round, "outcome": outcome, "total": counts.total, "succeeded": counts.succeeded,
        "failed": counts.failed, "cancelled": counts.cancelled, "closed_at": (closed_at - _EPOCH) // _MICROSECOND,
    }  # fmt: skip


def closed_at_of(facts: Mapping[str, Any]) -> datetime:
    """Return when the round ended that such facts tell of, which have microseconds since 1970."""
    return _EPOCH + int(facts["closed_at"]) * _MICROSECOND


@dataclass(frozen=True, slots=True)
class ClosedBatch:
    """A batch this call closed, and the queue of the callback it inserted, if any."""

    id: UUID
    outcome: BatchOutcome
    callback_queue: str | None


@dataclass(frozen=True, slots=True)
class BatchView:
    """Everything known of one batch, for reading."""

    id: UUID
    key: str | None
    task: str
    queue: str
    state: BatchState
    outcome: BatchOutcome | None
    total: int | None
    round: int
    policy: ClosePolicy
    created_at: datetime
    sealed_at: datetime | None
    closed_at: datetime | None
    #: Since when it starts no job; None: it is not paused.
    paused_at: datetime | None = None
    paused_reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One finished item of a batch. `cursor` resumes the stream after it."""

    index: int
    status: JobState
    job_id: UUID
    result: Any = None
    error: JobError | None = None
    #: What its model calls used, as recorded by the gateway, or None.
    cost: Any = None
    cursor: str = ""
    #: It did not succeed, and was run again since: what comes of that is an item of its own.
    retried: bool = False


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Finished items after a cursor; `cursor` is where everything before is known to have been read."""

    items: tuple[BatchItem, ...]
    cursor: str


#: An open batch whose submitter is silent this long becomes abandoned.
SEAL_TIMEOUT = timedelta(hours=1)
