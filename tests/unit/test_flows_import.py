"""Flows in files and folders, and `headrace flows import`, `export`, `list`, `activate` on the memory store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.flows.importing import import_flows
from headrace.apps.flows.reading import FlowError
from headrace.apps.flows.sources import Sources, beside, documents_in, read_flow, read_sources, sources_in
from headrace.apps.flows.storing import stored_flows
from headrace.model.run import StoredWorkflow
from headrace.stores.memory.workflow_store import MemoryWorkflowStore
from tests.unit.cli_runner import CommandLine, command_line
from tests.unit.flow_making import flow, node
from tests.unit.flow_serving import flows_app
from tests.unit.service_calls import served

GO = node("Go", "manual")


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def small(name: str, *nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a flow that begins by hand and goes through some nodes."""
    names = ["Go", *(one["name"] for one in nodes)]
    wires = [f"{first} -> {second}" for first, second in pairwise(names)]
    return flow([GO, *nodes], *wires, name=name, **more)


def write(path: Path, data: Any) -> Path:
    """Write a file of JSON, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


WRAPPED = [
    (small("A"), ["A"]),
    ([small("A"), small("B")], ["A", "B"]),
    ({"data": [small("A"), {"other": 1}]}, ["A"]),
    ({"workflow": {"id": 7, "workflow": small("A")}}, ["A"]),
    ({"nodes": [{"id": "a", "kind": "value"}], "edges": []}, []),
    ({"data": {"data": {"data": {"data": {"data": small("deep")}}}}}, []),
    ("text", []),
]


@pytest.mark.parametrize(("data", "names"), WRAPPED)
def test_flows_are_found_in_what_exports_wrap_them_in(data: Any, names: list[str]) -> None:
    """A flow alone, lists, and the usual wrappers; graphs of another kind are none."""
    assert [one["name"] for one in documents_in(data)] == names


def test_folders_are_read_however_deep_and_each_file_once(tmp_path: Path) -> None:
    """What is no flow is passed over and named, what cannot be read too; a named file must be a flow."""
    write(tmp_path / "a.json", small("A"))
    write(tmp_path / "deep" / "er" / "b.json", [small("B"), small("C")])
    other = write(tmp_path / "package.json", {"name": "x"})
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    found = read_sources([tmp_path, tmp_path / "a.json", tmp_path / "deep"])
    assert [source.name for source in found.flows] == ["A", "B", "C"]
    assert found.flows[1].place.endswith("b.json[0]")
    assert found.passed_over == (str(other),)
    assert "line 1, column 2" in found.unreadable[0][1]
    for path, words in ((other, "must be a flow"), (tmp_path / "none.json", "is there")):
        with pytest.raises(FlowError, match=words):
            read_sources([path])


def test_a_run_takes_a_file_with_one_flow(tmp_path: Path) -> None:
    """Several are named, so that one can be chosen; a fault in the only one is told."""
    with pytest.raises(FlowError, match="'A', 'B'"):
        read_flow(write(tmp_path / "two.json", [small("A"), small("B")]))
    with pytest.raises(FlowError, match=r"nodes\[0\]\.name"):
        read_flow(write(tmp_path / "bad.json", {"nodes": [{"name": ""}], "connections": {}}))


def test_flows_beside_a_file_are_found_by_name_and_id(tmp_path: Path) -> None:
    """Two of the same name are one too many, once that name is asked for."""
    for place, name, number in (("a", "A", 1), ("b", "B", 2), ("c", "B", 3)):
        write(tmp_path / f"{place}.json", small(name, id=number))
    find = beside(tmp_path / "a.json")
    found = [find(name) for name in ("A", "3", "flow.a", "none")]
    assert [None if one is None else one.name for one in found] == ["A", "B", "A", None]
    with pytest.raises(FlowError, match=r"b\.json, c\.json"):
        find("B")


def test_import_stores_what_can_run_and_tells_of_the_rest(headrace: CommandLine, tmp_path: Path) -> None:
    """A report with counts by missing type and by reason; what can run is stored whatever the others are."""
    mail, wrong = node("Mail", "n8n-nodes-base.gmail"), node("Merge", "merge", {"mode": "combineBySql"}, typeVersion=3)
    write(tmp_path / "good.json", small("Good", node("Sub", "executeWorkflow", {"workflowId": "Inner"})))
    write(tmp_path / "inner.json", small("Inner"))
    write(tmp_path / "mail.json", small("Mailed", mail))
    write(tmp_path / "both.json", small("Both", mail, wrong))
    write(tmp_path / "other.json", {"n": 1})
    result = headrace("flows", "import", tmp_path, "--out", tmp_path / "report.txt", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (report["flows"], report["can_run"]) == (4, 2)
    states = {one["flow"]: one["state"] for one in report["results"]}
    assert states == {"Both": "cannot run", "Good": "imported", "Inner": "imported", "Mailed": "cannot run"}
    [missing] = report["missing_types"]
    assert (missing["what"], missing["flows"], "httpRequest" in missing["instead"]) == ("n8n-nodes-base.gmail", 2, True)
    [reason] = report["other_reasons"]
    assert (reason["what"], reason["flows"]) == ("headrace.merge, parameters.mode", 1)
    assert report["not_flows"] == [str(tmp_path / "other.json")]
    assert json.loads((tmp_path / "report.txt").read_text("utf-8")) == report
    assert [one["flow"] for one in headrace.json("flows", "list")] == ["Good", "Inner"]
    text = headrace("flows", "import", tmp_path).stdout
    assert "2 of 4 flows can run: 2 unchanged" in text
    assert "node 'Mail' (n8n-nodes-base.gmail at (0, 0))" in text


@pytest.mark.parametrize("dry", [False, True])
async def test_all_flows_are_judged_before_one_is_stored(dry: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against what the store had then, which is asked once; where one cannot run none is stored, if all are meant."""
    app, looks, look = flows_app(), list[None](), MemoryWorkflowStore.list_workflows

    async def looked(store: MemoryWorkflowStore) -> list[StoredWorkflow]:
        looks.append(None)
        return await look(store)

    monkeypatch.setattr(MemoryWorkflowStore, "list_workflows", looked)
    bad = small("Bad", node("Odd", "noSuchType"))
    async with served(app, worker=False) as client:
        sources = Sources(tuple(sources_in([small("A"), bad, small("B")], "flow")))
        found = await import_flows(app, sources, dry=dry, whole=True)
        assert [one.state for one in found] == ["would be imported", "cannot run", "would be imported"]
        assert await stored_flows(app) == {}
        looks.clear()
        flows = [small("A"), small("B")]
        answer = await client.post("/api/v1/workflows", json={"flow": flows, "dry_run": dry})
        assert answer.status_code == (200 if dry else 201)
        assert len(looks) == 1
        assert len(await stored_flows(app)) == (0 if dry else 2)


