"""`headrace job explain` on the memory store: the reason is the one that keeps workers from taking the job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from headrace import App
from tests.unit.cli_runner import CommandLine, as_client, command_line, working
from tests.waiting import wait_until_sync


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.fixture
def app(headrace: CommandLine) -> App:
    """An app with a task that ends, and one that runs until it is cancelled, one job of it at a time."""
    app = headrace.app()

    @app.task(name="echo")
    async def echo(text: str) -> str:
        return text

    @app.task(name="hold", queue="llm", concurrency=1)
    async def hold() -> None:
        await asyncio.Event().wait()

    return app


def enqueue(app: App, task: str, *args: object, **options: object) -> UUID:
    """Enqueue a job and return its id."""
    return as_client(app, lambda: app.find_task(task).options(**options).enqueue(*args)).id  # type: ignore[arg-type]


def why(headrace: CommandLine, job: UUID) -> tuple[str, str]:
    """Return the reason why a job waits, and its sentence."""
    explained = headrace.json("job", "explain", job)
    assert explained["job"] == str(job)
    return explained["reason"], explained["sentence"]


def test_a_job_that_nobody_serves(headrace: CommandLine, app: App) -> None:
    """Without a worker the explanation says how to start one, in `show` too."""
    job = enqueue(app, "echo", "a")

    assert why(headrace, job)[0] == "no_worker"
    assert "headrace worker MODULE:app --queue default" in headrace.text("job", "explain", job)
    assert "no live worker serves queue default" in headrace.text("job", "show", job)
    assert "no live worker" in headrace.json("job", "show", job)["why"]


def test_a_job_before_its_time(headrace: CommandLine, app: App) -> None:
    """A delayed job waits for its time."""
    job = enqueue(app, "echo", "a", run_at="1h")

    reason, sentence = why(headrace, job)
    assert (reason, sentence.startswith("it waits for its time until ")) == ("scheduled", True)
    assert headrace.json("job", "explain", job)["until"] is not None


def test_a_job_of_a_paused_queue(headrace: CommandLine, app: App) -> None:
    """A paused queue is named with the operator's words."""
    job = enqueue(app, "echo", "a")
    headrace.text("queue", "pause", "default", "--reason", "upgrade")

    assert why(headrace, job) == (
        "paused",
        "queue default is paused: upgrade (`headrace queue resume default` lifts it)",
    )


def test_a_job_behind_a_full_cap(headrace: CommandLine, app: App) -> None:
    """While as many run as a cap allows, the next job names the cap; the running one says since when it runs."""
    first, second = enqueue(app, "hold"), enqueue(app, "hold")

    with working(app):
        wait_until_sync(lambda: why(headrace, first)[0] == "running")
        assert why(headrace, second) == ("cap", "cap task:hold is full (1 of 1 running)")
        assert why(headrace, first)[1].startswith("it is running since ")
        headrace.text("job", "cancel", second)
        headrace.text("job", "cancel", first)
        headrace.wait_for(first)


def test_a_job_that_ended(headrace: CommandLine, app: App) -> None:
    """A final job says how it ended, and `show` needs no other word for it."""
    job = enqueue(app, "echo", "a")
    headrace.finish(app, job)

    reason, sentence = why(headrace, job)
    assert (reason, sentence.startswith("it succeeded at ")) == ("final", True)
    assert headrace.json("job", "show", job)["why"] is None


@pytest.mark.usefixtures("app")
def test_an_unknown_job(headrace: CommandLine) -> None:
    """What does not exist is not found."""
    assert headrace.refusal("job", "explain", uuid4())[0] == 5
