"""Flows begin by themselves: by the clock, and by the failure of another. See `test_flows_webhooks` for requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import pytest

from headrace import App, Context
from headrace.apps.flows import alarms, schedules
from headrace.apps.flows.form import parse_flow
from headrace.apps.flows.naming import workflow_name
from headrace.apps.flows.schedules import FIRE_TASK, Fired, Keeper, declarations_of, fire
from headrace.model.run import RunState, RunView
from headrace.model.schedule import ScheduleView
from tests.unit.flow_making import flow, node
from tests.unit.flow_serving import flows_app, put
from tests.waiting import wait_until

# Schedules


def clocked(*crons: str, name: str = "Daily", zone: str = "Asia/Tokyo", active: bool = True) -> dict[str, Any]:
    """Return a flow that begins at times."""
    rules = [{"field": "cronExpression", "expression": cron} for cron in crons]
    begins = node("Clock", "scheduleTrigger", {"rule": {"interval": rules}})
    settings = {"timezone": zone}
    return flow([begins, node("Keep", "noOp")], "Clock -> Keep", name=name, settings=settings, active=active)


async def known(app: App) -> dict[str, ScheduleView]:
    """Return the schedules of the store."""
    store = app.runtime.stores.schedules
    assert store is not None
    return {view.name: view for view in await store.list_schedules()}


async def test_schedules_follow_the_stored_flows() -> None:
    """Each rule is a schedule in the zone of the flow; what is changed, switched off or removed is followed."""
    app = flows_app()
    async with app:
        keeper = Keeper(app)
        await put(app, clocked("0 8 * * *", "30 9 * * 1"))
        await put(app, clocked("0 1 * * *", name="Asleep", active=False))
        await keeper.look()
        found = {name: view.declaration for name, view in (await known(app)).items()}
        assert {name: one.rule.text for name, one in found.items()} == {
            "flow.daily.1": "0 8 * * * Asia/Tokyo",
            "flow.daily.2": "30 9 * * 1 Asia/Tokyo",
        }
        assert {one.spec.task for one in found.values()} == {FIRE_TASK}

        await put(app, clocked("0 7 * * *", zone="UTC"))
        await keeper.look()
        assert {name: view.declaration.rule.text for name, view in (await known(app)).items()} == {
            "flow.daily.1": "0 7 * * * UTC"
        }
        await app.runtime.stores.workflows.set_workflow_active("flow.daily", active=False)
        await keeper.look()
        assert await known(app) == {}


async def test_a_schedule_that_was_paused_stays_so_and_those_of_others_are_let_be() -> None:
    """A look that finds nothing new only renews."""
    app = flows_app()
    async with app:
        await put(app, clocked("0 8 * * *"))
        keeper = Keeper(app)
        await keeper.look()
        store = app.runtime.stores.schedules
        assert store is not None
        await store.set_schedule_paused("flow.daily.1", paused=True)
        [made] = declarations_of(app, "flow.daily", parse_flow(clocked("0 8 * * *")))
        foreign = replace(made, name="nightly", spec=replace(made.spec, task="clean"))
        await store.declare_schedules([foreign])
        await keeper.look()
        found = await known(app)
        assert found["flow.daily.1"].paused
        assert set(found) == {"flow.daily.1", "nightly"}


async def test_a_fire_starts_one_run_with_the_time_it_was_for() -> None:
    """Twice for the same time is one run; its item tells the time in the zone of the flow."""
    app = flows_app()
    async with app.worker():
        name = await put(app, clocked("0 8 * * *"))
        fired = Fired(f"{name}.1", name, "Clock", datetime(2026, 6, 30, 23, 0, tzinfo=UTC))
        first, again = await fire(app, fired), await fire(app, fired)
        assert first == again
        run = app.find_run(first["run"])
        [item] = await run.result("10s")
        assert item["json"]["timestamp"] == "2026-07-01T08:00:00.000+09:00"
        assert item["json"]["Readable date"] == "July 1st 2026, 8:00:00 am"
        assert (await run.view()).key == "flow.daily.1@2026-06-30T23:00:00+00:00"


async def test_a_fire_of_a_flow_that_was_switched_off_or_changed_starts_nothing() -> None:
    """Whoever declared it knew an older one."""
    app = flows_app()
    async with app:
        name = await put(app, clocked("0 8 * * *"))
        at = datetime(2026, 7, 1, tzinfo=UTC)
        assert (await fire(app, Fired(f"{name}.1", name, "Other", at)))["run"] is None
        assert (await fire(app, Fired(f"{name}.1", "flow.gone", "Clock", at)))["run"] is None
        await put(app, clocked("0 8 * * *", active=False))
        assert (await fire(app, Fired(f"{name}.1", name, "Clock", at)))["run"] is None
        assert await app.runtime.stores.runs.list_runs() == []


async def test_workers_keep_schedules_and_their_fires_start_runs() -> None:
    """From the stored flow to the run, by way of the scheduler: a fire by hand is like any other."""
    from headrace.engine.schedules import run_schedule

    app = flows_app()
    app.lifespan = schedules.schedules_kept
    async with app:
        await put(app, clocked("0 8 * * *"))
        async with app.worker():
            await wait_until(lambda: known(app))
            await run_schedule(app.runtime.stores, "flow.daily.1")

            async def started() -> list[RunView]:
                return await app.runtime.stores.runs.list_runs(state=RunState.SUCCEEDED)

            [view] = await wait_until(started)
            assert view.workflow == "flow.daily"


# Error workflows


def failing(error: str = "no more tea", **more: Any) -> dict[str, Any]:
    """Return a flow that fails in its second node."""
    stop = node("Stop it", "stopAndError", {"errorMessage": error})
    return flow([node("Go", "manual"), stop], "Go -> Stop it", name="Tea", id="17", **more)


def alarm(*more: dict[str, Any]) -> dict[str, Any]:
    """Return a flow that begins with a failure."""
    wires = [f"Error -> {one['name']}" for one in more]
    return flow([node("Error", "errorTrigger"), *more], *wires, name="Alarm")


START = {"items": [{"json": {}}], "trigger": "Go", "mode": "webhook", "vars": {}}
#: Of a task that belongs to no run.
CONTEXT = Context(uuid4(), "t", "q", 1, datetime.now(UTC), cast(Any, None))
TRIGGER = {"name": "Error", "type": "headrace.errorTrigger", "version": 1, "parameters": {}}


async def failed_run(app: App, name: str) -> RunView:
    """Return a run that failed."""
    run = await app.start(name, START)

    async def ended() -> RunView | None:
        view = await run.view()
        return view if view.state is RunState.FAILED else None

    found = await wait_until(ended)
    assert found is not None
    return found


async def test_the_error_trigger_tells_which_run_failed_where_and_why() -> None:
    """In the members that people know; the run it repeats is told too."""
    app = flows_app()
    async with app.worker():
        view = await failed_run(app, await put(app, failing()))
        report = {"workflow": view.workflow, "run_id": str(view.id), "error": {"kind": "x", "message": "y"}}
        start = await alarms.begun(app, CONTEXT, report, TRIGGER)
        [item] = start["items"]
        execution = item["json"]["execution"]
        assert execution.pop("error")["message"] == "no more tea"
        assert execution == {
            "id": str(view.id), "url": None, "retryOf": None, "lastNodeExecuted": "Stop it", "mode": "webhook",
        }  # fmt: skip
        assert item["json"]["workflow"] == {"id": "17", "name": "Tea"}
        assert (start["trigger"], start["mode"]) == ("Error", "error")

        again = await app.find_run(view.id).rerun()
        repeated = await alarms.payload_of(app, {**report, "run_id": str(again.id)})
        assert repeated["execution"]["retryOf"] == str(view.id)


async def test_a_report_of_a_run_that_is_gone_or_of_no_flow_is_told_as_far_as_it_goes() -> None:
    """Its own words stand in for what is not stored."""
    app = flows_app()
    async with app:
        report = {
            "workflow": "w",
            "run_id": "01980000-0000-7000-8000-000000000000",
            "error": {"kind": "K", "message": "m"},
        }
        told = await alarms.payload_of(app, report)
        assert told["execution"]["error"] == {"message": "m", "name": "K", "stack": None}
        assert told["workflow"] == {"id": "w", "name": "w"}
        assert (await alarms.payload_of(app, {**report, "error": None}))["execution"]["error"]["message"] == ""


async def test_a_report_begins_no_other_trigger_and_other_inputs_are_let_be() -> None:
    """Only an error trigger reads reports, and only reports are read."""
    app = flows_app()
    async with app:
        report = {"workflow": "w", "run_id": "x", "error": None}
        manual = {**TRIGGER, "type": "headrace.manual", "entry": True}
        assert await alarms.begun(app, CONTEXT, report, manual) == {"items": [], "trigger": None}
        for start in (None, START, {**report, "more": 1}):
            assert await alarms.begun(app, CONTEXT, start, TRIGGER) is start


@pytest.mark.parametrize(("path", "name"), [("loop[2]/inner[0]/deep", "Deep"), ("loop[2]/other", "Loop"), ("x", "x")])
def test_the_node_within_a_loop_is_named(path: str, name: str) -> None:
    """The innermost one that stands in the flow itself; what is of no flow keeps its path."""
    loops = [node("Loop", "splitInBatches", typeVersion=3), node("Inner", "splitInBatches", typeVersion=3)]
    made = parse_flow(flow([*loops, node("Deep", "noOp")]))
    assert alarms._name_of(made, path) == name


async def test_an_error_workflow_runs_when_a_run_fails_and_not_when_it_fails_itself() -> None:
    """It begins with the failure; one that fails is followed by nothing."""
    follows = alarm(
        node("Fail", "stopAndError", {"errorMessage": "={{ $json.execution.lastNodeExecuted }}, {{ $execution.mode }}"})
    )
    follows["settings"] = {"errorWorkflow": "Alarm"}
    app = flows_app()
    async with app.worker():
        await put(app, follows, follows)
        await failed_run(app, await put(app, failing(), follows))
        runs = app.runtime.stores.runs

        async def alarmed() -> list[RunView]:
            return await runs.list_runs(workflow=workflow_name("Alarm"), state=RunState.FAILED)

        [view] = await wait_until(alarmed)
        assert view.error is not None
        assert "Stop it, error" in view.error.message
        # What follows a failure is inserted with its end: where nothing waits nothing is to come.
        assert not any((await app.runtime.stores.inspect.live_jobs("nodes")).values())
        assert len(await runs.list_runs(workflow=workflow_name("Alarm"))) == 1
