"""Calls that one process makes for everybody in it who asks the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.llm.ask import Asked
from headrace.model.errors import ConfigError

_CLOSED = "the app was closed before the model's answer came; ask again once it is open"


@dataclass(slots=True, eq=False)
class Flight:
    """A call under way. Once it was sent it is seen to its end, whoever still asks: it is paid either way."""

    task: asyncio.Task[Asked] | None = None
    askers: int = 0
    sent: bool = False
    #: nobody asks any more, and nothing was sent: it ends, and who asks now begins another
    given_up: bool = False
    #: parts of a streamed answer, as far as it has come
    parts: list[str] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def note_sent(self, sent: bool) -> None:
        """Take in that it was sent, or that it was refused and is not sent any more."""
        self.sent = sent
        self._end_unless_wanted()

    def note_part(self, text: str) -> None:
        """Take in a part of the answer."""
        self.parts.append(text)
        self._news.set()

    async def join(self) -> Asked:
        """Wait for its end. An asker that is cancelled ends it only if it is the last, and nothing was sent.

        Raises ConfigError where the app was closed meanwhile: it is not the asker that was cancelled.
        """
        assert self.task is not None
        self.askers += 1
        try:
            return await asyncio.shield(self.task)
        except asyncio.CancelledError:
            if self.task.cancelled() and not _is_cancelled_itself():
                raise ConfigError(_CLOSED) from None
            raise
        finally:
            self._leave()

    async def follow(self) -> AsyncGenerator[str]:
        """The parts of its answer as they come, from the first one on, until it has ended."""
        assert self.task is not None
        self.askers += 1
        seen = 0
        self.task.add_done_callback(lambda _: self._news.set())
        try:
            while not self.task.done() or seen < len(self.parts):
                while seen < len(self.parts):
                    seen += 1
                    yield self.parts[seen - 1]
                self._news.clear()
                if not self.task.done():
                    await self._news.wait()
        finally:
            self._leave()

    def _leave(self) -> None:
        self.askers -= 1
        self._end_unless_wanted()

    def _end_unless_wanted(self) -> None:
        if self.askers == 0 and not self.sent and self.task is not None:
            self.given_up = True
            self.task.cancel()


def _is_cancelled_itself() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Flights:
    """The flights of one process, by what they ask for."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[asyncio.AbstractEventLoop, str], Flight] = {}
        self._all: set[asyncio.Task[Asked]] = set()
        self._closed = False

    def find(self, key: str) -> Flight | None:
        """The flight that asks this, on this event loop."""
        flight = self._by_key.get((asyncio.get_running_loop(), key))
        return None if flight is None or flight.given_up else flight

    def begin(self, key: str, buy: Callable[[Flight], Awaitable[Asked]], *, shared: bool) -> Flight:
        """Begin a flight; a shared one is found by its key until it has ended. Raises ConfigError after the close."""
        if self._closed:
            raise ConfigError(_CLOSED)
        flight = Flight()
        flight.task = asyncio.ensure_future(_landed(buy(flight)))
        self._all.add(flight.task)
        flight.task.add_done_callback(self._all.discard)
        # Its error is seen, even where every asker is gone.
        flight.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        if shared:
            place = (asyncio.get_running_loop(), key)
            self._by_key[place] = flight
            flight.task.add_done_callback(lambda _: self._by_key.get(place) is flight and self._by_key.pop(place))
        return flight

    async def aclose(self, linger: timedelta) -> None:
        """Let flights of this loop end, for `linger` at most; then give them up. None begins any more."""
        self._closed = True
        flights = [task for task in self._all if task.get_loop() is asyncio.get_running_loop()]
        if not flights:
            return
        _, late = await asyncio.wait(flights, timeout=linger.total_seconds())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


async def _landed(buying: Awaitable[Asked]) -> Asked:
    return await buying
