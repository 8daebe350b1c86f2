"""The servers and processes that the events of a campaign pass through, and how each of them dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from headrace.settings import Settings, load_settings
from tests.backends.kafka import KafkaBroker
from tests.backends.server import PostgresServer, die_with_parent
from tests.backends.valkey import ValkeyServer
from tests.faults.event_app import GATES
from tests.faults.site import ROOT
from tests.integration.prefect_server import PrefectServer
from tests.waiting import wait_until

APP = "tests.faults.event_app:app"
#: The processes of the line, by name, and how they are started.
PROCESSES: Mapping[str, Sequence[str]] = {
    "relay": ("relay",),
    "agent": ("agent", APP),
    "other agent": ("agent", APP),
    "callback": ("callback",),
    "worker": ("worker", APP),
}
#: A server that was killed is away for so long.
AWAY_SECONDS = 1.0
QUIET = {"HEADRACE_WORKER_RELAY_ENABLED": "0", "HEADRACE_WORKER_AGENTS_ENABLED": "0"}


@dataclass
class Line:
    """The servers and processes of a campaign."""

    postgres: PostgresServer
    redis: ValkeyServer
    broker: KafkaBroker | None
    folder: Path
    #: Where flows suspend themselves, if the campaign has any.
    prefect: PrefectServer | None = None
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What the processes are told."""
        bus = {"HEADRACE_EVENTS_BUS": "store"}
        if self.broker is not None:
            bus = {
                "HEADRACE_EVENTS_BUS": "kafka", "HEADRACE_EVENTS_KAFKA_SERVERS": self.broker.servers,
                "HEADRACE_EVENTS_KAFKA_SESSION_TIMEOUT": "6s",
            }  # fmt: skip
        flows = {} if self.prefect is None else {"HEADRACE_EVENTS_PREFECT_API_URL": self.prefect.api_url}
        return {
            GATES: str(self.folder), "HEADRACE_URL": self.postgres.dsn, "HEADRACE_LIMITS_URL": self.redis.url,
            "HEADRACE_DIRECTORY": str(self.folder), "HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "3s",
            "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "750ms", "HEADRACE_WORKER_CALLBACK_ENABLED": "0",
            **QUIET, **bus, **flows,
        }  # fmt: skip

    @property
    def settings(self) -> Settings:
        """The same, for an app in this process."""
        return load_settings(environ=self.environment, file=self.folder / "none.toml")

    async def rows(self, table: str) -> int:
        """Count the rows of a table."""
        connection = await asyncpg.connect(self.postgres.dsn)
        try:
            return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))
        finally:
            await connection.close()

    def start(self, name: str) -> None:
        """Start a process; what it says goes to a file of its name."""
        command = [sys.executable, "-m", "headrace", *PROCESSES[name], "--json"]
        environment = {**os.environ, **self.environment, "PYTHONPATH": str(ROOT)}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )  # fmt: skip

    async def kill(self, name: str) -> None:
        """Kill a process or server as a power cut does, and start it again a little later."""
        servers: dict[str, Any] = {"redis": self.redis, "postgres": self.postgres, "broker": self.broker}
        if name in servers:
            server = servers[name]
            await asyncio.to_thread(server.stop, signal.SIGQUIT if name == "postgres" else signal.SIGKILL)
            await asyncio.sleep(AWAY_SECONDS)
            await asyncio.to_thread(server.start)
            return
        self.running[name].kill()
        self.running[name].wait(10)
        self.start(name)
        await self.wait_until_started(name)

    async def wait_until_started(self, name: str) -> None:
        """Wait until a process works: one that cannot reach its store when it starts ends again."""
        pid = self.running[name].pid

        def started() -> bool:
            assert self.running[name].poll() is None, self.log_of(name)
            return any(f'"pid": {pid}' in line and '"started"' in line for line in self.log_of(name).splitlines())

        await wait_until(started, message=f"{name} to start")

    def end(self) -> None:
        """End every process."""
        for process in self.running.values():
            process.kill()
            process.wait(10)

    def log_of(self, name: str) -> str:
        """Return the end of what a process said."""
        return (self.folder / f"{name}.log").read_text()[-3_000:]
