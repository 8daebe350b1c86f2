"""`headrace flows run`, `validate`, `show`, `nodes`, `functions` on the memory store."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import pytest

from headrace import App, InvalidInputError
from headrace.apps.flows.commands.bars import line_of
from headrace.apps.flows.opening import flows_app
from headrace.apps.flows.starting import items_of, variables_of
from headrace.cli.loading import load_app
from headrace.model.run import NodeState
from headrace.nodes.registry import Broken
from tests.unit.cli_runner import CommandLine, command_line, working
from tests.unit.flow_making import flow, node
from tests.waiting import wait_until_sync

GO = node("Go", "manual")


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def assign(name: str, **fields: str) -> dict[str, Any]:
    """Return a node that puts fields into its items, numbers by expressions."""
    rows = [{"name": key, "value": value, "type": "number"} for key, value in fields.items()]
    return node(name, "set", {"assignments": {"assignments": rows}, "includeOtherFields": True}, typeVersion=3.4)


def above(name: str, least: int) -> dict[str, Any]:
    """Return a node that leads items whose n is larger one way, and the others another way."""
    test = {"leftValue": "={{ $json.n }}", "rightValue": least, "operator": {"type": "number", "operation": "gt"}}
    return node(name, "if", {"conditions": {"conditions": [test], "combinator": "and"}}, typeVersion=2)


def prices(**more: Any) -> dict[str, Any]:
    """Return a flow with a choice and a loop: {"n"} above 4 goes through the loop."""
    nodes = [
        GO, above("Large?", 4), node("Loop", "splitInBatches", {"batchSize": 1}, typeVersion=3),
        assign("Double", n="={{ $json.n * 2 }}"), node("Small", "noOp"), node("Never", "noOp"),
    ]  # fmt: skip
    wires = ("Go -> Large?", "Large?:0 -> Loop", "Large?:1 -> Small", "Loop:1 -> Double", "Double -> Loop")
    return flow(nodes, *wires, **{"name": "Prices", **more})


def failing() -> dict[str, Any]:
    """Return a flow whose node in a loop fails."""
    stop = node("Stop here", "stopAndError", {"errorMessage": "={{ 'no ' + $json.n }}"})
    loop = node("Loop", "splitInBatches", typeVersion=3)
    return flow(
        [GO, loop, stop, node("After", "noOp")],
        "Go -> Loop", "Loop:1 -> Stop here", "Stop here -> Loop", "Loop:0 -> After", name="Fails",
    )  # fmt: skip


def write(path: Path, data: Any) -> Path:
    """Write a file of JSON."""
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_file_is_run_and_told_as_one_document(headrace: CommandLine, tmp_path: Path) -> None:
    """Each node has its state, its items by port, over all rounds of a loop; items are those of the last nodes."""
    file, given = write(tmp_path / "p.json", prices()), write(tmp_path / "in.json", [{"n": 1}, {"n": 5}, {"n": 7}])
    document = headrace.json("flows", "run", file, "--input", given)
    assert (document["flow"], document["state"], document["error"]) == ("Prices", "succeeded", None)
    assert sorted(item["json"]["n"] for item in document["items"]) == [1, 10, 14]
    nodes = {one["name"]: (one["id"], one["state"], one["ran"], one["items"]) for one in document["nodes"]}
    assert nodes == {
        "Go": ("go", "ran", True, [3]),
        "Large?": ("large", "ran", True, [2, 1]),
        "Loop": ("loop", "ran", True, [2, 0]),
        "Double": ("double", "ran", True, [2]),
        "Small": ("small", "ran", True, [1]),
    }
    assert document["notes"] == [
        "flow.nodes[5]: node 'Never' (headrace.noOp at (0, 0)): never runs: no trigger leads to it"
    ]
    shown = headrace.json("run", "show", UUID(document["run"]))
    assert (shown["workflow"], shown["state"]) == ("draft.prices", "succeeded")
    assert headrace.json("flows", "list") == []


def test_a_run_for_people_shows_nodes_and_items(headrace: CommandLine, tmp_path: Path) -> None:
    """Nodes as a table; nodes without items did not run; items of chosen nodes, or in a file."""
    file = write(tmp_path / "p.json", prices())
    result = headrace("flows", "run", file, "--input", "-", "--level", "node_level", given='{"n": 3}')
    assert result.exit_code == 0
    rows = {line.split()[0]: line.split()[1:4] for line in result.stdout.splitlines() if line}
    assert rows["Small"] == ["headrace.noOp", "ran", "1"]
    assert rows["Loop"][:2] == ["headrace.splitInBatches", "no"]
    assert '1 item of the last nodes:\n  {"n": 3}' in result.stdout
    assert result.stderr.startswith("run ")
    text = headrace.text("flows", "run", file, "--node", "Large?")
    assert "0 items of Large?, output 1\n1 item of Large?, output 2:\n  {}" in text
    out = tmp_path / "out.json"
    assert f"written: {out}" in headrace.text("flows", "run", file, "--out", out)
    assert [item["json"] for item in json.loads(out.read_text("utf-8"))] == [{}]


def test_a_failure_names_the_node_and_ends_with_1(headrace: CommandLine, tmp_path: Path) -> None:
    """The node within the loop is named, not the loop; those behind were skipped; the document is written as well."""
    file = write(tmp_path / "f.json", failing())
    given = write(tmp_path / "in.json", [{"n": 9}])
    result = headrace("flows", "run", file, "--input", given, "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["state"], "items" in document) == (1, "failed", False)
    assert document["error"]["node"] == "Stop here"
    assert "node 'Stop here' failed: node_error: no 9" in document["error"]["message"]
    assert {one["name"]: one["state"] for one in document["nodes"]} == {
        "Go": "ran", "Loop": "failed", "Stop here": "failed", "After": "skipped",
    }  # fmt: skip
    text = headrace("flows", "run", file, "--input", given)
    assert (text.exit_code, "Error: node 'Stop here' failed" in text.stderr) == (1, True)
    assert "Traceback" not in text.output


def test_flows_beside_a_file_are_run_by_it(headrace: CommandLine, tmp_path: Path) -> None:
    """A flow that is run within is taken from the folder; one that is only started is stored, and never replaced."""
    call = node("Call", "executeWorkflow", {"workflowId": "Inner"})
    send = node("Send", "executeWorkflow", {"workflowId": "Sent", "options": {"waitForSubWorkflow": False}})
    begin = node("Begin", "executeWorkflowTrigger")
    write(tmp_path / "inner.json", flow([begin, assign("Set", n="={{ 7 }}")], "Begin -> Set", name="Inner"))
    sent = write(tmp_path / "sent.json", flow([begin, assign("Set", n="={{ 8 }}")], "Begin -> Set", name="Sent"))
    outer = write(tmp_path / "outer.json", flow([GO, call, send], "Go -> Call", "Call -> Send", name="Outer"))
    document = headrace.json("flows", "run", outer)
    assert [item["json"] for item in document["items"]] == [{"n": 7}]
    assert document["notes"] == ["flow 'Sent' was stored, as it is started by its name"]
    assert [one["flow"] for one in headrace.json("flows", "list")] == ["Sent"]
    write(sent, flow([begin], name="Sent"))
    assert "stored with other content" in headrace.json("flows", "run", outer)["notes"][0]
    assert headrace.json("flows", "list")[0]["version"] == 1


def test_a_stored_flow_is_run_by_its_name(headrace: CommandLine, tmp_path: Path) -> None:
    """With its own workflow's name; variables of the file win; another level leaves what is stored as it is."""
    file = write(tmp_path / "v.json", flow([GO, assign("Set", n="={{ $vars.n }}")], "Go -> Set", name="Vars"))
    headrace.text("flows", "import", file)
    variables = write(tmp_path / "vars.json", {"n": 5})
    document = headrace.json("flows", "run", "Vars", "--vars", variables, "--trigger", "Go")
    assert [item["json"] for item in document["items"]] == [{"n": 5}]
    assert headrace.json("run", "show", document["run"])["workflow"] == "flow.vars"
    again = headrace.json("flows", "run", "Vars", "--level", "node_level", "--vars", variables)
    shown = headrace.json("run", "show", again["run"])
    assert (shown["workflow"], shown["level"]) == ("draft.vars", "node_level")
    assert headrace.json("flows", "list")[0]["version"] == 1


