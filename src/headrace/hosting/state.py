"""What the supervisor says about its server: `server.json`, written by the supervisor alone."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from headrace.hosting.processes import ProcessId, machine

FILE = "server.json"
LOG_FILE = "server.log"


class Phase(StrEnum):
    """Where a server stands in its life."""

    RUNNING = "running"  # started; whether it answers is asked of the server itself
    STOPPING = "stopping"  # told to stop; its files are still in use
    STOPPED = "stopped"  # ended as it was told to
    FAILED = "failed"  # ended by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """One server as its supervisor last described it.

    `launch` names the start it belongs to; `details` are the words its owner gave at that start (paths, no secrets).
    """

    phase: Phase
    launch: str
    port: int
    supervisor: ProcessId
    server: ProcessId | None
    exit_code: int | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    machine: str = field(default_factory=machine)
    hostname: str = field(default_factory=socket.gethostname)

    def is_here(self) -> bool:
        """Whether its pids are pids of this machine and this container."""
        return self.machine == machine()

    def is_supervised(self) -> bool:
        """Whether its supervisor still runs here."""
        return self.is_here() and self.supervisor.is_alive()

    def is_running(self) -> bool:
        """Whether server and supervisor both run here."""
        alive = self.server is not None and self.server.is_alive()
        return alive and self.phase is Phase.RUNNING and self.is_supervised()


def write_state(directory: Path, state: ServerState) -> None:
    """Replace `server.json`; readers see the old text or the new, never half of one."""
    path = directory / FILE
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
    draft.replace(path)


def read_state(directory: Path) -> ServerState | None:
    """The last state written, or None when there is none that this version can read."""
    try:
        return _from_json(json.loads((directory / FILE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _from_json(fields: dict[str, Any]) -> ServerState:
    server = fields.pop("server")
    return ServerState(
        phase=Phase(fields.pop("phase")),
        supervisor=ProcessId(**fields.pop("supervisor")),
        server=ProcessId(**server) if server else None,
        **fields,
    )


def log_size(directory: Path) -> int:
    """Bytes in the server's log; 0 when there is none."""
    path = directory / LOG_FILE
    return path.stat().st_size if path.exists() else 0


def log_tail(directory: Path, *, since: int = 0, lines: int = 20) -> str:
    """The last lines of the server's log, leaving out what lies before byte `since`."""
    path = directory / LOG_FILE
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(since, log_size(directory) - 16_384))
        text = file.read().decode("utf-8", errors="replace")
    return "\n".join(text.splitlines()[-lines:])
