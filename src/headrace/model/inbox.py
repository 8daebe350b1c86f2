"""What the effect of a message is made of: stored with the note that it was handled, all or nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.model.event import Outgoing
from headrace.model.job import NewJob

#: Writes on the store's own connection, within its transaction; only where the store is a database.
Write = Callable[[Any], Awaitable[None]]


@dataclass(slots=True)
class Effect:
    """The effect of one message for one consumer."""

    jobs: list[NewJob] = field(default_factory=list)
    events: list[Outgoing] = field(default_factory=list)
    #: (key, payload as JSON text)
    signals: list[tuple[str, str]] = field(default_factory=list)
    #: The user's own writes, in their order; see `Inbox.writes`.
    writes: list[Write] = field(default_factory=list)

    def split(self, said: tuple[int, int, int]) -> Effect:
        """Take out and return what was added since so much had been said: by writes, which may run again."""
        jobs, events, signals = said
        added = Effect(self.jobs[jobs:], self.events[events:], self.signals[signals:])
        del self.jobs[jobs:], self.events[events:], self.signals[signals:]
        return added

    @property
    def said(self) -> tuple[int, int, int]:
        """How many jobs, events and signals there are."""
        return len(self.jobs), len(self.events), len(self.signals)