def test_workers_elsewhere_work_a_detached_run(headrace: CommandLine, tmp_path: Path) -> None:
    """--detach prints the id alone; a worker of `headrace.apps.flows.worker:app` takes the run up."""
    file = write(tmp_path / "p.json", prices())
    run = UUID(headrace.text("flows", "run", file, "--detach").strip())
    assert headrace.json("run", "show", run)["state"] == "running"
    app = load_app("headrace.apps.flows.worker:app")
    assert app.works_runs
    with working(app):
        wait_until_sync(lambda: headrace.json("run", "show", run)["state"] == "succeeded")


def slow(tmp_path: Path) -> Path:
    """Return the file of a flow that waits for an hour."""
    wait = node("Wait", "wait", {"amount": 1, "unit": "hours"}, typeVersion=1.1)
    return write(tmp_path / "slow.json", flow([GO, wait], "Go -> Wait", name="Slow"))


def test_a_run_that_takes_too_long_goes_on(headrace: CommandLine, tmp_path: Path) -> None:
    """--timeout ends the wait with 1 and says how to go on; the run is not touched."""
    result = headrace("flows", "run", slow(tmp_path), "--timeout", "200ms")
    assert (result.exit_code, "works it on" in result.stderr) == (1, True)
    assert "Traceback" not in result.output
    [run] = headrace.json("run", "list")
    assert run["state"] == "running"


