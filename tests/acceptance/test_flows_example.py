"""Flows from the command line: the example as its page tells it, on a real PostgreSQL."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.command_runs import Place, place

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "04_flows"

pytestmark = pytest.mark.acceptance


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Place]:
    """Return a place with the files of the example."""
    with place(tmp_path) as made:
        for file in EXAMPLE.glob("*.json"):
            shutil.copy(file, tmp_path)
        yield made


def test_the_example_does_what_its_page_says(example: Place) -> None:
    """It is checked, drawn, run from its file and by its name, and given back as it was."""
    assert example.run("flows", "validate", "bills.json")[0] == 0
    assert "flowchart" in example.run("flows", "show", "bills.json", "--format", "mermaid")[1]
    given = ("--input", "orders.json", "--vars", "vars.json")
    first = example.json("flows", "run", "bills.json", *given)
    bills = [item["json"] for item in first["items"] if "to" in item["json"]]
    assert [(bill["to"], bill["what"], bill["amount"], bill["ordered"]) for bill in bills] == [
        ("Ann", "oven", 378, 3), ("Ann", "rye", 52.2, 3), ("Bea", "tea", 40.5, 2), ("Bea", "jam", 3.2, 2)
    ]  # fmt: skip
    assert [item["json"]["note"] for item in first["items"] if "to" not in item["json"]] == ["cannot be billed: salt"]

    assert example.run("flows", "import", "bills.json")[0] == 0
    assert example.json("flows", "run", "Bill orders", *given)["items"] == first["items"]
    assert example.run("flows", "export", "Bill orders", "--out", "copy.json")[0] == 0
    assert json.loads((example.folder / "copy.json").read_text()) == json.loads((EXAMPLE / "bills.json").read_text())
