"""`headrace dlq` on the memory store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace import App
from headrace.model.errors import InvalidInputError
from headrace.model.job import JobView
from tests.unit.cli_runner import CommandLine, as_client, command_line, working


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.fixture
def app(headrace: CommandLine) -> App:
    """An app whose jobs fail unless their model is `good`; four did: three for one reason, one for another."""
    app = headrace.app()

    @app.task(queue="llm", name="ask")
    async def ask(page: int, *, model: str = "bad") -> str:
        if model == "good":
            return f"page {page}"
        raise ValueError(f"page {page} of '{model}' has no answer")

    @app.task(queue="mail", name="send")
    async def send(address: str) -> None:
        raise OSError(f"{address} refused")

    async def enqueue() -> list[UUID]:
        asked = [await ask.options(max_attempts=1).enqueue(page) for page in range(3)]
        sent = await send.options(max_attempts=1).enqueue("ann@mail.example")
        return [job.id for job in (*asked, sent)]

    headrace.finish(app, *as_client(app, enqueue))
    return app


def group_of(headrace: CommandLine, task: str = "ask") -> str:
    """Return the fingerprint of the one group of a task."""
    [group] = headrace.json("dlq", "list", "--task", task)["groups"]
    fingerprint: str = group["fingerprint"]
    return fingerprint


def retries(headrace: CommandLine, app: App) -> list[JobView]:
    """Return the jobs that repeat another, in the order in which they were made."""
    views = as_client(app, headrace.stores.inspect.list_jobs)
    return sorted((view for view in views if view.retry_of is not None), key=lambda view: view.id)


def test_nothing_is_dead_in_an_empty_store(headrace: CommandLine) -> None:
    """Without failures there is nothing to list or redrive, and that is no error."""
    assert headrace.json("dlq", "list") == {
        "count": 0, "looked_at": 0, "complete": True, "bound": None, "groups": [],
    }  # fmt: skip
    assert headrace.text("dlq", "list", "--task", "ask") == "There are no dead letters.\n"
    assert headrace.text("dlq", "redrive") == "There are no dead letters. Nothing to run again.\n"


@pytest.mark.usefixtures("app")
def test_dead_letters_are_grouped_by_their_error(headrace: CommandLine) -> None:
    """Errors that differ in their data are one group, the largest first, with an example and some ids."""
    found = headrace.json("dlq", "list")

    assert [(group["task"], group["kind"], group["count"]) for group in found["groups"]] == [
        ("ask", "ValueError", 3),
        ("send", "OSError", 1),
    ]
    first = found["groups"][0]
    assert first["message"] == "page 2 of 'bad' has no answer"
    assert (len(first["examples"]), first["queues"]) == (3, {"llm": 3})
    assert first["first_at"] <= first["last_at"]
    assert (found["count"], found["complete"]) == (4, True)
    assert first["fingerprint"] in headrace.text("dlq", "list")


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (["--queue", "llm"], 3),
        (["--task", "send"], 1),
        (["--kind", "OSError"], 1),
        (["--kind", "OSError", "--queue", "llm"], 0),
        (["--since", "1h"], 4),
        (["--fingerprint", "zz"], 0),
    ],
)
def test_dead_letters_are_filtered(headrace: CommandLine, filters: list[str], count: int) -> None:
    """Each filter narrows the list; together they all hold."""
    assert headrace.json("dlq", "list", *filters)["count"] == count


@pytest.mark.usefixtures("app")
def test_a_list_says_how_far_it_looked(headrace: CommandLine) -> None:
    """When older failures were not looked at, the list says so and how to look further."""
    found = headrace.json("dlq", "list", "--look", 2)
    assert (found["looked_at"], found["complete"], found["bound"]) == (2, False, "look")
    assert "--look 20 looks further" in headrace.text("dlq", "list", "--look", 2)


@pytest.mark.usefixtures("app")
def test_a_limit_is_not_taken_for_a_short_look(headrace: CommandLine) -> None:
    """Where --limit is why there may be more, that is said, and no longer look is advised."""
    text = headrace.text("dlq", "redrive", "--task", "ask", "--limit", 1, "--dry-run")
    assert "Only the newest 1, as --limit says" in text
    assert "--look" not in text
    found = headrace.json("dlq", "redrive", "--task", "ask", "--limit", 1, "--dry-run")
    assert (found["count"], found["complete"], found["bound"]) == (1, False, "limit")
    whole = headrace.json("dlq", "redrive", "--task", "ask", "--limit", 3, "--dry-run")
    assert (whole["complete"], whole["bound"]) == (True, None)


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (["--task", "typo"], "None of the 4 dead letters matches. There are tasks: ask, send."),
        (["--kind", "Oops", "--queue", "llm"], "There are kinds: OSError, ValueError; queues: llm, mail."),
        (["--since", "0s"], "None of the 4 dead letters is that young."),
        (["--task", "typo", "--look", "3"], "None of the 3 dead letters among the newest 3 failed jobs matches."),
    ],
)
def test_filters_that_match_nothing_say_what_there_is(headrace: CommandLine, filters: list[str], said: str) -> None:
    """Nothing that matches is not the same as nothing: the number of dead letters and the known names are told."""
    assert said in headrace.text("dlq", "list", *filters)
    assert said in headrace.text("dlq", "redrive", *filters, "--yes")


def test_a_patch_is_shown_before_anything_runs(headrace: CommandLine, app: App) -> None:
    """A dry run with a patch shows the arguments of a job of each group as they are and as they would be."""
    words = ["dlq", "redrive", "--dry-run", "--task", "ask", "--patch", '{"kwargs": {"model": "good"}}']
    [patched] = headrace.json(*words)["patched"]
    assert (patched["task"], patched["arguments"]["kwargs"]) == ("ask", {})
    assert patched["patched"] == {"args": [2], "kwargs": {"model": "good"}}
    text = headrace.text(*words)
    assert '"kwargs": {"model": "good"}' in text
    assert patched["job"] in text
    assert headrace("dlq", "redrive", *words[3:], given="n\n").stdout == text
    assert retries(headrace, app) == []


@pytest.mark.usefixtures("app")
def test_a_group_is_shown_with_its_trace(headrace: CommandLine) -> None:
    """One group shows its message, jobs to look at, and the trace of the newest; a beginning is name enough."""
    fingerprint = group_of(headrace)
    text = headrace.text("dlq", "show", fingerprint[:6])
    assert "has no answer" in text
    assert "Traceback" in text
    shown = headrace.json("dlq", "show", fingerprint)
    assert (shown["count"], shown["newest"]["task"]) == (3, "ask")
    assert shown["newest"]["id"] == shown["examples"][0]


def test_a_fingerprint_must_mean_one_group(headrace: CommandLine) -> None:
    """An unknown fingerprint is not found; one that means several is refused with their names."""
    app = headrace.app()

    async def fail() -> None:
        raise ValueError("no")

    # Of seventeen groups two begin with the same of sixteen digits.
    tasks = [app.task(name=f"task{number}")(fail) for number in range(17)]

    async def enqueue() -> list[UUID]:
        return [(await task.options(max_attempts=1).enqueue()).id for task in tasks]

    headrace.finish(app, *as_client(app, enqueue))
    names = [group["fingerprint"] for group in headrace.json("dlq", "list")["groups"]]
    several = next(group for digit in "0123456789abcdef" if len(group := [n for n in names if n[0] == digit]) > 1)
    assert headrace.refusal("dlq", "show", "zz")[0] == 5
    code, error = headrace.refusal("dlq", "show", several[0][0])
    assert (code, error["field"]) == (2, "fingerprint")
    assert all(name in error["message"] for name in several)


def test_a_dry_run_changes_nothing(headrace: CommandLine, app: App) -> None:
    """A dry run shows what would run again, and leaves it dead."""
    assert "3" in headrace.text("dlq", "redrive", "--queue", "llm", "--dry-run")
    assert headrace.json("dlq", "redrive", "--dry-run")["redriven"] == 0
    assert retries(headrace, app) == []


def test_redrive_runs_again_what_is_meant(headrace: CommandLine, app: App) -> None:
    """Each dead letter that the filters mean gets one new job, those that failed first in front."""
    answer = headrace.json("dlq", "redrive", "--fingerprint", group_of(headrace), "--yes")

    assert answer["redriven"] == 3
    again = retries(headrace, app)
    assert [view.args["args"] for view in again] == [[0], [1], [2]]
    assert headrace.json("dlq", "list")["count"] == 1
    assert "Nothing to run again" in headrace.text("dlq", "redrive", "--queue", "llm", "--yes")


def test_a_limit_takes_the_newest(headrace: CommandLine, app: App) -> None:
    """With a limit only the newest dead letters run again."""
    assert "2 jobs run again" in headrace.text("dlq", "redrive", "--task", "ask", "--limit", 2, "--yes")
    assert [view.args["args"] for view in retries(headrace, app)] == [[1], [2]]


def test_arguments_are_patched(headrace: CommandLine, app: App, tmp_path: Path) -> None:
    """A merge patch on the command line or in a file changes the arguments, and the jobs succeed with them."""
    patch = {"kwargs": {"model": "good", "gone": None}}
    file = tmp_path / "patch.json"
    file.write_text(json.dumps(patch))
    headrace.text("dlq", "redrive", "--task", "ask", "--limit", 1, "--patch", json.dumps(patch), "--yes")
    headrace.text("dlq", "redrive", "--task", "ask", "--patch-file", file, "--yes")

    again = retries(headrace, app)
    assert [view.args for view in again] == [{"args": [page], "kwargs": {"model": "good"}} for page in (2, 0, 1)]
    headrace.finish(app, *(view.id for view in again))
    assert [view.result for view in retries(headrace, app)] == ["page 2", "page 0", "page 1"]


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("patch", ["{", "[]", "{}", '{"model": 1}', '{"args": {}}', '{"kwargs": null}'])
def test_a_wrong_patch_is_a_usage_error(headrace: CommandLine, patch: str) -> None:
    """A patch that is no JSON, or cannot be one of arguments, is refused before anything runs."""
    assert headrace.refusal("dlq", "redrive", "--patch", patch, "--yes")[0] == 2
    assert headrace.json("dlq", "list")["count"] == 4


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b'{"kwargs": {"key": "hush\xe9"}}', "must be JSON in UTF-8"),
        (b'{"kwargs": {"key": "hush"}', "must be JSON (Expecting ',' delimiter at line 1"),
        (b'{"kwargs": {"key": "hush", "key": 1}}', "must be JSON (the key 'key' stands twice)"),
        (b"-", "must be JSON"),
        (None, "must be a file that can be read"),
    ],
)
def test_a_wrong_patch_file_is_named(headrace: CommandLine, tmp_path: Path, content: bytes | None, rule: str) -> None:
    """The error names the option, the file and the rule, and shows nothing of what is in the file."""
    file = tmp_path / "patch.json"
    file.write_bytes(content or b"")
    with pytest.MonkeyPatch.context() as patching:
        if content is None:
            # Root may read every file, whatever its mode.
            patching.setattr(Path, "read_text", _not_readable)
        code, error = headrace.refusal("dlq", "redrive", "--patch-file", file, "--yes")
    assert (code, error["field"]) == (2, "--patch-file")
    assert error["rule"].startswith(rule)
    assert str(file)[:60] in error["message"]
    assert "hush" not in error["message"]
    assert headrace.json("dlq", "list")["count"] == 4


def _not_readable(*_: object) -> str:
    raise PermissionError(13, "Permission denied")


@pytest.mark.usefixtures("app")
def test_an_empty_fingerprint_is_none(headrace: CommandLine) -> None:
    """A variable that is not set would mean all dead letters: it is refused, by every command."""
    for words in (["list", "--fingerprint", ""], ["show", ""], ["redrive", "--fingerprint", "", "--yes"]):
        code, error = headrace.refusal("dlq", *words)
        assert (code, error["field"]) == (2, "fingerprint")
    assert headrace.json("dlq", "list")["count"] == 4


@pytest.mark.usefixtures("app")
def test_an_unknown_queue_is_not_found(headrace: CommandLine) -> None:
    """A slip in the name of a queue is no success; a queue without dead letters is one."""
    for words in (["list"], ["redrive", "--yes"], ["redrive", "--dry-run"], ["show", "abc"]):
        code, error = headrace.refusal("dlq", *words, "--queue", "nope")
        assert (code, error["code"]) == (5, "not_found")
    headrace.text("dlq", "redrive", "--queue", "mail", "--yes")
    assert headrace.json("dlq", "redrive", "--queue", "mail", "--yes")["redriven"] == 0


@pytest.mark.usefixtures("app")
def test_a_patch_that_makes_arguments_too_large_is_refused(headrace: CommandLine) -> None:
    """The limits of enqueueing hold for patched arguments, and the error names the job."""
    patch = json.dumps({"kwargs": {"model": "x" * 300_000}})
    code, error = headrace.refusal("dlq", "redrive", "--task", "ask", "--patch", patch, "--yes")
    assert (code, error["code"]) == (2, "payload_too_large")
    assert "patched arguments of job" in error["field"]


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("YES\n", 1), ("n\n", 4), ("\n", 4)])
def test_redrive_asks(headrace: CommandLine, answer: str, left: int) -> None:
    """Nothing runs again before somebody said yes."""
    result = headrace("dlq", "redrive", "--task", "ask", given=answer)
    assert "Run 3 jobs again?" in result.stderr
    assert result.exit_code == (0 if left == 1 else 1)
    assert headrace.json("dlq", "list")["count"] == left


@pytest.mark.usefixtures("app")
def test_nobody_to_ask_is_a_usage_error(headrace: CommandLine) -> None:
    """Without an answer, and with --json without --yes, the command says which option it needs."""
    result = headrace("dlq", "redrive", given="")
    assert (result.exit_code, "--yes" in result.stderr) == (2, True)
    assert "--yes" in headrace.refusal("dlq", "redrive")[1]["message"]
    assert headrace.json("dlq", "list")["count"] == 4


def test_redriven_jobs_are_worked(headrace: CommandLine, app: App) -> None:
    """A worker that runs meanwhile takes the new jobs, and then nothing of the group is dead any more."""
    with working(app):
        headrace.text("dlq", "redrive", "--task", "ask", "--patch", '{"kwargs": {"model": "good"}}', "--yes")
        headrace.wait_for(*(view.id for view in retries(headrace, headrace.app())))
    assert headrace.json("dlq", "list")["count"] == 1


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"quue": "llm"}, "must be among queue, task"),
        ({"task": 5}, "text"),
        ({"fingerprint": ""}, "fingerprint must be that of a group"),
    ],
)
async def test_a_wrong_filter_of_a_redrive_is_refused(filters: dict[str, Any], message: str) -> None:
    """A filter with a slip in its name must not run everything again."""
    app = App("memory://")
    async with app:
        with pytest.raises(InvalidInputError, match=message):
            await app.dead_letters.redrive(**filters)
