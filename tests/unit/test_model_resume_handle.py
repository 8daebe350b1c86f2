"""What a handle expects, what counts of it, and when two of them wait for the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headrace.model.event import Event
from headrace.model.resume_handle import (
    HandleState,
    HandleView,
    NewHandle,
    NotedEvent,
    count_arrived,
    expects,
    same_wait,
)

DONE, ASKED = "A.B.Done", "A.B.Asked"
NEW = NewHandle("c", (DONE, "A.B.Failed"), 2, timedelta(minutes=1), (ASKED,), ("one", "two"), "hash", "prefect:1")
STORED = HandleView(
    "c", (DONE, "A.B.Failed"), 2, (ASKED,), ("one", "two"), HandleState.WAITING, 0, "prefect:1", wake_due=False,
    created_at=datetime(2026, 1, 1, tzinfo=UTC), expires_at=datetime(2026, 1, 2, tzinfo=UTC),
)  # fmt: skip


def noted(
    number: str, *, cause: str | None = None, type_: str = DONE, dead: bool = False, agent: str = ""
) -> NotedEvent:
    """Return a noted event."""
    return NotedEvent(Event(type_, "B", "b", causation_id=cause, id=number), dead, agent)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"expect_types": ("A.B.Failed", DONE)}, True),
        ({"agents": ("two", "one")}, True),
        ({"token_hash": "other", "timeout": timedelta(days=1)}, True),
        ({"expect_types": (DONE,)}, False),
        ({"expect_count": 3}, False),
        ({"request_types": ()}, False),
        ({"agents": ("one",)}, False),
        ({"target": ""}, False),
    ],
)
def test_the_same_wait(changes: dict[str, object], *, same: bool) -> None:
    """Types, count, agents and target make it; not their order, nor token and time."""
    assert same_wait(replace(NEW, **changes), STORED) is same  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "agents", "expected"),
    [
        (noted("1"), (), True),
        (noted("1", type_=ASKED), (), False),
        (noted("1", dead=True), (), False),
        (noted("1", type_=ASKED, dead=True), (), True),
        (noted("1", type_=ASKED, dead=True, agent="one"), ("one",), True),
        (noted("1", type_=ASKED, dead=True, agent="three"), ("one",), False),
    ],
)
def test_what_is_expected(event: NotedEvent, agents: tuple[str, ...], *, expected: bool) -> None:
    """Results by their type, dead letters by that of requests and by who gave them up."""
    assert expects(replace(NEW, agents=agents), event) is expected


@pytest.mark.parametrize(
    ("kept", "count"),
    [
        ([], 0),
        ([noted("1"), noted("2")], 2),
        ([noted("1", type_=ASKED, dead=True)], 1),
        ([noted("1", dead=True, agent="one"), noted("1", dead=True, agent="two")], 1),
        ([noted("1", dead=True), noted("2", cause="1")], 1),
        ([noted("1", dead=True), noted("2", cause="1", dead=True)], 1),
        ([noted("1"), noted("2", cause="1")], 2),
        ([noted("1"), noted("1", dead=True)], 1),
    ],
)
def test_what_counts(kept: list[NotedEvent], count: int) -> None:
    """Each event once, and a dead one only as long as nothing that it caused is there, in whatever order they came."""
    assert count_arrived(kept) == count_arrived(kept[::-1]) == count
