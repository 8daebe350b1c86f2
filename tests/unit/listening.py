"""A service of an app of this process that a browser can reach."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace import App
from headrace.service.serving import Address, listen, serve_open
from tests.waiting import wait_until


@asynccontextmanager
async def listening(app: App, *, require_token: bool = False) -> AsyncIterator[str]:
    """Serve an app that is open, to anybody on this machine or to whoever has a token, and yield its URL."""
    address, stopping, told = Address("127.0.0.1", 0, require_token=require_token), asyncio.Event(), list[str]()
    with listen(address) as listener:
        task = asyncio.create_task(serve_open(app, address, listener, stopping=stopping, announce=told.append))
        await wait_until(lambda: told or task.done())
        try:
            yield told[0]
        finally:
            stopping.set()
            async with asyncio.timeout(10):
                await task
