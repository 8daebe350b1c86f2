"""From an app to what keeps its agents in an actor of the Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.daemon_threads import DaemonThreads
from headrace.engine.loops.loop import Loop
from headrace.model.errors import ConfigError
from headrace.ray_settings import RAY
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.app import App

#: Whose `host` the actor calls.
_ENTRY = "headrace.ray_agents"
_LOOK = timedelta(seconds=2)
#: A cluster that is away does not keep a worker from its end for longer than this, beyond the grace time.
_LEAVE_SECONDS = 15.0


def keeps_agents(settings: Settings) -> bool:
    """Whether workers leave the agents to an actor. Raises ConfigError where no queue runs on Ray."""
    if not (settings.worker.agents_enabled and settings.ray.agents):
        return False
    if RAY not in settings.executors.values():
        raise ConfigError('ray.agents = true needs a worker that joins a cluster: write executor = "ray" for a queue')
    return True


def make_agents_loop(app: App) -> Loop:
    """Return what sees to it that the actor is there while this worker works."""
    from headrace.executors.ray.agents_actor import AgentsKeeper
    from headrace.wiring.ray_luggage import pack

    luggage = pack(app, app.settings)
    keeper = AgentsKeeper(luggage.app, app.settings.ray.namespace, _ENTRY, luggage.text)
    return AgentsLoop(keeper, app.settings.worker.shutdown_grace)


class AgentsLoop(Loop):
    """Keeps the actor."""

    name = "ray-agents"

    def __init__(self, keeper: Any, grace: timedelta) -> None:
        super().__init__(_LOOK)
        self._keeper, self._grace = keeper, grace.total_seconds()
        self._threads = DaemonThreads()

    async def step(self) -> None:
        """Look for it, and make it where there is none."""
        await self._threads.run(self._keeper.keep)

    async def stop(self) -> None:
        """End it in order if this worker has made it."""
        await super().stop()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._grace + _LEAVE_SECONDS):
                    await self._threads.run(lambda: self._keeper.stop(self._grace))
        finally:
            self._threads.end()
