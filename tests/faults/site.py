"""One test's system: a schema of its own, worker processes, gates, and the log of effects."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.settings import Settings, load_settings
from tests.backends.replicated import Pair
from tests.backends.server import PostgresServer
from tests.backends.valkey import ValkeyServer
from tests.faults.redis_witness import is_redis
from tests.faults.tasks import GATES, LOG
from tests.waiting import wait_until_sync

ROOT = Path(__file__).resolve().parent.parent.parent
APP = "tests.faults.tasks:app"
LEASE = timedelta(seconds=3)
#: From a death to the run elsewhere, where only the lease tells of it: lease, sweep, claim, and a busy machine.
RECOVERY = timedelta(seconds=15)
#: The same, where the death is seen on this host.
RECOVERY_HERE = timedelta(seconds=6)
LIMITS = {
    "HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "3s",
    "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "750ms",
    "HEADRACE_RECOVERY_CHECK_INTERVAL": "500ms",
    "HEADRACE_RECOVERY_AGGREGATE_INTERVAL": "1s",
    "HEADRACE_WORKER_SHUTDOWN_GRACE": "10s",
}


@dataclass
class WorkerProcess:
    """A worker that was started by the command line."""

    process: subprocess.Popen[bytes]
    output: Path

    @property
    def pid(self) -> int:
        """The process that was started; it runs the handlers, unless it is isolated."""
        return self.process.pid

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return what it announced so far."""
        lines = self.output.read_text().splitlines() if self.output.exists() else []
        said = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in said if line.get("event") == event]

    def wait_until_started(self) -> WorkerProcess:
        """Wait until it has a session."""

        def started() -> bool:
            assert self.process.poll() is None, self.log()
            return bool(self.events("started"))

        wait_until_sync(started, message="a worker to start")
        return self

    def log(self) -> str:
        """Return what it logged."""
        return self.output.with_suffix(".log").read_text()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process that was started."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut does, and reap it."""
        self.process.kill()
        self.process.wait(10)

    def wait(self, seconds: float = 20) -> int:
        """Wait for its end and return its exit code."""
        return self.process.wait(seconds)


@dataclass
class Site:
    """Where a test happens."""

    server: PostgresServer | ValkeyServer | Pair
    #: the schema, or the prefix of a Redis store
    schema: str
    root: Path
    workers: list[WorkerProcess] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What processes of this site get beside the environment of the test."""
        own = {"HEADRACE_URL": self.server.dsn}
        own["HEADRACE_QUEUE_STREAM_PREFIX" if is_redis(self.server.dsn) else "HEADRACE_QUEUE_SCHEMA"] = self.schema
        return {**LIMITS, **own, LOG: str(self.root / "effects"), GATES: str(self.root / "gates")}

    def settings(self, **changes: str) -> Settings:
        """Return the settings of the worker processes, for an app in this process."""
        environ = {name: value for name, value in self.environment.items() if name.startswith("HEADRACE_")}
        return load_settings(environ={**environ, **changes}, file=Path("/nonexistent"))

    def start_worker(
        self, *options: str, isolated: bool = False, environ: Mapping[str, str] | None = None, app: str = APP
    ) -> WorkerProcess:
        """Start a worker; `isolated` puts it on a host of its own, as far as processes can see."""
        number = len(self.workers)
        output = self.root / f"worker-{number}.json"
        # The new namespace cannot be seen into from here, nor the other way round; it dies with its first process.
        namespace = ["unshare", "--kill-child=KILL", "-p", "-f", "--mount-proc"] if isolated else []
        command = [*namespace, sys.executable, "-m", "headrace", "worker", app, "--json", *options]
        with output.open("wb") as stdout, output.with_suffix(".log").open("wb") as stderr:
            process = subprocess.Popen(
                command, stdout=stdout, stderr=stderr, cwd=ROOT,
                env={**os.environ, **self.environment, **(environ or {})},
            )  # fmt: skip
        worker = WorkerProcess(process, output)
        self.workers.append(worker)
        return worker

    def start_workers(self, count: int, *options: str, environ: Mapping[str, str] | None = None) -> list[WorkerProcess]:
        """Start workers together and wait until all of them work."""
        workers = [self.start_worker(*options, environ=environ) for _ in range(count)]
        return [worker.wait_until_started() for worker in workers]

    def start_script(self, code: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a Python process of this site."""
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments], cwd=ROOT, env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
        )  # fmt: skip

    def open(self, gate: str) -> None:
        """Let the handlers at a gate go on."""
        (self.root / "gates" / gate).touch()

    def effects(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of the log of one kind."""
        log = self.root / "effects"
        # The last one may be half written yet.
        *whole, _ = log.read_text().split("\n") if log.exists() else [""]
        return [line for line in map(json.loads, whole) if line["event"] == event]

    def counts(self, event: str) -> Counter[int]:
        """Return how often each number had an effect."""
        return Counter(line["number"] for line in self.effects(event))

    def end(self) -> None:
        """Kill every process of the site that is left."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.signal(signal.SIGCONT)
                worker.kill()
