"""What is hosted: the description a user gives, and the part of it that the supervisor needs."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path

from headrace.hosting.state import ServerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The operating system's account a server runs as: numeric user and group id."""

    uid: int
    gid: int


def _only_path() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath)}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedServer:
    """A server on this machine that several processes share and that nobody looks after.

    - `directory`: holds its locks, state and log; one server per directory. Made when missing.
    - `command`: the argument vector for a given loopback port. It must not fork into the background.
    - `ready`: whether the server described answers. It must be sure to ask *this* server (its pid, a secret):
      another one may have taken the port in between. Called every few milliseconds while starting.
    - `prepare`: called before a start, by one process at a time, while no server of this directory runs.
    - `environment`: all of the server's environment; by default only PATH, because the server outlives its
      starter and must not carry that one's secrets.
    - `account`: run it as another user (as root only). Default: the caller's own.
    - `stop_signal`: asks it to end cleanly; also sent by the kernel when its supervisor dies (Linux).
    - `restart_after`: a server that dies by itself is started again when it had run that long; a shorter run is a
      fault that would repeat.
    - `linger`: how long it stays up without users. `stop_timeout`: killed after that long in stopping.
    - `start_timeout`: how long to wait for `ready`.
    - `details`: kept in the state for later users.
    """

    directory: Path
    command: Callable[[int], Sequence[str]]
    ready: Callable[[ServerState], bool]
    prepare: Callable[[], None] = field(default=lambda: None)
    environment: Mapping[str, str] = field(default_factory=_only_path)
    working_directory: Path = Path("/")
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    linger: timedelta = timedelta(seconds=10)
    start_timeout: timedelta = timedelta(seconds=60)
    stop_timeout: timedelta = timedelta(seconds=60)
    restart_after: timedelta = timedelta(seconds=5)
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One start of a server as its supervisor is told of it, through a pipe (never on the command line)."""

    name: str
    directory: str
    port: int
    command: Sequence[str]
    environment: Mapping[str, str]
    working_directory: str
    account: Account | None
    stop_signal: int
    linger_seconds: float
    stop_timeout_seconds: float
    restart_after_seconds: float
    details: Mapping[str, str]

    @classmethod
    def of(cls, server: HostedServer, *, name: str, port: int) -> Launch:
        """The launch of `server` on `port`."""
        return cls(
            name=name,
            directory=str(server.directory),
            port=port,
            command=[str(part) for part in server.command(port)],
            environment=dict(server.environment),
            working_directory=str(server.working_directory),
            account=server.account,
            stop_signal=int(server.stop_signal),
            linger_seconds=server.linger.total_seconds(),
            stop_timeout_seconds=server.stop_timeout.total_seconds(),
            restart_after_seconds=server.restart_after.total_seconds(),
            details=dict(server.details),
        )

    def to_json(self) -> str:
        """This launch as one JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Launch:
        """The launch that `to_json` wrote."""
        fields = json.loads(text)
        account = fields.pop("account")
        return cls(account=Account(**account) if account else None, **fields)
