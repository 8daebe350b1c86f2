"""A proxy before a PostgreSQL socket that loses answers: as a network does between a commit and its confirmation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

CHUNK = 65_536


class CuttingProxy:
    """Passes bytes both ways until `cut_after` is set; then swallows answers."""

    def __init__(self, server_socket: Path) -> None:
        self._server_socket = server_socket
        #: The next execution of a statement that holds these bytes is passed on, its answer is not, and the link is
        #: cut. The statement must be one that its connection has not prepared yet.
        self.cut_after: bytes | None = None
        #: Nothing is passed any more, and nothing is closed: a half-open link.
        self.silent = False
        self.cuts = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        server_reader, server_writer = await asyncio.open_unix_connection(str(self._server_socket))
        doomed = asyncio.Event()
        forth = asyncio.create_task(self._forth(reader, server_writer, doomed))
        back = asyncio.create_task(self._back(server_reader, writer, doomed))
        await asyncio.wait([forth, back], return_when=asyncio.FIRST_COMPLETED)
        for task in (forth, back):
            task.cancel()
        await asyncio.gather(forth, back, return_exceptions=True)
        for end in (writer, server_writer):
            end.close()
            with contextlib.suppress(OSError):
                await end.wait_closed()

    async def _forth(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        prepared: bytes | None = None
        while data := await reader.read(CHUNK):
            if self.cut_after is not None and self.cut_after in data:
                # Parse: P, four bytes of length, the statement's name, its text. COMMIT comes as a simple query.
                prepared = data[5 : data.index(b"\x00", 5)] if data[:1] == b"P" else data
                self.cut_after = None
            if prepared is not None and data[:1] in (b"B", b"Q") and prepared in data:
                self.cuts += 1
                doomed.set()
            if not self.silent:
                writer.write(data)
                await writer.drain()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        while data := await reader.read(CHUNK):
            if doomed.is_set() and data.endswith((b"Z\x00\x00\x00\x05I", b"Z\x00\x00\x00\x05T")):
                return  # the server has answered, so it has committed; nobody hears of it
            if not doomed.is_set() and not self.silent:
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def cutting_proxy(server: Path, folder: Path) -> AsyncIterator[tuple[CuttingProxy, str]]:
    """Run a proxy before the server whose socket lies in `server`; give it and its folder for a DSN."""
    proxy = CuttingProxy(server / ".s.PGSQL.5432")
    listening = await asyncio.start_unix_server(proxy.serve, str(folder / ".s.PGSQL.5432"))
    try:
        yield proxy, str(folder)
    finally:
        listening.close()
