"""The ledger as one process writes it: opened and settled calls in shared statements, under a session of its own.

Guarantees: an answer is on disk before anybody reads it. What has ended is recorded for as long as the process lives: a
store that is away only puts it off, so that no paid answer is lost and no key stays held by a call that nobody makes.
An answer that the store refuses is lost, but not its cost, and not the key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from headrace.llm.coalescing import Coalescer
from headrace.llm.spool import Spool, Spooler
from headrace.model.calls import CallState, NewCall, Opening, Settlement, SpooledPart, Verdict
from headrace.model.errors import HeadraceError, StoreUnavailableError
from headrace.model.llm import StoredAnswer
from headrace.ports.call_store import CallStore

LOG = logging.getLogger("headrace.llm")

R = TypeVar("R")

_AGAIN_AFTER: Sequence[timedelta] = (timedelta(seconds=0.2), timedelta(seconds=1))
#: What has ended is recorded, however long that takes.
_SETTLE_AGAIN_AFTER: Sequence[timedelta] = (*_AGAIN_AFTER, timedelta(seconds=2))
#: Whoever paid for an answer waits so long for a store that restarts; who has nothing to lose, less long.
_PATIENCE, _LITTLE_PATIENCE = timedelta(seconds=30), timedelta(seconds=5)
_PUT_OFF = (
    "The store has been away since the model answered. The answer is kept in memory and stored as soon as the store is "
    "there again; ask the same then, at no cost."
)
_REFUSED = (
    "The store refused to keep the model's answer, so it is lost; its cost is on record, with the call as orphaned. "
    "Asking the same again is another call. Report this with what the store said"
)
#: Code of a call whose answer was refused.
_NOT_STORED = "not_stored"


class Ledger:
    """Opens and settles calls. `session` returns the id of this process's session, which lives as long as it."""

    def __init__(self, store: CallStore, session: Callable[[], Awaitable[UUID]]) -> None:
        self._store, self._session = store, session
        # Futures belong to one event loop; scripts that call asyncio.run twice have two.
        self._desks: WeakKeyDictionary[asyncio.AbstractEventLoop, _Desk] = WeakKeyDictionary()

    async def open(self, call: NewCall) -> Opening:
        """Say what a call may do; where it may go, it is recorded when this returns. Raises StoreUnavailableError."""
        desk = self._desk
        await desk.stored(call.key)
        future = desk.opening.put(call)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # It may be recorded by now, and would hold its key as long as this process lives.
            desk.behind(self._give_up(call, future))
            raise
        except HeadraceError as error:
            # The same: that it was recorded may be what was not heard.
            if error.transient:
                desk.behind(self.drop(call))
            raise

    async def send(self, call: NewCall) -> bool:
        """Record a prepared call as sent; False: it was given up meanwhile, as one of a dead session is.

        Raises StoreUnavailableError.
        """
        return await self._desk.sending.put(call.id)

    async def settle(self, settlement: Settlement) -> StoredAnswer | None:
        """Record how a call ended and return the answer that stands under its key.

        It is recorded also where the caller is cancelled. Raises StoreUnavailableError where the store is away for
        long; it is then recorded later.
        """
        return await self._settle(settlement, _PATIENCE)

    async def note(self, settlement: Settlement) -> None:
        """Record how a call ended of which there is no answer; where the store is away, later."""
        try:
            await self._settle(settlement, _LITTLE_PATIENCE)
        except HeadraceError as error:
            LOG.warning("the end of a model call (%s) is not recorded yet: %s", settlement.call.id, error)

    async def drop(self, call: NewCall) -> None:
        """Give up a call that was only prepared: nothing was sent."""
        await self.note(Settlement(call=call, error="not_sent"))

    async def _settle(self, settlement: Settlement, patience: timedelta) -> StoredAnswer | None:
        future = self._desk.settling.put(settlement)
        # Its error is seen, even where nobody waits any more.
        future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        done, _ = await asyncio.wait([future], timeout=patience.total_seconds())
        if not done:
            self._desk.put_off(settlement.call.key, future)
            raise StoreUnavailableError(_PUT_OFF)
        return future.result()

    def spool(self, call: NewCall) -> Spool:
        """Return what stores the parts of a call's streamed answer, together with those of others."""
        return Spool(call.id, self._desk.spooler)

    async def _give_up(self, call: NewCall, opening: asyncio.Future[Opening]) -> None:
        try:
            recorded = (await opening).verdict is Verdict.OPENED
        except HeadraceError as error:
            recorded = error.transient
        if recorded:
            await self.drop(call)

    async def drain(self, longest: timedelta) -> None:
        """Wait until everything that ended on this event loop is recorded, for `longest` at most."""
        await self._desk.drain(longest)

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
        self.sending: Coalescer[UUID, bool] = Coalescer(self._send)
        self.settling: Coalescer[Settlement, StoredAnswer | None] = Coalescer(self._settle)
        self.spooler = Spooler(self._spool)
        self._behind: set[asyncio.Task[None]] = set()
        self._late: dict[str, asyncio.Future[Any]] = {}

    def put_off(self, key: str, recorded: asyncio.Future[Any]) -> None:
        """Let nobody ask the same before it is recorded how the call ended: its session may have ended meanwhile."""
        self._late[key] = recorded
        recorded.add_done_callback(lambda ended: self._late.get(key) is ended and self._late.pop(key))

    async def stored(self, key: str) -> None:
        """Wait until what was put off is recorded. Raises StoreUnavailableError where the store is still away."""
        if (late := self._late.get(key)) is not None:
            done, _ = await asyncio.wait([late], timeout=_LITTLE_PATIENCE.total_seconds())
            if not done:
                raise StoreUnavailableError(_PUT_OFF)

    def behind(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.create_task(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def drain(self, longest: timedelta) -> None:
        """Wait until all of it is done; what is not done in time is given up."""
        if self._behind:
            await asyncio.wait(self._behind, timeout=longest.total_seconds())
        lost, _ = await asyncio.gather(self.settling.drain(longest), self.spooler.drain(longest))
        if lost:
            LOG.error("%d ends of model calls, with their answers, could not be stored: the store is away", lost)

    async def _open(self, calls: list[NewCall]) -> Sequence[Opening]:
        async def once() -> list[Opening]:
            return await self._store.open_calls(await self._session(), calls)

        return await _again(once, _AGAIN_AFTER)

    async def _send(self, calls: list[UUID]) -> Sequence[bool]:
        sent = await _again(lambda: self._store.send_calls(calls), _AGAIN_AFTER)
        return [call in sent for call in calls]

    async def _spool(self, parts: list[SpooledPart]) -> Sequence[None]:
        # Lost parts would leave a gap in every answer that is on its way, and what lies behind a gap is of no use.
        await _again(lambda: self._store.spool_items(parts), _AGAIN_AFTER)
        return [None] * len(parts)

    async def _settle(self, settlements: list[Settlement]) -> Sequence[StoredAnswer | None]:
        try:
            return await self._store_ends(settlements)
        except Exception as error:
            # Of many each is sent again alone.
            if len(settlements) > 1:
                raise
            await self._settle_bare(settlements[0], error)
            return [None]

    async def _settle_bare(self, refused: Settlement, error: Exception) -> None:
        """Record the end of a call without what the provider said: its key is free then, and its cost on record."""
        is_lost = refused.answer is not None
        bare = replace(refused, answer=None, request_id=None)
        if is_lost:
            bare = replace(bare, state=CallState.ORPHANED, error=_NOT_STORED)
        try:
            await self._store_ends([bare])
        except Exception as again:
            LOG.error("the end of a model call (%s) could not be stored: %s", refused.call.id, again)
            raise error from None
        if is_lost:
            raise HeadraceError(f"{_REFUSED} ({error})") from error

    async def _store_ends(self, settlements: list[Settlement]) -> Sequence[StoredAnswer | None]:
        pauses = chain(_SETTLE_AGAIN_AFTER, repeat(_SETTLE_AGAIN_AFTER[-1]))
        return await _again(lambda: self._store.settle_calls(settlements), pauses)


async def _again(attempt: Callable[[], Awaitable[R]], pauses: Iterable[timedelta]) -> R:
    for pause in pauses:
        try:
            return await attempt()
        except HeadraceError as error:
            if not error.transient:
                raise
        await asyncio.sleep(pause.total_seconds())
    return await attempt()
