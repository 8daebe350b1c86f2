"""A TCP proxy before a store that is as bad as a network: it cuts right after a commit, falls silent, is slow.

What a commit is the link says, which reads along: with PostgreSQL a statement that writes or the end of a transaction,
with Redis a script that writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Protocol

import hiredis

from headrace.stores.redis.scripts import load_script
from tests.backends.server import USER, PostgresServer
from tests.backends.valkey import ValkeyServer
from tests.faults.failpoints import writing_scripts
from tests.faults.site import Site

CHUNK = 65_536
_WRITES = re.compile(rb"\b(INSERT INTO|UPDATE|DELETE FROM|CALL)\b")


def split_messages(buffer: bytearray) -> list[tuple[bytes, bytes]]:
    """Take the complete messages (type, content) of the protocol off a buffer."""
    messages = []
    while len(buffer) >= 5:
        size = struct.unpack_from("!I", buffer, 1)[0] + 1
        if len(buffer) < size:
            break
        messages.append((bytes(buffer[:1]), bytes(buffer[5:size])))
        del buffer[:size]
    return messages


class Link(Protocol):
    """One connection through the proxy, as far as the proxy understands it."""

    #: The answer to what is sent next is to be lost.
    doomed: bool

    def commits(self, data: bytes) -> bool:
        """Return whether what the client sends now makes the server commit something."""
        ...

    def ready(self, data: bytes) -> bool:
        """Return whether the server has answered all that was sent, or what is to be lost at least."""
        ...


@dataclass
class PostgresLink:
    """One to PostgreSQL, where a client waits for each answer."""

    doomed: bool = False
    started: bool = False
    in_transaction: bool = False
    bound: bytes = b""
    writing: set[bytes] = field(default_factory=set)
    sent: bytearray = field(default_factory=bytearray)
    answered: bytearray = field(default_factory=bytearray)

    def commits(self, data: bytes) -> bool:
        """Return whether what the client sends now makes the server commit something."""
        self.sent += data
        if not self.started:
            if len(self.sent) < 4 or len(self.sent) < (size := struct.unpack_from("!I", self.sent)[0]):
                return False
            del self.sent[:size]
            self.started = True
        kept = [self._commits(kind, content) for kind, content in split_messages(self.sent)]
        return any(kept)

    def _commits(self, kind: bytes, content: bytes) -> bool:
        match kind:
            case b"P":
                name, text = content.split(b"\x00", 2)[:2]
                (self.writing.add if _WRITES.search(text) else self.writing.discard)(name)
            case b"B":
                self.bound = content.split(b"\x00", 2)[1]
            case b"E":
                return self.bound in self.writing and not self.in_transaction
            case b"Q":
                return content.startswith(b"COMMIT")
        return False

    def ready(self, data: bytes) -> bool:
        """Return whether the server has answered all that was sent."""
        self.answered += data
        done = False
        for kind, content in split_messages(self.answered):
            done = kind == b"Z"
            if done:
                self.in_transaction = content != b"I"
        return done


class RedisLink:
    """One to Redis, where commands of many callers are under way at once: whose answers follow loses them as well."""

    def __init__(self) -> None:
        self.doomed = False
        self._sent, self._answers = hiredis.Reader(), hiredis.Reader()
        #: Commands sent, those up to the last one that writes, and answers that came.
        self._count, self._written, self._answered = 0, 0, 0

    def commits(self, data: bytes) -> bool:
        """Return whether a script that writes is among the commands that are complete by now."""
        self._sent.feed(data)
        writes = False
        while (words := self._sent.gets()) is not False:
            self._count += 1
            if not self.doomed and words[0] in (b"EVAL", b"EVALSHA") and words[1] in _writing():
                self._written, writes = self._count, True
        return writes

    def ready(self, data: bytes) -> bool:
        """Return whether the last of those was answered."""
        self._answers.feed(data)
        while self._answers.gets() is not False:
            self._answered += 1
        return self._answered >= self._written


@cache
def _writing() -> frozenset[bytes]:
    """Return how a command names a script that writes: by its digest, or by all of its text."""
    scripts = [load_script(name.removesuffix(".lua")) for name in writing_scripts()]
    return frozenset(name.encode() for script in scripts for name in (script.sha, script.text))


class Proxy:
    """Carries connections to a server; what it does to them may be changed at any time."""

    def __init__(self, server: PostgresServer | ValkeyServer, random: Random) -> None:
        self._server, self._random = server, random
        self.port = 0
        #: The share of commits whose answer is lost, and how many were.
        self.cut_share, self.cuts = 0.0, 0
        #: Nothing is passed any more, and nothing is closed: a half-open link.
        self.silent = False
        #: Seconds that each chunk takes at most, and bytes per second of each direction.
        self.delay, self.rate = 0.0, 0
        self._links: set[asyncio.StreamWriter] = set()

    @property
    def dsn(self) -> str:
        """The way through the proxy."""
        if isinstance(self._server, ValkeyServer):
            return f"redis://127.0.0.1:{self.port}"
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres?sslmode=disable"

    def _open(self) -> tuple[Link, str | Path]:
        """Return a link, and the socket it leads to."""
        if isinstance(self._server, ValkeyServer):
            return RedisLink(), self._server.socket
        return PostgresLink(), f"{self._server.root}/.s.PGSQL.5432"

    def close_all(self) -> None:
        """Reset every link."""
        for writer in self._links:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        link, socket = self._open()
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(socket)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, server_writer}
        self._links |= ends
        ways = [
            asyncio.create_task(self._forth(link, reader, server_writer)),
            asyncio.create_task(self._back(link, server_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in ends:
                end.transport.abort()
            self._links -= ends

    async def _forth(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            if link.commits(data) and self._random.random() < self.cut_share:
                link.doomed = True
            await self._pass(data, writer)

    async def _back(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            ready = link.ready(data)
            if link.doomed:
                if ready:
                    self.cuts += 1
                    return  # the server has committed, and nobody hears of it
                continue
            await self._pass(data, writer)

    async def _pass(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        if self.delay or self.rate:
            await asyncio.sleep(self._random.random() * self.delay + (len(data) / self.rate if self.rate else 0.0))
        if not self.silent:
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def proxy_to(site: Site, seed: int) -> AsyncIterator[Proxy]:
    """Run a proxy before the server of a site."""
    assert isinstance(site.server, PostgresServer | ValkeyServer)
    proxy = Proxy(site.server, Random(seed))
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listening.close()
        proxy.close_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await listening.wait_closed()
