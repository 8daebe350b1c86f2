"""The batch store port on Redis: scatter and aggregate, one script per verb."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.batch import (
    MAX_SETTLE_SLICES,
    SETTLE_ITEMS,
    BatchOutcome,
    BatchState,
    ClosedBatch,
    NewBatch,
    Slice,
)
from headrace.model.errors import ConflictError, NotFoundError
from headrace.model.ids import uuid7, uuid7s
from headrace.model.session import LeaderTerm
from headrace.stores.redis.intake import check_size
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import leader_words, micros, parse_id, span, spec_fields, to_json

#: Batches that one script tries to close, and that one looks at.
PAGE = 200
#: Items that one script settles or copies at most, and that one reads: more would hold up everybody else.
SETTLE_PART, READ_PAGE = 200, 1_000
#: How long a batch whose failed items are copied in parts is kept open for the next one: who copies may have died.
RETRY_WAIT = timedelta(seconds=60)


def no_batch(batch_id: UUID) -> NotFoundError:
    """Return the error for a batch that does not exist."""
    return NotFoundError(f"There is no batch {batch_id}. `headrace batch list` shows those that exist.")


class RedisBatchStore:
    """Durable batches. Workers never write the state of a batch; closing is tried after a completion."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def create_batch(self, batch: NewBatch, args: Sequence[str] | None) -> UUID:
        """Create a batch and return its id, or the id of the batch that has its key."""
        check_size("items", args or ())
        items = {"ids": _ids(len(args or ())), "args": list(args or ())}
        new = {
            "spec": spec_fields(batch.spec),
            "facts": _facts(batch),
            "run_at": 0 if batch.run_at is None else micros(batch.run_at),
            "sealed": args is not None,
        }
        verdict, stored = await self._namespace.run(
            "create_batch", batch.id.hex, batch.body_hash, batch.key or "", to_json(new), to_json(items), uuid7().hex
        )
        if verdict == "conflict":
            raise ConflictError(
                f"The batch {parse_id(stored)} of task {batch.spec.task!r} was submitted before under the key "
                f"{batch.key!r} with other items or options. Use a new key, or send the first items again."
            )
        return parse_id(stored)

    async def append_slice(self, part: Slice) -> bool:
        """Append items to an open batch; return False when an equal slice is there already."""
        check_size("items", part.args)
        items = to_json({"ids": _ids(len(part.args)), "args": part.args})
        verdict = await self._namespace.run("append_slice", part.batch_id.hex, part.first, part.hash, items)
        if verdict == "missing":
            raise no_batch(part.batch_id)
        if verdict not in ("appended", "equal"):
            raise _refused(part, verdict)
        return bool(verdict == "appended")

    async def seal_batch(self, batch_id: UUID, *, total: int, key: str | None = None) -> None:
        """Declare the total. Raises ConflictError when it differs from what was appended or sealed before."""
        expected = await self._namespace.run("seal_batch", batch_id.hex, total, key or "")
        if expected == -2:
            raise no_batch(batch_id)
        if expected != -1:
            raise ConflictError(f"The batch holds {expected} items, not {total}. Append what is missing, then seal it.")

    async def reopen_batch(self, batch_id: UUID, *, key: str) -> int:
        """Open a new round for more items and return the first ordinal to append at."""
        first, *state = await self._namespace.run("reopen_batch", batch_id.hex, key)
        if first == -1:
            rest = "seal it, or wait until it is closed, and try again."
            raise _in_no_state(batch_id, state[0], rest)
        return int(first)

    async def retry_failed(self, batch_id: UUID) -> int:
        """Open a new round of a closed batch with copies of its failed items; return how many."""
        items = await self._failed_items(batch_id)
        words = [word for pair in zip(items, _ids(len(items)), strict=True) for word in pair]
        retried = 0
        for start in range(0, max(len(items), 1), SETTLE_PART):
            wait = RETRY_WAIT if start + SETTLE_PART < len(items) else timedelta()
            part = words[2 * start : 2 * (start + SETTLE_PART)]
            copied, *state = await self._namespace.run("retry_failed", batch_id.hex, start, span(wait), *part)
            if copied == -1 and start == 0:
                raise _in_no_state(batch_id, state[0], "its failed items can be retried once it is closed.")
            if copied == -1:
                break  # It was cancelled meanwhile, or so much time passed that it was closed.
            retried += copied
        return retried

    async def _failed_items(self, batch_id: UUID) -> list[str]:
        """Return the ids of the failed items in their order."""
        ordinals: dict[str, int] = {}
        cursor = None
        while cursor != "0":
            cursor, *page = await self._namespace.run("failed_items", batch_id.hex, cursor or "0", READ_PAGE)
            ordinals.update(zip(page[::2], map(int, page[1::2]), strict=True))
        return sorted(ordinals, key=ordinals.__getitem__)

    async def close_batches(self, batch_ids: Sequence[UUID]) -> list[ClosedBatch]:
        """Enforce close policies and close those of `batch_ids` that are sealed and done; return those closed."""
        closed, stopped = await self._close(batch_ids)
        for batch_id in stopped:
            await self._settle(batch_id, SETTLE_ITEMS * MAX_SETTLE_SLICES)
        # Where nothing ran, settling ended the last of them.
        return closed + (await self._close(stopped))[0]

    async def _close(self, batch_ids: Sequence[UUID]) -> tuple[list[ClosedBatch], list[UUID]]:
        """Return the batches that were closed, and those that are being cancelled from now on."""
        ids = sorted(set(batch_ids))
        rows: list[list[str]] = []
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            pairs = [word for batch_id in page for word in (batch_id.hex, uuid7().hex)]
            rows += await self._namespace.run("close_batches", *pairs)
        closed = [ClosedBatch(parse_id(row[0]), BatchOutcome(row[1]), row[2] or None) for row in rows if row[1]]
        return closed, [parse_id(row[0]) for row in rows if not row[1]]

    async def _settle(self, batch_id: UUID, most: int, term: LeaderTerm | None = None) -> int:
        """Settle a batch being cancelled part by part, up to a bound; return how many items, -1 for no batch."""
        leader = leader_words(term)
        settled = 0
        while settled < most:
            part = min(SETTLE_PART, most - settled)
            count = await self._namespace.run("settle_cancelled", batch_id.hex, part, *leader)
            if count < 0:
                return -1
            settled += count
            if count < part:
                break
        return settled

    async def cancel_batch(self, batch_id: UUID) -> None:
        """Start cancelling: nothing of the batch is claimed any more. A closed batch is left as it is."""
        if not await self._namespace.run("cancel_batch", batch_id.hex):
            raise no_batch(batch_id)

    async def settle_cancelled(self, batch_id: UUID, *, limit: int) -> int:
        """Cancel up to `limit` unstarted jobs of a batch being cancelled and ask its running ones to stop."""
        settled = await self._settle(batch_id, limit)
        if settled < 0:
            raise no_batch(batch_id)
        return settled

    async def pause_batch(self, batch_id: UUID, *, reason: str | None = None) -> None:
        """Start nothing more of a batch until it is resumed; a second call replaces the reason."""
        state = await self._namespace.run("pause_batch", batch_id.hex, reason or "")
        if state in ("", BatchState.CLOSED, BatchState.CANCELLING):
            raise _in_no_state(batch_id, state, "nothing of it is left to start, so it cannot be paused.")

    async def resume_batch(self, batch_id: UUID) -> None:
        """End a pause; nothing happens to a batch that is not paused."""
        if not await self._namespace.run("resume_batch", batch_id.hex):
            raise no_batch(batch_id)

    async def settle_paused(self, batch_id: UUID, *, limit: int) -> int:
        """Hold up to `limit` ready jobs of a paused batch, or let go of so many that were held of one that is not."""
        settled = await self._settle_pause(batch_id, limit)
        if settled < 0:
            raise no_batch(batch_id)
        return settled

    async def _settle_pause(self, batch_id: UUID, most: int, term: LeaderTerm | None = None) -> int:
        """Go on with a pause or a resume part by part, up to a bound; return how many items, -1 for no batch."""
        settled, over = 0, 0
        while settled < most and not over:
            words = (min(SETTLE_PART, most - settled), *leader_words(term))
            count, over = await self._namespace.run("settle_paused", batch_id.hex, *words)
            settled += count
        return settled

    async def sweep_batches(self, *, term: LeaderTerm, seal_timeout: timedelta, limit: int) -> list[ClosedBatch]:
        """The safety net, for the leader: settle, close what is done, abandon what is idle; return those closed."""
        closed: list[ClosedBatch] = []
        for text in await self._namespace.run("pausing_batches", PAGE):
            await self._settle_pause(parse_id(text), limit * MAX_SETTLE_SLICES, term)
        cursor = "0"
        while cursor:
            words = (cursor, PAGE, *leader_words(term), span(seal_timeout))
            cursor, *found = await self._namespace.run("sweep_batches", *words)
            cursor = "" if cursor == "0" else cursor
            ids = [parse_id(text) for text in found[::2]]
            closed += await self.close_batches(ids)
            # Closing may have begun to cancel some of them, and has settled those.
            ended = {batch.id for batch in closed}
            cancelling = [
                batch_id
                for batch_id, state in zip(ids, found[1::2], strict=True)
                if state == BatchState.CANCELLING and batch_id not in ended
            ]
            for batch_id in cancelling:
                await self._settle(batch_id, limit * MAX_SETTLE_SLICES, term)
            closed += await self.close_batches(cancelling)
        return closed


