"""`headrace run` on the memory store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace import App, Backoff, chain, group, input_, loop, map_, run_, signature, sub, wait_signal, when
from headrace.engine.workflows.documents import run_document
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
    """An app with a workflow for each ending."""
    app = headrace.app()
    once = Backoff(max_attempts=1)

    @app.task
    async def echo(value: Any) -> Any:
        return value

    @app.task(retry=once)
    async def odd(number: int) -> int:
        if number % 4 == 0:
            raise ValueError(f"{number} is not odd \x1b[31m")
        return number

    @app.task(retry=once)
    async def fail(value: Any) -> None:
        raise ValueError("no good")

    @app.task(queue="capped", concurrency=1)
    async def alone(value: Any) -> Any:
        return value

    @app.task
    async def hang(value: Any) -> None:
        await asyncio.Event().wait()

    app.workflow("pair", chain(echo.s(), group(echo.s().options(name="left"), echo.s().options(name="right"))))
    app.workflow("broken", chain(echo.s(), fail.s(), echo.s().options(name="after")))
    app.workflow("many", chain(echo.s(), map_(odd.s(), over=input_, max_failed=None).options(name="each")))
    app.workflow("asked", chain(echo.s(), wait_signal("approve").options(name="wait")))
    app.workflow("approved", wait_signal("approve-", run_["correlation_id"]))
    app.workflow("capped", chain(echo.s(), alone.s()))
    app.workflow("stuck", chain(echo.s(), hang.s()), tags=("schedule:node_level",))
    declare_nested(app)
    declare_late(app)
    return app


def declare_nested(app: App) -> None:
    """Give an app workflows whose rounds and entries have several nodes."""

    @app.task
    async def halve(number: int) -> int:
        return number // 2

    fail, odd, give = signature("fail").s(), signature("odd").s(), signature("echo").s().options(name="give")
    twice = chain(halve.s(), give)
    app.workflow("rounds", loop(twice, again=when().gt(1), most=9))
    app.workflow("subs", map_(sub(twice), over=input_).options(name="each"))
    app.workflow("maps", map_(map_(halve.s()), over=input_).options(name="each"))
    app.workflow("lost", map_(sub(chain(odd, give)), over=input_, max_failed=None).options(name="each"))
    app.workflow("borne", loop(chain(fail.options(on_error="continue"), give), again=when().eq(1), most=2))


def declare_late(app: App) -> None:
    """Give an app workflows, one for each level, of a task whose second try is an hour away."""

    @app.task(retry=Backoff(base=timedelta(hours=1), cap=timedelta(hours=1), jitter=False))
    async def late(value: Any) -> None:
        raise ConnectionError("no route to \x1b[31mhost")

    app.workflow("late", late.s())
    app.workflow("late-job", late.s(), tags=("schedule:node_level",))


def start(app: App, workflow: str, given: Any = None, **options: Any) -> UUID:
    """Start a run and return its id."""
    return as_client(app, lambda: app.start(workflow, given, **options)).id


def state(headrace: CommandLine, run: UUID) -> str:
    """Return where a run stands."""
    return str(headrace.json("run", "show", run)["state"])


def finish(headrace: CommandLine, app: App, run: UUID, wanted: str = "succeeded") -> None:
    """Work the app's runs until `run` is final."""
    with working(app):
        wait_until_sync(lambda: state(headrace, run) == wanted)


