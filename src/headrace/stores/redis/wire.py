"""One connection to a Redis server: commands go out as they come, answers are matched in their order.

A caller that is cancelled leaves its answer behind: it is read and dropped, and the connection stays good.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import hiredis

from headrace.model.errors import ConfigError, HeadraceError, NotAllowedError, StoreUnavailableError
from headrace.stores.redis.addresses import STORE_URL, Login, Node
from headrace.stores.redis.faults import RefusedError, shown, sort_answer, unreachable

#: What a command is made of; text goes as UTF-8.
Word = str | bytes | int | float
#: Above this many bytes that the kernel has not taken, callers wait.
_WRITE_LIMIT = 1 << 20
#: How long a server is tried without TLS that did not answer with it.
_TRIED_FOR = timedelta(seconds=1)


@dataclass(slots=True)
class _Asked:
    answer: asyncio.Future[Any]
    at: float
    #: Whether texts of the answer are wanted as bytes.
    raw: bool


class Wire(asyncio.Protocol):
    """An open connection. Use `connect` to make one; `closed` tells why it ended."""

    def __init__(self, node: Node, entry: Entry) -> None:
        self.node, self._setting = node, entry.setting
        self._timeout = entry.timeout.total_seconds()
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(encoding="utf-8", errors="surrogateescape")
        self._asked: deque[_Asked] = deque()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._watch: asyncio.TimerHandle | None = None
        #: Set once the connection is closed.
        self.ended = asyncio.Event()
        self.closed: StoreUnavailableError | None = None

    # Asking

    def ask(self, words: tuple[Word, ...], *, raw: bool = False) -> asyncio.Future[Any]:
        """Send a command and return its answer to come; the future raises what the server refused."""
        if self.closed is not None or self._transport is None:
            raise self.closed or self._unreachable("not connected")
        # First: a text that is no UTF-8 raises here, and what is not sent must not wait for an answer.
        sent = hiredis.pack_command(words)  # type: ignore[arg-type]  # its stub says one word
        asked = _Asked(self._loop.create_future(), self._loop.time(), raw)
        self._asked.append(asked)
        self._transport.write(sent)
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout / 4, self._look)
        return asked.answer

    async def ready(self) -> None:
        """Wait until the kernel takes what was sent."""
        if not self._writable.is_set():
            await self._writable.wait()

    @property
    def waiting(self) -> int:
        """Commands that are not answered yet."""
        return len(self._asked)

    def silent_for(self) -> float:
        """Seconds for which the oldest command has waited; 0 where none waits."""
        return self._loop.time() - self._asked[0].at if self._asked else 0.0

    @property
    def abandoned(self) -> bool:
        """Whether the caller of the oldest command has given up: perhaps the link is dead and nobody was told."""
        return bool(self._asked) and self._asked[0].answer.done()

    @property
    def deserted(self) -> bool:
        """Whether commands wait whose callers have all given up: nobody misses this connection."""
        return bool(self._asked) and all(asked.answer.done() for asked in self._asked)

    def _look(self) -> None:
        self._watch = None
        silent = self.silent_for()
        if silent > self._timeout:
            self.abort(f"no answer within {self._timeout:g} s")
        elif self._asked:
            self._watch = self._loop.call_later(self._timeout / 4, self._look)

    # Ending

    def abort(self, reason: object = "closed") -> None:
        """End now; whoever waits gets StoreUnavailableError."""
        self._fail(reason)
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """End once everything was answered, at most after 2 s."""
        asked = [one.answer for one in self._asked if not one.answer.done()]
        if asked:
            await asyncio.wait(asked, timeout=2)
        self._fail("closed")
        if self._transport is not None:
            self._transport.close()
            try:
                async with asyncio.timeout(2):
                    await self.ended.wait()
            except TimeoutError:
                self._transport.abort()

    def _fail(self, reason: object) -> None:
        if self.closed is None:
            self.closed = self._unreachable(reason)
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        while self._asked:
            answer = self._asked.popleft().answer
            if not answer.done():
                answer.set_exception(self._unreachable(reason))
        self._writable.set()

    def _unreachable(self, reason: object) -> StoreUnavailableError:
        return unreachable(str(self.node), reason, self._setting)

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # Not asserted: the transports of uvloop are no asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_WRITE_LIMIT)
        _notice_dead_links(self._transport)

    def data_received(self, data: bytes) -> None:
        """Hand answers to those who asked, in order."""
        self._reader.feed(data)
        while True:
            try:
                value = self._reader.gets(not self._asked[0].raw) if self._asked else self._reader.gets()
            except hiredis.ProtocolError as error:
                self.abort(f"no answer of a Redis server ({error})")
                return
            if value is False:
                return
            self.answered(value)

    def answered(self, value: Any) -> None:
        """Give one answer to the oldest command."""
        if not self._asked:
            self.abort("an answer that nobody asked for")
            return
        answer = self._asked.popleft().answer
        if answer.done():
            return
        if isinstance(value, hiredis.ReplyError):
            answer.set_exception(sort_answer(str(value), self._setting))
        else:
            answer.set_result(value)

    def pause_writing(self) -> None:
        """Let callers wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let callers go on."""
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell whoever waits."""
        self._fail(error or "the server closed the connection")
        self.ended.set()


