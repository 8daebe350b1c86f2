"""`headrace batch` on the memory store."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from headrace import App, Backoff, ClosePolicy, Progress
from headrace.cli.watching import ending_text, progress_text
from headrace.engine.pace import Pace
from headrace.model.batch import BatchOutcome, BatchState, BatchView
from tests.unit.cli_runner import CommandLine, as_client, command_line, working


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.fixture
def app(headrace: CommandLine) -> App:
    """An app whose one task fails for negative numbers."""
    app = headrace.app()

    @app.task(name="root", queue="sums", retry=Backoff(max_attempts=1))
    async def root(number: int) -> int:
        if number < 0:
            raise ValueError(f"{number} has no root")
        return number * number

    return app


def submit(app: App, *numbers: int, key: str = "", policy: ClosePolicy | None = None) -> UUID:
    """Submit a batch of numbers and return its id."""
    options = {"key": key} if key else {}
    task = app.find_task("root")
    return as_client(app, lambda: app.submit(task, numbers, policy=policy or ClosePolicy.always(), **options)).id  # type: ignore[arg-type]


def finish(app: App, batch: UUID) -> None:
    """Work until the batch is closed."""
    other = App(settings=app.settings)
    with working(app):
        as_client(other, lambda: other.batch(batch).wait("20s"))


def test_batches_are_listed_newest_first(headrace: CommandLine, app: App) -> None:
    """The list shows state, total and key, newest first, and no more than asked for."""
    assert headrace.json("batch", "list") == []
    assert "no batches" in headrace.text("batch", "list")
    first, second = submit(app, 1, 2, key="review-1"), submit(app, 3)
    assert [view["id"] for view in headrace.json("batch", "list")] == [str(second), str(first)]
    assert [view["id"] for view in headrace.json("batch", "list", "--limit", "1")] == [str(second)]
    text = headrace.text("batch", "list")
    assert "review-1" in text
    assert "sealed" in text


def test_show_counts_the_items(headrace: CommandLine, app: App) -> None:
    """A batch shows how far it is, and how it ended."""
    batch = submit(app, 2, -2, 3, policy=ClosePolicy.threshold(5))
    before = headrace.json("batch", "show", batch)
    assert (before["state"], before["progress"]["waiting"], before["progress"]["percent"]) == ("sealed", 3, 0)
    assert "more than 5 items failed" in headrace.text("batch", "show", batch)
    finish(app, batch)
    after = headrace.json("batch", "show", batch)
    assert (after["state"], after["outcome"]) == ("closed", "partial")
    assert (after["progress"]["succeeded"], after["progress"]["failed"], after["progress"]["done"]) == (2, 1, 3)
    assert "3 of 3 done (100 %)" in headrace.text("batch", "show", batch)


def test_results_are_lines_that_can_be_resumed(headrace: CommandLine, app: App) -> None:
    """Results are JSON lines with or without --json; a cursor goes on after its line; failures can be picked."""
    batch = submit(app, 2, -2, 3)
    assert headrace.lines("batch", "results", batch) == [], "nothing has ended yet, and nobody waits"
    finish(app, batch)
    lines = headrace.lines("batch", "results", batch)
    assert lines == headrace.lines("batch", "results", batch, "--json")
    by_index = {line["index"]: line for line in lines}
    assert {index: line["status"] for index, line in by_index.items()} == {0: "succeeded", 1: "failed", 2: "succeeded"}
    assert (by_index[0]["result"], by_index[2]["result"]) == (4, 9)
    assert by_index[1]["error"]["message"] == "-2 has no root"
    assert "result" not in by_index[1]
    assert headrace.lines("batch", "results", batch, "--cursor", lines[0]["cursor"]) == lines[1:]
    assert [line["index"] for line in headrace.lines("batch", "results", batch, "--failed-only")] == [1]


def test_faults_tell_why_items_failed(headrace: CommandLine, app: App) -> None:
    """Errors that differ in their numbers are one fault; what was left out is told."""
    batch = submit(app, 2, -2, -3)
    assert "No item failed" in headrace.text("batch", "faults", batch)
    finish(app, batch)
    found = headrace.json("batch", "faults", batch)
    [fault] = found["faults"]
    assert (found["batch"], found["looked_at"], found["sampled"], fault["count"]) == (str(batch), 2, False, 2)
    text = headrace.text("batch", "faults", batch)
    assert fault["fingerprint"] in text and "has no root" in text
    assert "Looked at 1 failures" in headrace.text("batch", "faults", batch, "--look", "1")
    assert headrace("batch", "faults", uuid4()).exit_code == headrace("batch", "show", uuid4()).exit_code != 0


def test_following_results_ends_with_the_batch(headrace: CommandLine, app: App) -> None:
    """--follow waits for every item and ends when the batch is closed."""
    batch = submit(app, *range(20))
    with working(app):
        lines = headrace.lines("batch", "results", batch, "--follow")
    assert sorted(line["result"] for line in lines) == [number * number for number in range(20)]


@pytest.mark.parametrize(
    ("numbers", "policy", "outcome", "code"),
    [
        ((1, 2), ClosePolicy.always(), "succeeded", 0),
        ((1, -2), ClosePolicy.always(), "partial", 0),
        ((-1, -2), ClosePolicy.fail_fast(), "failed", 1),
        ((), ClosePolicy.always(), "succeeded", 0),
    ],
)
def test_watching_ends_with_the_outcome(
    headrace: CommandLine, app: App, numbers: tuple[int, ...], policy: ClosePolicy, outcome: str, code: int
) -> None:
    """Watching ends when the batch is closed, with 1 exactly when it failed; people get a last line."""
    batch = submit(app, *numbers, policy=policy)
    with working(app):
        watched = headrace("batch", "watch", batch)
    assert watched.exit_code == code
    assert watched.stdout.splitlines()[-1].startswith(outcome)
    again = headrace("batch", "watch", batch, "--json")
    assert again.exit_code == code
    [document] = [json.loads(line) for line in again.stdout.splitlines()]
    assert (document["state"], document["outcome"]) == ("closed", outcome)
    assert document["progress"]["done"] == len(numbers)


def test_watching_tells_of_changes(headrace: CommandLine, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of --json is a change, with the rate once it is known."""
    batch, lines, looked = submit(app, 1, 2, 3), list[str](), threading.Event()
    count = headrace.stores.inspect.batch_progress

    async def look(batch_id: UUID) -> Progress:
        progress = await count(batch_id)
        looked.set()
        return progress

    monkeypatch.setattr(headrace.stores.inspect, "batch_progress", look)
    watch = ("batch", "watch", batch, "--json", "--interval", "10ms")
    watcher = threading.Thread(target=lambda: lines.extend(headrace(*watch).stdout.splitlines()))
    watcher.start()
    assert looked.wait(20)
    with working(app):
        watcher.join(20)
    documents = [json.loads(line) for line in lines]
    assert (documents[0]["progress"]["done"], documents[-1]["progress"]["done"]) == (0, 3)
    assert documents[-1]["rate"] > 0
    assert len({json.dumps([document["progress"], document["state"]]) for document in documents}) == len(documents)


