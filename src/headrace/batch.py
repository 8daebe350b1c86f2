"""A handle on a batch: progress, streamed results, retry, pause, cancel."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.engine.following.items import ItemReader
from headrace.model.batch import BatchItem, BatchState, BatchView, Progress
from headrace.model.durations import parse_duration
from headrace.model.errors import HeadraceError, NotFoundError, ResultTimeoutError
from headrace.model.job import JobState
from headrace.model.names import check_key, check_reason

if TYPE_CHECKING:
    from headrace.app import App

LOG = logging.getLogger("headrace.batch")

PAGE = 1_000
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.5
#: `results()` says so when no live worker serves the queue for this long.
WORKER_WARNING_SECONDS = 2.0


class Batch:
    """Jobs submitted together.

    >>> async def example(app: App) -> None:
    ...     batch = await app.submit(summarise, texts, key="review-42")  # doctest: +SKIP
    ...     async for item in batch.results():  # doctest: +SKIP
    ...         print(item.index, item.status, item.result)  # doctest: +SKIP
    """

    def __init__(self, app: App, batch_id: UUID) -> None:
        self._app = app
        self.id = batch_id

    def __repr__(self) -> str:
        return f"Batch({self.id})"

    async def view(self) -> BatchView:
        """Return what is known of the batch. Raises NotFoundError."""
        view = await self._app.runtime.stores.inspect.get_batch(self.id)
        if view is None:
            raise NotFoundError(f"no batch {self.id}; it may have been pruned, see [recovery] in the settings")
        return view

    async def progress(self) -> Progress:
        """Return how many items are in which state. Raises NotFoundError."""
        return await self._app.runtime.stores.inspect.batch_progress(self.id)

    async def wait(self, timeout: float | str | timedelta | None = None) -> BatchView:
        """Wait until the batch is closed and return it. Raises ResultTimeoutError; the batch goes on."""
        seconds = None if timeout is None else parse_duration(timeout, field="timeout").total_seconds()
        pause, loop = FIRST_PAUSE, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds) as limit:
                while True:
                    mark, began = self._app.runtime.waiters.mark, loop.time()
                    if (view := await self.view()).state is BatchState.CLOSED:
                        return view
                    looked = loop.time() - began
                    await self._app.runtime.waiters.change(at_most=pause, since=mark, looked=looked)
                    pause = min(pause * 1.5, LONGEST_PAUSE)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ResultTimeoutError(f"batch {self.id} did not close within {seconds:g} s; it goes on") from None

    async def results(self, cursor: str = "", *, follow: bool = True) -> AsyncIterator[BatchItem]:
        """Yield finished items as they finish, failures included, until the batch is closed.

        `cursor` resumes after an item read before (`item.cursor`); items that ended at the same time may then come
        again, so key what you keep by `item.index`. With `follow=False` only what is finished now is yielded.
        Raises NotFoundError, and InvalidInputError for a malformed cursor.
        """
        reader = ItemReader(self._app.runtime.stores.inspect, self.id, cursor, page=PAGE)
        patience, loop = _Patience(self._app), asyncio.get_running_loop()
        while True:
            mark, began = self._app.runtime.waiters.mark, loop.time()
            closed = (view := await self.view()).state is BatchState.CLOSED
            looked = loop.time() - began
            async for items in reader.new_items():
                patience.reset()
                for item in items:
                    yield self._typed(item, view.task)
            if closed or not follow:
                return
            await patience.wait(view, since=mark, looked=looked)

    def _typed(self, item: BatchItem, task_name: str) -> BatchItem:
        task = self._app.registry.get(task_name)
        if task is None or item.status is not JobState.SUCCEEDED:
            return item
        return replace(item, result=task.codec.decode_result(item.result))

    async def arguments(self) -> dict[int, Any]:
        """Return the argument of each item by index, in order (its keyword arguments with `spread=True`).

        Raises NotFoundError.
        """
        texts = await self._app.runtime.stores.inspect.batch_args(self.id)
        if not texts:
            await self.view()
        payloads = {index: json.loads(text) for index, text in sorted(texts.items())}
        return {index: call["args"][0] if call["args"] else call["kwargs"] for index, call in payloads.items()}

    async def extend(self, items: Iterable[Any] | AsyncIterable[Any], *, key: str, spread: bool = False) -> None:
        """Append items as a new round named `key`; the same key and items again change nothing.

        `spread` as in `App.submit`.

        Raises ConflictError while another round is being appended or the batch is being cancelled.
        """
        view = await self.view()
        task = self._app.registry.get(view.task)
        if task is None:
            raise NotFoundError(f"no task {view.task!r} in this app; import the module that registers it")
        texts = task.codec.encode_items(items, spread=spread)
        await self._app.runtime.batches.extend(self.id, texts, key=check_key("key", key), queue=view.queue)

    async def seal(self) -> None:
        """Declare an open batch complete as it stands, for example when its submitter died. Nothing if it is sealed."""
        if (await self.view()).state in (BatchState.OPEN, BatchState.ABANDONED):
            await self._app.runtime.batches.seal(self.id)

    async def retry_failed(self) -> int:
        """Run the failed items of a closed batch again, in a new round; return how many.

        Raises ConflictError when the batch is not closed.
        """
        return await self._app.runtime.batches.retry_failed(self.id, queue=(await self.view()).queue)

    async def cancel(self) -> None:
        """Cancel what has not ended: no item starts any more, running ones are asked to stop."""
        await self._app.runtime.batches.cancel(self.id)

    async def pause(self, reason: str | None = None) -> None:
        """Start nothing more of the batch until `resume()`; what runs goes on, and results come as they do.

        `reason`: 1–500 printable characters, shown wherever the batch is; a second call replaces it. Once this returns
        the waiting jobs are held, as is what comes later: appended items, retries, `retry_failed`. Only what was being
        written at that very moment may still be ready, for up to `aggregate_interval` (10 s). A pause lasts when the
        batch closes, and ends with `cancel()`. Raises NotFoundError, InvalidInputError for a reason, and ConflictError
        for a batch that is closed or being cancelled.

        >>> async def example(batch: Batch) -> None:
        ...     await batch.pause("the provider has an incident")  # doctest: +SKIP
        ...     print((await batch.view()).paused_reason)  # doctest: +SKIP
        ...     await batch.resume()  # doctest: +SKIP
        """
        text = None if reason is None else check_reason("reason", reason)
        await self._app.runtime.batches.pause(self.id, reason=text)

    async def resume(self) -> None:
        """Let go of what `pause()` held, in its old order; nothing happens to a batch that is not paused.

        Raises NotFoundError.
        """
        await self._app.runtime.batches.resume(self.id, queue=(await self.view()).queue)


class _Patience:
    """Waits between reads, and warns once when nobody works on the queue or the batch was never completed."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._pause = FIRST_PAUSE
        self._waited = 0.0
        self._warned = False

    def reset(self) -> None:
        """Something came: read soon again."""
        self._pause, self._waited = FIRST_PAUSE, 0.0

    async def wait(self, view: BatchView, *, since: int, looked: float) -> None:
        """Wait for a change after the mark `since`; `looked` as in `Waiters.change`."""
        started = asyncio.get_running_loop().time()
        await self._app.runtime.waiters.change(at_most=self._pause, since=since, looked=looked)
        self._waited += asyncio.get_running_loop().time() - started
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE)
        if self._waited >= WORKER_WARNING_SECONDS and not self._warned:
            self._warned = True
            if view.paused_at is not None:
                LOG.warning("batch %s is paused: nothing more of it starts until resume()", view.id)
                return
            if view.state in (BatchState.OPEN, BatchState.ABANDONED):
                LOG.warning(
                    "batch %s is %s: its submitter has not ended its items; submit again with the same key to go on, "
                    "or declare it complete with seal(), or cancel() it", view.id, view.state
                )  # fmt: skip
            await self._warn_without_worker(view.queue)

    async def _warn_without_worker(self, queue: str) -> None:
        try:
            sessions = await self._app.runtime.stores.inspect.list_sessions()
        except HeadraceError:
            return
        if not any(session.alive and queue in session.queues for session in sessions):
            LOG.warning(
                "no live worker serves queue %r; start one with `headrace worker MODULE:app --queue %s` or "
                "`async with app.worker():`", queue, queue
            )  # fmt: skip
