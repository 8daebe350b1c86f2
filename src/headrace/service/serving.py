"""Serving an app over HTTP on one address until somebody asks to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from headrace.app import App
from headrace.engine.tokens import has_live_token
from headrace.model.errors import ConfigError
from headrace.service.access import Access
from headrace.service.application import make_service
from headrace.service.connections import IDLE_SECONDS, Connections, Protocol, make_room
from headrace.service.gate import Gate
from headrace.service_settings import check_host

#: Seconds that requests may take to end once the service is asked to stop.
GRACE_SECONDS = 10
BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 is any free one."""

    host: str
    port: int
    #: Whether a token is asked for on this machine too; beyond it one always is.
    require_token: bool = False
    #: Names that it answers to besides this machine's own.
    hosts: tuple[str, ...] = ()
    #: Where people find it behind a proxy.
    url: str = ""
    #: Whether all that changes something is refused.
    read_only: bool = False

    @property
    def access(self) -> Access:
        """What is asked of whoever comes there. Raises ConfigError for what is no address to listen on."""
        check_host(self.host)
        return Access.at(
            self.host, require_token=self.require_token, hosts=self.hosts, url=self.url, read_only=self.read_only
        )


def address_of(
    app: App, host: str | None = None, port: int | None = None, *, require_token: bool = False, read_only: bool = False
) -> Address:
    """Return where an app is served, and to whom: what is given, else what its settings say. Raises ConfigError."""
    written = app.settings.service
    at = written.host if host is None else host
    address = Address(
        at, written.port if port is None else port, require_token or written.require_token, written.hosts,
        written.url, read_only or written.read_only,
    )  # fmt: skip
    _ = address.access
    return address


class _Server(uvicorn.Server):
    """Leaves signals to the command."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve(
    app: App, address: Address, *, worker: bool, stopping: asyncio.Event, announce: Callable[[str], None]
) -> None:
    """Serve until `stopping` is set; `worker`: also work jobs here. `announce` is told the URL once it listens.

    Requests that run then may end within 10 s. Raises ConfigError for an address that cannot be used.
    """
    with listen(address) as listener:
        async with app.worker() if worker else app:
            await serve_open(app, address, listener, stopping=stopping, announce=announce)


async def serve_open(
    app: App, address: Address, listener: socket.socket, *, stopping: asyncio.Event, announce: Callable[[str], None]
) -> None:
    """Serve an app that is open on a socket that listens, as `serve` does."""
    access = address.access
    await _check_tokens(app, access, address)
    service = make_service(app, access)
    server = _Server(_config(service))
    connections = Connections(server, most=make_room())
    service.state.streams.cut = connections.cut
    service.state.streams.crowded = connections.are_too_many
    watching = asyncio.create_task(connections.watch(), name="headrace-connections")
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="headrace-service")
    asked = asyncio.create_task(stopping.wait())
    try:
        announce(_url_of(listener) + access.base)
        await asyncio.wait([serving, asked], return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        watching.cancel()
        service.state.streams.stop()
        server.should_exit = True
        await _end(service, serving)


async def _end(service: FastAPI, serving: asyncio.Task[None]) -> None:
    """Wait until a service has ended, however it does, and for what goes on in its background."""
    gate: Gate = service.state.gate
    try:
        await serving
    finally:
        await gate.close()
        await service.state.audit.close()


async def _check_tokens(app: App, access: Access, address: Address) -> None:
    """Raise ConfigError where a token is needed and nobody has one."""
    if not access.required or await has_live_token(app.runtime.stores):
        return
    fix = "make one with `headrace token create NAME --scope read --scope submit --scope operate`"
    if app.settings.queue.type == "memory":
        fix = "the memory store has none but of this process; use a durable store, or listen on 127.0.0.1 alone"
    why = "asks everybody for a token, and there is none that is live"
    raise ConfigError(f"the service on {address.host} {why}: {fix}")


def _config(service: FastAPI) -> uvicorn.Config:
    # What strangers send is no news.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    # Headers that proxies add are believed of nobody: who asks for what is decided by what was sent here.
    return uvicorn.Config(
        service, http=Protocol, ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, backlog=BACKLOG,
        timeout_keep_alive=IDLE_SECONDS, timeout_graceful_shutdown=GRACE_SECONDS,
    )  # fmt: skip


def listen(address: Address) -> socket.socket:
    """Return a socket that listens at an address. Raises ConfigError."""
    host = "127.0.0.1" if address.host == "localhost" else address.host
    family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    try:
        listener = socket.create_server((host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why, fix = "is in use", "stop who listens there, or choose another one with --port"
        else:
            why, fix = f"cannot be used ({error.strerror or error})", "choose another one with --host and --port"
        raise ConfigError(f"port {address.port} of {host} {why}: {fix}") from None
    # For the connections that it accepts: else the second part of each answer waits 40 ms for the client's receipt.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
