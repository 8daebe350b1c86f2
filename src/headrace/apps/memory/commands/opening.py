"""Opening memory for a command."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from headrace.apps.memory.memory import Memory

T = TypeVar("T")

user_argument = click.argument("user_id", metavar="USER")


def carry_out(work: Callable[[Memory], Awaitable[T]], *, makes: bool = False, works: bool = False) -> T:
    """Run `work` on open memory, on an event loop of its own, and return what it does.

    `makes`: tables that are missing are made first. `works`: this process does the work of memory meanwhile.
    """

    async def run() -> T:
        async with opened(makes=makes, works=works) as memory:
            return await work(memory)

    return asyncio.run(run())


@asynccontextmanager
async def opened(*, makes: bool = False, works: bool = False) -> AsyncIterator[Memory]:
    """Open memory. Raises ConfigError, NotAllowedError, StoreUnavailableError."""
    from headrace.apps.memory.memory import Memory

    memory = Memory()
    if works:
        # What failed is in what the command tells.
        logging.getLogger("headrace.jobs").setLevel(logging.ERROR)
        async with _worker():  # which makes the tables, too
            yield memory
        return
    async with memory.app:
        if makes:
            await memory.set_up()
        yield memory


def _worker() -> AbstractAsyncContextManager[Any]:
    from headrace.apps.memory.slots import slots_of
    from headrace.apps.memory.worker import app

    return app.worker(queues=slots_of(app))
