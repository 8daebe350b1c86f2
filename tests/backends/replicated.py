"""A primary and a streaming standby of it, on ports of the loopback, for tests of a failover."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from headrace.hosting.ports import candidate_ports
from tests.backends.server import USER, PostgresServer

_NAME = "standby"


class Standby(PostgresServer):
    """A server that follows another until it is promoted."""

    def __init__(self, primary: PostgresServer, port: int) -> None:
        self._primary = primary
        super().__init__(durable=True, port=port, settings=[f"cluster_name={_NAME}"])

    def _initialise(self) -> None:
        """Copy the primary, and note that it is followed."""
        followed = f"host=127.0.0.1 port={self._primary.port} user={USER}"
        command = [
            str(self._bin / "pg_basebackup"),
            "-D",
            str(self.root / "data"),
            "-d",
            followed,
            "-R",
            "-X",
            "stream",
        ]
        subprocess.run([*command, "-c", "fast"], check=True, user=self.user, cwd=self.root, capture_output=True)


@dataclass
class Pair:
    """A primary, its standby, and the address that names both."""

    primary: PostgresServer
    standby: Standby

    @property
    def dsn(self) -> str:
        """Both servers, the primary first."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://{USER}@{hosts}/postgres?target_session_attrs=read-write"

    @property
    def backwards(self) -> str:
        """Both servers, the standby first."""
        hosts = f"127.0.0.1:{self.standby.port},127.0.0.1:{self.primary.port}"
        return f"postgresql://{USER}@{hosts}/postgres"

    async def replicate_synchronously(self) -> None:
        """Let no commit of the primary be acknowledged before the standby has it on disk."""
        await self.run(self.primary, f"ALTER SYSTEM SET synchronous_standby_names = '{_NAME}'")
        await self.run(self.primary, "SELECT pg_reload_conf()")
        async with asyncio.timeout(20):
            while not await self.run(self.primary, "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"):
                await asyncio.sleep(0.05)

    def kill_primary(self) -> None:
        """End every process of the primary at once, as a power cut does."""
        process = self.primary._process
        assert process is not None
        children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
        process.kill()
        for child in children.stdout.split():
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait(20)
        self.primary._process = None

    async def promote(self) -> None:
        """Make the standby the primary; return once it takes writes."""
        [[promoted]] = await self.run(self.standby, "SELECT pg_promote(true, 20)")
        assert promoted

    async def run(self, server: PostgresServer, statement: str) -> list[Any]:
        """Run a statement on one of the two."""
        connection = await asyncpg.connect(f"postgresql://{USER}@127.0.0.1:{server.port}/postgres")
        try:
            return list(await connection.fetch(statement))
        finally:
            await connection.close()


@contextmanager
def replicated_pair() -> Iterator[Pair]:
    """Start both servers."""
    primary = PostgresServer(
        durable=True, port=next(candidate_ports()), settings=["wal_level=replica", "hot_standby=on"]
    )
    try:
        standby = Standby(primary, next(candidate_ports()))
        try:
            yield Pair(primary, standby)
        finally:
            standby.remove()
    finally:
        primary.remove()
