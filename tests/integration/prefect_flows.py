"""Flows that wait for events, as users of Prefect write them. Run in .venv-prefect; $TEST_FOLDER is theirs.

They are served until SIGTERM; with `misplaced` they say instead what happens where nothing can be suspended. Prefect
loads this file anew in the process of each flow run.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from prefect import flow, serve, task

from headrace import App
from headrace.integrations import prefect as integration
from headrace.integrations.prefect import emit_once, suspend_for_events, suspend_for_events_sync
from headrace.model.errors import ConfigError

ASKED, MADE = "Tests.Collection.PartAsked", "Tests.Collection.PartMade"
FOLDER = Path(os.environ["TEST_FOLDER"])

app = App()


def note(what: str, command: str, value: Any = None) -> None:
    """Add a line to what the test counts."""
    with (FOLDER / "effects").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"what": what, "command": command, "pid": os.getpid(), "value": value}) + "\n")


@task
async def submit(command: str, parts: int) -> int:
    """Ask for parts; where a file says so, die the first time, after they were asked for."""
    for part in range(parts):
        await emit_once(app, f"part-{part}", ASKED, {"part": part}, aggregate_id=command, correlation_id=command)
    note("submitted", command)
    mark = FOLDER / f"die-{command}"
    if mark.exists():
        mark.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return parts


async def come_late(command: str) -> None:
    """Let the flow that looked in vain suspend itself only after its events have come and were told."""
    async with app:
        while not (await app.handles.show(command)).state.final:
            await asyncio.sleep(0.05)
    await asyncio.sleep(1.5)  # long enough for somebody to try to resume what is not suspended yet


def delay_suspensions() -> None:
    """Make flows slow between their look at the handle and their suspension, where a file says so."""
    look = integration._Wait.look

    async def slow_look(wait: Any, of: App) -> Any:
        resumed = await look(wait, of)
        if resumed is None and (FOLDER / f"late-{wait.correlation_id}").exists():
            note("looked in vain", wait.correlation_id)
            await come_late(wait.correlation_id)
        return resumed

    integration._Wait.look = slow_look  # type: ignore[method-assign]


@flow(persist_result=True)
async def collect(command: str, parts: int, timeout: str = "10m") -> None:
    """Ask for parts and wait for all of them."""
    note("began", command)
    asked = await submit(command, parts)
    resumed = await suspend_for_events(app, command, MADE, count=asked, timeout=timeout)
    note("went on", command, sorted(event.payload["part"] for event in resumed.events))


@task
def submit_plainly(command: str) -> int:
    """Say that something was asked for."""
    note("submitted", command)
    return 1


@flow(persist_result=True)
def collect_plainly(command: str) -> None:
    """Do the same without a coroutine, for one part."""
    note("began", command)
    resumed = suspend_for_events_sync(app, command, MADE, count=submit_plainly(command), timeout="10m")
    note("went on", command, [event.payload["part"] for event in resumed.events])


@task
async def wait_in_a_task() -> str:
    """Return what waiting says here."""
    return await refusal()


@flow
async def wait_below(deep: bool = True) -> list[str]:
    """Return what waiting says in a flow without a deployment, in a task, and in a flow within this one."""
    return [await refusal(), *([await wait_in_a_task(), *await wait_below(False)] if deep else [])]


async def refusal() -> str:
    """Return why nothing can be suspended here."""
    try:
        await suspend_for_events(app, "misplaced", MADE, timeout="1s")
    except ConfigError as error:
        return str(error)
    return "nothing"


async def misplaced() -> list[str]:
    """Return what waiting says in each of the wrong places."""
    return [await refusal(), *await wait_below()]


delay_suspensions()

if __name__ == "__main__":
    if sys.argv[1:] == ["misplaced"]:
        (FOLDER / "misplaced").write_text(json.dumps(asyncio.run(misplaced())))
    else:
        serve(collect.to_deployment("tests"), collect_plainly.to_deployment("tests"), limit=20)
