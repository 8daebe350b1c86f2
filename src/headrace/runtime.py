"""What an open app holds: its store, and the engine's parts over it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from headrace.engine.batches import Batches
from headrace.engine.client import Client
from headrace.engine.waiters import Waiters
from headrace.ports.stores import Stores
from headrace.settings import Settings


@dataclass(slots=True)
class Runtime:
    """Made by `wiring.open_runtime`; `close` undoes it."""

    settings: Settings
    stores: Stores
    #: The model behind `app.llm`, made on first use by the wiring.
    llm: Any
    close_others: Any
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    client: Client = field(init=False)
    batches: Batches = field(init=False)
    waiters: Waiters = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(self.stores)
        self.batches = Batches(self.stores)
        self.waiters = Waiters(self.stores)

    async def close(self) -> None:
        """Stop waiting and close every connection."""
        await self.waiters.close()
        await self.stores.close()
        await self.close_others()
