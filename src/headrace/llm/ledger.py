"""The ledger as one process writes it: opened and settled calls in shared statements, under a session of its own.

Guarantees: an answer is on disk before anybody reads it; a paid answer is worth waiting for a store that restarts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from headrace.llm.coalescing import Coalescer
from headrace.model.calls import NewCall, Opening, Settlement, Verdict
from headrace.model.errors import HeadraceError
from headrace.model.llm import StoredAnswer
from headrace.ports.call_store import CallStore

R = TypeVar("R")

_OPEN_AGAIN_AFTER: Sequence[timedelta] = (timedelta(seconds=0.2), timedelta(seconds=1))
#: A paid answer is worth a longer wait.
_SETTLE_AGAIN_AFTER: Sequence[timedelta] = (timedelta(seconds=0.2), timedelta(seconds=1), timedelta(seconds=4))


class Ledger:
    """Opens and settles calls. `session` returns the id of this process's session, which lives as long as it."""

    def __init__(self, store: CallStore, session: Callable[[], Awaitable[UUID]]) -> None:
        self._store, self._session = store, session
        # Futures belong to one event loop; scripts that call asyncio.run twice have two.
        self._desks: WeakKeyDictionary[asyncio.AbstractEventLoop, _Desk] = WeakKeyDictionary()

    async def open(self, call: NewCall) -> Opening:
        """Say what a call may do; where it may go, it is recorded when this returns. Raises StoreUnavailableError."""
        desk = self._desk
        future = desk.opening.put(call)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # It may be recorded by now, and would hold its key as long as this process lives.
            desk.behind(self._give_up(call, future))
            raise

    async def send(self, call: NewCall) -> bool:
        """Record a prepared call as sent; False: it was given up meanwhile, as one of a dead session is."""
        return call.id in await self._store.send_calls([call.id])

    async def settle(self, settlement: Settlement) -> StoredAnswer | None:
        """Record how a call ended and return the answer that stands under its key. Raises StoreUnavailableError."""
        return await self._desk.settling.put(settlement)

    async def drop(self, call: NewCall) -> None:
        """Give up a call that was only prepared: nothing was sent."""
        await self.settle(Settlement(call=call, error="not_sent"))

    async def spool(self, call: NewCall, start: int, parts: Sequence[str]) -> None:
        """Store parts of a streamed answer."""
        await self._store.spool_items(call.id, start, parts)

    async def _give_up(self, call: NewCall, opening: asyncio.Future[Opening]) -> None:
        with contextlib.suppress(HeadraceError):
            if (await opening).verdict is Verdict.OPENED:
                await self.drop(call)

    async def drain(self) -> None:
        """Wait until everything that was settled on this event loop is recorded."""
        await self._desk.drain()

    @property
    def _desk(self) -> _Desk:
        loop = asyncio.get_running_loop()
        if loop not in self._desks:
            self._desks[loop] = _Desk(self._store, self._session)
        return self._desks[loop]


class _Desk:
    """What one event loop sends together."""

    def __init__(self, store: CallStore, session: Callable[[], Awaitable[UUID]]) -> None:
        self._store, self._session = store, session
        self.opening: Coalescer[NewCall, Opening] = Coalescer(self._open)
        self.settling: Coalescer[Settlement, StoredAnswer | None] = Coalescer(self._settle)
        self._behind: set[asyncio.Task[None]] = set()

    def behind(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.create_task(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def drain(self) -> None:
        """Wait until all of it is done."""
        await asyncio.gather(*self._behind, return_exceptions=True)
        await self.settling.drain()

    async def _open(self, calls: list[NewCall]) -> Sequence[Opening]:
        async def once() -> list[Opening]:
            return await self._store.open_calls(await self._session(), calls)

        return await _again(once, _OPEN_AGAIN_AFTER)

    async def _settle(self, settlements: list[Settlement]) -> Sequence[StoredAnswer | None]:
        return await _again(lambda: self._store.settle_calls(settlements), _SETTLE_AGAIN_AFTER)


async def _again(attempt: Callable[[], Awaitable[R]], pauses: Sequence[timedelta]) -> R:
    for pause in pauses:
        try:
            return await attempt()
        except HeadraceError as error:
            if not error.transient:
                raise
        await asyncio.sleep(pause.total_seconds())
    return await attempt()
