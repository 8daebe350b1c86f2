"""A Prefect server of a test's own on loopback, with its data in a folder, and a process that serves flows."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from tests.waiting import wait_until_sync

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".venv-prefect" / "bin" / "python"
FLOWS = Path(__file__).with_name("prefect_flows.py")
#: A flow run begins in a process of its own, on a machine that may be busy.
PATIENCE = timedelta(seconds=150)
#: Between looks at a state: each costs the server what the flows need.
LOOK_SECONDS = 0.25
FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


@dataclass
class PrefectServer:
    """Where it is, and what runs there."""

    folder: Path
    port: int
    environment: dict[str, str]
    #: Kept, but not its connections: to make one takes as long as twenty looks at a server.
    client: httpx2.Client = field(
        default_factory=lambda: httpx2.Client(timeout=20, limits=httpx2.Limits(max_keepalive_connections=0))
    )

    @property
    def api_url(self) -> str:
        """The URL of its API."""
        return f"http://127.0.0.1:{self.port}/api"

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return what it answers; on SQLite it answers 500 now and then, and is asked again."""

        def ask() -> httpx2.Response | None:
            with contextlib.suppress(httpx2.TransportError):
                answer = self.client.request("GET" if body is None else "POST", self.api_url + path, json=body)
                return answer if answer.status_code < 500 else None
            return None

        answer = wait_until_sync(ask, PATIENCE, message=f"an answer to {path}")
        assert answer.status_code < 300, answer.text
        return answer.json()

    def begin(self, flow: str, **parameters: Any) -> str:
        """Begin a run of a flow that is served, and return its id."""
        deployment = self.ask(f"/deployments/name/{flow}/tests")["id"]
        run: str = self.ask(f"/deployments/{deployment}/create_flow_run", {"parameters": parameters})["id"]
        return run

    def state(self, run: str) -> dict[str, Any]:
        """Return the state of a flow run."""
        state: dict[str, Any] = self.ask(f"/flow_runs/{run}")["state"]
        return state

    def until(self, run: str, *names: str) -> dict[str, Any]:
        """Wait until a flow run has a state of one of these names, or one that is final, and return it."""
        wanted = {*names, *FINAL}

        def look() -> dict[str, Any] | None:
            threading.Event().wait(LOOK_SECONDS)
            state = self.state(run)
            return state if wanted & {state["name"], state["type"]} else None

        state = wait_until_sync(look, PATIENCE, message=f"flow run {run} to be {' or '.join(names) or 'over'}")
        assert state is not None
        return state

    def effects(self, command: str) -> list[dict[str, Any]]:
        """Return what flow runs noted for a command."""
        file = self.folder / "effects"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [effect for effect in map(json.loads, lines) if effect["command"] == command]

    def count(self, command: str, what: str) -> int:
        """Return how often something was noted for a command."""
        return sum(effect["what"] == what for effect in self.effects(command))

    @contextmanager
    def running(self, *command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run a Python command in its environment, and end it."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [PYTHON, *command], cwd=self.folder, env=self.environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
            try:
                yield process
            finally:
                _end(process)


@contextmanager
def prefect_server(folder: Path, **environment: str) -> Iterator[PrefectServer]:
    """Run a server with its data in a folder; `environment` is for all that runs there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    server = PrefectServer(folder, port, {**_environment(folder, port), **environment})
    with (
        server.client,
        server.running("-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"),
    ):
        wait_until_sync(lambda: server.ask("/health") is True, PATIENCE, message="Prefect's server")
        yield server


def _environment(folder: Path, port: int) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "HOME": str(folder), "PREFECT_HOME": str(folder / "prefect"), "DO_NOT_TRACK": "1",
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api", "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder}/prefect.db",
        "PREFECT_RUNNER_POLL_FREQUENCY": "1",
        "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",  # "database is locked"
    }  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those it started, which share its session."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
