"""Node types that end, delay, repeat or hand over a run."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.scope import Scope
from headrace.nodes import execute_workflow, no_op, split_in_batches, sticky_note, stop_and_error, wait
from headrace.nodes.base import Call, NodeError, Ports, Shape
from headrace.nodes.parameters import Parameters
from tests.unit.node_calls import FakeServices, jsons, make_call, rules, run_call, run_type

ROWS = [{"n": 1}, {"n": 2}]


async def test_no_op() -> None:
    """Items go on as they are, with their files."""
    items = [{"json": {"n": 1}, "binary": {"data": {"id": "blob-1"}}}]
    assert await run_type(no_op.TYPE, {}, items) == [[{**items[0], "pairedItem": {"item": 0}}]]


@pytest.mark.parametrize(
    ("parameters", "message", "details"),
    [
        ({"errorMessage": "={{ $json.why }}"}, "sold out", {}),
        ({}, "the node 'Node' stopped the run", {}),
        ({"errorType": "errorObject", "errorObject": '{"message": "no", "n": 4}'}, "no", {"message": "no", "n": 4}),
        ({"errorType": "errorObject", "errorObject": {"description": "gone"}}, "gone", {"description": "gone"}),
        ({"errorType": "errorObject", "errorObject": {"message": ["a"]}}, '["a"]', {"message": ["a"]}),
        ({"errorType": "errorObject", "errorObject": "={{ $json.why }}"},
         "parameters.errorObject must be a JSON object such as", {}),
    ],
)  # fmt: skip
async def test_stop_and_error(parameters: dict[str, Any], message: str, details: dict[str, Any]) -> None:
    """The run fails with the message, and an object becomes the details of the error."""
    with pytest.raises(NodeError) as caught:
        await run_type(stop_and_error.TYPE, parameters, [{"why": "sold out"}])
    assert str(caught.value).startswith(message)
    assert caught.value.details == details


@pytest.mark.parametrize(
    ("parameters", "version", "delay"),
    [
        ({}, 1, timedelta(hours=1)),
        ({}, 1.1, timedelta(seconds=5)),
        ({"amount": 1.5, "unit": "minutes"}, 1.1, timedelta(seconds=90)),
        ({"amount": "={{ $json.n }}", "unit": "days"}, 1.1, timedelta(days=1)),
        ({"resume": "specificTime", "dateTime": "2026-03-05T13:30:00+01:00"}, 1.1, timedelta()),
        ({"resume": "specificTime", "dateTime": "2026-03-05T13:00:00"}, 1.1, timedelta(minutes=30)),
        ({"resume": "specificTime", "dateTime": "2020-01-01T00:00:00Z"}, 1.1, timedelta()),
    ],
)
async def test_wait_for_a_time(parameters: dict[str, Any], version: float, delay: timedelta) -> None:
    """The delay is waited for once, and the items go on; a time that has passed is not waited for."""
    services = FakeServices()
    [out] = await run_type(wait.TYPE, parameters, ROWS, version=version, services=services)
    assert services.waits == [(delay, None)]
    assert jsons(out) == ROWS
    assert [item["pairedItem"] for item in out] == [{"item": 0}, {"item": 1}]


async def test_wait_for_a_time_of_the_flow() -> None:
    """A time without a zone is meant in the zone of the flow."""
    services = FakeServices()
    call = make_call(wait.TYPE, {"resume": "specificTime", "dateTime": "2026-03-05T14:00:00"}, ROWS, services=services)
    call.zone = ZoneInfo("Europe/Berlin")
    await run_call(wait.TYPE, call)
    assert services.waits == [(timedelta(minutes=30), None)]


@pytest.mark.parametrize(
    ("parameters", "delay"),
    [
        ({}, None),
        ({"limitWaitTime": True}, timedelta(hours=1)),
        ({"limitWaitTime": True, "resumeAmount": 2, "resumeUnit": "days"}, timedelta(days=2)),
        ({"limitWaitTime": True, "limitType": "atSpecifiedTime", "maxDateAndTime": "2026-03-05T12:31:00Z"},
         timedelta(minutes=1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("payload", "expected"),
    [({"ok": True}, [{"ok": True}]), ([1], [{"data": [1]}]), (False, [{"data": False}]), (None, ROWS)],
)
async def test_wait_for_a_signal(
    parameters: dict[str, Any], delay: timedelta | None, payload: Any, expected: list[dict[str, Any]]
) -> None:
    """What the signal of this node of this run brings takes the place of the items; without it they go on."""
    services = FakeServices(payloads={"run-9/Node": payload})
    call = make_call(wait.TYPE, {"resume": "webhook", **parameters}, ROWS, services=services)
    in_run(call, "run-9")
    [out] = await run_call(wait.TYPE, call)
    assert services.waits == [(delay, "run-9/Node")]
    assert jsons(out) == expected
    if payload is not None:
        assert out[0]["pairedItem"] == [{"item": 0}, {"item": 1}]


def in_run(call: Call, run_id: str) -> None:
    """Make a call one of a run."""
    before = call.scope_of

    def scope_of(index: int, port: int) -> Scope:
        return replace(before(index, port), execution={"id": run_id})

    call.scope_of = scope_of


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"amount": -1}, "parameters.amount must be from 0"),
        ({"amount": 1e9, "unit": "days"}, "parameters.amount must be from 0 to 3660"),
        ({"amount": "soon"}, "parameters.amount must be a number"),
        ({"unit": "={{ $json.unit }}"}, "parameters.unit must be one of seconds"),
        ({"resume": "specificTime", "dateTime": "={{ $json.unit }}"}, "parameters.dateTime must be a time such as"),
        ({"resume": "specificTime", "dateTime": "9999-01-01"}, "parameters.dateTime must be within 3660 days"),
    ],
)
async def test_wait_refuses(parameters: dict[str, Any], message: str) -> None:
    """A delay that makes no sense is an error of the node, and nothing is waited for."""
    services = FakeServices()
    with pytest.raises((NodeError, InvalidInputError), match=message):
        await run_type(wait.TYPE, parameters, [{"unit": "ages"}], services=services)
    assert services.waits == []


def test_split_in_batches() -> None:
    """The ports change places with the version, and the size has another default."""
    kind = split_in_batches.TYPE
    assert kind.shape is Shape.LOOP
    assert (kind.ports({}, 3).outputs, kind.ports({}, 2).outputs) == (("done", "loop"), ("loop", "done"))
    assert split_in_batches.batch_size(Parameters({}), 2) == 10
    with pytest.raises(InvalidInputError, match="batchSize must be a whole number from 1"):
        split_in_batches.batch_size(Parameters({"batchSize": 0}), 3)


def test_sticky_note() -> None:
    """A note has no ports and does not run."""
    assert sticky_note.TYPE.shape is Shape.NOTE
    assert sticky_note.TYPE.ports({}, 1) == Ports(0, ())


FLOW = {"name": "Other", "nodes": [], "connections": {}}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"workflowId": "41"}, execute_workflow.Target("41")),
        ({"workflowId": 41}, execute_workflow.Target("41")),
        ({"source": "database", "workflowId": {"__rl": True, "value": "x", "cachedResultName": "Sub"}},
         execute_workflow.Target("x", "Sub")),
        ({"source": "parameter", "workflowJson": json.dumps(FLOW)}, execute_workflow.Target(flow=FLOW)),
        ({"source": "parameter", "workflowJson": FLOW}, execute_workflow.Target(flow=FLOW)),
        ({"workflowId": {"value": " x ", "cachedResultName": 3}}, execute_workflow.Target("x")),
    ],
)  # fmt: skip
def test_the_flow_that_is_run(parameters: dict[str, Any], expected: execute_workflow.Target) -> None:
    """A flow is known by its id or name, or written out."""
    assert execute_workflow.target_of(parameters) == expected
    assert rules(execute_workflow.TYPE, parameters) == []


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (None, [{"n": 1}, {"n": 2}]),
        ({"value": {"m": "={{ $json.n }}"}}, [{"n": 1, "m": 1}, {"n": 2, "m": 2}]),
        ({"value": {"n": "x"}, "schema": []}, [{"n": "x"}, {"n": "x"}]),
        ({"value": {"m": 3}, "schema": [{"id": "m"}, {"displayName": "k"}, {"id": "n", "removed": True}]},
         [{"m": 3, "k": None}, {"m": 3, "k": None}]),
    ],
)  # fmt: skip
def test_what_the_other_flow_is_given(inputs: dict[str, Any] | None, expected: list[dict[str, Any]]) -> None:
    """Its inputs are put over the fields of the items; a schema leaves nothing else."""
    call = make_call(execute_workflow.TYPE, {"workflowInputs": inputs} if inputs else {}, ROWS)
    assert jsons(execute_workflow.inputs_of(call.items, call.at)) == expected


def test_how_the_other_flow_is_run() -> None:
    """Once with all items unless told, and waited for unless told."""
    assert (execute_workflow.each_by_itself({}), execute_workflow.each_by_itself({"mode": "each"})) == (False, True)
    assert execute_workflow.waits({"options": {"waitForSubWorkflow": False}}) is False


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        (stop_and_error.TYPE, {"errorType": "errorObject", "errorObject": "={{ $json }}"}, None),
        (
            stop_and_error.TYPE,
            {"errorType": "errorObject", "errorObject": "{oops"},
            "errorObject: must be a JSON object",
        ),
        (stop_and_error.TYPE, {"errorType": "code"}, "errorType: must be one of"),
        (wait.TYPE, {"unit": "={{ $json.unit }}"}, None),
        (wait.TYPE, {"resume": "webhook", "limitWaitTime": True, "resumeUnit": "days"}, None),
        (wait.TYPE, {"resume": "webhook"}, None),
        (wait.TYPE, {"resume": "specificTime", "dateTime": "2026-03-05"}, None),
        (wait.TYPE, {"resume": "form"}, 'resume: "form" is not supported: use "webhook"'),
        (wait.TYPE, {"unit": "weeks"}, "unit: must be one of seconds"),
        (wait.TYPE, {"unit": ["days"]}, "unit: must be one of seconds"),
        (wait.TYPE, {"resume": "specificTime"}, "dateTime: must be a time such as"),
        (
            wait.TYPE,
            {"resume": "webhook", "incomingAuthentication": "headerAuth"},
            "incomingAuthentication: must be none",
        ),
        (wait.TYPE, {"resume": "webhook", "responseMode": "lastNode"}, "responseMode: must be onReceived"),
        (wait.TYPE, {"resume": "webhook", "limitWaitTime": True, "limitType": "later"}, "limitType: must be one of"),
        (wait.TYPE, {"resume": "webhook", "limitWaitTime": True, "limitType": "atSpecifiedTime"}, "maxDateAndTime: "),
        (wait.TYPE, {"resume": "webhook", "limitWaitTime": True, "resumeUnit": "ages"}, "resumeUnit: must be one of"),
        (split_in_batches.TYPE, {"batchSize": 5, "options": {"reset": False}}, None),
        (split_in_batches.TYPE, {"batchSize": 0}, "batchSize: must be a whole number from 1"),
        (split_in_batches.TYPE, {"options": {"reset": True}}, "options.reset: is not supported: leave it off"),
        (split_in_batches.TYPE, {"options": {"reset": "={{ true }}"}}, "options.reset: is not supported: leave it off"),
        (execute_workflow.TYPE, {"workflowId": "={{ $json.id }}"}, "workflowId: must be the id or the name of a flow"),
        (execute_workflow.TYPE, {"workflowId": {"__rl": True, "value": "={{ 1 }}"}}, "workflowId: must be the id"),
        (execute_workflow.TYPE, {}, "workflowId: must be the id or the name of a flow"),
        (execute_workflow.TYPE, {"workflowId": "1", "mode": "twice"}, "mode: must be one of once, each"),
        (execute_workflow.TYPE, {"workflowId": "1", "source": "url"}, 'source: "url" is not supported: import that'),
        (execute_workflow.TYPE, {"workflowId": "1", "options": {"waitForSubWorkflow": "={{ 1 }}"}}, "options.waitFor"),
        (execute_workflow.TYPE, {"source": "parameter", "workflowJson": "{oops"}, "workflowJson: must be the JSON"),
        (execute_workflow.TYPE, {"source": "parameter", "workflowJson": "{}"}, "workflowJson: must be the JSON"),
        (execute_workflow.TYPE, {"source": "parameter", "workflowJson": "={{ 1 }}"}, "workflowJson: must be the JSON"),
    ],
)
def test_checks(kind: Any, parameters: dict[str, Any], expected: str | None) -> None:
    """What cannot be done is told before anything runs, with what to do instead."""
    found = rules(kind, parameters)
    assert len(found) == (expected is not None), found
    assert expected is None or found[0].startswith(expected)