def _ids(count: int) -> list[str]:
    """Return new ids in ascending order, so that equal items are claimed in theirs."""
    return [new.hex for new in uuid7s(count)]


def _facts(batch: NewBatch) -> dict[str, Any]:
    fields = spec_fields(batch.spec)
    facts: dict[str, Any] = dict(zip(fields[::2], fields[1::2], strict=True))
    if batch.policy.max_failed is not None:
        facts["max_failed"] = str(batch.policy.max_failed)
    if batch.on_close is not None:
        facts["on_close"] = to_json(spec_fields(batch.on_close))
    if batch.on_close_more:
        facts["on_close_more"] = batch.on_close_more
    if batch.run_at is not None:
        facts["run_at"] = str(micros(batch.run_at))
    return facts


def _in_no_state(batch_id: UUID, state: str, rest: str) -> Exception:
    return ConflictError(f"The batch is {state}: {rest}") if state else no_batch(batch_id)


def _refused(part: Slice, verdict: str) -> ConflictError:
    if verdict == "other":
        return ConflictError(f"The items from ordinal {part.first} were appended before with other contents.")
    if verdict == "overlap":
        return ConflictError(f"Some of the items from ordinal {part.first} were appended before in another slice.")
    return ConflictError(f"The batch is {verdict}: it takes no further items. Open a new round for them.")
