"""`headrace workflow` on the memory store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from headrace import App, map_, signature
from headrace.canvas import build
from headrace.cli.loading import load_app
from tests.unit.cli_runner import CommandLine, as_client, command_line, working

APP = """
from headrace import App, Backoff, Fail, chain, choose, map_, when

app = App()

@app.task
async def add(first: int, second: int) -> int:
    return first + second

@app.task
async def double(number: int) -> int:
    return 2 * number

@app.task
async def refuse(number: int) -> Fail:
    return Fail("too much")

@app.workflow
def sums(first: int, second: int = 1):
    return chain(add.s(first, second), choose(when().gt(100), refuse.s(), otherwise=double.s()))

app.workflow("doubles", map_(double.s().options(timeout="30s")), tags=("schedule:node_level",))
"""


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.fixture
def target(tmp_path: Path) -> str:
    """MODULE:app of a file with workflows."""
    path = tmp_path / "cli_workflow_flows.py"
    path.write_text(APP, encoding="utf-8")
    return f"{path}:app"


@pytest.fixture
def worker(tmp_path: Path) -> App:
    """An equal app, to work what the command line starts: an open one is for one event loop."""
    path = tmp_path / "cli_workflow_worker.py"
    path.write_text(APP, encoding="utf-8")
    return load_app(f"{path}:app")


def test_start_stores_a_run_and_its_workflow(headrace: CommandLine, target: str) -> None:
    """The id of the run is printed, an equal key gives the same one, and its workflow is listed from then on."""
    assert "no workflows yet" in headrace.text("workflow", "list")
    run = UUID(headrace.text("workflow", "start", target, "sums", '{"first": 1}', "--key", "k").strip())
    again = headrace.json("workflow", "start", target, "sums", '{"first": 1, "second": 1}', "--key", "k")
    assert again == {"run": str(run)}
    code, error = headrace.refusal("workflow", "start", target, "sums", '{"first": 2}', "--key", "k")
    assert (code, error["code"]) == (1, "idempotency_conflict")
    shown = headrace.json("run", "show", run)
    assert (shown["workflow"], shown["input"]) == ("sums", {"first": 1, "second": 1})
    [listed] = headrace.json("workflow", "list")
    assert (listed["name"], listed["version"], listed["active"]) == ("sums", 1, True)
    assert "active" in headrace.text("workflow", "list")


def test_start_waits_for_the_output(headrace: CommandLine, target: str, worker: App) -> None:
    """--wait prints the output alone; with --json beside the run; a failed run ends with 1 and names its node."""
    with working(worker):
        wait = ("--wait", "--timeout", "20s")
        assert headrace.text("workflow", "start", target, "sums", '{"first": 3}', *wait) == "8\n"
        assert headrace.text("workflow", "start", target, "sums", "[3, 4]", *wait) == "14\n"
        assert headrace.text("workflow", "start", target, "sums", "5", *wait) == "12\n"
        document = headrace.json("workflow", "start", target, "doubles", "[1, 2]", *wait)
        assert (document["state"], document["output"]) == ("succeeded", [2, 4])
        code, error = headrace.refusal("workflow", "start", target, "sums", '{"first": 100}', *wait)
    assert (code, error["code"], "refuse" in error["message"]) == (1, "run_failed", True)
    assert headrace.json("run", "show", error["run_id"])["state"] == "failed"


def test_start_gives_up_waiting(headrace: CommandLine, target: str) -> None:
    """The run goes on when nobody waits for it any more; its id is told."""
    code, error = headrace.refusal("workflow", "start", target, "sums", '{"first": 3}', "--wait", "--timeout", "10ms")
    assert (code, error["code"]) == (1, "result_timeout")
    assert headrace.json("run", "show", error["run_id"])["state"] == "running"


def test_who_and_what_for_reach_the_run(headrace: CommandLine, target: str) -> None:
    """--user-id, --correlation-id and --metadata are in the run's context; metadata is an object."""
    start = ("workflow", "start", target, "doubles", "[]")
    told = ("--user-id", "ann", "--correlation-id", "c-1", "--metadata", '{"tier": "gold"}')
    shown = headrace.json("run", "show", headrace.json(*start, *told)["run"])
    assert (shown["user_id"], shown["correlation_id"], shown["metadata"]) == ("ann", "c-1", {"tier": "gold"})
    code, error = headrace.refusal(*start, "--metadata", "[1]")
    assert (code, error["code"]) == (2, "invalid_input")
    assert error["message"] == "metadata must be a mapping of names to JSON data, or None, got [1]"


