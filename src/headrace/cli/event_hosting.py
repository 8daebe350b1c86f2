"""A process that does a part of the work with events, from its start to its exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from dataclasses import dataclass
from datetime import timedelta

from headrace.app import App
from headrace.cli.checks import shown_url
from headrace.cli.long_running import run_long, settle
from headrace.cli.opening import refuse_memory
from headrace.cli.output import print_json
from headrace.cli.signals import follow_lifeline
from headrace.cli.working import CLOSING_SECONDS, until_signal
from headrace.engine.events.parts import EventParts
from headrace.model.durations import format_duration
from headrace.settings import Settings

LOG = logging.getLogger("headrace.events")


@dataclass(frozen=True, slots=True)
class HostOptions:
    """What a process was asked for."""

    #: As the first line names it: "relay".
    what: str
    parts: EventParts
    grace: timedelta | None = None
    as_json: bool = False
    #: Read end of a pipe that ends with the supervisor.
    lifeline: int | None = None


def run_host(app: App, options: HostOptions) -> int:
    """Do a part of the work with events until a signal; return the exit code. Raises ConfigError."""
    refuse_memory(app.settings, "work")
    grace = app.settings.worker.shutdown_grace if options.grace is None else options.grace
    if options.lifeline is not None:
        follow_lifeline(options.lifeline, within=grace.total_seconds() + CLOSING_SECONDS)
    return run_long(until_signal(app, lambda stopping: _host_until(stopping, app, options, grace)))


async def _host_until(stopping: asyncio.Event, app: App, options: HostOptions, grace: timedelta) -> None:
    async with app.event_host(options.parts, grace=grace):
        # Said here, where a relay would find nothing to do: the store must have an outbox.
        _ = app.event_stores
        settle()
        _announce(app.settings, options)
        await stopping.wait()
        LOG.info(
            "stopping: handlers may end within %s; a second signal ends the process at once", format_duration(grace)
        )
    LOG.info("stopped")
    if options.as_json:
        print_json({"event": "stopped", "pid": os.getpid()})
        sys.stdout.flush()


def _announce(settings: Settings, options: HostOptions) -> None:
    LOG.info("%s: works on %s; bus: %s; pid %d", options.what, store_words(settings), bus_words(settings), os.getpid())
    if options.as_json:
        print_json({"event": "started", "pid": os.getpid(), "works": options.what})
        sys.stdout.flush()


def store_words(settings: Settings) -> str:
    """Return which store it is, without its secrets."""
    queue = settings.queue
    where = shown_url(queue.url) if queue.url else f"the embedded PostgreSQL of {settings.directory.absolute()}"
    return f"{where}, schema {queue.schema}"


def bus_words(settings: Settings) -> str:
    """Return what carries events."""
    return f"kafka at {settings.events.kafka.servers}" if settings.events.bus == "kafka" else "the store"
