"""`headrace queue` and `headrace workers` on the memory store."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from uuid import UUID

import pytest

from headrace import App
from tests.unit.cli_runner import CommandLine, as_client, command_line, working


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def with_jobs(headrace: CommandLine, *numbers: int) -> tuple[App, list[UUID]]:
    """Enqueue a job per number on queue `sums`; negative ones will fail."""
    app = headrace.app()

    @app.task(queue="sums", name="root")
    async def root(number: int) -> int:
        if number < 0:
            raise ValueError("no root")
        return number

    async def enqueue() -> list[UUID]:
        return [(await root.options(max_attempts=1).enqueue(number)).id for number in numbers]

    return app, as_client(app, enqueue)


def test_stats_of_nothing(headrace: CommandLine) -> None:
    """An empty store has no queue, and says so."""
    assert headrace.json("queue", "stats") == []
    assert "No queue" in headrace.text("queue", "stats")


def test_stats_count_by_state(headrace: CommandLine) -> None:
    """Stats count the jobs of each state, and say that nobody works on them or how fast they go."""
    app, jobs = with_jobs(headrace, 4, -4, 9)
    [waiting] = headrace.json("queue", "stats")
    assert (waiting["name"], waiting["ready"], waiting["live_workers"]) == ("sums", 3, 0)
    assert waiting["oldest_ready_age"] is not None
    assert "no worker" in headrace.text("queue", "stats")
    headrace.finish(app, *jobs)
    done = headrace.json("queue", "stats", "sums")
    assert (done["ready"], done["succeeded"], done["failed"]) == (0, 2, 1)
    assert done["rate_out"] == pytest.approx(3 / 60)
    assert "no worker" not in headrace.text("queue", "stats", "sums")


def test_a_paused_queue_says_so_and_why(headrace: CommandLine) -> None:
    """A pause is seen with its reason until it is lifted, and can come before the first job."""
    with_jobs(headrace, 1)
    said = headrace.json("queue", "pause", "sums", "--reason", "quota used up")
    assert said == {"queue": "sums", "paused": True, "closed": False}
    assert headrace.json("queue", "stats", "sums")["paused_reason"] == "quota used up"
    assert "paused (quota used up)" in headrace.text("queue", "stats")
    assert headrace.text("queue", "resume", "sums") == "sums is resumed\n"
    assert headrace.json("queue", "stats", "sums")["paused"] is False
    assert headrace.refusal("queue", "pause", "later")[0] == 5
    assert headrace.text("queue", "pause", "later", "--force") == "later is paused\n"


def test_resuming_wakes_the_workers(headrace: CommandLine) -> None:
    """A resumed queue is worked on at once."""
    app, jobs = with_jobs(headrace, 1)
    headrace.text("queue", "pause", "sums")
    with working(app):
        assert headrace.json("queue", "stats", "sums")["ready"] == 1
        headrace.text("queue", "resume", "sums")
        headrace.wait_for(*jobs)


def test_failed_jobs_of_a_queue_run_again_once(headrace: CommandLine) -> None:
    """`queue retry` makes one new job of each failed one, and none of those it made before."""
    app, jobs = with_jobs(headrace, -1, 2, -3)
    headrace.finish(app, *jobs)
    assert headrace.json("queue", "retry", "sums") == {"queue": "sums", "retried": 2}
    assert headrace.text("queue", "retry", "sums") == "0 failed jobs of sums run again\n"
    assert headrace.json("queue", "stats", "sums")["ready"] == 2


def test_cleanup_removes_what_is_older_and_nothing_else(headrace: CommandLine) -> None:
    """History older than the retention goes; younger history and waiting jobs stay."""
    app, jobs = with_jobs(headrace, 1, -1)
    headrace.finish(app, *jobs)
    with_jobs(headrace, 7)
    assert headrace.text("queue", "cleanup", "--retention", "1d") == "removed nothing\n"
    assert sum(headrace.json("queue", "stats", "sums")[state] for state in ("succeeded", "failed")) == 2
    removed = headrace.json("queue", "cleanup", "sums", "--retention", "0s")["removed"]
    assert removed["jobs"] == 2
    after = headrace.json("queue", "stats", "sums")
    assert (after["succeeded"], after["failed"], after["ready"]) == (0, 0, 1)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT be what it is in a new process: a worker that another test ran here may have left its own handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_a_drain_that_is_broken_off_says_that_the_queue_stays_closed(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends with 130 and names the way to open the queue again, for people and as JSON."""
    with_jobs(headrace, 1)
    monkeypatch.setattr("headrace.cli.queue._DrainLines.show", lambda *_: signal.raise_signal(signal.SIGINT))
    result = headrace("queue", "drain", "sums")
    assert result.exit_code == 130, result.stderr
    assert result.stderr.splitlines()[-1] == (
        "Error: interrupted; sums stays closed until `headrace queue resume sums`"
    )  # fmt: skip
    code, error = headrace.refusal("queue", "drain", "sums")
    assert (code, error["code"], "queue resume sums" in error["message"]) == (130, "interrupted", True)


def test_a_short_drain_says_what_it_still_waits_for(headrace: CommandLine) -> None:
    """Without jobs it is the other processes, which need a moment to see the queue closed; with jobs it is those."""
    app, jobs = with_jobs(headrace, 1)
    left = headrace("queue", "drain", "sums", "--timeout", "0s")
    assert left.exit_code == 1
    assert "sums is not drained in time: 1 ready; it stays closed until" in left.stdout
    headrace.finish(app, *jobs)
    empty = headrace("queue", "drain", "sums", "--timeout", "0s")
    assert empty.exit_code == 1
    assert empty.stdout.splitlines() == [
        "sums is closed; no jobs are left, but other processes need 1.5 s to see it closed",
        "sums is not drained in time: no jobs are left, but other processes need 1.5 s to see it closed; "
        "it stays closed until `headrace queue resume sums`",
    ]


def test_an_unknown_queue_is_not_found(headrace: CommandLine) -> None:
    """A queue without jobs, workers or setting is an error that names those there are."""
    with_jobs(headrace, 1)
    for verb in (("stats",), ("pause",), ("resume",), ("retry",), ("cleanup", "--retention", "1d")):
        code, error = headrace.refusal("queue", verb[0], "summs", *verb[1:])
        assert (code, error["code"]) == (5, "not_found")
        assert "there are: sums" in error["message"]


def test_no_worker_is_a_hint_how_to_start_one(headrace: CommandLine) -> None:
    """Without workers the command says how to start one."""
    assert headrace.json("workers") == []
    assert "headrace worker MODULE:app" in headrace.text("workers")


def test_workers_that_live_and_that_ended(headrace: CommandLine) -> None:
    """A live worker shows its queues, its last heartbeat and its figures; one that ended only on request."""
    app, jobs = with_jobs(headrace, 1, 2)
    with working(app):
        headrace.wait_for(*jobs)
        [live] = headrace.json("workers")
        assert live["queues"] == {"sums": 10}
        assert 0 <= live["heartbeat_age_seconds"] < 12
        text = headrace.text("workers")
        assert "sums:10" in text
        assert str(live["process"]["pid"]) in text
        assert "ago" in text
    assert headrace.json("workers") == []
    [ended] = headrace.json("workers", "--all")
    assert (ended["id"], ended["alive"], ended["heartbeat_age_seconds"]) == (live["id"], False, None)
