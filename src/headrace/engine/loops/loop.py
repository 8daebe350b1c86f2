"""The shape of a background duty: validate, start, stop, `_loop`, and one verb in `step`."""

from __future__ import annotations

import asyncio
import logging
import random
from datetime import timedelta

from headrace.engine.outage import Outage
from headrace.model.errors import InvalidInputError, StoreUnavailableError

LOG = logging.getLogger("headrace.loops")


class Loop:
    """Runs `step` every `interval` ± 10 %, and sooner after `wake()`. Starting twice and stopping twice are allowed.

    A step that fails is logged and tried again at the next turn: a duty ends only when it is stopped. Outages of the
    store are not logged with every turn.
    """

    name: str

    def __init__(self, interval: timedelta) -> None:
        if interval <= timedelta():
            raise InvalidInputError(f"{self.name}.interval", "must be longer than zero", interval)
        self._interval = interval.total_seconds()
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._outage = Outage(LOG, f"{self.name} does not get on")

    async def step(self) -> None:
        """Do the duty once."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin; the first step runs at once."""
        if self._task is None:
            self._task = asyncio.create_task(self._loop(), name=f"headrace-{self.name}")

    async def stop(self) -> None:
        """End, also in the middle of a step."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def wake(self) -> None:
        """Run the next step now."""
        self._woken.set()

    def wake_in(self, seconds: float) -> None:
        """Run a step in `seconds`, if the interval does not bring one sooner."""
        if seconds < self._interval:
            asyncio.get_running_loop().call_later(seconds, self._woken.set)

    async def _loop(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self.step()
            except StoreUnavailableError as error:
                self._outage.note(error)
            except Exception:
                LOG.exception("%s failed, trying again", self.name)
            await self._pause()

    async def _pause(self) -> None:
        # Jitter keeps the duties of many workers from marching in step.
        wait = self._interval * random.uniform(0.9, 1.1)  # noqa: S311 - not for security
        try:
            async with asyncio.timeout(wait):
                await self._woken.wait()
        except TimeoutError:
            return
