"""Figures for Prometheus: its format, and rules and reference that name metrics there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.apps.details.figures import DEAD, DURATION, FIRST, SIZE, TASKS
from headrace.engine.exposition import BACKLOG, JOBS, METRICS, OUTBOX, OUTBOX_OLDEST, expose, expose_outbox
from headrace.model.event import OutboxStats
from headrace.model.message_log import GroupView
from headrace.model.stats import QueueStats
from tests.unit.cli_runner import CommandLine, as_client, command_line

ROOT = Path(__file__).resolve().parent.parent.parent
LINE = re.compile(r'[a-z_]+\{queue="[^"]+"(,state="[a-z]+")?\} [0-9.e+]+')

QUEUE = QueueStats(
    name="llm", scheduled=1, ready=7, running=2, parked=0, succeeded=5, failed=1, cancelled=0,
    oldest_ready_age=timedelta(minutes=2), rate_in=0.5, rate_out=1.25, live_workers=3, paused=False, closed=True,
    alarm_size=7,
)  # fmt: skip


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def test_every_figure_is_a_line_with_its_queue() -> None:
    """The text has a help and a type per metric and a sample per queue; flags are 0 or 1."""
    lines = expose([QUEUE]).splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in samples), samples
    assert f'{JOBS}{{queue="llm",state="ready"}} 7' in samples
    assert 'headrace_queue_oldest_ready_seconds{queue="llm"} 120' in samples
    assert 'headrace_queue_closed{queue="llm"} 1' in samples
    assert 'headrace_queue_paused{queue="llm"} 0' in samples
    assert 'headrace_queue_alarmed{queue="llm"} 1' in samples
    assert len([line for line in lines if line.startswith("# TYPE")]) == len(METRICS) + 1
    assert expose([QUEUE]).endswith("\n")


def test_the_outbox_has_a_line_per_state() -> None:
    """Waiting, held and parked events, and how old the oldest waiting one is."""
    samples = [line for line in expose_outbox(OutboxStats(7, 2, 1, 3.5)).splitlines() if not line.startswith("#")]
    assert samples == [
        'headrace_outbox_events{state="waiting"} 7',
        'headrace_outbox_events{state="held"} 2',
        'headrace_outbox_events{state="parked"} 1',
        "headrace_outbox_oldest_seconds 3.5",
    ]


def test_groups_tell_how_far_they_are_behind() -> None:
    """A line for each, whatever its name."""
    group = GroupView('a "b\\c', 1, 7, datetime(2026, 1, 1, tzinfo=UTC))
    [line] = [line for line in expose_outbox(OutboxStats(), [group]).splitlines() if line.startswith(f"{BACKLOG}{{")]
    assert line == 'headrace_bus_backlog{group="a \\"b\\\\c"} 7'


def test_the_command_writes_them(headrace: CommandLine) -> None:
    """`queue stats --prometheus` writes the same for the queues there are."""
    app = headrace.app()

    @app.task(queue="sums")
    async def double(number: int) -> int:
        return 2 * number

    as_client(app, lambda: double.enqueue(1))
    text = headrace.text("queue", "stats", "--prometheus")
    assert 'headrace_queue_jobs{queue="sums",state="ready"} 1\n' in text
    assert "\nheadrace_outbox_oldest_seconds 0\n" in text
    assert "headrace_outbox" not in headrace.text("queue", "stats", "sums", "--prometheus")
    assert headrace("queue", "stats", "--prometheus", "--json").exit_code == 2


def test_the_reference_names_the_metrics_there_are() -> None:
    """What is said of them is checked where rules and dashboards are: test_deploy_metrics.py."""
    reference = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    known = {JOBS, OUTBOX, OUTBOX_OLDEST, BACKLOG, *METRICS, TASKS, DURATION, FIRST, SIZE, DEAD}
    assert {name for name in known if f"`{name}" not in reference} == set()
