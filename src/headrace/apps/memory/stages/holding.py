"""Holding a flush: its lease is renewed while it is worked on, and who has lost it stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace.apps.memory.data.flushes import Held
from headrace.apps.memory.errors import LostFlushError
from headrace.apps.memory.means import TABLES, settings

LOG = logging.getLogger("headrace.memory")


@asynccontextmanager
async def held(flush: Held) -> AsyncIterator[None]:
    """Renew the lease of a flush within the block; cancel the block and raise LostFlushError once it is another's."""
    task = asyncio.current_task()
    assert task is not None
    lost = False

    async def renew() -> None:
        nonlocal lost
        lease = settings().lease
        while True:
            await asyncio.sleep(lease.total_seconds() / 3)
            try:
                if not await TABLES.renew(flush, lease):
                    lost = True
                    task.cancel()
                    return
            except Exception as error:
                # It may go well the next time; what is written says the fence anyway.
                LOG.warning("the lease of flush %s was not renewed: %r", flush.flush.id, error)

    renewing = asyncio.create_task(renew(), name="headrace-memory-lease")
    try:
        yield
    except asyncio.CancelledError:
        if lost and task.uncancel() == 0:
            raise LostFlushError from None
        raise
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
