"""The agents of an app in a process of a Ray cluster: they handle events of the bus as `headrace agent` does."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass, field

from headrace.app import App
from headrace.engine.events.parts import EventParts
from headrace.farm_calls import end_process
from headrace.model.luggage import Luggage
from headrace.ray_process import load_packed

LOG = logging.getLogger("headrace.ray")

#: A process whose agents cannot begin, or have failed, ends after so long, and Ray makes another one.
_PAUSE_SECONDS = 2.0


def host(luggage: str) -> AgentsHost:
    """Run all agents of the app in a thread until `stop`. Raises what keeps the app from being imported."""
    made = AgentsHost(load_packed(Luggage.parse(luggage)))
    threading.Thread(target=made.run, name="headrace-agents", daemon=True).start()
    return made


@dataclass(slots=True)
class AgentsHost:
    """The agents that run here."""

    app: App
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Run them to their end; the process ends with them where nobody asked for that."""
        try:
            self._loop.run_until_complete(self._host())
        except BaseException as error:
            LOG.exception("the agents cannot go on")
            threading.Event().wait(_PAUSE_SECONDS)
            end_process(f"the agents have ended: {type(error).__name__}")
        self._stopped.set()

    async def _host(self) -> None:
        async with self.app.event_host(EventParts(agents=None)):
            await self._stopping.wait()

    def stop(self) -> None:
        """Receive nothing more, let handlers end within the grace time, and return."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._stopped.wait()