def test_who_waits_is_told_that_no_worker_is_there(
    headrace: CommandLine, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error, while the wait goes on."""
    monkeypatch.setattr("headrace.runs.WORKER_WARNING_SECONDS", 0.02)
    done = headrace("workflow", "start", target, "sums", '{"first": 3}', "--wait", "--timeout", "1s")
    assert done.exit_code == 1
    assert "no live worker serves 'workflows'" in done.stderr


def test_a_workflow_is_shown_as_a_graph(headrace: CommandLine, target: str) -> None:
    """Nodes and edges with their conditions, for people and in the JSON form that can be read back."""
    headrace.text("workflow", "start", target, "sums", '{"first": 1}')
    headrace.text("workflow", "start", target, "doubles", "[]")
    document = headrace.json("workflow", "show", "sums")
    assert [node["id"] for node in document["graph"]["nodes"]] == ["add", "refuse", "double", "chosen"]
    [edge] = [edge for edge in document["graph"]["edges"] if edge["to"] == "refuse"]
    assert (edge["from"], edge["when"]["op"], edge["when"]["value"]) == ("add", "gt", 100)
    text = headrace.text("workflow", "show", "sums")
    assert all(word in text for word in ("add", "chosen", "FROM", "gt", "active"))
    doubles = headrace.text("workflow", "show", "doubles")
    assert all(word in doubles for word in ("schedule:node_level", "map-double", "1 node"))
    code, error = headrace.refusal("workflow", "show", "sums", "--version", 7)
    assert (code, error["message"].startswith("no version 7 of workflow 'sums'")) == (5, True)


def test_an_inactive_workflow_is_not_started(headrace: CommandLine, target: str) -> None:
    """Starts are refused with the fix until it is switched on again."""
    headrace.text("workflow", "start", target, "sums", '{"first": 1}')
    assert headrace.json("workflow", "deactivate", "sums") == {"workflow": "sums", "active": False}
    code, error = headrace.refusal("workflow", "start", target, "sums", '{"first": 1}')
    assert (code, error["code"]) == (1, "workflow_not_active")
    assert "headrace workflow activate sums" in error["message"]
    assert "inactive" in headrace.text("workflow", "list")
    assert headrace.text("workflow", "activate", "sums") == "active\n"
    headrace.text("workflow", "start", target, "sums", '{"first": 1}')


def test_a_stored_workflow_is_started_where_nothing_declares_it(
    headrace: CommandLine, target: str, worker: App
) -> None:
    """The tasks of the app are enough: the graph is the one that is stored."""
    graph = build(map_(signature("double").s()))
    client = headrace.app()
    as_client(client, lambda: client.run_service.save("stored", graph))
    with working(worker):
        wait = ("--wait", "--timeout", "20s")
        assert headrace.json("workflow", "start", target, "stored", "[4]", *wait)["output"] == [8]
    code, error = headrace.refusal("workflow", "start", target, "nowhere")
    assert (code, error["code"]) == (5, "not_found")


@pytest.mark.parametrize("verb", ["show", "activate", "deactivate"])
def test_an_unknown_workflow_is_not_found(headrace: CommandLine, verb: str) -> None:
    """A workflow that is not stored ends every verb with 5."""
    code, error = headrace.refusal("workflow", verb, "nothing")
    assert (code, error["code"]) == (5, "not_found")
    assert "'nothing'" in error["message"]
