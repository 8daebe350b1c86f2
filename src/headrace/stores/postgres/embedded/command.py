"""How PostgreSQL is run here: its settings, its command line, and what hosting has to know about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from signal import SIGINT

from headrace.hosting import Account, HostedServer, ServerState
from headrace.model.errors import ConfigError
from headrace.stores.postgres.embedded.account import check_account
from headrace.stores.postgres.embedded.binaries import Binaries, find_binaries
from headrace.stores.postgres.embedded.cluster import ENVIRONMENT, Cluster

#: Differences from PostgreSQL's defaults, which a caller may change again. Durability is full.
DEFAULTS: Mapping[str, str] = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
#: What the promises rest on: loopback only, and the log where the supervisor has it.
FIXED: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "logging_collector": "off",
    "log_destination": "stderr",
}
_ALSO_FIXED = frozenset({"port", "data_directory", "config_file", "hba_file", "ident_file"})


def checked_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings, if each may be chosen. Raises ConfigError with the name and the fix."""
    for name, value in settings.items():
        if not re.fullmatch(r"[a-z_][a-z0-9_.]*", name):
            raise ConfigError(f"settings: {name!r} is no name of a PostgreSQL setting. Write it in small letters")
        if name in FIXED or name in _ALSO_FIXED:
            raise ConfigError(f"settings: {name} is fixed for the embedded PostgreSQL, got {value!r}. Remove it")
        if not isinstance(value, str):
            raise ConfigError(f"settings: {name} must be a string, got {value!r}. Put it in quotes")
    return dict(settings)


class PostgresCommand:
    """The embedded PostgreSQL of one home, as a hosted server."""

    def __init__(
        self, *, home: Path, account: Account | None, settings: Mapping[str, str], folder: Path | None
    ) -> None:
        self.cluster = Cluster(home, account)
        self._home, self._account, self._settings, self._folder = home, account, settings, folder
        self._binaries: Binaries | None = None

    def hosted_server(self, *, linger: timedelta, start_timeout: timedelta) -> HostedServer:
        """What hosting needs to start, ask and stop it."""
        return HostedServer(
            directory=self._home,
            command=self._arguments,
            ready=self._is_ready,
            prepare=self._prepare,
            environment=ENVIRONMENT,
            account=self._account,
            stop_signal=SIGINT,  # PostgreSQL's fast stop: ends sessions, writes everything down
            linger=linger,
            start_timeout=start_timeout,
            details={"password_file": str(self.cluster.password_file), "data": str(self.cluster.data)},
        )

    def _prepare(self) -> None:
        if self._account is not None:
            check_account(self._account)
        self._binaries = find_binaries(self._folder, self._account)
        self.cluster.prepare(self._binaries, sync=self._settings.get("fsync") != "off")

    def _arguments(self, port: int) -> Sequence[str]:
        assert self._binaries is not None, "hosting prepares before it starts"
        settings = {**DEFAULTS, **self._settings, **FIXED, "port": str(port)}
        arguments = [str(self._binaries.folder / "postgres"), "-D", str(self.cluster.data)]
        for name, value in settings.items():
            arguments += ["-c", f"{name}={value}"]
        return arguments

    def _is_ready(self, state: ServerState) -> bool:
        return state.server is not None and self.cluster.is_ready(state.server.pid)
