"""One test's farm: a schema, a broker, workers of the farm, and workers that send jobs to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.settings import load_settings
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import die_with_parent, shared_server
from tests.backends.valkey import ValkeyServer
from tests.faults.farm_tasks import GATES, LOG, app
from tests.faults.site import LIMITS
from tests.waiting import wait_until_sync

ROOT = Path(__file__).resolve().parent.parent.parent
APP = "tests.faults.farm_tasks:app"
#: From the death of a worker of the farm until its job runs elsewhere: its key expires, and is missed; a busy machine.
TAKEOVER = timedelta(seconds=40)
HERE = '[queues.here]\nexecutor = "local"\n'


@dataclass
class Farm:
    """What a test has."""

    broker: ValkeyServer
    root: Path
    schema: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What processes get beside the environment of the test."""
        return {
            **LIMITS,
            "HEADRACE_URL": shared_server().dsn,
            "HEADRACE_QUEUE_SCHEMA": self.schema,
            "HEADRACE_DIRECTORY": str(self.root / "data"),
            "HEADRACE_CONFIG": str(self.root / "headrace.toml"),
            "HEADRACE_WORKER_EXECUTOR": "celery",
            "HEADRACE_CELERY_BROKER_URL": self.broker.url,
            LOG: str(self.root / "effects"),
            GATES: str(self.root),
        }

    def start(self, *words: str, app: str = APP, cwd: Path = ROOT) -> subprocess.Popen[bytes]:
        """Start a command of Headrace in a process group of its own."""
        log = self.root / f"process-{len(self.processes)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "headrace", *words, app], cwd=cwd, stdout=output, stderr=output,
                start_new_session=True, env={**os.environ, **self.environment}, preexec_fn=die_with_parent,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def start_farm(self, concurrency: int = 2) -> subprocess.Popen[bytes]:
        """Start a worker of the farm, and wait until it says so."""
        before = len(self.alive)
        process = self.start("celery", "worker", "--concurrency", str(concurrency))

        def began() -> bool:
            assert process.poll() is None, self.logs()
            return len(self.alive) > before

        wait_until_sync(began, message="a worker of the farm")
        return process

    @property
    def alive(self) -> list[str]:
        """The keys of workers of the farm that are alive."""
        return [key for key in self.broker.call("KEYS", "headrace:farm:worker:*").split("\r\n") if "worker:" in key]

    def said(self) -> dict[str, Any]:
        """Return what the only worker of the farm said last."""
        [key] = self.alive
        said: dict[str, Any] = json.loads(self.broker.call("GET", key))
        return said

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker that sends jobs."""
        return self.start("worker", "--json")

    def effects(self, kind: str, number: int | None = None) -> list[dict[str, Any]]:
        """Return what handlers did."""
        log = self.root / "effects"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if line["kind"] == kind and number in (None, line["number"])]

    def counts(self, kind: str) -> dict[int, int]:
        """Return how often each number was done."""
        return dict(Counter(line["number"] for line in self.effects(kind)))

    def open(self, gate: str) -> None:
        """Let handlers behind a gate go on."""
        (self.root / gate).touch()

    def logs(self) -> str:
        """Return what all processes wrote."""
        return "\n".join(path.read_text() for path in sorted(self.root.glob("process-*.log")))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process as a power cut does."""
        process.kill()
        process.wait(10)

    def stop(self) -> None:
        """End what was started, with its processes."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@asynccontextmanager
async def farm_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    """Set a farm up, with the app of the tasks on its store, and end it."""
    (root / "headrace.toml").write_text(HERE)
    async with empty_schema() as schema, stores_on(schema, None):
        with _broker() as broker:
            farm = Farm(broker, root, schema)
            for name in (LOG, GATES):
                monkeypatch.setenv(name, farm.environment[name])
            environ = {name: value for name, value in farm.environment.items() if name.startswith("HEADRACE_")}
            monkeypatch.setattr(app, "settings", load_settings(environ=environ), raising=False)
            try:
                yield farm
            finally:
                farm.stop()


@contextmanager
def _broker() -> Iterator[ValkeyServer]:
    server = ValkeyServer(port=True)
    try:
        yield server
    finally:
        server.remove()
