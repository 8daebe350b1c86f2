"""Which flow follows the failure of another, and that it begins with that and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.apps.flows import FlowError, add_flow
from headrace.apps.flows.form import parse_flow
from headrace.apps.flows.running import Asked, start_flow
from headrace.apps.flows.starting import alarm_of
from headrace.apps.flows.storing import finder, stored_flows
from headrace.model.run import RunState, RunView
from tests.unit.flow_making import flow, node
from tests.unit.flow_serving import flows_app, put
from tests.waiting import wait_until

GO, ERROR = node("Go", "manual"), node("Error", "errorTrigger")
STOP = node("Stop", "stopAndError", {"errorMessage": "no more tea"})


def failing(named: str | None = None, *more: dict[str, Any]) -> dict[str, Any]:
    """Return a flow that fails, which names an error workflow."""
    settings = {} if named is None else {"errorWorkflow": named}
    return flow([GO, STOP, *more], "Go -> Stop", name="Tea", id="17", settings=settings)


def following(name: str = "Alarm", *begins: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a flow that several triggers may begin."""
    first = begins or (ERROR,)
    return flow([*first, node("Keep", "noOp")], *(f"{one['name']} -> Keep" for one in first), name=name, **more)


NOTHING = "nothing follows when a run fails"


@pytest.mark.parametrize(
    ("made", "others", "follows", "why"),
    [
        (failing(), [following()], None, ""),
        (failing("DEFAULT"), [following()], None, ""),
        (failing("Alarm"), [following()], "Alarm", ""),
        (failing("9"), [following(id="9")], "Alarm", ""),
        (failing("Alarm"), [], None, f"names the error workflow 'Alarm', which is not there: {NOTHING}"),
        (failing("Alarm"), [following("Alarm", GO)], None, "'Alarm', which has no errorTrigger that is switched on"),
        (failing("Alarm"), [following("Alarm", GO, {**ERROR, "disabled": True})], None, "which has no errorTrigger"),
        (failing("Alarm"), [following("Alarm", ERROR, node("Mail", "n8n-nodes-base.gmail"))], None, "which cannot run"),
        (failing(None, ERROR), [], "Tea", ""),
        (failing("DEFAULT", ERROR), [], "Tea", ""),
        (failing("17", ERROR), [], "Tea", ""),
        (failing("Tea"), [], None, "names the error workflow 'Tea', which has no errorTrigger"),
        (failing("Alarm", ERROR), [following()], "Alarm", ""),
    ],
)
def test_which_flow_follows_a_failure(
    made: dict[str, Any], others: list[dict[str, Any]], follows: str | None, why: str
) -> None:
    """The one that is named, if it can begin with a failure; else the flow itself, where it can."""
    find = finder({one["name"]: parse_flow(one) for one in others})
    found, said = alarm_of(parse_flow(made), find)
    assert (None if found is None else found.name) == follows
    assert why in said
    assert bool(why) == bool(said)


async def ended(app: App, workflow: str, count: int) -> list[RunView]:
    """Return the runs of a workflow, the oldest first, when there are as many and all have ended."""

    async def look() -> list[RunView] | None:
        found = await app.runtime.stores.runs.list_runs(workflow=workflow)
        return found if len(found) >= count and all(one.state is not RunState.RUNNING for one in found) else None

    views = await wait_until(look)
    assert views is not None
    # What follows a failure is inserted with its end: where nothing waits nothing is to come.
    assert not any((await app.runtime.stores.inspect.live_jobs("nodes")).values())
    return sorted(views, key=lambda view: view.created_at)


START = {"items": [{"json": {}}], "trigger": "Go", "mode": "manual", "vars": {}}


async def test_a_failure_begins_the_error_trigger_and_no_other() -> None:
    """Not even the one that a flow begins with unless told."""
    app = flows_app()
    async with app.worker():
        alarm = following("Alarm", GO, ERROR)
        await put(app, alarm)
        await app.start(await put(app, failing("Alarm"), alarm), START)
        [view] = await ended(app, "flow.alarm", 1)
        [item] = await app.find_run(view.id).result("10s")
        assert item["json"]["workflow"] == {"id": "17", "name": "Tea"}


async def test_a_flow_that_follows_itself_does_so_once(tmp_path: Path) -> None:
    """Also where it is run from its file, which is kept under a name of its own and stores nothing."""
    again = node("Again", "stopAndError", {"errorMessage": "={{ $json.execution.lastNodeExecuted }}"})
    made = failing(None, ERROR, again)
    made["connections"]["Error"] = {"main": [[{"node": "Again", "type": "main", "index": 0}]]}
    file = tmp_path / "tea.json"
    file.write_text(json.dumps(made), encoding="utf-8")
    app = flows_app()
    async with app.worker():
        assert (await start_flow(app, Asked(str(file)))).notes == []
        first, second = await ended(app, "draft.tea", 2)
        assert first.error is not None and "no more tea" in first.error.message
        assert second.error is not None and "Stop" in second.error.message
        assert await stored_flows(app) == {}


# In an app of one's own


async def test_an_app_declares_the_flows_that_are_started_by_their_names() -> None:
    """The error workflow, and a flow that nobody waits for, are run without being stored before."""
    sent = flow(
        [node("In", "executeWorkflowTrigger"), STOP], "In -> Stop", name="Sent", settings={"errorWorkflow": "Alarm"}
    )
    send = node("Send", "executeWorkflow", {"workflowId": "Sent", "options": {"waitForSubWorkflow": False}})
    app = App("memory://")
    added = add_flow(app, flow([GO, send], "Go -> Send", name="Main"), others=[sent, following()])
    async with app.worker():
        assert await (await added.start([{"n": 1}])).result("10s") == [{"json": {"n": 1}, "pairedItem": {"item": 0}}]
        [view] = await ended(app, "flow.alarm", 1)
        [item] = await app.find_run(view.id).result("10s")
        assert item["json"]["workflow"]["name"] == "Sent"


def test_flows_that_follow_each_other_are_declared_once() -> None:
    """Each is what follows the other, and may be declared by itself too."""
    app = App("memory://")
    one, other = (following(name, settings={"errorWorkflow": named}) for name, named in ("AB", "BA"))
    first = add_flow(app, one, others=[other])
    assert (first.workflow.name, first.workflow.graph.on_failure) == ("flow.a", "flow.b")
    assert add_flow(app, other, others=[one]).workflow.graph.on_failure == "flow.a"


@pytest.mark.parametrize(
    ("others", "rule"),
    [([], "'Alarm', which is not there"), ([following("Alarm", GO)], "'Alarm', which has no errorTrigger")],
)
def test_an_app_refuses_a_flow_without_its_error_workflow(others: list[dict[str, Any]], rule: str) -> None:
    """The field, what is wrong, and the argument that mends it are named."""
    with pytest.raises(FlowError, match=rf"flow\.settings\.errorWorkflow of flow 'Tea' .*{rule}.*others="):
        add_flow(App("memory://"), failing("Alarm"), others=others)
