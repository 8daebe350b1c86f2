"""The event loop that long-running commands and the scripted provider run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes loops of uvloop where it is installed (`headrace[service]` brings it); None: asyncio's own."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        return None
    return factory
