"""Flows on files with a model: read, taken apart, asked about and written, and repeated from a node on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.apps.flows.tasks import register
from headrace.flow_settings import FlowSettings
from headrace.model.run import Level
from headrace.testing.provider import Answers, ScriptedProvider
from tests.unit.flow_making import flow, node, start_flow
from tests.unit.test_flows_models import settings_of

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
#: Whoever lives in Oslo, in two files.
FILES = {"a.csv": "id,text\n1,Ada lives in Oslo.\n2,Bo lives in Bergen.\n", "b.csv": "id,text\n3,Cy lives in Oslo.\n"}
PEOPLE = {"Ada": "Oslo", "Bo": "Bergen", "Cy": "Oslo"}
RULES = [{"contains": name, "answer": {"city": city}} for name, city in PEOPLE.items()]
NODES = [
    node("Go", "manual"),
    node("Read", "n8n-nodes-base.readWriteFile", {"fileSelector": "in/*.csv"}),
    node("Rows", "extractFromFile", {"operation": "csv"}),
    node("Ask", "llmExtract", {"text": "={{ $json.text }}", "schema": CITY}),
    node("Write", "writeFile", {"fileName": "=out/{{ $json.output.city }}.csv", "format": "csv",
                                "options": {"columns": ["id", "text"]}}),
]  # fmt: skip
FLOW = flow(NODES, "Go -> Read", "Read -> Rows", "Rows -> Ask", "Ask -> Write")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the folder of flows, with files."""
    (tmp_path / "in").mkdir()
    for name, text in FILES.items():
        (tmp_path / "in" / name).write_text(text)
    return tmp_path


def app_of(provider: ScriptedProvider, root: Path) -> App:
    """Return an app with a model and a folder for flows."""
    app = App(settings=replace(settings_of(provider), flows=FlowSettings(files=root)))
    register(app)
    app.workflow("works-runs", {"nodes": [{"id": "a", "kind": "value", "value": 1}]})
    return app


@pytest.mark.parametrize("level", [Level.WORKFLOW, Level.NODE])
async def test_rows_of_files_are_asked_about_and_written(level: Level, root: Path) -> None:
    """Each row is one ask; a run that is repeated from the middle on reads the files that the first one kept."""
    async with ScriptedProvider(rules=Answers(RULES)) as provider:
        app = app_of(provider, root)
        async with app.worker():
            run = await start_flow(app, FLOW, [{}], level=level)
            found: list[dict[str, Any]] = await run.result("20s")
            oslo = (root / "out/Oslo.csv").read_text()
            assert oslo == '"id","text"\n"1","Ada lives in Oslo."\n"3","Cy lives in Oslo."\n'
            assert (root / "out/Bergen.csv").read_text() == '"id","text"\n"2","Bo lives in Bergen."\n'
            for path in [*root.glob("in/*"), *root.glob("out/*")]:
                path.unlink()
            again = await run.rerun("rows")
            assert await again.result("20s") == found
            assert not list(root.glob("out/*"))  # what is written is as before, so that node was not called
            last = await again.rerun("write")
            assert await last.result("20s") == found
            assert len(list(root.glob("out/*"))) == 2
        assert provider.count() == 3
    assert [item["json"]["fileName"] for item in found] == ["out/Oslo.csv", "out/Bergen.csv", "out/Oslo.csv"]