def test_ctrl_c_says_how_to_go_on(headrace: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with 130; the run is left to workers."""

    async def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr("headrace.apps.flows.commands.run.wait_for", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = headrace("flows", "run", slow(tmp_path))
    finally:
        signal.signal(signal.SIGINT, before)
    [run] = headrace.json("run", "list")
    assert (result.exit_code, run["state"]) == (130, "running")
    assert f"`headrace run show {run['id']}` shows it" in result.stderr


def test_the_flows_app_works_runs_without_workflows_of_its_own() -> None:
    """Its workers take the queues of runs, as those of an app that declares a workflow do."""
    app = flows_app()
    assert app._slots(None, 3) == {"flows": 3, "workflows": 3, "nodes": 3}
    assert App("memory://")._engine_queues() == []


ITEMS = [
    ([{"a": 1}, {"b": 2}], [{"json": {"a": 1}}, {"json": {"b": 2}}]),
    ({"a": 1}, [{"json": {"a": 1}}]),
    ([{"json": {"a": 1}, "pairedItem": {"item": 0}}], [{"json": {"a": 1}, "pairedItem": {"item": 0}}]),
    ({"json": {"a": 1}, "other": 2}, [{"json": {"json": {"a": 1}, "other": 2}}]),
    ([], []),
]


@pytest.mark.parametrize(("data", "items"), ITEMS)
def test_items_are_made_of_what_people_write(data: Any, items: list[Any]) -> None:
    """Items as they are, plain objects wrapped."""
    assert items_of(data) == items


BAD_ITEMS = [
    (7, "input", "must be an object"),
    ([{}, "x"], r"input\[1\]", "must be an object"),
    ([{"json": {}}, {"a": 1}], r"input\[1\]", "as others are"),
    ([{"json": {}, "binary": {"file": {}}}], r"input\[0\]\.binary", "readFile"),
]


@pytest.mark.parametrize(("data", "field", "rule"), BAD_ITEMS)
def test_other_input_is_refused(data: Any, field: str, rule: str) -> None:
    """The entry is named, and what it must be."""
    with pytest.raises(InvalidInputError, match=f"^{field} .*{rule}"):
        items_of(data)
    with pytest.raises(InvalidInputError, match="vars"):
        variables_of({}, [1])


REFUSED = [
    (("run", "none"), 5, "flows list"),
    (("run", "none.json"), 2, "is there"),
    (("run", "FILE", "--input", "none.json"), 2, "none.json must be a file"),
    (("run", "FILE", "--trigger", "Nope"), 2, "trigger must be one of Go"),
    (("run", "FILE", "--node", "Nope"), 2, "--node must be one of Go, Large?"),
    (("run", "FILE", "--timeout", "soon"), 2, "--timeout"),
    (("run", "FILE", "--detach", "--timeout", "1s"), 2, "leave out --timeout"),
    (("run", "FILE", "--out", "/nowhere/at/all.json"), 2, "--out must be"),
    (("show",), 2, "--run RUN_ID"),
    (("show", "none"), 5, "flows list"),
    (("show", "--run", "7"), 2, "run"),
    (("show", "--run", "01980000-0000-7000-8000-000000000000"), 5, "no run"),
    (("nodes", "gmail"), 5, "httpRequest"),
    (("validate", "none.json"), 2, "is there"),
]


@pytest.mark.parametrize(("words", "code", "said"), REFUSED)
def test_mistakes_are_told(
    headrace: CommandLine, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:  # fmt: skip
    """A wrong name ends with 5, a wrong value with 2; the message says what to do, and nothing is run."""
    file = str(write(tmp_path / "p.json", prices()))
    ended, error = headrace.refusal("flows", *(file if word == "FILE" else word for word in words))
    assert (ended, said in error["message"]) == (code, True), error
    assert headrace.json("run", "list") == []


def test_a_flow_that_cannot_run_is_told_with_all_its_problems(headrace: CommandLine, tmp_path: Path) -> None:
    """`run` refuses it with 2, `validate` ends with 1; both name field, node, type, position, and what to use."""
    mail = node("Mail", "n8n-nodes-base.gmail", position=[440, 20])
    wrong = assign("Wrong", n="={{ $json..n }}")
    file = write(tmp_path / "bad.json", flow([GO, mail, wrong], "Go -> Mail", "Mail -> Wrong", name="Bad"))
    code, error = headrace.refusal("flows", "run", file)
    assert (code, error["code"]) == (2, "invalid_flow")
    for part in ("flow 'Bad' cannot run", "flow.nodes[1]: node 'Mail' (n8n-nodes-base.gmail at (440, 20))", "'Wrong'"):
        assert part in error["message"]
    result = headrace("flows", "validate", file, "--json")
    [told] = json.loads(result.stdout)["flows"]
    assert (result.exit_code, told["runs"], len(told["problems"])) == (1, False, 2)
    missing = told["problems"][0]
    assert (missing["node"], missing["type"], missing["position"]) == ("Mail", "n8n-nodes-base.gmail", [440.0, 20.0])
    assert "httpRequest" in missing["instead"]


def test_validate_looks_at_whole_folders(headrace: CommandLine, tmp_path: Path) -> None:
    """Flows find each other; what is no flow is passed over; a file that cannot be read ends with 1."""
    call = node("Call", "executeWorkflow", {"workflowId": "Inner"})
    write(tmp_path / "a.json", flow([GO, call], "Go -> Call", name="Outer", settings={"errorWorkflow": "Alarm"}))
    write(tmp_path / "b.json", flow([GO], name="Inner"))
    write(tmp_path / "c.json", {"x": 1})
    text = headrace.text("flows", "validate", tmp_path)
    assert "2 of 2 flows can run" in text
    assert f"{tmp_path / 'c.json'}: no flow, passed over" in text
    assert "note: flow.settings.errorWorkflow: names the error workflow 'Alarm', which is not there" in text
    (tmp_path / "d.json").write_text("[", encoding="utf-8")
    assert headrace("flows", "validate", tmp_path).exit_code == 1


@pytest.mark.parametrize("command", ["nodes", "validate", "import"])
def test_packages_whose_node_types_cannot_be_used_are_told(
    headrace: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A flow that needs one is told that there is no such type: this says why."""
    broken = Broken("invoices", "acme-nodes", "acme:TYPES fails with RuntimeError: no licence")
    monkeypatch.setattr("headrace.apps.flows.commands.telling.broken_entries", lambda: (broken,))
    words = [command] if command == "nodes" else [command, write(tmp_path / "a.json", flow([GO], name="A"))]
    said = "note: the node types of invoices, of the package acme-nodes, cannot be used: acme:TYPES fails with"
    assert said in headrace.text("flows", *words)
    expected = {"entry": "invoices", "package": "acme-nodes", "why": broken.why}
    assert headrace.json("flows", *words)["broken"] == [expected]


def test_show_draws_files_stored_flows_and_runs(headrace: CommandLine, tmp_path: Path) -> None:
    """As a table, Mermaid text or SVG; of a run with the states of its nodes, as the flow was then."""
    file = write(tmp_path / "p.json", prices())
    run = headrace.json("flows", "run", file)["run"]
    headrace.text("flows", "import", file)
    write(file, flow([GO], name="Prices"))
    assert headrace.text("flows", "show", file, "--format", "mermaid").splitlines()[1] == '  n0(["Go<br/>manual"])'
    assert "Large? -- true --> Loop" in headrace.text("flows", "show", "Prices")
    text = headrace.text("flows", "show", "--run", run)
    assert [line.split()[3:5] for line in text.splitlines() if line.startswith("Go  ")] == [["ran", "1"]]
    out = tmp_path / "p.svg"
    headrace.text("flows", "show", "--run", run, "--format", "svg", "--out", out)
    assert ElementTree.parse(out).getroot().tag.endswith("svg")
    document = headrace.json("flows", "show", "--run", run, "--format", "mermaid")
    states = {one["name"]: one["state"] for one in document["nodes"]}
    assert (states["Small"], states["Loop"], states["Never"]) == ("ran", "no items", None)
    assert document["drawing"].startswith("flowchart LR\n")


def test_a_run_of_another_workflow_is_no_flow(headrace: CommandLine, tmp_path: Path) -> None:
    """It is refused with its workflow's name."""
    path = tmp_path / "flows_command_other.py"
    code = 'app.workflow("plain", {"nodes": [{"id": "a", "kind": "value", "value": 1}]})'
    path.write_text(f"from headrace import App\napp = App()\n{code}\n", encoding="utf-8")
    run = headrace.text("workflow", "start", f"{path}:app", "plain").strip()
    ended, error = headrace.refusal("flows", "show", "--run", run)
    assert (ended, "must be one of a flow" in error["message"], "plain" in error["message"]) == (2, True, True)


def test_node_types_and_functions_are_listed(headrace: CommandLine) -> None:
    """Each type with what it is written as; each function with an example."""
    listed = headrace.json("flows", "nodes")
    found = {one["name"]: one for one in listed["types"]}
    assert found["if"]["outputs"] == ["true", "false"]
    [begins] = [one for one in listed["types"] if "n8n-nodes-base.manualTrigger" in one["types"]]
    assert (begins["shape"], begins["inputs"], listed["broken"]) == ("trigger", 0, [])
    assert headrace.json("flows", "nodes", "n8n-nodes-base.if")["types"] == [found["if"]]
    assert "headrace.merge" in headrace.text("flows", "nodes")
    assert "typeVersion" in headrace.text("flows", "nodes", "merge")
    assert len(headrace.json("flows", "functions")) >= 40
    assert "toUpperCase" in headrace.text("flows", "functions")


PROGRESS = [
    ({}, (0, "")),
    ({"a": NodeState.SUCCESS, "b": NodeState.RUNNING}, (1, "B")),
    ({"a": NodeState.SUCCESS, "b/each[0]": NodeState.SUCCESS, "b/each[1]": NodeState.RUNNING}, (1, "B (1 within)")),
    (dict.fromkeys("abcd", NodeState.RUNNING), (0, "A, B, C …")),
]


@pytest.mark.parametrize(("states", "line"), PROGRESS)
def test_the_live_line_counts_nodes(states: dict[str, NodeState], line: tuple[int, str]) -> None:
    """How many ended, and what the others do; at most three are named."""
    assert line_of({name.upper(): name for name in "abcd"}, states) == line
