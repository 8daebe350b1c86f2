"""The pace of the model as ended batches measured it: what plans are made with."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.apps.details.names import DONE_FEED
from headrace.apps.details.pace import BASE, Measured, Pace, read_pace

if TYPE_CHECKING:
    from headrace import App

#: So many of the newest ended batches are learnt from at first, and so often is looked for newer ones.
REMEMBERED, LOOK_SECONDS = 50, 1.0
_ITEMS = 10


@dataclass(frozen=True, slots=True)
class KnownPace:
    """How fast the model is."""

    #: As calls went lately, whatever slowed them: what times are foretold by.
    now: Pace = field(default_factory=Pace)
    #: The model's own, without what the load here added: what batches are cut by.
    base: Pace = field(default_factory=Pace)


class Paces:
    """Learns from the feed of ended batches, all processes from the same one."""

    def __init__(self, app: App) -> None:
        self._app, self._known = app, KnownPace()
        self._seen, self._looked_at = -1, 0.0

    async def current(self) -> KnownPace:
        """Return the pace as it is known; at most a second old."""
        if time.monotonic() - self._looked_at >= LOOK_SECONDS:
            self._looked_at = time.monotonic()
            await self._learn()
        return self._known

    async def _learn(self) -> None:
        feed = self._app.feed(DONE_FEED)
        end = await feed.end()
        if self._seen < 0 or end < self._seen:  # nothing was read, or all was pruned and its numbers begin again
            self._seen = max(0, end - REMEMBERED)
        for entry in await feed.read(self._seen, 200):
            self._seen = entry.seq
            now, base = self._known.now, self._known.base
            told = read_pace(entry.data.get("pace"))
            if told.samples:
                now = now.learn(_measured(told))
            told = read_pace(entry.data.get("base"))
            if told.samples:
                base = base.learn(_measured(told), *BASE)
            self._known = KnownPace(now, base.not_above(now) if base.samples else now)


def _measured(told: Pace) -> Measured:
    """Return a pace as one call of ten items that had it."""
    tokens = told.tokens_per_item * _ITEMS
    return Measured(told.first_token_seconds, tokens / told.tokens_per_second, round(tokens), _ITEMS)
