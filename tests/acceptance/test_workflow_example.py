"""Workflows from the command line: the example as its page tells it, on a real PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command_runs import Place, place
from tests.waiting import wait_until_sync

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "03_workflows" / "atlas.py"

pytestmark = pytest.mark.acceptance


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Place]:
    """Return a place with the app of the example."""
    with place(tmp_path) as made:
        shutil.copy(EXAMPLE, tmp_path / "atlas.py")
        yield made


def nodes_of(example: Place, run: str) -> dict[str, dict[str, Any]]:
    """Return the nodes of a run by path, at any depth."""
    todo = list(example.json("run", "show", run)["nodes"])
    for node in todo:  # which grows
        todo += node["nodes"]
    return {node["path"]: node for node in todo}


def until(example: Place, run: str, state: str) -> None:
    """Wait until a run is in a state."""
    wait_until_sync(lambda: example.json("run", "show", run)["state"] == state)


def test_the_example_does_what_its_page_says(example: Place) -> None:
    """One page fails, the rest is kept, the rerun writes that page alone, waits for its approval and ends."""
    assert example.start("worker", "atlas.py", "--json").line()["event"] == "started"
    first = example.json("workflow", "start", "atlas.py", "atlas", '{"continent": "europe"}')["run"]
    until(example, first, "failed")
    states = {path: node["state"] for path, node in nodes_of(example, first).items() if path.startswith("pages")}
    assert states["pages"] == states["pages[1]/write_page"] == "failed"
    assert states["pages[0]/write_page"] == states["pages[2]/write_page"] == "success"
    wait_until_sync(
        lambda: [run["state"] for run in example.json("run", "list", "--workflow", "complain")] == ["succeeded"]
    )

    (example.folder / "volga.txt").write_text("The volga is the longest river of Europe.\n", encoding="utf-8")
    again = example.json("run", "rerun", first)["run"]
    wait_until_sync(lambda: nodes_of(example, again)["approval"]["state"] == "parked")
    reused = sorted(path for path, node in nodes_of(example, again).items() if node["reused"])
    assert reused == ["list_rivers", "pages[0]/write_page", "pages[2]/write_page"]
    assert f"waits for signal approve-{again}" in example.run("run", "show", again)[1]

    assert example.json("run", "signal", f"approve-{again}", '{"by": "ann"}')["sent"] is True
    until(example, again, "succeeded")
    output = example.json("run", "show", again)["output"]
    assert output == "An atlas of 3 rivers, 20 words, approved by ann"

    third = example.json("run", "rerun", again, "--from", "pages")["run"]
    wait_until_sync(lambda: nodes_of(example, third)["approval"]["state"] == "parked")
    assert example.json("run", "signal", f"approve-{third}", '{"by": "bea"}')["sent"] is True
    until(example, third, "succeeded")
    assert not nodes_of(example, third)["pages[1]/write_page"]["reused"]
    assert nodes_of(example, third)["count_words"]["reused"]