def test_watching_gives_up_when_told_to(headrace: CommandLine, app: App) -> None:
    """--timeout ends the watching, not the batch."""
    batch = submit(app, 1)
    result = headrace("batch", "watch", batch, "--timeout", "50ms", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["error"]["code"] == "result_timeout"
    assert headrace.json("batch", "show", batch)["state"] == "sealed"


def test_failed_items_run_again_in_a_new_round(headrace: CommandLine, app: App) -> None:
    """`batch retry` opens a round with the failures alone; without failures nothing changes."""
    batch = submit(app, 2, -2, -3)
    assert headrace.refusal("batch", "retry", batch)[0] == 1, "the batch is not closed yet"
    finish(app, batch)
    assert headrace.json("batch", "retry", batch) == {"batch": str(batch), "retried": 2}
    view = headrace.json("batch", "show", batch)
    assert (view["state"], view["round"], view["progress"]["waiting"]) == ("sealed", 2, 2)
    good = submit(app, 2)
    finish(app, good)
    assert "nothing to run again" in headrace.text("batch", "retry", good)


def test_cancelling_closes_a_batch_that_waits(headrace: CommandLine, app: App) -> None:
    """Cancelling tells how many items were cancelled; watching then ends with 1."""
    batch = submit(app, 1, 2, 3)
    assert headrace.text("batch", "cancel", batch) == "cancelled: 3 cancelled, 0 asked to stop\n"
    assert headrace.json("batch", "cancel", batch)["outcome"] == "cancelled"
    assert headrace("batch", "watch", batch).exit_code == 1


def test_a_batch_is_paused_and_resumed(headrace: CommandLine, app: App) -> None:
    """Pausing tells what waits; lists, figures, progress and jobs say it, with the reason; a resume lets all run."""
    batch = submit(app, 1, 2, 3)
    assert headrace.text("batch", "pause", batch, "--reason", "an incident") == "paused: 3 waiting, 0 running go on\n"
    assert headrace.json("batch", "pause", batch, "--reason", "a longer one")["paused_reason"] == "a longer one"
    assert "sealed, paused" in headrace.text("batch", "list")
    assert "a longer one" in headrace.text("batch", "show", batch)
    [job, *_] = as_client(app, lambda: app.runtime.stores.inspect.list_jobs(batch_id=batch))
    why = f"its batch is paused: a longer one (`headrace batch resume {batch}` lifts it)"
    assert why in " ".join(headrace.text("job", "explain", job.id).split())
    code, error = headrace.refusal("batch", "pause", batch, "--reason", "")
    assert (code, error["field"]) == (2, "reason")

    assert headrace.text("batch", "resume", batch) == "sealed: 3 waiting\n"
    assert headrace.json("batch", "resume", batch)["paused_at"] is None
    finish(app, batch)
    assert headrace.refusal("batch", "pause", batch)[0] == 1


@pytest.mark.parametrize("verb", ["show", "watch", "results", "retry", "cancel", "pause", "resume"])
def test_an_unknown_batch_is_not_found(headrace: CommandLine, verb: str) -> None:
    """A batch that is not there ends every verb with 5."""
    code, error = headrace.refusal("batch", verb, uuid4())
    assert (code, error["code"]) == (5, "not_found")


def test_a_forged_cursor_is_refused(headrace: CommandLine, app: App) -> None:
    """A cursor that no page gave is a wrong value."""
    code, error = headrace.refusal("batch", "results", submit(app, 1), "--cursor", "'; drop")
    assert (code, error["code"], error["field"]) == (2, "invalid_input", "cursor")


def test_progress_is_one_line_for_people() -> None:
    """Counts, rate and time left stand in one line, which says nothing it does not know."""
    created = datetime(2031, 1, 1, tzinfo=UTC)
    view = BatchView(
        uuid4(), None, "root", "sums", BatchState.OPEN, None, None, 1, ClosePolicy.always(), created, None, None
    )
    pace = Pace()
    assert progress_text(view, Progress(None, succeeded=2), pace) == "2/?, 0 % [open]"
    pace.note(0.0, 0)
    pace.note(2.0, 5)
    sealed = replace(view, state=BatchState.SEALED)
    text = progress_text(sealed, Progress(10, succeeded=4, failed=1, running=3, waiting=2), pace)
    assert text == "5/10, 50 %, 1 failed, 3 running, 2.5/s, 2.0s left"
    assert progress_text(replace(sealed, paused_at=created), Progress(None), Pace()) == "0/?, 0 % [paused]"
    closed = replace(
        view, state=BatchState.CLOSED, outcome=BatchOutcome.PARTIAL, closed_at=created + timedelta(minutes=3)
    )
    assert ending_text(closed, Progress(5, succeeded=4, failed=1)) == "partial in 3m: 4 succeeded, 1 failed"
    assert ending_text(closed, Progress(0)) == "partial in 3m: no items"
