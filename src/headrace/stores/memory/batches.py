"""Batches over shared dicts: creating, streaming, rounds and retries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from headrace.model.batch import BatchState, NewBatch, Slice, former_total
from headrace.model.errors import ConflictError, NotFoundError
from headrace.model.ids import uuid7s
from headrace.model.job import JobState
from headrace.stores.memory.intake import known_key
from headrace.stores.memory.rows import Batch, Finished, Job, Key
from headrace.stores.memory.state import State

APPENDABLE = (BatchState.OPEN, BatchState.ABANDONED)


def find_batch(state: State, batch_id: UUID) -> Batch:
    """Return a batch. Raises NotFoundError."""
    batch = state.batches.get(batch_id)
    if batch is None:
        raise NotFoundError(f"There is no batch {batch_id}. `headrace batch list` shows those that exist.")
    return batch


def key_scope(task: str) -> str:
    """Return the scope of batch keys of a task: apart from those of its single jobs."""
    return f"batch:{task}"


def create_batch(state: State, new: NewBatch, args: Sequence[str] | None) -> Batch:
    """Insert a batch, sealed with its jobs when `args` are given; or return the one that has its key or its id."""
    stored = _stored(state, new)
    if stored is not None:
        return stored
    now = state.now()
    batch = state.batches[new.id] = Batch(new, created_at=now, touched_at=now)
    if new.key is not None:
        state.keys[key_scope(new.spec.task), new.key] = Key(new.id, new.body_hash, expires_at=None)
    if args is not None:
        if args:
            batch.slices[0] = (len(args), new.body_hash)
        insert_items(state, batch, first=0, args=args)
        seal(state, batch)
    return batch


def _stored(state: State, new: NewBatch) -> Batch | None:
    stored = state.batches.get(new.id)
    if new.key is not None and (key := known_key(state, key_scope(new.spec.task), new.key)):
        stored = state.batches[key.id]
    if stored is not None and stored.new.body_hash != new.body_hash:
        raise ConflictError
    return stored


def insert_items(state: State, batch: Batch, *, first: int, args: Sequence[str]) -> None:
    """Insert items from ordinal `first` on. Their ids ascend with the ordinals, so that they are claimed in order."""
    ids = uuid7s(len(args))
    now, new = state.now(), batch.new
    for offset, (job_id, text) in enumerate(zip(ids, args, strict=True)):
        job = Job(job_id, new.spec, text, now, run_at=new.run_at, batch_id=new.id, ordinal=first + offset)
        state.add(job)
    batch.appended += len(args)
    batch.reach = max(batch.reach, first + len(args))


def seal(state: State, batch: Batch) -> None:
    """Fix the total of a batch."""
    batch.state, batch.total, batch.sealed_at = BatchState.SEALED, batch.appended, state.now()


def append_slice(state: State, part: Slice) -> bool:
    """Append items unless the slice is there already."""
    batch = find_batch(state, part.batch_id)
    stored = batch.slices.get(part.first)
    if stored is not None:
        if stored != (len(part.args), part.hash):
            raise ConflictError(f"The items from ordinal {part.first} were appended before with other contents.")
        return False
    if batch.state not in APPENDABLE:
        raise ConflictError(f"The batch is {batch.state}: it takes no further items. Open a new round for them.")
    if _overlaps(batch, part):
        raise ConflictError(f"Some of the items from ordinal {part.first} were appended before in another slice.")
    batch.slices[part.first] = (len(part.args), part.hash)
    batch.state, batch.touched_at = BatchState.OPEN, state.now()
    insert_items(state, batch, first=part.first, args=part.args)
    return True


def _overlaps(batch: Batch, part: Slice) -> bool:
    end = part.first + len(part.args)
    return part.first < batch.reach and any(
        first < end and part.first < first + length for first, (length, _) in batch.slices.items()
    )


def seal_batch(state: State, batch_id: UUID, total: int, key: str | None) -> None:
    """Seal the open round of a batch, or check that the round named ended with this total."""
    batch = find_batch(state, batch_id)
    known = batch.appended if batch.total is None else batch.total
    former = former_total(batch.rounds, total=total, known=known, key=key)
    expected = known if former is None else former
    if total != expected:
        raise ConflictError(f"The batch holds {expected} items, not {total}. Append what is missing, then seal it.")
    if former is None and batch.state in APPENDABLE:
        seal(state, batch)


def reopen_batch(state: State, batch_id: UUID, key: str) -> int:
    """Open a round named `key` and return its first ordinal; one that was opened before is left as it is."""
    batch = find_batch(state, batch_id)
    if key in batch.rounds:
        return batch.rounds[key]
    if batch.state in (*APPENDABLE, BatchState.CANCELLING):
        raise ConflictError(f"The batch is {batch.state}: seal it, or wait until it is closed, and try again.")
    _open_round(batch, BatchState.OPEN)
    batch.total, batch.touched_at = None, state.now()
    batch.rounds[key] = batch.appended
    return batch.appended


def _open_round(batch: Batch, state: BatchState) -> None:
    batch.state, batch.round = state, batch.round + 1
    batch.outcome = batch.closed_at = None


def retry_failed(state: State, batch_id: UUID) -> int:
    """Open a round of a closed batch with copies of its failed items."""
    batch = find_batch(state, batch_id)
    if batch.state is not BatchState.CLOSED:
        raise ConflictError(f"The batch is {batch.state}: its failed items can be retried once it is closed.")
    failed = [row for row in batch.ended if row.state is JobState.FAILED and row.job.id not in state.retries]
    return len(retry_jobs(state, sorted(failed, key=lambda row: row.job.ordinal or 0)))


def retry_jobs(state: State, rows: Sequence[Finished], texts: Mapping[UUID, str | None] | None = None) -> list[UUID]:
    """Insert a copy of each final job, with its attempts before it; a closed batch of it opens a new round.

    `texts` are arguments in place of a job's own, by its id.
    """
    copies, changed = uuid7s(len(rows)), texts or {}
    for copy_id, row in zip(copies, rows, strict=True):
        old = row.job
        if old.batch_id is not None and state.batches[old.batch_id].state is BatchState.CLOSED:
            _open_round(state.batches[old.batch_id], BatchState.SEALED)
        args = changed.get(old.id) or old.args
        copy = Job(copy_id, old.spec, args, state.now(), batch_id=old.batch_id, ordinal=old.ordinal, retry_of=old.id)
        state.add(copy)
    return copies