def test_an_equal_flow_is_stored_once_and_a_dry_run_stores_nothing(headrace: CommandLine, tmp_path: Path) -> None:
    """Versions count changes; a dry run tells what would be."""
    file = write(tmp_path / "a.json", small("A"))

    def states(*options: str) -> list[tuple[str, int | None]]:
        return [(one["state"], one["version"]) for one in headrace.json("flows", "import", file, *options)["results"]]

    assert states("--dry-run") == [("would be imported", None)]
    assert headrace.json("flows", "list") == []
    assert states() == [("imported", 1)]
    assert states() == states("--dry-run") == [("unchanged", 1)]
    write(file, small("A", node("B", "noOp")))
    assert states() == [("imported", 2)]


def test_flows_of_one_name_are_refused(headrace: CommandLine, tmp_path: Path) -> None:
    """Neither of two is stored, and none takes the place of a stored flow of another name."""
    one, other = write(tmp_path / "1.json", small("Daily Report")), write(tmp_path / "2.json", small("daily report"))
    result = headrace("flows", "import", one, other)
    assert (result.exit_code, result.stdout.count("would be stored as flow.daily-report")) == (1, 3)
    assert "2 of 2 flows can run: 2 refused" in result.stdout
    assert headrace.json("flows", "list") == []
    headrace.text("flows", "import", one)
    result = headrace("flows", "import", other)
    assert (result.exit_code, "which the stored flow 'Daily Report' is" in result.stdout) == (1, True)
    assert [flow["flow"] for flow in headrace.json("flows", "list")] == ["Daily Report"]


