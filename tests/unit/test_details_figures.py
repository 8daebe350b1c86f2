"""Details: figures folded from the feed of ended batches, and batches rebuilt from their domain events."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.apps.details.figures import BOUNDS, LABELS, Figures, expose_sizes
from headrace.apps.details.names import AGGREGATE, COMPLETED, CREATED, REQUESTED
from headrace.apps.details.states import rebuild
from headrace.model.event import Event

DONE: dict[str, Any] = {
    "batch_id": "b",
    "type": "skill",
    "status": "completed",
    "first_response_seconds": 1.4,
    "dead_letters": 1,
    "tasks": [{"status": "completed", "seconds": 3.4}, {"status": "dead", "seconds": 6.0}],
}


def samples_of(text: str) -> dict[str, float]:
    """The samples in Prometheus's text format, by name and labels; each may stand there once."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    assert len({name for name, _, _ in lines}) == len(lines)
    return {name: float(value) for name, _, value in lines}


def test_an_ended_batch_is_counted() -> None:
    """Subtasks by type and status, both histograms, and dead letters; a type without any says 0."""
    figures = Figures()
    figures.add(1, DONE)
    samples = samples_of(figures.expose())
    assert samples['batch_tasks_total{type="skill",status="completed"}'] == 1
    assert samples['batch_tasks_total{type="skill",status="dead"}'] == 1
    assert samples['batch_task_duration_seconds_bucket{type="skill",le="4"}'] == 1
    assert samples['batch_task_duration_seconds_bucket{type="skill",le="+Inf"}'] == 2
    assert samples['batch_task_duration_seconds_sum{type="skill"}'] == pytest.approx(9.4)
    assert samples['batch_first_response_seconds_bucket{type="skill",le="1.5"}'] == 1
    assert samples['batch_first_response_seconds_count{type="skill"}'] == 1
    assert samples['batch_dead_letters_total{type="skill"}'] == 1
    assert samples['batch_dead_letters_total{type="item"}'] == 0


def test_an_entry_counts_once() -> None:
    """Who folds a feed again from an earlier place changes nothing."""
    figures = Figures()
    for seq in (1, 2, 1, 2, 3):
        figures.add(seq, DONE)
    assert (figures.seq, figures.dead_letters["skill"], figures.tasks["skill", "dead"]) == (3, 3, 3)


def test_labels_are_bounded() -> None:
    """However many types and words for an ending there are, they share one label."""
    figures = Figures()
    for seq in range(1, 100):
        figures.add(seq, {**DONE, "type": f"type_{seq}", "tasks": [{"status": f"word_{seq}", "seconds": 1.0}]})
    assert list(figures.tasks) == [("other", "other")]
    assert figures.expose().count("batch_first_response_seconds_bucket") == len(BOUNDS) + 1


@pytest.mark.parametrize(
    "done",
    [
        {},
        {"type": 5, "tasks": "x", "dead_letters": "y"},
        {"tasks": [5, {}, {"status": 7}], "first_response_seconds": None},
        {"first_response_seconds": -1, "dead_letters": -3},
    ],
)
def test_an_entry_that_is_none_counts_nothing(done: dict[str, Any]) -> None:
    """An entry of another version never breaks the figures of all."""
    figures = Figures()
    figures.add(1, done)
    samples = samples_of(figures.expose())
    assert samples == {f'batch_dead_letters_total{{type="{label}"}}': 0.0 for label in LABELS}


def test_sizes_are_told_for_every_priority() -> None:
    """One without jobs says 0; others than those of the interface there are not."""
    samples = samples_of(expose_sizes({0: 4, 10: 1, 77: 3}))
    assert samples == {f'batch_queue_size{{priority="{each}"}}': {0: 4, 10: 1}.get(each, 0) for each in range(11)}


def event(kind: str, correlation_id: str | None, **payload: Any) -> Event:
    """An event of a session."""
    return Event(kind, AGGREGATE, "s", {"session_id": "s", **payload}, correlation_id)


def asked(task: str, count: int, correlation_id: str = "b") -> Event:
    """A request for a part of a batch."""
    return event(REQUESTED, correlation_id, task_id=task, type="skill", count=count, style="grim", priority=8)


def created(task: str, *names: str, correlation_id: str = "b", **counts: int) -> Event:
    """A part's result."""
    return event(CREATED, correlation_id, task_id=task, items=[{"name": name} for name in names], **counts)


def test_a_batch_is_rebuilt_from_its_events() -> None:
    """What was asked, what came, what it took, and how it ended; top-ups add items, and nothing to what was asked."""
    events = [
        asked("b:0", 2), asked("b:1", 2),
        created("b:1", "Three", calls=1, duplicates=1, input_tokens=400, output_tokens=60),
        created("b:0", "One", "Two", calls=2, rejected=1, output_tokens=120), asked("b:2", 1, "b.2"),
        created("b:2", "Four", correlation_id="b.2", calls=1),
        event(COMPLETED, "b", status="completed", count=4, delivered=4),
    ]  # fmt: skip
    state = rebuild("b", events)
    assert (state.type, state.style, state.priority, state.session_id) == ("skill", "grim", 8, "s")
    assert (state.count, state.status, state.open_subtasks) == (4, "completed", [])
    assert [item["name"] for item in state.items] == ["One", "Two", "Three", "Four"]
    assert (state.calls, state.duplicates, state.rejected) == (4, 1, 1)
    assert (state.input_tokens, state.output_tokens) == (400, 180)
    assert [subtask.round for subtask in state.subtasks.values()] == [1, 1, 2]


def test_events_that_come_twice_or_from_elsewhere_count_nothing() -> None:
    """At-least-once delivery, other batches, and ids that only begin alike change no state."""
    request, result = asked("b:0", 2), created("b:0", "One", calls=1)
    others = [asked("c:0", 5, "c"), asked("b2:0", 5, "b2"), asked("x", 5, "b.x"), event(REQUESTED, None, task_id="y")]
    again = created("b:0", "One", "Two", calls=3)
    assert rebuild("b", [request, result]) == rebuild("b", [request, request, result, *others, result, again])


def test_a_batch_under_way_is_running() -> None:
    """Before its end a batch says which parts are open; a result may come before its request."""
    state = rebuild("b", [created("b:1", "Three"), asked("b:0", 2), asked("b:1", 1)])
    assert (state.status, state.count, state.open_subtasks) == ("running", 3, ["b:0"])
