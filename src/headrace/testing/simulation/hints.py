"""Hints between simulated processes: late, sometimes lost, several told as one."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from random import Random

from headrace.testing.simulation.loop import ACTOR, WORLD, VirtualLoop

LATEST_SECONDS = 0.05

OnHint = Callable[[str], None]


class SimulatedNotifier:
    """`ports.notifier.Notifier` between actors; `loss` is the share of deliveries that never come."""

    def __init__(self, loop: VirtualLoop, chance: Random) -> None:
        self._loop, self._chance = loop, chance
        self.loss = 0.0
        self._pending: set[str] = set()
        self._subscribers: dict[int, tuple[OnHint, Context]] = {}
        self._numbers = 0

    def hint(self, topic: str) -> None:
        """Tell every subscriber soon."""
        if not self._pending:
            delay = self._chance.random() * LATEST_SECONDS
            self._loop.call_at_world_time(self._loop.now + delay, self._tell, context=WORLD.context())
        self._pending.add(topic)

    def _tell(self) -> None:
        # In order: a set of texts has another one in each process.
        topics, self._pending = sorted(self._pending), set()
        for key, (on_hint, context) in list(self._subscribers.items()):
            if context[ACTOR].dead:
                del self._subscribers[key]
            elif self._chance.random() >= self.loss:
                for topic in topics:
                    self._loop.call_soon(self._hear, key, on_hint, topic, context=context)

    def _hear(self, key: int, on_hint: OnHint, topic: str) -> None:
        if key in self._subscribers:
            on_hint(topic)

    async def subscribe(self, on_hint: OnHint) -> Callable[[], None]:
        """Call `on_hint(topic)` for each hint that arrives, as the actor that subscribed."""
        self._numbers += 1
        key = self._numbers
        self._subscribers[key] = (on_hint, copy_context())
        return lambda: self._subscribers.pop(key, None) and None

    async def close(self) -> None:
        """Tell nobody any more."""
        self._subscribers.clear()
