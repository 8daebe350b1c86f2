"""What an open app holds: its store, and the engine's parts over it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.engine.batches import Batches
from headrace.engine.caching.caches import Caches
from headrace.engine.client import Client
from headrace.engine.feeds.hub import FeedHub
from headrace.engine.following.growing import Growing
from headrace.engine.intake import Intake
from headrace.engine.waiters import Waiters
from headrace.engine.workflows.means import Means
from headrace.model.queue import QueueRule
from headrace.ports.limiter import Limiter
from headrace.ports.stores import Stores
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.llm.gateway import LLM


@dataclass(slots=True)
class Runtime:
    """Made by `wiring.open_runtime`; `close` undoes it."""

    settings: Settings
    stores: Stores
    #: Makes the gateway behind `app.llm` on first use.
    llm: Callable[[], LLM]
    #: What runs of workflows work with.
    means: Means
    #: Closes what was opened, the last first: calls of models end before the store does.
    close_others: Any
    #: The buckets of rate limits: in a server beside the store, or the store's own.
    limiter: Limiter
    #: What is made again when it is gone, by name.
    caches: Caches
    #: While it is entered, jobs that wait for a quota of models leave their slots.
    jobs_leave: Callable[[], AbstractContextManager[None]] = nullcontext
    #: What is declared of queues, by name; what is declared later counts at once.
    queue_rules: dict[str, QueueRule] = field(default_factory=dict)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    pid: int = field(default_factory=os.getpid)
    intake: Intake = field(init=False)
    client: Client = field(init=False)
    batches: Batches = field(init=False)
    waiters: Waiters = field(init=False)
    feeds: FeedHub = field(init=False)
    growing: Growing = field(init=False)

    def __post_init__(self) -> None:
        self.intake = Intake(self.stores, self.queue_rules)
        self.client = Client(self.stores, self.intake)
        self.batches = Batches(self.stores, self.intake)
        self.waiters = Waiters(self.stores)
        self.feeds = FeedHub(self.stores)
        self.growing = Growing(self.waiters)

    @property
    def gone(self) -> bool:
        """Whether these parts can no longer be used: their loop has ended, or they belong to a parent process."""
        return self.loop.is_closed() or self.pid != os.getpid()

    async def close(self) -> None:
        """Stop waiting and close every connection."""
        await self.growing.close()
        await self.feeds.close()
        await self.waiters.close()
        await self.intake.close()
        await self.caches.close()
        await self.close_others()
