"""What became of a batch that the relay sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.engine.events.parked_lanes import Lane, lane_of
from headrace.model.event import OutboxRow
from headrace.ports.bus import BEHIND, LATER


@dataclass(slots=True)
class SortedBatch:
    """The answers to a batch, noted in the order of its rows; rows are named by their positions."""

    published: list[int] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    #: Topics and keys of the refused ones.
    stopped: set[Lane] = field(default_factory=set)
    behind: list[int] = field(default_factory=list)
    #: Topics that take nothing for now, each with why.
    later: dict[str, str] = field(default_factory=dict)
    _late: set[Lane] = field(default_factory=set)

    def note(self, row: OutboxRow, answer: str | None) -> None:
        """Note what the bus answered for a row."""
        lane = lane_of(row)
        if answer is None:
            self.published.append(row.position)
        elif answer.startswith(LATER):
            self._late.add(lane)
            self.later.setdefault(row.outgoing.topic, answer.removeprefix(LATER).removeprefix(": ") or LATER)
        elif lane in self._late:
            return  # parked now, it would hold what stands before it
        elif answer == BEHIND:
            self.behind.append(row.position)
        else:
            self.refused.append((row.position, answer))
            self.stopped.add(lane)
