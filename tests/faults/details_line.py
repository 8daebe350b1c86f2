"""The servers and processes that make details, together or apart, and how each of them dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.settings import Settings, load_settings
from headrace.testing.provider import ProviderProcess
from tests.backends.kafka import KafkaBroker
from tests.backends.server import PostgresServer, die_with_parent
from tests.backends.valkey import ValkeyServer
from tests.faults.details_client import DetailsClient
from tests.faults.site import ROOT
from tests.waiting import wait_until

APP = "headrace.apps.details.worker:app"
#: Everything in one process.
TOGETHER: Mapping[str, Sequence[str]] = {"service": ("serve", APP, "--port", "{port}", "--worker")}
#: Each thing in a process of its own; two agents share the work.
APART: Mapping[str, Sequence[str]] = {
    "service": ("serve", APP, "--port", "{port}"),
    "worker": ("worker", APP),
    "relay": ("relay",),
    "agent": ("agent", APP),
    "other agent": ("agent", APP),
    "callback": ("callback",),
}
_NO = "0"
#: A server that was killed is away for so long.
AWAY_SECONDS = 1.0


@dataclass
class DetailsLine:
    """The servers and processes; `broker` and `redis` are None where the store does their part."""

    postgres: PostgresServer
    provider: ProviderProcess
    folder: Path
    port: int
    redis: ValkeyServer | None = None
    broker: KafkaBroker | None = None
    processes: Mapping[str, Sequence[str]] = field(default_factory=lambda: TOGETHER)
    #: More that the processes are told.
    told: Mapping[str, str] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def client(self) -> DetailsClient:
        """A client of the service."""
        return DetailsClient("127.0.0.1", self.port)

    @property
    def servers(self) -> dict[str, Any]:
        """The servers there are, by name."""
        servers = {"postgres": self.postgres, "redis": self.redis, "broker": self.broker}
        return {name: server for name, server in servers.items() if server is not None}

    @property
    def environment(self) -> dict[str, str]:
        """What the processes are told."""
        told = {
            "HEADRACE_URL": self.postgres.dsn, "HEADRACE_DIRECTORY": str(self.folder),
            "HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "3s", "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "750ms",
            # Known and sufficient: a quota that is not known is learnt, beginning with little.
            "HEADRACE_LLM_REQUESTS_PER_MINUTE": "60000", "HEADRACE_LLM_TOKENS_PER_MINUTE": "50000000",
            **self.provider.environment, **self.told,
        }  # fmt: skip
        if self.redis is not None:
            told["HEADRACE_LIMITS_URL"] = self.redis.url
        if self.broker is not None:
            told |= {
                "HEADRACE_EVENTS_BUS": "kafka", "HEADRACE_EVENTS_KAFKA_SERVERS": self.broker.servers,
                "HEADRACE_EVENTS_KAFKA_SESSION_TIMEOUT": "6s",
            }  # fmt: skip
        if "relay" in self.processes:
            told |= {f"HEADRACE_WORKER_{part}_ENABLED": _NO for part in ("RELAY", "AGENTS", "CALLBACK")}
        return told

    @property
    def settings(self) -> Settings:
        """The same, for an app in this process."""
        return load_settings(environ=self.environment, file=self.folder / "none.toml")

    async def start_all(self) -> None:
        """Start every process and wait until all work."""
        for name in self.processes:
            self.start(name)
        await asyncio.gather(*(self.wait_until_started(name) for name in self.processes))

    def start(self, name: str) -> None:
        """Start a process; what it says goes to a file of its name."""
        words = [word.format(port=self.port) for word in self.processes[name]]
        command = [sys.executable, "-m", "headrace", *words, "--json"]
        environment = {**os.environ, **self.environment, "PYTHONPATH": str(ROOT)}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )  # fmt: skip

    async def kill(self, name: str) -> None:
        """Kill a process or server as a power cut does, and start it again a little later."""
        if name in self.servers:
            server = self.servers[name]
            await asyncio.to_thread(server.stop, signal.SIGQUIT if name == "postgres" else signal.SIGKILL)
            await asyncio.sleep(AWAY_SECONDS)
            await asyncio.to_thread(server.start)
            return
        self.running[name].kill()
        self.running[name].wait(10)
        self.start(name)
        await self.wait_until_started(name)

    async def wait_until_started(self, name: str) -> None:
        """Wait until a process works."""
        pid = self.running[name].pid

        def started() -> bool:
            assert self.running[name].poll() is None, self.log_of(name)
            return any(f'"pid": {pid}' in line and '"started"' in line for line in self.log_of(name).splitlines())

        await wait_until(started, timedelta(seconds=90), message=f"{name} to start")

    @property
    def ended(self) -> dict[str, str]:
        """Processes that ended by themselves, with the end of what they said."""
        gone = [name for name, process in self.running.items() if process.poll() is not None]
        return {name: self.log_of(name) for name in gone}

    def end(self) -> None:
        """End every process."""
        for process in self.running.values():
            process.kill()
            process.wait(10)

    def log_of(self, name: str) -> str:
        """Return the end of what a process said."""
        return (self.folder / f"{name}.log").read_text()[-3_000:]

    def cpu_seconds(self) -> dict[str, float]:
        """Return what the processes have used of processors."""
        tick, used = os.sysconf("SC_CLK_TCK"), {}
        for name, process in self.running.items():
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            used[name] = (int(fields[11]) + int(fields[12])) / tick
        return used


def describe(report: Mapping[str, Any]) -> str:
    """Return a report as one line of JSON."""
    return json.dumps(report, default=str)
