"""Flows of the event campaign: each asks, suspends itself and goes on with its answer. Run in .venv-prefect.

Prefect loads this file anew in the process of each flow run; $CAMPAIGN_GATES is the folder of what is counted.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from prefect import flow, serve, task

from headrace.integrations.prefect import emit_once, suspend_for_events
from tests.faults.event_app import ANSWERED, ASKED, GATES, app

FOLDER = Path(os.environ[GATES])


def note(what: str, number: int, value: list[int] | None = None) -> None:
    """Add a line to what the campaign counts."""
    with (FOLDER / "flows").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"what": what, "number": number, "value": value}) + "\n")


@task(retries=10, retry_delay_seconds=1)
async def submit(number: int, correlation: str, gate: str) -> int:
    """Ask once."""
    given = {"seq": number, "gate": gate}
    await emit_once(app, "ask", ASKED, given, aggregate_id=correlation, correlation_id=correlation)
    note("submitted", number)
    return 1


@flow(persist_result=True, retries=20, retry_delay_seconds=1)
async def ask(number: int, gate: str) -> None:
    """Ask and wait for the answer; an outage of the store is waited for by trying again."""
    correlation = f"flow-{number}"
    asked = await submit(number, correlation, gate)
    resumed = await suspend_for_events(app, correlation, ANSWERED, count=asked, timeout="1h")
    note("went on", number, [event.payload["seq"] for event in resumed.events])


if __name__ == "__main__":
    serve(ask.to_deployment("tests"), limit=20)
