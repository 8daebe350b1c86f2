"""What the command line shows of slots: `headrace workers`, and `headrace queue stats --prometheus`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from headrace.engine.telemetry import SLOTS
from headrace.model.session import NewSession, ProcessId
from tests.unit.cli_runner import CommandLine, command_line

LEASE = timedelta(minutes=5)
ROW = {"size": 12, "min": 4, "max": 40, "eligible": 300, "used": 12, "held_by": None}


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def a_worker(headrace: CommandLine) -> None:
    """Let a worker be alive that serves an elastic queue and a fixed one."""
    session = NewSession(ProcessId("h", 1, 1), "box", {"llm": 8, "plain": 3}, LEASE)

    async def work() -> None:
        await headrace.stores.sessions.register_session(session)
        await headrace.stores.sessions.renew_session(session.id, lease=LEASE, stats={SLOTS: {"llm": ROW}})

    asyncio.run(work())


def test_workers_shows_the_slots_of_now(headrace: CommandLine) -> None:
    """With the bounds of those that are elastic."""
    a_worker(headrace)
    assert "llm:12 (4-40), plain:3" in " ".join(headrace.text("workers").split())
    [document] = headrace.json("workers")
    assert document["queues"] == {"llm": 12, "plain": 3}
    assert document["slots"]["llm"] == ROW
    assert document["slots"]["plain"]["max"] == 3


def test_figures_of_slots_follow_those_of_queues(headrace: CommandLine) -> None:
    """Of all queues, or of one."""
    a_worker(headrace)
    text = headrace.text("queue", "stats", "--prometheus")
    assert 'headrace_queue_slots{queue="llm"} 12' in text
    assert 'headrace_queue_slots_eligible{queue="llm"} 300' in text
    of_one = headrace.text("queue", "stats", "plain", "--prometheus")
    assert 'headrace_queue_slots{queue="plain"} 3' in of_one
    assert "llm" not in of_one
