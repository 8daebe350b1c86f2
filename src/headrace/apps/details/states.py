"""The state of a batch rebuilt from its domain events alone: they are kept when everything else is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.apps.details.names import COMPLETED, CREATED, REQUESTED
from headrace.model.event import Event

RUNNING = "running"
_COUNTS = ("rejected", "duplicates", "calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class SubtaskState:
    """One subtask."""

    task_id: str
    #: How many items it was asked for; 0: the request is not among the events.
    count: int = 0
    #: 1, or the round of top-ups it belongs to.
    round: int = 1
    items: list[Mapping[str, Any]] = field(default_factory=list)
    is_done: bool = False


@dataclass(slots=True)
class BatchState:
    """A batch, as far as its events tell."""

    batch_id: str
    session_id: str = ""
    type: str = ""
    style: str = ""
    priority: int | None = None
    #: How many items were asked for.
    count: int = 0
    #: `running`, or how it ended: completed, partial, failed.
    status: str = RUNNING
    #: By task id, in the order of their first event.
    subtasks: dict[str, SubtaskState] = field(default_factory=dict)
    rejected: int = 0
    duplicates: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def items(self) -> list[Mapping[str, Any]]:
        """All items, those of a subtask together."""
        return [item for subtask in self.subtasks.values() for item in subtask.items]

    @property
    def open_subtasks(self) -> list[str]:
        """Subtasks without a result."""
        return [task_id for task_id, subtask in self.subtasks.items() if not subtask.is_done]


def rebuild(batch_id: str, events: Iterable[Event]) -> BatchState:
    """Return the state of a batch by these events, in their order; those of others, and repeated ones, count nothing.

    >>> asked = {"session_id": "s", "task_id": "7:0", "type": "skill", "count": 1, "style": "", "priority": 5}
    >>> made = {"session_id": "s", "task_id": "7:0", "items": [{"name": "Ember Step"}], "calls": 1}
    >>> events = [Event(REQUESTED, "GenesisSession", "s", asked, "7"), Event(CREATED, "GenesisSession", "s", made, "7")]
    >>> state = rebuild("7", events)
    >>> state.type, state.count, [item["name"] for item in state.items], state.open_subtasks, state.status
    ('skill', 1, ['Ember Step'], [], 'running')
    """
    state, seen = BatchState(batch_id), set[str]()
    for event in events:
        round_ = _round(batch_id, event.correlation_id)
        if round_ is None or event.id in seen or not isinstance(event.payload, Mapping):
            continue
        seen.add(event.id)
        if event.type == REQUESTED:
            _request(state, event.payload, round_)
        elif event.type == CREATED:
            _create(state, event.payload, round_)
        elif event.type == COMPLETED:
            _complete(state, event.payload)
    return state


def _round(batch_id: str, correlation_id: str | None) -> int | None:
    """The round that a correlation id stands for; None: it is another batch's."""
    if correlation_id == batch_id:
        return 1
    before, dot, number = (correlation_id or "").rpartition(".")
    return int(number) if dot and before == batch_id and number.isascii() and number.isdigit() else None


def _request(state: BatchState, payload: Mapping[str, Any], round_: int) -> None:
    subtask = _subtask(state, payload, round_)
    if subtask.count:
        return
    subtask.count = _whole(payload, "count")
    if total := _whole(payload, "total"):
        state.count = total
    elif round_ == 1:
        # A top-up asks for what an earlier subtask did not give.
        state.count += subtask.count
    _describe(state, payload)


def _describe(state: BatchState, payload: Mapping[str, Any]) -> None:
    """Note what all events of a batch that say it say alike."""
    if "type" in payload and not state.type:
        state.type, state.style = str(payload["type"]), str(payload.get("style", ""))
        state.session_id, state.priority = str(payload.get("session_id", "")), _whole(payload, "priority")


def _complete(state: BatchState, payload: Mapping[str, Any]) -> None:
    state.status = str(payload.get("status", "completed"))
    state.count = _whole(payload, "count") or state.count
    _describe(state, payload)
    left_over = payload.get("left_over")
    for task_id, items in (left_over if isinstance(left_over, Mapping) else {}).items():
        # Of a part that became a dead letter midway: no event of its own tells what it delivered.
        subtask = state.subtasks.setdefault(str(task_id), SubtaskState(str(task_id)))
        if not subtask.is_done and isinstance(items, list):
            subtask.items = [item for item in items if isinstance(item, Mapping)]


def _create(state: BatchState, payload: Mapping[str, Any], round_: int) -> None:
    subtask = _subtask(state, payload, round_)
    if subtask.is_done:
        return
    subtask.is_done = True
    items = payload.get("items")
    subtask.items = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    for name in _COUNTS:
        setattr(state, name, getattr(state, name) + _whole(payload, name))


def _subtask(state: BatchState, payload: Mapping[str, Any], round_: int) -> SubtaskState:
    task_id = str(payload.get("task_id", ""))
    return state.subtasks.setdefault(task_id, SubtaskState(task_id, round=round_))


def _whole(payload: Mapping[str, Any], name: str) -> int:
    value = payload.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
