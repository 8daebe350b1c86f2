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

from headrace.app import App
from headrace.model.errors import ConfigError
from headrace.service.application import make_service
from headrace.service.guard import is_loopback

#: Seconds that requests may take to end once the service is asked to stop.
GRACE_SECONDS = 10
#: Requests and connections at once; beyond that 503 is answered.
MOST_AT_ONCE = 1_000
BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 is any free one."""

    host: str
    port: int

    def check(self) -> None:
        """Raise ConfigError for an address that others than this machine can reach."""
        if not is_loopback(self.host):
            raise ConfigError(
                f"host must be 127.0.0.1, ::1 or localhost, got {self.host!r}: whoever reaches the service may do "
                "everything, for it asks for no tokens yet; they come with its authentication. Put a proxy that asks "
                "who is there in front of it, on this machine"
            )


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
    address.check()
    listener = _listen(address)
    with listener:
        async with app.worker() if worker else app:
            server = _Server(_config(app))
            serving = asyncio.create_task(server.serve(sockets=[listener]), name="headrace-service")
            asked = asyncio.create_task(stopping.wait())
            announce(_url_of(listener))
            await asyncio.wait([serving, asked], return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            server.should_exit = True
            await serving


def _config(app: App) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # Headers that proxies add are believed of nobody: who asks for what is decided by what was sent here.
    return uvicorn.Config(
        make_service(app), http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, limit_concurrency=MOST_AT_ONCE, backlog=BACKLOG,
        timeout_keep_alive=5, timeout_graceful_shutdown=GRACE_SECONDS,
    )  # fmt: skip


def _listen(address: Address) -> socket.socket:
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
