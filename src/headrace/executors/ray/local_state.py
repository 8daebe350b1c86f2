"""What is known of the local cluster of a directory: a file that `up` writes and `down` removes."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.executors.ray.process_groups import ProcessGroup
from headrace.hosting.processes import ProcessId, machine
from headrace.model.errors import ConfigError

STATE_FILE, TOKEN_FILE, LOCK_FILE = "ray.json", "ray.token", "ray.lock"


@dataclass(frozen=True, slots=True)
class NodeSize:
    """What a node is said to have."""

    cpus: int
    object_store_bytes: int
    #: What jobs with `memory` share; 0: what Ray takes for free.
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LocalNode:
    """A node that was started here."""

    size: NodeSize
    group: ProcessGroup
    #: Those without whom it is none; nobody while it starts.
    vital: tuple[ProcessId, ...] = ()

    @property
    def is_alive(self) -> bool:
        """Whether it works."""
        return bool(self.vital) and all(one.is_alive() for one in self.vital)


@dataclass(frozen=True, slots=True)
class LocalState:
    """A cluster that was started here."""

    address: str
    #: Where its sockets and logs are.
    folder: Path
    token_file: Path
    ray: str
    nodes: tuple[LocalNode, ...] = ()

    @property
    def is_running(self) -> bool:
        """Whether its head node works: without it there is no cluster."""
        return bool(self.nodes) and self.nodes[0].is_alive


def write_state(directory: Path, state: LocalState) -> None:
    """Write the file, readable by this user alone."""
    document = {**asdict(state), "folder": str(state.folder), "token_file": str(state.token_file), "machine": machine()}
    _write_private(directory / STATE_FILE, json.dumps(document, indent=1))


def read_state(directory: Path) -> LocalState | None:
    """Return what the file says; None where there is none, or only that of another machine or of an earlier boot.

    Raises ConfigError where it cannot be read.
    """
    path = directory / STATE_FILE
    try:
        said: Any = json.loads(path.read_text(encoding="utf-8"))
        if said["machine"] != machine():
            return None
        nodes = tuple(_node(one) for one in said["nodes"])
        return LocalState(said["address"], Path(said["folder"]), Path(said["token_file"]), said["ray"], nodes)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} cannot be read ({type(error).__name__}): remove it if no cluster runs") from None


def remove_state(directory: Path) -> None:
    """Remove the file. The token stays: a worker that waits for the next cluster knows it."""
    (directory / STATE_FILE).unlink(missing_ok=True)


def token_file(directory: Path) -> Path:
    """Return the file with the token, which is made where there is none, readable by this user alone."""
    path = (directory / TOKEN_FILE).absolute()
    if not path.exists():
        _write_private(path, secrets.token_hex(32))
    path.chmod(0o600)
    return path


def _node(said: Any) -> LocalNode:
    group = said["group"]
    return LocalNode(
        NodeSize(**said["size"]), ProcessGroup(group["id"], _processes(group["members"])), _processes(said["vital"])
    )


def _processes(said: Any) -> tuple[ProcessId, ...]:
    return tuple(ProcessId(one["pid"], one["started"]) for one in said)


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