def test_what_is_too_large_keeps_no_other_out(headrace: CommandLine, tmp_path: Path) -> None:
    """A flow that the store does not take is told, and the next one is stored."""
    write(tmp_path / "1.json", small("Large", pinData={"Go": ["x" * 2_000_000]}))
    write(tmp_path / "2.json", small("Small"))
    result = headrace("flows", "import", tmp_path, "--json")
    large, fits = json.loads(result.stdout)["results"]
    assert (large["state"], "cannot be stored" in large["problems"][0]["message"]) == ("cannot run", True)
    assert fits["state"] == "imported"


def test_export_gives_back_what_was_imported(headrace: CommandLine, tmp_path: Path) -> None:
    """Fields that nobody here knows come back as they were, on standard output, in a file, in a folder."""
    written = small("Prices", meta={"odd": [1, None]}, pinData={}, versionId="v1", id="wf7") | {"tags": [{"name": "x"}]}
    written["nodes"][0] |= {"webhookId": "w", "position": [1.5, -2], "futureField": {"a": []}}
    headrace.text("flows", "import", write(tmp_path / "p.json", written))
    assert json.loads(headrace.text("flows", "export", "Prices")) == written
    assert headrace.json("flows", "export", "wf7") == written
    headrace.text("flows", "export", "flow.prices", "--out", tmp_path / "out.json")
    headrace.text("flows", "export", "--all", tmp_path / "all")
    for file in (tmp_path / "out.json", tmp_path / "all" / "prices.json"):
        assert json.loads(file.read_text("utf-8")) == written


def test_a_flow_is_switched_on_and_off(headrace: CommandLine, tmp_path: Path) -> None:
    """Only `active` changes; an import that switches one off says so."""
    every = node("Every", "schedule", {"rule": {"interval": [{"field": "hours"}]}})
    written = flow([every], name="A", active=False)
    file = write(tmp_path / "a.json", written)

    def active() -> bool:
        [one] = headrace.json("flows", "list")
        return bool(one["active"])

    headrace.text("flows", "import", file)
    assert not active()
    assert headrace.text("flows", "activate", "A") == "active\n"
    assert active()
    assert headrace.json("flows", "export", "A") == written | {"active": True}
    again = headrace.json("flows", "activate", "A")
    assert (again["active"], again["version"]) == (True, 2)
    assert "switched off by this" in headrace.text("flows", "import", file)
    assert not active()
    headrace.text("flows", "import", file, "--activate")
    assert active()
    assert "inactive" in headrace.text("flows", "deactivate", "A")
    assert not active()


REFUSED = [
    (("export", "none"), 5, "no flow 'none'"),
    (("activate", "none"), 5, "flows list"),
    (("export",), 2, "--all DIR"),
    (("export", "a", "--all", "x"), 2, "--all DIR"),
    (("import",), 2, "FILE|DIR"),
    (("import", "none.json"), 2, "is there"),
]


@pytest.mark.parametrize(("words", "code", "said"), REFUSED)
def test_mistakes_are_told(headrace: CommandLine, words: tuple[str, ...], code: int, said: str) -> None:
    """A wrong name ends with 5, a wrong use with 2; the message says what to do."""
    ended, error = headrace.refusal("flows", *words)
    assert (ended, said in error["message"]) == (code, True), error
