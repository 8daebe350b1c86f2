"""Which part of the work with events a process does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventParts:
    """What of relay, agents and callback service a process does."""

    relay: bool = False
    #: Ids of agents; None: all of the app.
    agents: tuple[str, ...] | None = ()
    callback: bool = False
    #: The callback service begins at once, and not only when there are handles.
    callback_at_once: bool = False
