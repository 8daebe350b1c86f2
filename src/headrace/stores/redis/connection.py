"""A Redis store's server: a few connections to its primary, wherever that is by now.

Commands of all callers go out at once and share the connections, so that the server meets them in groups. A command
that was sent and whose answer is lost is never sent again, except a read: whether it ran is for the verb to find out
(docs/explanation/redis-store.md). What the server did not do for want of being the primary, or of being ready, is
tried again for a short time.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.model.errors import HeadraceError, StorageResetError, StoreUnavailableError
from headrace.stores.redis.addresses import Address, Kind, Node
from headrace.stores.redis.faults import NotTakenError
from headrace.stores.redis.primary import Finder
from headrace.stores.redis.wire import Entry, Wire, Word, connect

#: Pauses before a command is tried again that the server did not take; a read also after a lost answer.
_PAUSES = (0.02, 0.1, 0.3, 0.6)
#: Another connection is opened when each has so many commands under way.
_BUSY = 16
#: A server that is silent for so long may not be the primary any more.
_SUSPECT = 2.5


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to reach the server. Durations bound a wait each; none of them is endless."""

    address: Address
    #: The name of the namespace in braces: the hash tag of all its keys.
    root: str = "{headrace}"
    size: int = 10
    connect_timeout: timedelta = timedelta(seconds=5)
    #: For the answer to one command; finds links that died silently.
    command_timeout: timedelta = timedelta(seconds=10)


class Server:
    """Commands on the primary of a store. It belongs to the event loop that made it."""

    def __init__(
        self,
        options: ServerOptions,
        *,
        on_reset: Callable[[Server], None] | None = None,
        finder: Finder | None = None,
    ) -> None:
        """`on_reset` is called when a script finds that the data is another one than before.

        `finder` is that of another one for the same namespace, so that this one knows what that learned.
        """
        self.options, self._on_reset = options, on_reset
        address = options.address
        self.finder = finder or Finder(address, options.root)
        self._entry = Entry(
            address.login, address.tls, address.db, options.connect_timeout, options.command_timeout, address.setting
        )
        self._primary: Node | None = None
        self._wires: list[Wire] = []
        self._opening: asyncio.Task[Wire] | None = None
        self._patrol: asyncio.Task[None] | None = None
        self._closed = False

    async def call(self, *words: Word, read: bool = False, raw: bool = False) -> Any:
        """Send one command and return its answer; texts are str, with `raw` bytes.

        `read` says that the command writes nothing, so that it is sent again after a lost answer. Raises
        StoreUnavailableError, NotAllowedError, StoreFullError (nothing was accepted: no memory), and RefusedError for
        any other error that the server answers: its `word` is the first word of that, NOSCRIPT for example.
        """
        for pause in _PAUSES:
            wire = await self._take()
            try:
                return await self._ask(wire, words, raw=raw)
            except StorageResetError:
                if self._on_reset is not None:
                    self._on_reset(self)
                raise
            except StoreUnavailableError as error:
                if self._closed or not (isinstance(error, NotTakenError) or (read and error.transient)):
                    raise
                if isinstance(error, NotTakenError) and error.moved:
                    self._leave(wire)
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - spreads rivals, no secret
        return await self._ask(await self._take(), words, raw=raw)

    async def _ask(self, wire: Wire, words: tuple[Word, ...], *, raw: bool) -> Any:
        answer = wire.ask(words, raw=raw)
        try:
            await wire.ready()
        except BaseException:
            answer.cancel()  # who waited has given up: what comes is read and dropped
            raise
        return await answer

    async def connect(self, *, factory: type[Wire] = Wire) -> Wire:
        """Return a connection of its own to the primary; the caller closes it. Raises StoreUnavailableError."""
        if self._primary is None:
            self._primary = await self.finder.find()
        try:
            return await connect(self._primary, self._entry, factory=factory)
        except HeadraceError:
            # Perhaps another one is the primary by now.
            self._primary = None
            raise

    async def close(self) -> None:
        """Close all connections once what is under way was answered."""
        self._closed = True
        tasks = [task for task in (self._opening, self._patrol) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(wire.close() for wire in self._wires))

    async def _take(self) -> Wire:
        """Return the connection with the least to do; open another one where all are busy, or none is good."""
        if self._closed:
            raise StoreUnavailableError("This store was closed. Open the application again before using it.")
        self._wires = [wire for wire in self._wires if wire.closed is None]
        good = [wire for wire in self._wires if not wire.abandoned]
        if not good and self._make_room():
            # Shielded: who gives up must not take it from the others who wait for it.
            return await asyncio.shield(self._open())
        best = min(good or self._wires, key=lambda wire: wire.waiting)
        if best.waiting >= _BUSY and len(self._wires) < self.options.size:
            self._open()
        return best

    def _make_room(self) -> bool:
        """Return whether another connection may be opened, in place of one that nobody waits for if need be.

        One that others wait for is never ended for a newcomer: what they sent may have run.
        """
        if len(self._wires) < self.options.size:
            return True
        deserted = next((wire for wire in self._wires if wire.deserted), None)
        if deserted is None:
            return False
        self._wires.remove(deserted)
        deserted.abort("its callers gave up")
        return True

    def _open(self) -> asyncio.Task[Wire]:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_one(), name="headrace-connect")
            self._opening.add_done_callback(_no_word)
        return self._opening

    async def _open_one(self) -> Wire:
        try:
            wire = await self.connect()
            self._wires.append(wire)
            if self._patrol is None and self.options.address.kind is not Kind.SERVER:
                self._patrol = asyncio.create_task(self._watch_primary(), name="headrace-patrol")
            return wire
        finally:
            self._opening = None

    def _leave(self, wire: Wire) -> None:
        """Look for the primary anew: this one says that it is none."""
        if self.options.address.kind is not Kind.SERVER:
            self._primary = None
            wire.abort("it is not the primary any more")

    async def _watch_primary(self) -> None:
        """Look for the primary anew when it is silent: one that hangs says nothing of its successor."""
        while True:
            await asyncio.sleep(_SUSPECT / 2)
            if max((wire.silent_for() for wire in self._wires if wire.closed is None), default=0) < _SUSPECT:
                continue
            with contextlib.suppress(HeadraceError):
                self._primary = now = await self.finder.find()
                for wire in [wire for wire in self._wires if wire.node != now]:
                    wire.abort(f"{now} is the primary now")


def _no_word(task: asyncio.Task[Wire]) -> None:
    """Let a connection fail that was opened in advance: whoever needs one sees it."""
    if not task.cancelled():
        task.exception()
