"""The example of events as its page tells it, on a real PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.command_runs import Place, place
from tests.waiting import wait_until_sync

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "05_events" / "parcels.py"
PACKED = "{}: rope from shelf 3, lamp from shelf 1, tent from shelf 2; missing: sofa"

pytestmark = pytest.mark.acceptance


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Place]:
    """Return a place with the app of the example."""
    with place(tmp_path) as made:
        shutil.copy(EXAMPLE, tmp_path / "parcels.py")
        yield made


def pack(example: Place, *order: str) -> str:
    """Return what the program prints."""
    command = [sys.executable, "parcels.py", *order]
    return subprocess.run(
        command, cwd=example.folder, env=example.environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def types_of(example: Place, order: str) -> list[str]:
    """Return the types of an order's events, without domain and aggregate, sorted."""
    listed = example.json("events", "list", "--correlation", order)
    return sorted(event["type"].rpartition(".")[2] for event in listed)


def test_the_example_does_what_its_page_says(example: Place) -> None:
    """One part is missing and told, and who packs the order again asks nobody."""
    assert example.run("migrate")[0] == 0
    assert pack(example) == PACKED.format("o-1")
    assert types_of(example, "o-1") == ["PartFetched"] * 3 + ["PartWanted"] * 4
    assert pack(example) == PACKED.format("o-1")
    assert len(types_of(example, "o-1")) == 7
    [letter] = example.json("events", "dead-letters", "list", "outbox.event.ShopOrder")["letters"]
    assert (letter["agent"], letter["kind"], letter["error"]) == ("storekeeper", "LookupError", "there is no sofa")


def test_an_order_waits_for_the_agent(example: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its task is parked while no agent runs, and goes on when one does."""
    monkeypatch.setenv("HEADRACE_WORKER_AGENTS_ENABLED", "false")
    assert example.run("migrate")[0] == 0
    packing = subprocess.Popen(
        [sys.executable, "parcels.py", "o-3"],
        cwd=example.folder,
        env={**example.environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until_sync(lambda: types_of(example, "o-3") == ["PartWanted"] * 4, message="the requests")
        example.start("agent", "parcels.py", "keeper", "--json")
        assert packing.communicate(timeout=60)[0].strip() == PACKED.format("o-3")
    finally:
        if packing.poll() is None:
            os.kill(packing.pid, signal.SIGKILL)
            packing.wait()
