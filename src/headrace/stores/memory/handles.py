"""A resume handle in memory, with the events that it expects."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from headrace.model.resume_handle import HandleState, HandleView, NewHandle, NotedEvent, count_arrived, expects


@dataclass(slots=True)
class Handle:
    """A handle. Its `kept` events are those it expects, as they came, each id once."""

    new: NewHandle
    created_at: datetime
    expires_at: datetime
    state: HandleState = HandleState.WAITING
    ended_at: datetime | None = None
    payload: str | None = None
    #: When its target is to be woken (again); None: not at all.
    wake_at: datetime | None = None
    kept: dict[str, NotedEvent] = field(default_factory=dict)

    def keep(self, noted: NotedEvent) -> None:
        """Keep an event, unless it is none that the handle expects or its id is known."""
        if expects(self.new, noted):
            self.kept.setdefault(noted.event.id, noted)

    @property
    def arrived(self) -> int:
        """How many of those it expects have come."""
        return count_arrived(list(self.kept.values()))

    @property
    def complete(self) -> bool:
        """Whether it waits for nothing more, and not for its token alone."""
        return 0 < self.new.expect_count <= self.arrived

    def view(self) -> HandleView:
        """Return it for reading."""
        new = self.new
        return HandleView(
            new.correlation_id, new.expect_types, new.expect_count, new.request_types, new.agents, self.state,
            self.arrived, new.target, self.wake_at is not None, self.created_at, self.expires_at, self.ended_at,
            self.payload,
        )  # fmt: skip
