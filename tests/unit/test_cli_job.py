"""`headrace job` and `headrace enqueue` on the memory store."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from headrace import App, Backoff, Context
from headrace.model.durations import parse_duration
from tests.unit.cli_runner import CommandLine, as_client, command_line, working
from tests.waiting import wait_until_sync

LONG = "x" * 1_000


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.fixture
def app(headrace: CommandLine) -> App:
    """An app with a task for each ending."""
    app = headrace.app()

    @app.task
    async def echo(text: str) -> str:
        return text

    @app.task(retry=Backoff.exponential(max_attempts=3, base="1ms", cap="1ms"))
    async def stumble(ctx: Context) -> str:
        if ctx.attempt < 3:
            raise ValueError(f"stumble {ctx.attempt} \x1b[31m")
        return "arrived"

    @app.task(retry=Backoff(max_attempts=1))
    async def fail() -> None:
        raise ValueError("no good")

    @app.task
    async def wait() -> None:
        await asyncio.Event().wait()

    return app


def enqueue(app: App, task: str, *args: object) -> UUID:
    """Enqueue a job and return its id."""
    return as_client(app, lambda: app.find_task(task).enqueue(*args)).id


def state(headrace: CommandLine, job: UUID) -> str:
    """Return where a job stands."""
    return str(headrace.json("job", "show", job)["state"])


def test_show_tells_of_every_attempt(headrace: CommandLine, app: App) -> None:
    """A job shows its attempts with their errors; nothing in them commands the terminal."""
    job = enqueue(app, "stumble")
    headrace.finish(app, job)
    document = headrace.json("job", "show", job)
    assert (document["state"], document["result"], document["failures"]) == ("succeeded", "arrived", 2)
    assert [attempt["outcome"] for attempt in document["attempts"]] == ["failed", "failed", "succeeded"]
    assert document["attempts"][0]["error"]["message"] == "stumble 1 \x1b[31m"
    text = headrace.text("job", "show", job)
    assert "stumble 1 \\x1b[31m" in text
    assert "\x1b" not in text
    assert "Traceback" in text, "the last trace is shown"


def test_logs_shows_each_attempt(headrace: CommandLine, app: App) -> None:
    """The lines of each attempt stand below its number; one alone is asked for by it, and one without lines says so."""

    @app.task(retry=Backoff.fixed(0, max_attempts=2))
    async def talk(ctx: Context) -> None:
        for number in range(101 if ctx.attempt == 1 else 1):
            ctx.log.warning("line %d \x1b[31m", number)
        if ctx.attempt == 1:
            raise ValueError("once")

    job = enqueue(app, "talk")
    assert headrace.text("job", "logs", job) == "no lines were kept of the job\n"
    headrace.finish(app, job)
    document = headrace.json("job", "logs", job)
    assert document["job"] == str(job)
    assert [(each["attempt"], len(each["lines"]), each["dropped"]) for each in document["attempts"]] == [
        (1, 100, 1),
        (2, 1, 0),
    ]
    lines = headrace.text("job", "logs", job).splitlines()
    assert (lines[0], len(lines)) == ("attempt 1, without 1 line before these", 103)
    last = headrace.text("job", "logs", job, "--attempt", 2).splitlines()
    assert last[0] == "attempt 2"
    assert re.fullmatch(r"  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} WARNING line 0 \\x1b\[31m", last[1])
    assert headrace.json("job", "logs", job, "--attempt", 2)["attempts"] == document["attempts"][1:]
    assert headrace.text("job", "logs", job, "--attempt", 3) == "no lines were kept of attempt 3\n"
    assert headrace("job", "logs", job, "--attempt", 0).exit_code == 2


def test_show_cuts_long_values_for_people_only(headrace: CommandLine, app: App) -> None:
    """Long arguments and results are cut where people read, and whole with --json."""
    job = enqueue(app, "echo", LONG)
    headrace.finish(app, job)
    assert headrace.json("job", "show", job)["result"] == LONG
    text = headrace.text("job", "show", job)
    assert LONG not in text
    assert "--json shows all" in text


def test_cancel_says_what_it_did(headrace: CommandLine, app: App) -> None:
    """A waiting job is cancelled at once, a running one by its worker, an ended one not at all."""
    waiting = enqueue(app, "echo", "a")
    assert headrace.json("job", "cancel", waiting) == {"job": str(waiting), "answer": "cancelled"}
    assert "nothing to cancel" in headrace.text("job", "cancel", waiting)
    running = enqueue(app, "wait")
    with working(app):
        wait_until_sync(lambda: state(headrace, running) == "running")
        assert "asked to stop" in headrace.text("job", "cancel", running)
        headrace.wait_for(running)
    assert state(headrace, running) == "cancelled"


def test_cancelling_the_last_job_of_a_batch_closes_it(headrace: CommandLine, app: App) -> None:
    """A batch whose last job is cancelled by hand closes at once, not only at the next sweep."""
    batch = as_client(app, lambda: app.submit(app.find_task("echo"), ["a"]))
    [job] = as_client(app, lambda: app.runtime.stores.inspect.list_jobs(batch_id=batch.id))
    headrace.text("job", "cancel", job.id)
    closed = headrace.json("batch", "show", batch.id)
    assert (closed["state"], closed["progress"]["cancelled"]) == ("closed", 1)


def test_retry_makes_one_new_job(headrace: CommandLine, app: App) -> None:
    """A failed job is run again as a new one, once; a job that succeeded is not."""
    job = enqueue(app, "fail")
    headrace.finish(app, job)
    document = headrace.json("job", "retry", job)
    assert document["retry_of"] == str(job)
    assert headrace.text("job", "retry", job).strip() == document["job"]
    assert headrace.json("job", "show", document["job"])["retry_of"] == str(job)
    done = enqueue(app, "echo", "a")
    with working(app):
        headrace.wait_for(done)
    code, error = headrace.refusal("job", "retry", done)
    assert (code, error["code"]) == (2, "invalid_input")


@pytest.mark.parametrize("verb", ["show", "logs", "cancel", "retry"])
def test_an_unknown_job_is_not_found(headrace: CommandLine, verb: str) -> None:
    """A job that is not there ends every verb with 5."""
    code, error = headrace.refusal("job", verb, uuid4())
    assert (code, error["code"]) == (5, "not_found")


# Enqueue


@pytest.fixture
def target(tmp_path: Path) -> str:
    """MODULE:app of a file with tasks."""
    path = tmp_path / "cli_enqueue_jobs.py"
    path.write_text(
        "from headrace import App, Fail\n"
        "app = App()\n"
        "@app.task\n"
        "async def add(first: int, second: int = 1) -> int:\n"
        "    return first + second\n"
        "@app.task\n"
        "def count(words: list[str]) -> int:\n"
        "    return len(words)\n"
        "@app.task\n"
        "async def refuse() -> Fail:\n"
        "    return Fail('not today')\n",
        encoding="utf-8",
    )
    return f"{path}:app"


def worker_app(headrace: CommandLine) -> App:
    """Return an app of its own, as a worker process has it, with the tasks of the file."""
    from cli_enqueue_jobs import app  # type: ignore[import-not-found]

    own = headrace.app()
    for task in app.registry:
        own.registry.add(task)
    return own


@pytest.mark.parametrize(
    ("task", "text", "args", "kwargs"),
    [
        ("add", "[1, 2]", [1, 2], {}),
        ("add", '{"first": 1, "second": 2}', [], {"first": 1, "second": 2}),
        ("add", "7", [7], {}),
        ("count", '[["a", "b"]]', [["a", "b"]], {}),
    ],
)
def test_json_becomes_arguments(
    headrace: CommandLine, target: str, task: str, text: str, args: list[object], kwargs: dict[str, object]
) -> None:
    """A list holds positional arguments, an object keyword arguments, anything else is the one argument."""
    job = headrace.text("enqueue", target, task, text).strip()
    assert headrace.json("job", "show", job)["args"] == {"args": args, "kwargs": kwargs}


def test_arguments_come_from_standard_input_too(headrace: CommandLine, target: str) -> None:
    """`-` reads the JSON from standard input."""
    result = headrace("enqueue", target, "add", "-", given="[3, 4]\n")
    assert headrace.json("job", "show", result.stdout.strip())["args"]["args"] == [3, 4]


def test_options_reach_the_job(headrace: CommandLine, target: str) -> None:
    """Priority, queue and time of the command line replace those of the task."""
    options = ("--priority", "high", "--queue", "sums", "--run-at", "10m")
    document = headrace.json("enqueue", target, "add", "1", *options)
    view = headrace.json("job", "show", document["job"])
    assert (view["priority"], view["queue"], view["state"]) == (3, "sums", "scheduled")
    delay = datetime.fromisoformat(view["run_at"]) - datetime.now(UTC)
    assert timedelta(minutes=9) < delay <= timedelta(minutes=10)
    later = datetime.now(UTC) + timedelta(days=1)
    second = headrace.text("enqueue", target, "add", "1", "--priority", "7", "--run-at", later.isoformat()).strip()
    view = headrace.json("job", "show", second)
    assert (view["priority"], datetime.fromisoformat(view["run_at"])) == (7, later)


def test_a_key_makes_one_job(headrace: CommandLine, target: str) -> None:
    """The same key and arguments give the same id; other arguments are a conflict."""
    first = headrace.text("enqueue", target, "add", "1", "--key", "k")
    assert headrace.text("enqueue", target, "add", "1", "--key", "k") == first
    code, error = headrace.refusal("enqueue", target, "add", "2", "--key", "k")
    assert (code, error["code"]) == (1, "idempotency_conflict")


def test_waiting_prints_the_result_alone(headrace: CommandLine, target: str) -> None:
    """--wait writes the result to standard output, and the id to standard error."""
    headrace.text("enqueue", target, "add", "1")
    with working(worker_app(headrace)):
        result = headrace("enqueue", target, "add", "[40, 2]", "--wait", "--timeout", "20s")
        assert (result.exit_code, result.stdout) == (0, "42\n")
        assert result.stderr.startswith("job ")
        document = headrace.json("enqueue", target, "count", '[["a", "b"]]', "--wait")
        assert (document["state"], document["result"]) == ("succeeded", 2)


def test_waiting_ends_with_the_job_or_with_its_time(headrace: CommandLine, target: str) -> None:
    """A failed job and a wait that is too short end with 1 and name the job, which goes on."""
    code, error = headrace.refusal("enqueue", target, "add", "1", "--wait", "--timeout", "50ms")
    assert (code, error["code"]) == (1, "result_timeout")
    assert state(headrace, UUID(error["job_id"])) == "ready"
    with working(worker_app(headrace)):
        code, error = headrace.refusal("enqueue", target, "refuse", "--wait")
    assert (code, error["code"]) == (1, "job_failed")
    assert "not today" in error["message"]
    assert state(headrace, UUID(error["job_id"])) == "failed"


def test_durations_of_the_documents_are_written_as_they_are_read(headrace: CommandLine, app: App) -> None:
    """A duration in a JSON document can be given back to the command line."""
    enqueue(app, "echo", "a")
    [queue] = headrace.json("queue", "stats")
    assert parse_duration(queue["oldest_ready_age"]) >= timedelta()
    assert json.dumps(queue)
