"""Live parts of pages: one look at a page for all who watch it, and only what changed is sent.

A room is a page as some people see it, with their language and rights. While it has watchers it is looked at every
second or so; a watcher hears of the newest look when it can take it, and misses those before. However many rooms there
are, a few are looked at at once, and each turn rests as long as its look took: pages leave the process and the store
half of their time, and come more seldom instead.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from headrace.model.errors import HeadraceError

LOG = logging.getLogger("headrace.dashboard")

#: The name of the event that says why there is nothing new.
TROUBLE = "trouble"
_SURPRISE = "The page could not be made: the log of the service says why."
_SLOW = "The page takes too long to be made."
#: Rooms that are looked at at once, and seconds that a look may take.
MOST_LOOKS, LOOK_SECONDS = 8, 30.0
#: Sent where nothing changed: a connection that is silent is cut.
_NOTHING_NEW = b": .\n\n"


@dataclass(frozen=True, slots=True)
class Seen:
    """A page at one moment: its parts as HTML and its texts, by name."""

    parts: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    #: why it could not be looked at; empty: it could
    trouble: str = ""


Looking = Callable[[], Awaitable[Seen]]


class Rooms:
    """The rooms of one process."""

    def __init__(self) -> None:
        self._rooms: dict[Hashable, _Room] = {}
        self._turns = asyncio.Semaphore(MOST_LOOKS)

    @property
    def watched(self) -> int:
        """How many pages are looked at now."""
        return len(self._rooms)

    async def watch(self, key: Hashable, look: Looking, *, every: float) -> AsyncGenerator[Seen, None]:
        """Yield a page as it is seen, from now on, until whoever watches stops; `every`: seconds between two looks."""
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = _Room(look, every, self._turns)
        room.watchers += 1
        try:
            count = 0
            while True:
                count = await room.newer_than(count)
                yield room.seen
        finally:
            room.watchers -= 1
            if not room.watchers:
                if self._rooms.get(key) is room:
                    del self._rooms[key]
                room.task.cancel()
                with suppress(asyncio.CancelledError):
                    await room.task

    async def events(self, key: Hashable, look: Looking, *, every: float) -> AsyncGenerator[bytes, None]:
        """Yield what changes of a page as events, as `watch` sees it; they are made once for all who saw it alike."""
        before: Seen | None = None
        async with aclosing(self.watch(key, look, every=every)) as watching:
            async for seen in watching:
                yield self._rooms[key].told(before, seen)
                before = seen


class _Room:
    """A page that is watched."""

    def __init__(self, look: Looking, every: float, turns: asyncio.Semaphore) -> None:
        self._look, self._every, self._turns = look, every, turns
        self.watchers, self.count, self.seen = 0, 0, Seen()
        self._news = asyncio.Condition()
        #: two looks, and the events of what changed between them
        self._told: tuple[Seen | None, Seen, bytes] = (None, self.seen, _NOTHING_NEW)
        self.task = asyncio.create_task(self._loop(), name="headrace-dashboard-room")

    async def newer_than(self, count: int) -> int:
        """Wait for a look after one, and return its number."""
        async with self._news:
            await self._news.wait_for(lambda: self.count > count)
            return self.count

    def told(self, before: Seen | None, after: Seen) -> bytes:
        """Return what changed between two looks as events."""
        if self._told[0] is not before or self._told[1] is not after:
            self._told = before, after, events_of(before, after).encode(errors="replace") or _NOTHING_NEW
        return self._told[2]

    async def _loop(self) -> None:
        while True:
            async with self._turns:
                began = time.monotonic()
                seen = await self._once()
                took = time.monotonic() - began
                async with self._news:
                    self.count, self.seen = self.count + 1, seen
                    self._news.notify_all()
                await asyncio.sleep(took)
            await asyncio.sleep(self._every)

    async def _once(self) -> Seen:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self._look()
        except HeadraceError as error:
            return Seen(trouble=str(error))
        except TimeoutError:
            return Seen(trouble=_SLOW)
        except asyncio.CancelledError:
            # Something that the look waited for was cancelled, and not the look: its watchers wait for the next one.
            if self.task.cancelling():
                raise
            return Seen(trouble=_SURPRISE)
        except Exception:
            LOG.exception("a page of the dashboard cannot be made")
            return Seen(trouble=_SURPRISE)


def events_of(before: Seen | None, after: Seen) -> str:
    r"""Return what changed between two looks as server-sent events; without one before, all of it.

    >>> events_of(Seen({"live_a": "1", "live_b": "2"}), Seen({"live_a": "1", "live_b": "3"}))
    'event: live_b\ndata: 3\n\n'
    >>> events_of(Seen(texts={"grid": "r" * 40}), Seen(texts={"grid": "r" * 38 + "so"}))
    'event: grid\ndata: {"set":[[38,"so"]]}\n\n'
    """
    known = before or Seen()
    sent = []
    if after.trouble or known.trouble:
        sent += [] if after.trouble == known.trouble and before else [_event(TROUBLE, after.trouble)]
    for name, html in after.parts.items():
        if known.parts.get(name) != html:
            sent.append(_event(name, html))
    for name, text in after.texts.items():
        change = delta(known.texts.get(name), text)
        if change is not None:
            sent.append(_event(name, json.dumps(change, separators=(",", ":"))))
    return "".join(sent)


def delta(before: str | None, after: str) -> dict[str, object] | None:
    """Return what makes one text of another: what is to be set where, or all of it; None: they are equal.

    >>> delta("a" * 40, "a" * 30 + "bc" + "a" * 8), delta(None, "ab"), delta("ab", "abc"), delta("a", "a")
    ({'set': [[30, 'bc']]}, {'all': 'ab'}, {'all': 'abc'}, None)
    """
    if before == after:
        return None
    if before is None or len(before) != len(after):
        return {"all": after}
    runs: list[list[object]] = []
    start, place = -1, 0
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new and start < 0:
            start = place
        elif old == new and start >= 0:
            runs.append([start, after[start:place]])
            start = -1
    if start >= 0:
        runs.append([start, after[start : place + 1]])
    # Many small runs are more to send than all of it.
    whole = sum(len(str(run[1])) + 10 for run in runs) > len(after)
    return {"all": after} if whole else {"set": runs}


def _event(name: str, data: str) -> str:
    # Texts of users have other ends of lines besides, which are none to an event.
    lines = data.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\ndata: ")
    return f"event: {name}\ndata: {lines}\n\n"
