"""The dashboard of `headrace dev`, beside the worker."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from headrace.app import App
from headrace.cli.loading import load_app
from headrace.cli.output import print_json
from headrace.cli.serve import service_module
from headrace.model.errors import ConfigError, HeadraceError

LOG = logging.getLogger("headrace.worker")
HOST = "127.0.0.1"

Beside = Callable[[App, asyncio.Event], Coroutine[Any, Any, None]]


@contextmanager
def dashboard_beside(target: str, port: int | None, *, as_json: bool) -> Iterator[Beside | None]:
    """Yield what serves the dashboard of an app beside its worker, on a socket that listens from now on.

    Yields None, with a line that says so, where `headrace[service]` is not installed. Raises ConfigError for a port
    that was asked for and cannot be used.
    """
    try:
        serving = service_module()
    except ConfigError as error:
        if port is not None:
            raise
        LOG.info("no dashboard: %s", error)
        yield None
        return
    # The names and the address that people find a service by are those of the one beyond this machine, not of this.
    written = load_app(target).settings.service
    at = written.port if port is None else port
    address = serving.Address(HOST, at, written.require_token, read_only=written.read_only)
    try:
        listener = serving.listen(address)
    except ConfigError:
        if port is not None:
            raise
        listener = serving.listen(replace(address, port=0))

    def announce(url: str) -> None:
        LOG.info("dashboard: %s", url)
        if as_json:
            print_json({"event": "serving", "url": url, "pid": os.getpid()})
            sys.stdout.flush()

    with listener:
        yield lambda app, stopping: _told(
            serving.serve_open(app, address, listener, stopping=stopping, announce=announce)
        )


async def _told(serving: Coroutine[Any, Any, None]) -> None:
    """Serve, and say at once why that cannot be, or no longer: the worker works on."""
    try:
        await serving
    except HeadraceError as error:
        LOG.error("no dashboard: %s", error)
    except Exception:
        LOG.exception("no dashboard")
