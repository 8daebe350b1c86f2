"""Scatter: lists in one transaction, longer ones and generators in hashed slices that can be sent again."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sized
from dataclasses import replace
from uuid import UUID

from headrace.engine.closing import close_batches, settle_batch, settle_pause
from headrace.engine.intake import Intake
from headrace.engine.retrying import with_retries
from headrace.model.batch import MAX_ATOMIC_ITEMS, SLICE_BYTES, SLICE_ITEMS, NewBatch, Slice
from headrace.model.errors import StoreUnavailableError
from headrace.model.payload import hash_text
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.batch")

Texts = Iterable[str] | AsyncIterable[str]


class Batches:
    """Creates, extends, retries, pauses and cancels batches. Without an `intake` no queue is full or closed."""

    def __init__(self, stores: Stores, intake: Intake | None = None) -> None:
        self._stores = stores
        self._intake = intake

    async def submit(self, batch: NewBatch, texts: Texts) -> UUID:
        """Create a batch of the argument texts and return its id; an equal submit returns the id it made before.

        A list goes into its queue as one call of so many jobs; a stream waits for room before each of its slices.
        """
        if isinstance(texts, Sized) and isinstance(texts, Iterable) and len(texts) <= MAX_ATOMIC_ITEMS:
            return await self._submit_list(batch, list(texts))
        await self._check_open(batch.spec.queue)
        batch_id = await with_retries(lambda _: self._stores.batches.create_batch(batch, None))
        await self._stream(batch_id, 0, texts, queue=batch.spec.queue)
        return batch_id

    async def _submit_list(self, batch: NewBatch, texts: list[str]) -> UUID:
        if texts and self._intake is not None and not self._intake.lets_in(batch.spec.queue, len(texts)):
            patience = self._intake.patience_of(batch.spec.queue)
            await self._intake.enter(batch.spec.queue, len(texts), patience=patience)
        whole = replace(batch, body_hash=hash_text(batch.body_hash, *texts)) if batch.key is not None else batch
        batch_id = await with_retries(lambda _: self._stores.batches.create_batch(whole, texts))
        self._hint(batch.spec.queue)
        if not texts and batch.on_close is not None:
            self._hint(batch.on_close.queue)  # a batch without items is closed when it is created
        return batch_id

    async def extend(self, batch_id: UUID, texts: Texts, *, key: str, queue: str) -> None:
        """Append items in a new round named `key`; calling again with the same key and items changes nothing."""
        await self._check_open(queue)
        first = await with_retries(lambda _: self._stores.batches.reopen_batch(batch_id, key=key))
        await self._stream(batch_id, first, texts, queue=queue, key=key)

    async def _stream(self, batch_id: UUID, first: int, texts: Texts, *, queue: str, key: str | None = None) -> None:
        """Send slices one by one, so that a generator is pulled only as fast as store and queue take it."""
        ordinal = first
        async for part in _slices(texts):
            await self._room_for(queue, len(part))
            piece = Slice(batch_id, ordinal, part, hash_text(*part))
            new = await with_retries(lambda _, piece=piece: self._stores.batches.append_slice(piece))  # type: ignore[misc]
            if not new and self._intake is not None:
                self._intake.give_back(queue, len(part))
            ordinal += len(part)
            self._hint(queue)
        await with_retries(lambda _: self._stores.batches.seal_batch(batch_id, total=ordinal, key=key))
        await self._close(batch_id)

    async def _room_for(self, queue: str, count: int) -> None:
        """Wait for room, however long; the next slice is not pulled before this one is stored."""
        if self._intake is not None and not self._intake.lets_in(queue, count):
            await self._intake.enter(queue, count, patience=None)

    async def _check_open(self, queue: str) -> None:
        """Refuse a stream before it makes a batch or a round that would stay open."""
        if self._intake is not None:
            await self._intake.check_open(queue)

    async def seal(self, batch_id: UUID) -> None:
        """Seal an open batch at what was appended."""
        counts = await self._stores.inspect.batch_progress(batch_id)
        total = counts.done + counts.running + counts.waiting
        await with_retries(lambda _: self._stores.batches.seal_batch(batch_id, total=total))
        await self._close(batch_id)

    async def _close(self, batch_id: UUID) -> None:
        """Close a batch whose items all ended before it was sealed; nobody is refused because that did not work."""
        try:
            await close_batches(self._stores, [batch_id])
        except StoreUnavailableError as error:
            LOG.warning("could not try to close a batch; the aggregator will: %s", error)

    async def retry_failed(self, batch_id: UUID, *, queue: str) -> int:
        """Open a new round with the failed items; return how many."""
        count = await self._stores.batches.retry_failed(batch_id)
        if count:
            self._hint(queue)
        return count

    async def cancel(self, batch_id: UUID) -> None:
        """Cancel a batch: nothing more is claimed from now on; items are settled slice by slice."""
        await with_retries(lambda _: self._stores.batches.cancel_batch(batch_id))
        await with_retries(lambda _: settle_batch(self._stores, batch_id))
        await self._close(batch_id)

    async def pause(self, batch_id: UUID, *, reason: str | None = None) -> None:
        """Start nothing more of a batch; what waits in its queue is held slice by slice."""
        await with_retries(lambda _: self._stores.batches.pause_batch(batch_id, reason=reason))
        await with_retries(lambda _: settle_pause(self._stores, batch_id))

    async def resume(self, batch_id: UUID, *, queue: str) -> None:
        """End a pause; what was held is let go slice by slice, at its old place."""
        await with_retries(lambda _: self._stores.batches.resume_batch(batch_id))
        await with_retries(lambda _: settle_pause(self._stores, batch_id, queue=queue))

    def _hint(self, queue: str) -> None:
        self._stores.notifier.hint(f"queue:{queue}")


class _Part:
    """The items of the slice that comes next."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._size = 0

    def add(self, text: str) -> bool:
        """Add an item and return whether the slice is full."""
        self._texts.append(text)
        self._size += len(text) if text.isascii() else len(text.encode())
        return len(self._texts) == SLICE_ITEMS or self._size >= SLICE_BYTES

    def take(self) -> tuple[str, ...]:
        """Return the items, and begin anew."""
        texts, self._texts, self._size = tuple(self._texts), [], 0
        return texts


async def _slices(texts: Texts) -> AsyncIterator[tuple[str, ...]]:
    """Yield consecutive items in slices, holding one at a time. Equal items give equal slices."""
    part = _Part()
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            if part.add(text):
                yield part.take()
    else:
        for text in texts:
            if part.add(text):
                yield part.take()
    if rest := part.take():
        yield rest
