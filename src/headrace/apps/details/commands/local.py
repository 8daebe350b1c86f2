"""Details in this process, on the configured store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from headrace import App
from headrace.apps.details.commands.desks import Told, refuse_memory
from headrace.apps.details.desk import Details, register
from headrace.apps.details.names import ENDED
from headrace.apps.flows.commands.telling import tell
from headrace.apps.noting import noted
from headrace.model.job import JobState, JobView
from headrace.model.webhook import TASK

#: How long the first try of a webhook is waited for, and how often it is looked.
TELL_SECONDS, LOOK_SECONDS = 15.0, 0.1
WORK = "headrace worker headrace.apps.details.worker:app"


class LocalDesk:
    """`desks.Desk` of an app that is open in this process."""

    def __init__(self, details: Details) -> None:
        self._details = details

    async def submit(self, request: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Take a request."""
        return (await self._details.submit(request, key=key)).to_json()

    async def follow(self, batch_id: str) -> AsyncGenerator[Told, None]:
        """Yield the entries of the feed of a batch. Raises HeadraceError where they were removed."""
        await self._details.check_feed(batch_id)
        feed = self._details.feed(batch_id)
        async with self._details.watched(batch_id), aclosing(feed.follow()) as entries:
            async for entry in entries:
                yield Told(entry.seq, entry.type, entry.data)
                if entry.type == ENDED:
                    return

    async def until_told(self, batch_id: str) -> None:
        """Give the webhook of a batch that has ended its first try: this process is the one that makes it."""
        deadline = time.monotonic() + TELL_SECONDS
        while not (job := await self._webhook_job(batch_id)) or not (job.state.final or job.failures):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(LOOK_SECONDS)
        if job is None or job.state is not JobState.SUCCEEDED:
            tell(f"the webhook was not told; a worker tries again: `{WORK}`", err=True)

    async def _webhook_job(self, batch_id: str) -> JobView | None:
        jobs = await self._details.app.runtime.stores.inspect.list_jobs(task=TASK, limit=100)
        return next((job for job in jobs if job.args["args"][0] == f"details/{batch_id}"), None)

    async def view(self, batch_id: str) -> Mapping[str, Any]:
        """Look at a batch."""
        return await self._details.view(batch_id)

    async def cancel(self, batch_id: str) -> Mapping[str, Any]:
        """Cancel a batch."""
        async with noted(self._details.app):
            return await self._details.cancel(batch_id)

    async def latest(self, limit: int) -> list[Mapping[str, Any]]:
        """Look at the newest batches."""
        return list(await self._details.latest(limit))

    async def mode(self) -> Mapping[str, Any]:
        """Return the mode."""
        return {"mode": await self._details.mode()}

    async def set_mode(self, mode: str, progress: Callable[[str], None]) -> Mapping[str, Any]:
        """Change the mode."""
        async with noted(self._details.app):
            return {"mode": await self._details.set_mode(mode, progress)}


@asynccontextmanager
async def local_desk(*, worker: bool) -> AsyncIterator[LocalDesk]:
    """Open an app with details on the configured store; `worker`: this process makes batches too."""
    app = App()
    if not worker:
        refuse_memory(app.settings.queue.type)
    details = register(app)
    async with app.worker() if worker else app:
        yield LocalDesk(details)
