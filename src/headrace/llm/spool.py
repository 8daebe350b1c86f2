"""Parts of a streamed answer on disk while it is on its way, so that what has come survives the process."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from headrace.llm.ledger import Ledger
from headrace.model.calls import NewCall
from headrace.model.errors import HeadraceError

LOG = logging.getLogger("headrace.llm")

#: What came in less time than this may be lost with the process: each write is a transaction of its own.
SPOOL_SECONDS = 1.0


class Spool:
    """Stores the parts of one call's answer, a statement for all that came in `SPOOL_SECONDS`.

    Best effort: a store that is away costs the safety of these parts, not the answer.
    """

    def __init__(self, ledger: Ledger, call: NewCall) -> None:
        self._ledger, self._call = ledger, call
        self._fresh: list[str] = []
        self._written = 0
        self._writer: asyncio.Task[None] | None = None

    def add(self, text: str) -> None:
        """Store a part soon."""
        self._fresh.append(text)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="headrace-llm-spool")

    async def close(self) -> None:
        """End without storing more: the whole answer is about to be stored, or nobody knows how it ends."""
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)

    async def flush(self) -> None:
        """Store what has come so far."""
        await self.close()
        await self._write_fresh()

    async def _write(self) -> None:
        while self._fresh:
            await asyncio.sleep(SPOOL_SECONDS)
            await self._write_fresh()

    async def _write_fresh(self) -> None:
        text, self._fresh = "".join(self._fresh), []
        if not text:
            return
        with contextlib.suppress(HeadraceError):
            await self._ledger.spool(self._call, self._written, [text])
        self._written += 1
