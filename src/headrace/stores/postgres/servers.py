"""Reaching the server that takes writes, where a DSN names several: `postgresql://h1:p1,h2:p2/db`.

The driver would try them in the order of the DSN, under one timeout for all: a first server that is gone without a word
would use it up each time, and a standby would be as good as any. Here each has its own part of the time, the one that
took writes last comes first, and one that takes none is passed over.
"""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from headrace.model.errors import ConfigError, StoreUnavailableError
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.faults import describe

#: What a connection must be able to do: the store writes.
TARGETS = ("read-write", "primary")
#: Seconds that each of several servers has at least.
LEAST_WAIT = 2.0

#: A server, as the driver takes it: host and port, None for the usual one.
Server = tuple[str, int | None]

_NOT_THIS_ONE = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.CannotConnectNowError,
    asyncpg.exceptions.AdminShutdownError,
    asyncpg.exceptions.CrashShutdownError,
    asyncpg.exceptions.TargetServerAttributeNotMatched,
)


class Servers:
    """The servers of one DSN. Raises ConfigError for one that asks for a session that may not write."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._servers = list(named_servers(dsn))
        self._target = _target(dsn)

    async def connect(self, *, timeout: float, **options: Any) -> Connection:
        """Return a connection, to the server that takes writes if there are several.

        Raises StoreUnavailableError when none of several does, and what the driver raises otherwise.
        """
        if len(self._servers) < 2:
            only: Connection = await asyncpg.connect(self._dsn, timeout=timeout, **options)
            return only
        refusals: list[str] = []
        for server in list(self._servers):
            try:
                connection = await self._connect(server, max(LEAST_WAIT, timeout / len(self._servers)), options)
            except _NOT_THIS_ONE as error:
                refusals.append(f"{_shown(server)}: {_reason(error)}")
                continue
            self._servers.sort(key=lambda other: other != server)
            return connection
        raise StoreUnavailableError(
            f"None of the servers takes writes ({'; '.join(refusals)}). Check that one of them is the primary."
        )

    async def _connect(self, server: Server, wait: float, options: dict[str, Any]) -> Connection:
        host, port = server
        asked = {**options, "target_session_attrs": self._target}
        connection: Connection = await asyncpg.connect(self._dsn, host=host, port=port, timeout=wait, **asked)
        return connection


def named_servers(dsn: str) -> tuple[Server, ...]:
    """Return the servers that a DSN names, each once; none where it leaves them to the driver.

    >>> named_servers("postgresql://app:secret@a:5433,b,[::1]:5434/jobs?target_session_attrs=read-write")
    (('a', 5433), ('b', None), ('::1', 5434))
    >>> named_servers("postgresql:///jobs?host=/run/a,/run/b&port=5433")
    (('/run/a', 5433), ('/run/b', 5433))
    """
    try:
        parts = urlsplit(dsn)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        hosts = parts.netloc.partition("@")[2] if "@" in parts.netloc else parts.netloc
        found = [_server(text, host_unquoted=False) for text in hosts.split(",") if text]
        if not found:
            found = [_server(text, host_unquoted=True) for text in query.get("host", "").split(",") if text]
        ports = [int(text) for text in query.get("port", "").split(",") if text]
    except ValueError:
        return ()  # the driver says what is wrong with it
    if ports and len(ports) in (1, len(found)):
        turns = itertools.cycle(ports)
        found = [(host, next(turns) if port is None else port) for host, port in found]
    return tuple(dict.fromkeys(found))


def _server(text: str, *, host_unquoted: bool) -> Server:
    if text.startswith("/"):
        return text, None
    host, bracket, rest = text.rpartition("]")
    if bracket:
        host, port = host.lstrip("["), rest.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    return host if host_unquoted else unquote(host), int(port) if port else None


def _target(dsn: str) -> str:
    """Return what the driver has to ask of a server. Raises ConfigError for what would never do."""
    try:
        asked = parse_qs(urlsplit(dsn).query).get("target_session_attrs", [TARGETS[0]])[-1]
    except ValueError:
        return TARGETS[0]  # the driver says what is wrong with the DSN
    if asked not in TARGETS:
        raise ConfigError(
            f"target_session_attrs of the store's URL must be {' or '.join(TARGETS)}, for the store writes; got "
            f"{asked!r}"
        )
    return asked


def _shown(server: Server) -> str:
    host, port = server
    return host if port is None else f"{host}:{port}"


def _reason(error: Exception) -> str:
    if isinstance(error, asyncpg.exceptions.TargetServerAttributeNotMatched):
        return "a standby, or read-only"
    return describe(error)
