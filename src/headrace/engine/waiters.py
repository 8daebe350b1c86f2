"""Waiting for jobs and batches: one poller per process asks for all that is awaited; hints make it ask sooner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from headrace.engine.outage import Outage
from headrace.model.errors import ConfigError, NotFoundError, StoreUnavailableError
from headrace.model.job import JobView
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.waiters")

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.5
#: How often jobs that are not final are checked to exist at all.
EXISTENCE_CHECK_SECONDS = 5.0


class Waiters:
    """Resolves futures when their jobs are final, and lets others wait for the next change."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._jobs: dict[UUID, list[asyncio.Future[JobView]]] = {}
        self._changed = asyncio.Event()
        self._changes = 0
        self._poller: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._outage = Outage(LOG, "cannot ask for results")

    async def final(self, job_id: UUID) -> JobView:
        """Return the job once it is final. Raises NotFoundError when it does not exist."""
        await self._listen()
        future: asyncio.Future[JobView] = asyncio.get_running_loop().create_future()
        self._jobs.setdefault(job_id, []).append(future)
        self._note_change()
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll(), name="headrace-waiters")
        try:
            return await future
        finally:
            self._forget(job_id, future)

    @property
    def mark(self) -> int:
        """Where the changes stand: take it before reading, and `change` misses none that came since."""
        return self._changes

    async def change(self, *, at_most: float, since: int | None = None, looked: float = 0.0) -> None:
        """Wait for a hint that something ended after the mark `since` (default: now), at most `at_most` seconds.

        `looked`: the seconds that the caller's last look took. Twice as long passes before the next one, so that hints
        in quick succession never keep the store busier with looks than a third of the time.
        """
        await self._listen()
        since = self._changes if since is None else since
        if looked:
            await asyncio.sleep(min(2 * looked, at_most))
        try:
            async with asyncio.timeout(at_most):
                while self._changes == since:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return

    async def close(self) -> None:
        """Stop polling; whoever still waits gets ConfigError."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        for futures in self._jobs.values():
            for future in futures:
                if not future.done():
                    future.set_exception(ConfigError("the app was closed before the awaited job ended; it goes on"))

    async def _listen(self) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = lambda: None
            self._unsubscribe = await self._stores.notifier.subscribe(self._on_hint)

    def _on_hint(self, topic: str) -> None:
        if topic == "done":
            self._note_change()

    def _note_change(self) -> None:
        self._changes += 1
        self._changed.set()

    def _forget(self, job_id: UUID, future: asyncio.Future[JobView]) -> None:
        futures = self._jobs.get(job_id, [])
        if future in futures:
            futures.remove(future)
        if not futures:
            self._jobs.pop(job_id, None)

    async def _poll(self) -> None:
        pause, since_check = FIRST_PAUSE, 0.0
        loop = asyncio.get_running_loop()
        while self._jobs:
            mark, began = self.mark, loop.time()
            try:
                resolved = await self._resolve()
                if since_check >= EXISTENCE_CHECK_SECONDS:
                    since_check = 0.0
                    await self._refuse_unknown()
            except StoreUnavailableError as error:
                self._outage.note(error)
                resolved = False
            except Exception:
                LOG.exception("cannot ask for results, trying again")
                resolved = False
            pause = FIRST_PAUSE if resolved else min(pause * 1.5, LONGEST_PAUSE)
            since_check += pause
            await self.change(at_most=pause, since=mark, looked=loop.time() - began)

    async def _resolve(self) -> bool:
        finals = await self._stores.inspect.final_jobs(list(self._jobs))
        for job_id, view in finals.items():
            for future in self._jobs.pop(job_id, []):
                if not future.done():
                    future.set_result(view)
        return bool(finals)

    async def _refuse_unknown(self) -> None:
        asked = list(self._jobs)
        # A job may become final between the two reads; only one that neither read knows does not exist.
        missing = set(asked) - await self._stores.inspect.known_jobs(asked)
        for job_id in missing - set(await self._stores.inspect.final_jobs(list(missing))):
            for future in self._jobs.pop(job_id, []):
                if not future.done():
                    future.set_exception(NotFoundError(f"no job {job_id}; it may have been pruned, see [recovery]"))
