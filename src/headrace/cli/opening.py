"""Opening the configured store for a command that needs no tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar

from headrace.app import App
from headrace.cli.auditing import noted
from headrace.model.errors import ConfigError
from headrace.ports.stores import Stores
from headrace.settings import Settings

T = TypeVar("T")


def with_app(work: Callable[[App], Awaitable[T]], *, looks: bool = False) -> T:
    """Run `work` on an open app without tasks, on an event loop of its own; see `on_app`."""
    return on_app(App(), work, looks=looks)


def on_app(app: App, work: Callable[[App], Awaitable[T]], *, looks: bool = False) -> T:
    """Open an app and run `work` on it, on an event loop of its own.

    What a command that operates does is noted in the audit, unless `work` only `looks`.
    """

    async def run() -> T:
        async with app, nullcontext() if looks else noted(app):
            return await work(app)

    return asyncio.run(run())


def refuse_memory(settings: Settings, what: str) -> None:
    """Raise ConfigError where `what` would be in the memory of this process alone."""
    if settings.queue.type == "memory":
        raise ConfigError(f"the memory store ends with this process, and the {what} with it; use a durable store")


def with_stores(work: Callable[[Stores], Awaitable[T]], *, looks: bool = False) -> T:
    """Run `work` on the ports of the configured store; see `on_app`."""
    return with_app(lambda app: work(app.runtime.stores), looks=looks)
