"""The suspended flow runs of the event campaign: real ones, of a Prefect server, each with the kill it stands under."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.event_app import GATES
from tests.faults.event_line import Line
from tests.faults.site import ROOT
from tests.integration.prefect_server import PATIENCE, PrefectServer, prefect_server
from tests.waiting import wait_until_sync

FLOWS = Path(__file__).with_name("event_flows.py")


@contextmanager
def serving(line: Line) -> Iterator[None]:
    """Let a line have a Prefect server that serves the flows of the campaign."""
    # Packages are all that a test may fetch: the dead end that stands in for every proxy is taken away for that alone.
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    command = ["sh", "tools/setup.sh", "prefect"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"make prefect: {done.stdout}{done.stderr}"
    own = {"HEADRACE_URL": line.postgres.dsn, "PYTHONPATH": str(ROOT), GATES: str(line.folder)}
    with prefect_server(line.folder, **own) as server, server.running(FLOWS):
        wait_until_sync(lambda: server.ask("/deployments/count", {}) == 1, PATIENCE, message="the flows to be served")
        line.prefect = server
        yield


class Suspensions:
    """Flow runs of a campaign. The answer of each waits behind a gate that is opened when its victim dies."""

    def __init__(self, line: Line, victims: Sequence[str]) -> None:
        """None is begun yet."""
        self._line, self._victims = line, victims
        self._runs: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def _server(self) -> PrefectServer:
        assert self._line.prefect is not None
        return self._line.prefect

    async def suspend(self) -> None:
        """Begin a run for each victim, and wait until all of them are suspended."""
        if self._line.prefect is None:
            return
        for number, victim in enumerate(self._victims):
            self._runs[number] = await asyncio.to_thread(
                self._server.begin, "ask", number=number, gate=f"gate-{victim}"
            )
        states = [await asyncio.to_thread(self._server.until, run, "Suspended") for run in self._runs.values()]
        assert {state["name"] for state in states} == {"Suspended"}, states

    def answer(self, victim: str) -> None:
        """Let the request of a victim's flow run be answered from now on."""
        (self._line.folder / f"gate-{victim}").touch()

    async def resumed(self) -> int:
        """Wait until every run is over, and return how many are completed."""
        states = [await asyncio.to_thread(self._server.until, run) for run in self._runs.values()]
        return sum(state["type"] == "COMPLETED" for state in states)

    def wrong(self) -> list[str]:
        """Return what is not as it has to be: each asks once, goes on once, and has its own answer."""
        file = self._line.folder / "flows"
        lines: list[dict[str, Any]] = [json.loads(one) for one in file.read_text().splitlines()] if self._runs else []
        found = {
            number: [(one["what"], one["value"]) for one in lines if one["number"] == number] for number in self._runs
        }
        right = {number: [("submitted", None), ("went on", [number])] for number in self._runs}
        return [f"flow {number}: {found[number]}" for number in self._runs if found[number] != right[number]]