def nodes_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the nodes of a shown run by path, at any depth."""
    todo = list(document["nodes"])
    for node in todo:  # which grows
        todo += node["nodes"]
    return {node["path"]: node for node in todo}


def test_list_shows_the_newest_first_and_can_be_narrowed(headrace: CommandLine, app: App) -> None:
    """Runs are listed with their state and level, without their values; by workflow, by state, up to a number."""
    assert headrace.text("run", "list") == "There are no runs.\n"
    first, second = start(app, "pair", 1, user_id="ann"), start(app, "broken", 2, key="night")
    listed = headrace.json("run", "list")
    assert [run["id"] for run in listed] == [str(second), str(first)]
    assert (listed[0]["key"], listed[1]["user_id"], listed[1]["state"]) == ("night", "ann", "running")
    assert {"input", "output", "context"}.isdisjoint(listed[0])
    assert [run["id"] for run in headrace.json("run", "list", "--workflow", "pair")] == [str(first)]
    assert [run["id"] for run in headrace.json("run", "list", "--limit", 1)] == [str(second)]
    assert headrace.text("run", "list", "--state", "failed") == "There are no such runs.\n"
    text = headrace.text("run", "list")
    assert all(word in text for word in (str(first), "pair", "night", "workflow_level"))


def test_show_draws_the_tree_of_a_run(headrace: CommandLine, app: App) -> None:
    """Nodes are shown with states, times, attempts and outputs; the level with its reason."""
    run = start(app, "pair", "a")
    finish(headrace, app, run)
    document = headrace.json("run", "show", run)
    assert (document["state"], document["level"], document["input"]) == ("succeeded", "workflow_level", "a")
    assert document["output"] == ["a", "a"]
    nodes = nodes_of(document)
    assert {path: node["state"] for path, node in nodes.items()} == dict.fromkeys(("echo", "left", "right"), "success")
    assert (nodes["left"]["attempts"], nodes["left"]["output"], nodes["left"]["task"]) == (1, "a", "echo")
    text = headrace.text("run", "show", run)
    assert "workflow_level: 3 nodes, at most 10" in text
    assert "3 success" in text
    assert headrace.json("run", "show", run, "--node", "left")["output"] == "a"


def test_show_tells_of_errors_and_of_what_did_not_run(headrace: CommandLine, app: App) -> None:
    """A failed node shows its error, what stood behind it that it was passed over; the run shows the first error."""
    run = start(app, "broken", LONG)
    finish(headrace, app, run, "failed")
    nodes = nodes_of(headrace.json("run", "show", run))
    assert {path: node["state"] for path, node in nodes.items()} == {
        "echo": "success", "fail": "failed", "after": "skipped",
    }  # fmt: skip
    assert nodes["fail"]["error"]["message"] == "no good"
    text = headrace.text("run", "show", run)
    assert "ValueError: no good" in text
    assert "ValueError: node fail: no good" in text
    assert LONG not in text
    assert "--json shows all" in text
    assert "ValueError: no good" in headrace.text("run", "show", run, "--node", "fail")


def test_large_maps_are_counted_and_what_failed_is_shown(headrace: CommandLine, app: App) -> None:
    """Of more than 10 entries people see the counts and those that failed; --all and --json have every one."""
    run = start(app, "many", list(range(1, 13)))
    finish(headrace, app, run)
    text = headrace.text("run", "show", run)
    rows = [line.split()[0] for line in text.splitlines() if line.lstrip().startswith("[")]
    assert rows == ["[3]/odd", "[7]/odd", "[11]/odd"]
    assert "of all 12: 9 success, 3 failed" in text
    assert "8 is not odd \\x1b[31m" in text
    assert "\x1b" not in text
    whole = headrace.text("run", "show", run, "--all")
    assert len([line for line in whole.splitlines() if line.lstrip().startswith("[")]) == 12
    nodes = nodes_of(headrace.json("run", "show", run))
    assert len(nodes) == 2 + 12
    assert len(headrace.json("run", "show", run, "--node", "each")["nodes"]) == 12
    assert "[11]/odd" in headrace.text("run", "show", run, "--node", "each")


@pytest.mark.parametrize(
    ("workflow", "given", "entries"),
    [
        ("rounds", 8, {"loop[0]": "success", "loop[1]": "success", "loop[2]": "success"}),
        ("subs", [4, 6], {"each[0]": "success", "each[1]": "success"}),
        ("maps", [[4], [6, 8]], {"each[0]": "success", "each[1]": "success"}),
        ("lost", [3, 4], {"each[0]": "success", "each[1]": "failed"}),
        ("borne", 2, {"loop[0]": "success"}),
    ],
)
def test_entries_and_rounds_come_to_what_their_nodes_do(
    headrace: CommandLine, app: App, workflow: str, given: Any, entries: dict[str, str]
) -> None:
    """They have no ends of their own: a failure that fails the entry is its, one that is borne is not."""
    run = start(app, workflow, given)
    finish(headrace, app, run)
    nodes = nodes_of(headrace.json("run", "show", run))
    assert {path: node["state"] for path, node in nodes.items() if node["kind"] == "entry"} == entries


def test_an_entry_of_a_run_that_was_cancelled_is_cancelled(headrace: CommandLine, app: App) -> None:
    """What has not ended by then never will."""
    app.workflow("held", map_(sub(chain(wait_signal("go"), wait_signal("on"))), over=input_).options(name="each"))
    run = start(app, "held", [1])
    with working(app):
        wait_until_sync(lambda: "parked" in str(headrace.json("run", "show", run)))
        headrace.text("run", "cancel", run)
        wait_until_sync(lambda: state(headrace, run) == "cancelled")
    assert nodes_of(headrace.json("run", "show", run))["each[0]"]["state"] == "cancelled"


@pytest.mark.parametrize("workflow", ["late", "late-job"])
def test_a_node_that_waits_for_its_next_try_says_so(headrace: CommandLine, app: App, workflow: str) -> None:
    """It shows when it is tried again, in which attempt and why: else it would look as if it had not begun."""
    run = start(app, workflow, "a")
    with working(app):
        wait_until_sync(lambda: nodes_of(headrace.json("run", "show", run))["late"]["again_at"] is not None)
    node = nodes_of(headrace.json("run", "show", run))["late"]
    assert (node["state"], node["attempts"]) == ("pending", 1)
    at = datetime.fromisoformat(node["again_at"]).astimezone()
    text = headrace.text("run", "show", run)
    assert f"{at:%H:%M:%S}" in text
    assert "again at" in headrace.text("run", "show", run, "--node", "late")
    assert "after ConnectionError: no route to \\x1b[31mhost" in text


def test_an_entry_is_shown_by_its_index(headrace: CommandLine, app: App) -> None:
    """Also where its only node stands for it; what was not there ends with 5 and says how paths are written."""
    run, rounds = start(app, "many", [1, 2, 3, 5]), start(app, "rounds", 4)
    finish(headrace, app, run)
    finish(headrace, app, rounds)
    for path in ("each[3]", "each[3]/odd"):
        shown = headrace.json("run", "show", run, "--node", path)
        assert (shown["path"], shown["output"]) == ("each[3]/odd", 5)
    assert headrace.json("run", "show", rounds, "--node", "loop[1]")["kind"] == "entry"
    for path in ("each[4]", "each[4]/odd", "each/odd", "echo[0]", "each[-1]", "", "each/"):
        code, error = headrace.refusal("run", "show", run, "--node", path)
        assert (code, "counted from 0, as each[3]" in error["message"]) == (5, True)


@pytest.mark.parametrize("path", ["each[2]", "each[2]/odd"])
def test_one_entry_runs_again(headrace: CommandLine, app: App, path: str) -> None:
    """Its path is written as for `run show`; the other entries are kept."""
    run = start(app, "many", [1, 2, 3])
    finish(headrace, app, run)
    again = UUID(headrace.json("run", "rerun", run, "--from", path)["run"])
    finish(headrace, app, again)
    reused = {one: node["reused"] for one, node in nodes_of(headrace.json("run", "show", again)).items()}
    assert reused == {
        "echo": True, "each": False, "each[0]/odd": True, "each[1]/odd": True, "each[2]/odd": False,
    }  # fmt: skip


def test_one_round_runs_again(headrace: CommandLine, app: App) -> None:
    """What is within it runs, and what is behind it keeps its output as it is given the same."""
    run = start(app, "rounds", 8)
    finish(headrace, app, run)
    again = UUID(headrace.json("run", "rerun", run, "--from", "loop[1]")["run"])
    finish(headrace, app, again)
    nodes = nodes_of(headrace.json("run", "show", again))
    assert [nodes[f"loop[{index}]/halve"]["reused"] for index in range(3)] == [True, False, True]


@pytest.mark.parametrize(
    ("workflow", "given", "path", "rule"),
    [
        ("many", [1, 2], "each[2]", "there is no each[2]"), ("many", [1, 2], "each[99]/odd", "there is no each[99]"),
        ("many", [1, 2], "each/odd", "as each[0]"), ("many", [1, 2], "echo[0]", "no map or loop"),
        ("many", [1, 2], "echo/odd", "no nodes within"), ("many", [1, 2], "each[1]/even", "each[1]/odd"),
        ("many", [1, 2], "each[01]", "echo, each"), ("many", [1, 2], "each[0", "echo, each"),
        ("many", [1, 2], "", "echo, each"), ("many", [], "each[0]", "there is no each[0]"),
        ("rounds", 4, "loop[2]/halve", "there is no loop[2]"), ("rounds", 4, "loop/halve", "as loop[0]"),
        ("subs", [4], "each[0]/sub[0]/halve", "no map or loop"), ("maps", [[4]], "each[0]/map-halve/halve", "[0]"),
    ],
)  # fmt: skip
def test_a_rerun_from_what_the_run_did_not_have_is_refused(
    headrace: CommandLine, app: App, workflow: str, given: Any, path: str, rule: str
) -> None:
    """It would run nothing again; the reason names what there is, and it ends with 2."""
    run = start(app, workflow, given)
    finish(headrace, app, run)
    code, error = headrace.refusal("run", "rerun", run, "--from", path)
    assert (code, rule in error["message"]) == (2, True), error["message"]


def test_a_run_that_waits_for_a_signal_says_so_and_goes_on(headrace: CommandLine, app: App) -> None:
    """The key is shown; the signal wakes the run once, and a second one is refused with a reason and 1."""
    run = start(app, "asked", "a")
    with working(app):
        wait_until_sync(lambda: nodes_of(headrace.json("run", "show", run))["wait"]["state"] == "parked")
        assert nodes_of(headrace.json("run", "show", run))["wait"]["waits_for"] == "approve"
        assert "waits for signal approve" in headrace.text("run", "show", run)
        assert "signal approve" in headrace.text("run", "show", run, "--node", "wait")
        assert headrace.json("run", "signal", "approve", '{"by": "ann"}') == {"key": "approve", "sent": True}
        wait_until_sync(lambda: state(headrace, run) == "succeeded")
    assert headrace.json("run", "show", run)["output"] == {"by": "ann"}
    code, error = headrace.refusal("run", "signal", "approve", '{"by": "bea"}')
    assert (code, "the first one stands" in error["message"]) == (1, True)
    assert headrace.text("run", "signal", "another") == "sent\n"


@pytest.mark.parametrize("correlation_id", [None, ""])
def test_a_signal_whose_key_lacks_a_part_wakes_nothing(
    headrace: CommandLine, app: App, correlation_id: str | None
) -> None:
    """A reference in it that gives nothing fails the node: the key would be the same for every run."""
    headrace.text("run", "signal", "approve-", '{"by": "eve"}')
    run = start(app, "approved", correlation_id=correlation_id)
    finish(headrace, app, run, "failed")
    error = headrace.json("run", "show", run)["error"]
    assert (error["kind"], "correlation_id" in error["message"]) == ("invalid_input", True)


def test_cancel_says_what_it_did(headrace: CommandLine, app: App) -> None:
    """A run of which nothing runs is cancelled at once, one that runs by its worker, an ended one not at all."""
    waiting = start(app, "pair")
    assert headrace.json("run", "cancel", waiting)["state"] == "cancelled"
    assert headrace.text("run", "cancel", waiting) == "nothing to cancel: it had ended as cancelled before\n"
    running = start(app, "stuck", "a")
    with working(app):
        wait_until_sync(lambda: nodes_of(headrace.json("run", "show", running))["hang"]["state"] == "running")
        assert "so far" in headrace.text("run", "show", running)
        assert "asked to stop" in headrace.text("run", "cancel", running)
        wait_until_sync(lambda: state(headrace, running) == "cancelled")


def test_rerun_takes_over_what_did_not_change(headrace: CommandLine, app: App) -> None:
    """A repeated run keeps outputs and says so; with --from the named node runs again; its origin is shown."""
    run = start(app, "pair", "a")
    finish(headrace, app, run)
    document = headrace.json("run", "rerun", run, "--from", "left")
    assert (document["rerun_of"], document["rerun_from"]) == (str(run), "left")
    again = UUID(document["run"])
    finish(headrace, app, again)
    reused = {path: node["reused"] for path, node in nodes_of(headrace.json("run", "show", again)).items()}
    assert reused == {"echo": True, "left": False, "right": True}
    text = headrace.text("run", "show", again)
    assert "reused" in text
    assert f"{run}, from node left" in text
    assert "reused" in headrace.text("run", "show", again, "--node", "right")
    assert UUID(headrace.text("run", "rerun", again).strip()) not in (run, again)
    assert str(run) in headrace.text("run", "list")


def test_a_run_that_goes_on_is_not_repeated(headrace: CommandLine, app: App) -> None:
    """Only what has ended can be repeated, and only from a node that there is."""
    run = start(app, "pair")
    code, error = headrace.refusal("run", "rerun", run)
    assert (code, "must have ended" in error["message"]) == (2, True)
    headrace.text("run", "cancel", run)
    code, error = headrace.refusal("run", "rerun", run, "--from", "nowhere")
    assert (code, "echo, left, right" in error["message"], "'nowhere'" in error["message"]) == (2, True, True)


def test_an_unknown_node_is_not_found(headrace: CommandLine, app: App) -> None:
    """A node that is not there, or has not begun, ends with 5 and the names of those there are."""
    code, error = headrace.refusal("run", "show", start(app, "pair"), "--node", "middle")
    assert (code, error["code"], "echo, left, right" in error["message"]) == (5, "not_found", True)


@pytest.mark.parametrize("verb", ["show", "cancel", "rerun"])
def test_an_unknown_run_is_not_found(headrace: CommandLine, verb: str) -> None:
    """A run that is not there ends every verb with 5."""
    code, error = headrace.refusal("run", verb, uuid4())
    assert (code, error["code"]) == (5, "not_found")


def test_what_a_starter_gave_along_is_in_the_document(headrace: CommandLine, app: App) -> None:
    """How its tasks are stored is ours and is not shown; user, correlation and metadata are."""
    run = start(app, "pair", user_id="ann", correlation_id="c-1", metadata={"page": 7})
    view = as_client(app, app.find_run(run).view)
    document = run_document(view)
    assert (document["user_id"], document["correlation_id"], document["metadata"]) == ("ann", "c-1", {"page": 7})
    assert "tasks" not in document


def test_a_job_of_a_run_names_it(headrace: CommandLine, app: App) -> None:
    """`job show` says which run and node a job is of; it is not retried by itself."""
    run = start(app, "stuck", "a")
    [node] = as_client(app, lambda: app.runtime.stores.runs.live_nodes(run))
    shown = headrace.text("job", "show", node.job_id)
    assert str(run) in shown
    assert "echo" in shown
    headrace.text("run", "cancel", run)
    code, error = headrace.refusal("job", "retry", node.job_id)
    assert (code, f"headrace run rerun {run}" in error["message"]) == (1, True)


def test_a_repeated_run_passes_its_gates(headrace: CommandLine, app: App) -> None:
    """The command line knows no tasks; those that need jobs of their own get them all the same."""
    run = start(app, "capped", "a")
    finish(headrace, app, run)
    again = headrace.json("run", "rerun", run)["run"]
    levels = [headrace.json("run", "show", one)["level"] for one in (run, again)]
    assert levels == ["node_level", "node_level"]