@dataclass(frozen=True, slots=True)
class Entry:
    """How to get in: who we are, the database, and how long the connection and each command may take."""

    login: Login = Login()  # noqa: RUF009 - frozen
    tls: Callable[[], ssl.SSLContext] | None = None
    db: int = 0
    wait: timedelta = timedelta(seconds=5)
    timeout: timedelta = timedelta(seconds=10)
    #: what names the server, for errors
    setting: str = STORE_URL


async def connect(node: Node, entry: Entry, *, factory: type[Wire] = Wire) -> Wire:
    """Open a connection and log in. Raises StoreUnavailableError, NotAllowedError, ConfigError."""
    loop = asyncio.get_running_loop()
    wire = factory(node, entry)
    try:
        async with asyncio.timeout(entry.wait.total_seconds()):
            if node.path is not None:
                await loop.create_unix_connection(lambda: wire, node.path)
            else:
                tls = entry.tls() if entry.tls else None
                await loop.create_connection(lambda: wire, node.host, node.port, ssl=tls)
            await _enter(wire, entry)
    except TimeoutError:
        wire.abort()
        if entry.tls and await _speaks_openly(node, entry):
            raise ConfigError(
                f"{entry.setting} must begin with a scheme without TLS, as redis://, where the server has none on this "
                f"port, got TLS for {node}"
            ) from None
        raise unreachable(str(node), f"no connection within {entry.wait.total_seconds():g} s", entry.setting) from None
    except OSError as error:
        wire.abort()
        raise unreachable(str(node), error.strerror or error, entry.setting) from error
    except BaseException:
        wire.abort()
        raise
    return wire


async def _enter(wire: Wire, entry: Entry) -> None:
    login = entry.login
    asked = []
    if login.password is not None:
        asked.append(wire.ask(("AUTH", *([login.user] if login.user else []), login.password)))
    if entry.db:
        asked.append(wire.ask(("SELECT", entry.db)))
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, RefusedError) and entry.db:
            raise ConfigError(
                f"{entry.setting} must name a database that the server has, got {entry.db} ({shown(answer.answer)})"
            )
        if isinstance(answer, BaseException):
            raise answer


async def _speaks_openly(node: Node, entry: Entry) -> bool:
    """Whether a server that answers no TLS answers without; who we are it is not told."""
    try:
        wire = await connect(node, Entry(wait=_TRIED_FOR, timeout=_TRIED_FOR, setting=entry.setting))
        try:
            await wire.ask(("PING",))
        finally:
            wire.abort()
    except NotAllowedError:
        return True
    except HeadraceError:
        return False
    return True


def _notice_dead_links(transport: asyncio.Transport) -> None:
    """Let the kernel find within about 15 s that the peer is gone; without it a cut link looks merely slow."""
    link = transport.get_extra_info("socket")
    if link is None or link.family not in (socket.AF_INET, socket.AF_INET6):
        return
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 14_000)):
        if hasattr(socket, option):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
