"""Flows of a real Prefect suspend themselves and are resumed by events: server, runner and flows in .venv-prefect."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from headrace import App
from headrace.engine.events.parts import EventParts
from headrace.model.event import Event
from headrace.model.resume_handle import HandleState, NotedEvent
from tests.acceptance.command_runs import Place, place
from tests.integration.prefect_server import FLOWS, PATIENCE, ROOT, PrefectServer, prefect_server
from tests.waiting import wait_until, wait_until_sync

MADE = "Tests.Collection.PartMade"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrefectServer, Place]]:
    """A server that serves the flows, and the place of their Headrace."""
    # Packages are all that a test may fetch: the dead end that stands in for every proxy is taken away for that alone.
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    command = ["sh", "tools/setup.sh", "prefect"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"make prefect: {done.stdout}{done.stderr}"
    with place(tmp_path_factory.mktemp("prefect")) as here:
        settings = {"HEADRACE_URL": here.url, "HEADRACE_QUEUE_SCHEMA": here.schema, "TEST_FOLDER": str(here.folder)}
        with prefect_server(here.folder, **settings) as server, server.running(FLOWS):
            wait_until_sync(
                lambda: server.ask("/deployments/count", {}) == 2, PATIENCE, message="the flows to be served"
            )
            yield server, here


@asynccontextmanager
async def working(prefect: tuple[PrefectServer, Place]) -> AsyncIterator[App]:
    """Work in this process: relay, callback service, and who wakes."""
    server, here = prefect
    events = replace(here.settings.events, prefect_api_url=server.api_url)
    app = App(settings=replace(here.settings, events=events))
    async with app.event_host(EventParts(relay=True, callback=True, callback_at_once=True)):
        yield app


async def told(question: Callable[..., Any], *arguments: Any) -> Any:
    """Ask Prefect beside the work with events."""
    return await asyncio.to_thread(question, *arguments)


async def send(app: App, command: str, *parts: int) -> None:
    """Emit results, as an agent would."""
    for part in parts:
        await app.emit(MADE, {"part": part}, aggregate_id=command, correlation_id=command)


def whats(server: PrefectServer, command: str) -> list[str]:
    """Return what was noted for a command, in its order."""
    return [effect["what"] for effect in server.effects(command)]


@pytest.mark.parametrize(
    ("flow", "command", "given", "parts"),
    [
        pytest.param("collect", "coroutine", {"parts": 2}, [0, 1], id="coroutine"),
        pytest.param("collect-plainly", "plain", {}, [0], id="plain", marks=pytest.mark.slow),
    ],
)
async def test_a_suspended_flow_run_is_resumed_by_its_events(
    prefect: tuple[PrefectServer, Place], flow: str, command: str, given: dict[str, int], parts: list[int]
) -> None:
    """It goes on in another process, with the events; what it did before is not done again."""
    server, _ = prefect
    run = server.begin(flow, command=command, **given)
    assert server.until(run, "Suspended")["state_details"]["pause_key"] == f"headrace:{command}:1"
    async with working(prefect) as app:
        await send(app, command, *parts)
        assert (await told(server.until, run))["type"] == "COMPLETED"
        handle = (await app.handles.show(command)).view
        assert (handle.state, handle.wake_due) == (HandleState.RESOLVED, False)
    assert whats(server, command) == ["began", "submitted", "began", "went on"]
    first, *_, last = server.effects(command)
    assert last["value"] == parts
    assert first["pid"] != last["pid"]


@pytest.mark.slow
@pytest.mark.parametrize(("late", "free"), [(1, 0), (4, 8)])
async def test_runs_that_suspend_themselves_while_their_events_come_are_all_resumed(
    prefect: tuple[PrefectServer, Place], late: int, free: int
) -> None:
    """None stays suspended: neither those that are told while they run still, nor those of all moments between."""
    server, here = prefect
    told_early = [f"late-{number}-of-{late}" for number in range(late)]
    others = [f"free-{number}-of-{free}" for number in range(free)]
    for command in told_early:
        (here.folder / f"late-{command}").touch()
    runs = [server.begin("collect", command=command, parts=1) for command in [*told_early, *others]]
    async with working(prefect) as app:

        async def answer(command: str, after: str) -> None:
            await wait_until(lambda: server.count(command, after), PATIENCE, message=f"{command}: {after}")
            await send(app, command, 0)

        answers = [answer(command, "looked in vain") for command in told_early]
        await asyncio.gather(*answers, *(answer(command, "submitted") for command in others))
        states = [await told(server.until, run) for run in runs]
    assert {state["type"] for state in states} == {"COMPLETED"}
    for command in told_early:  # suspended after its event had come, and resumed all the same
        assert whats(server, command) == ["began", "submitted", "looked in vain", "began", "went on"]
    for command in others:
        assert server.count(command, "submitted") == server.count(command, "went on") == 1


@pytest.mark.slow
async def test_events_that_came_before_are_not_waited_for(prefect: tuple[PrefectServer, Place]) -> None:
    """The run goes on without a suspension, and sees to it that nobody looks for it any more."""
    server, here = prefect
    event = Event(MADE, "TestsCollection", "early", {"part": 0}, correlation_id="early")
    async with App(settings=here.settings) as app:
        await app.event_stores.handles.note_event(NotedEvent(event))
        run = server.begin("collect", command="early", parts=1)
        assert (await told(server.until, run))["type"] == "COMPLETED"
        assert not (await app.handles.show("early")).view.wake_due
    assert whats(server, "early") == ["began", "submitted", "went on"]


@pytest.mark.slow
async def test_a_run_that_somebody_else_resumes_suspends_itself_again(prefect: tuple[PrefectServer, Place]) -> None:
    """Without its events it does not go on."""
    server, _ = prefect
    run = server.begin("collect", command="again", parts=1)
    server.until(run, "Suspended")
    server.ask(f"/flow_runs/{run}/resume", {})
    await wait_until(lambda: server.count("again", "began") == 2, PATIENCE)
    assert server.until(run, "Suspended")["state_details"]["pause_key"] == "headrace:again:2"
    async with working(prefect) as app:
        await send(app, "again", 0)
        assert (await told(server.until, run))["type"] == "COMPLETED"
    assert whats(server, "again") == ["began", "submitted", "began", "began", "went on"]


@pytest.mark.slow
async def test_the_end_of_a_wait_without_its_events_fails_the_run(prefect: tuple[PrefectServer, Place]) -> None:
    """Timeout and cancel wake it as well, and its code is told which it was."""
    server, _ = prefect
    slow = server.begin("collect", command="slow", parts=1, timeout="2s")
    unwanted = server.begin("collect", command="unwanted", parts=1)
    server.until(unwanted, "Suspended")
    async with working(prefect) as app:
        await app.handles.cancel("unwanted")
        ends = [await told(server.until, run) for run in (slow, unwanted)]
    assert [end["type"] for end in ends] == ["FAILED", "FAILED"]
    assert "the wait for 'slow' expired" in ends[0]["message"]
    assert "the wait for 'unwanted' was cancelled" in ends[1]["message"]


@pytest.mark.slow
async def test_requests_of_a_task_that_runs_again_are_sent_once(prefect: tuple[PrefectServer, Place]) -> None:
    """The process dies after it asked and before Prefect knows; whoever runs it again, its requests are the same."""
    server, here = prefect
    (here.folder / "die-killed").touch()
    run = server.begin("collect", command="killed", parts=3)
    assert server.until(run)["type"] == "CRASHED"
    server.ask(f"/flow_runs/{run}/set_state", {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}})
    server.until(run, "Suspended")
    async with working(prefect) as app:
        await send(app, "killed", 0, 1, 2)
        assert (await told(server.until, run))["type"] == "COMPLETED"
        events = await app.event_stores.outbox.list_events(correlation_id="killed")
    assert whats(server, "killed") == ["began", "submitted", "began", "submitted", "began", "went on"]
    assert len([event for event in events if event.type != MADE]) == 3


def test_a_wait_where_nothing_can_be_suspended_says_where_it_belongs(prefect: tuple[PrefectServer, Place]) -> None:
    """Outside of a flow, in a run without a deployment, in a task, and in a flow within another: no handle is made."""
    server, here = prefect
    with server.running(FLOWS, "misplaced") as process:
        assert process.wait(PATIENCE.total_seconds()) == 0
    outside, direct, in_task, within = json.loads((here.folder / "misplaced").read_text(encoding="utf-8"))
    assert outside.endswith("works within a flow run of Prefect only: call it in a flow")
    assert "flow.serve()" in direct
    assert "wait in the flow that calls it" in in_task
    assert "wait for events in the outer flow" in within

    async def handles(app: App) -> list[str]:
        return [handle.correlation_id for handle in await app.handles.list(waiting=False)]

    assert "misplaced" not in here.ask(handles)
