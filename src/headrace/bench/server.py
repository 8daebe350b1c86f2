"""The PostgreSQL that is measured on: one of our own with full durability, or the one the user names."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from headrace.bench.statements import read
from headrace.model.errors import NotAllowedError, StoreUnavailableError

if TYPE_CHECKING:
    from headrace.stores.postgres.embedded import EmbeddedPostgres

#: What makes a commit durable; the rest is as PostgreSQL and the embedded launcher have it.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
_STOP_SECONDS = 20.0


def weaknesses(settings: Mapping[str, str]) -> list[str]:
    """Return the settings by which a commit may be lost in a crash, as `name = value`.

    >>> weaknesses({"fsync": "on", "synchronous_commit": "off", "full_page_writes": "on"})
    ['synchronous_commit = off']
    """
    return [f"{name} = {settings[name]}" for name in DURABLE if settings.get(name) == "off"]


class BenchServer:
    """A server, and databases on it that live for one measurement."""

    def __init__(self, dsn: str, pid: int | None = None) -> None:
        self._dsn, self.pid = dsn, pid
        self._count = 0

    async def settings(self) -> dict[str, str]:
        """Return what its durability and speed rest on. Raises StoreUnavailableError."""
        connection = await self._connect()
        try:
            return {row["name"]: row["setting"] for row in await connection.fetch(read("durability"))}
        finally:
            await connection.close()

    async def new_database(self) -> tuple[str, str]:
        """Make an empty database; return its name and address."""
        self._count += 1
        name = f"headrace_bench_{os.getpid()}_{self._count}"
        await self._administer(read("create_database").replace("{name}", name))
        return name, _address(self._dsn, name)

    async def drop_database(self, name: str) -> None:
        """Remove a database, with whoever is still connected to it."""
        await self._administer(read("drop_database").replace("{name}", name))

    async def _administer(self, statement: str) -> None:
        import asyncpg

        connection = await self._connect()
        try:
            await connection.execute(statement)
        except asyncpg.InsufficientPrivilegeError as error:
            raise NotAllowedError(
                f"The user of --url may not make and drop databases ({error}). Give it CREATEDB, or leave --url out to "
                "have a server started."
            ) from error
        finally:
            await connection.close()

    async def _connect(self) -> Any:
        import asyncpg

        try:
            return await asyncpg.connect(self._dsn, timeout=10)
        except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InsufficientPrivilegeError) as error:
            raise NotAllowedError(
                f"The server of --url refuses this user ({error}). Correct user and password."
            ) from error
        except (OSError, asyncpg.PostgresError, ValueError, TimeoutError) as error:
            raise StoreUnavailableError(
                f"The server to measure on cannot be reached ({type(error).__name__}: {error}). Correct --url, or "
                "leave it out to have a server started."
            ) from error


@contextmanager
def own_server() -> Iterator[BenchServer]:
    """Run a throw-away server with full durability; it and its data are gone when the block ends."""
    from headrace.stores.postgres.embedded import start_embedded

    folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
    try:
        if os.geteuid() == 0:
            folder.chmod(0o711)  # the unprivileged user PostgreSQL runs as must get in
        with start_embedded(folder, settings=DURABLE, linger=timedelta(0)) as postgres:
            server = postgres.state.server
            try:
                yield BenchServer(postgres.dsn, server.pid if server else None)
            finally:
                postgres.release()
                _wait_for_end(postgres)
                # Not below `folder` where the user PostgreSQL runs as cannot get in.
                shutil.rmtree(postgres.home, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_end(postgres: EmbeddedPostgres) -> None:
    deadline = time.monotonic() + _STOP_SECONDS
    state = postgres.state
    while time.monotonic() < deadline and (state.supervisor.is_alive() or (state.server and state.server.is_alive())):
        _pause()


def _pause() -> None:
    import threading

    threading.Event().wait(0.02)


def _address(dsn: str, database: str) -> str:
    """Return the address of another database of the same server."""
    parts = urlsplit(dsn)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{quote(database)}{query}"
