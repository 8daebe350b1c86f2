"""Details in this process, on the configured store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from headrace import App
from headrace.apps.details.commands.desks import Told, refuse_memory
from headrace.apps.details.desk import Details, register
from headrace.apps.details.names import ENDED
from headrace.apps.details.request import parse_request


class LocalDesk:
    """`desks.Desk` of an app that is open in this process."""

    def __init__(self, details: Details) -> None:
        self._details = details

    async def submit(self, request: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Take a request."""
        return (await self._details.submit(parse_request(request), key=key)).to_json()

    async def follow(self, batch_id: str) -> AsyncGenerator[Told, None]:
        """Yield the entries of the feed of a batch."""
        async with aclosing(self._details.feed(batch_id).follow()) as entries:
            async for entry in entries:
                yield Told(entry.seq, entry.type, entry.data)
                if entry.type == ENDED:
                    return

    async def view(self, batch_id: str) -> Mapping[str, Any]:
        """Look at a batch."""
        return await self._details.view(batch_id)

    async def latest(self, limit: int) -> list[Mapping[str, Any]]:
        """Look at the newest batches."""
        return list(await self._details.latest(limit))

    async def mode(self) -> Mapping[str, Any]:
        """Return the mode."""
        return {"mode": await self._details.mode()}

    async def set_mode(self, mode: str, progress: Callable[[str], None]) -> Mapping[str, Any]:
        """Change the mode."""
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
