"""Node types that begin a run: by hand, by a request, by the clock, by another flow, by an error."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headrace.engine.cron import Timetable
from headrace.model.errors import InvalidInputError
from headrace.model.schedule import CronRule
from headrace.nodes import cron, error_trigger, execute_workflow_trigger, interval, manual, schedule, webhook
from headrace.nodes.base import NodeError, Shape
from tests.unit.node_calls import jsons, make_call, rules, run_call, run_type

REQUEST = {"headers": {}, "params": {}, "query": {}, "body": {}}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(manual.TYPE, {}), (webhook.TYPE, REQUEST), (execute_workflow_trigger.TYPE, {})],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_what_a_run_begins_with(kind: Any, expected: dict[str, Any]) -> None:
    """A trigger gives what the run was given, its files too; a run that was given nothing has an empty item."""
    item = {"json": {"body": {"n": 1}}, "binary": {"data": {"id": "blob-1"}}}
    assert kind.shape is Shape.TRIGGER
    assert await run_type(kind, {}, given=[item]) == [[item]]
    assert await run_type(kind, {}) == [[{"json": expected}]]


async def test_error_trigger() -> None:
    """An error workflow is given the run that failed; started by hand it has an example of the same form."""
    given = [{"execution": {"id": "9"}, "workflow": {"id": "2", "name": "x"}}]
    assert jsons((await run_type(error_trigger.TYPE, {}, given=given))[0]) == given
    [[example]] = await run_type(error_trigger.TYPE, {})
    assert set(example["json"]["execution"]) == {"id", "url", "retryOf", "error", "lastNodeExecuted", "mode"}
    assert set(example["json"]["workflow"]) == {"id", "name"}
    assert await run_type(error_trigger.TYPE, {}, given=[{}]) == [[example]]


async def test_schedule_tells_the_time_of_the_flow() -> None:
    """Without items the run begins with its time, in the zone of the flow, in the words that flows look for."""
    call = make_call(schedule.TYPE, {}, now=datetime(2026, 7, 1, 22, 5, 9, tzinfo=UTC))
    call.zone = ZoneInfo("Asia/Tokyo")
    [[item]] = await run_call(schedule.TYPE, call)
    assert item["json"] == {
        "timestamp": "2026-07-02T07:05:09.000+09:00",
        "Readable date": "July 2nd 2026, 7:05:09 am",
        "Readable time": "7:05:09 am",
        "Day of week": "Thursday",
        "Year": "2026",
        "Month": "July",
        "Day of month": "02",
        "Hour": "07",
        "Minute": "05",
        "Second": "09",
        "Timezone": "Asia/Tokyo (UTC+09:00)",
    }
    assert jsons((await run_type(schedule.TYPE, {}, given=[{"n": 1}]))[0]) == [{"n": 1}]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2026, 1, 1, 0, 0, tzinfo=UTC), "January 1st 2026, 12:00:00 am"),
        (datetime(2026, 2, 11, 12, 0, tzinfo=UTC), "February 11th 2026, 12:00:00 pm"),
        (datetime(2026, 12, 23, 13, 7, tzinfo=UTC), "December 23rd 2026, 1:07:00 pm"),
    ],
)
def test_readable_dates(moment: datetime, expected: str) -> None:
    """Days are ordinal numbers, and noon is 12 pm."""
    assert schedule.moment_fields(moment)["Readable date"] == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, "0 0 * * *"),
        ({"field": "minutes"}, "*/5 * * * *"),
        ({"field": "minutes", "minutesInterval": 1}, "* * * * *"),
        ({"field": "seconds", "secondsInterval": 120}, "*/2 * * * *"),
        ({"field": "hours"}, "0 * * * *"),
        ({"field": "hours", "hoursInterval": 6, "triggerAtMinute": 20}, "20 */6 * * *"),
        ({"field": "days", "triggerAtHour": 7, "triggerAtMinute": 30}, "30 7 * * *"),
        ({"field": "days", "daysInterval": 3}, "0 0 */3 * *"),
        ({"field": "weeks"}, "0 0 * * 0"),
        ({"field": "weeks", "triggerAtDay": [1, 5], "triggerAtHour": 9}, "0 9 * * 1,5"),
        ({"field": "weeks", "triggerAtDay": []}, "0 0 * * *"),
        ({"field": "months", "triggerAtDayOfMonth": 15, "triggerAtHour": "6"}, "0 6 15 * *"),
        ({"field": "months", "monthsInterval": 3}, "0 0 1 */3 *"),
        ({"field": "cronExpression", "expression": "15  8-18/2 * * MON-FRI"}, "15 8-18/2 * * MON-FRI"),
        ({"field": "cronExpression", "expression": "0 15 8 * * 1"}, "15 8 * * 1"),
    ],
)
def test_crons(rule: dict[str, Any], expected: str) -> None:
    """Each rule is a cron expression of five fields that our scheduler takes."""
    parameters = {"rule": {"interval": [rule, {"field": "hours"}]}}
    assert schedule.crons(parameters) == [expected, "0 * * * *"]
    assert rules(schedule.TYPE, parameters) == []
    assert Timetable(CronRule(expected)).upcoming(datetime(2026, 1, 1, tzinfo=UTC), 2)


@pytest.mark.parametrize("parameters", [{}, {"rule": {}}, {"rule": {"interval": []}}])
def test_crons_without_rules(parameters: dict[str, Any]) -> None:
    """A schedule without rules fires once a day."""
    assert schedule.crons(parameters) == ["0 0 * * *"]


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        (cron.TYPE, {"triggerTimes": {"item": [{}]}}, ["0 14 * * *"]),
        (cron.TYPE, {"triggerTimes": {"item": [{"mode": "everyMinute"}, {"mode": "everyHour", "minute": 5}]}},
         ["* * * * *", "5 * * * *"]),
        (cron.TYPE, {"triggerTimes": {"item": [{"mode": "everyX", "value": 3}]}}, ["0 */3 * * *"]),
        (cron.TYPE, {"triggerTimes": {"item": [{"mode": "everyX", "value": 3, "unit": "minutes"}]}}, ["*/3 * * * *"]),
        (cron.TYPE, {"triggerTimes": {"item": [{"mode": "everyWeek", "hour": 8, "weekday": "5"}]}}, ["0 8 * * 5"]),
        (cron.TYPE, {"triggerTimes": {"item": [{"mode": "everyMonth", "dayOfMonth": 2}]}}, ["0 14 2 * *"]),
        (cron.TYPE, {"triggerTimes": {"item": [{"mode": "custom", "cronExpression": "0 */10 * * * *"}]}},
         ["*/10 * * * *"]),
        (interval.TYPE, {"unit": "minutes"}, ["* * * * *"]),
        (interval.TYPE, {"interval": 4, "unit": "hours"}, ["0 */4 * * *"]),
        (interval.TYPE, {"interval": 60}, ["* * * * *"]),
    ],
)  # fmt: skip
def test_older_schedules(kind: schedule.ScheduleType, parameters: dict[str, Any], expected: list[str]) -> None:
    """The two older triggers of times have rules of another form."""
    assert kind.crons(parameters) == expected
    assert rules(kind, parameters) == []


EVERY = "rule.interval[1]"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"field": "seconds"}, f"{EVERY}.secondsInterval: must be whole minutes below an hour"),
        ({"field": "seconds", "secondsInterval": 7200}, f"{EVERY}.secondsInterval: must be whole minutes"),
        ({"field": "minutes", "minutesInterval": 90}, f"{EVERY}.minutesInterval: must be a whole number from 1 to 59"),
        ({"field": "minutes", "minutesInterval": "={{ 5 }}"}, f"{EVERY}.minutesInterval: must be a whole number"),
        ({"field": "weeks", "weeksInterval": 2}, f"{EVERY}.weeksInterval: must be 1, since cron counts no weeks"),
        ({"field": "weeks", "triggerAtDay": ["Monday"]}, f"{EVERY}.triggerAtDay: must be numbers from 0 (Sunday)"),
        ({"field": "years"}, f"{EVERY}.field: must be one of seconds, minutes"),
        ({"field": "cronExpression", "expression": "30 0 9 * * *"}, f"{EVERY}.expression: must be a cron expression"),
        ({"field": "cronExpression"}, f"{EVERY}.expression: must be a cron expression of five fields"),
        ({"field": "cronExpression", "expression": "={{ 1 }} * * *"}, f"{EVERY}.expression: must be a cron"),
    ],
)
def test_schedules_that_cannot_be_kept(rule: dict[str, Any], expected: str) -> None:
    """A rule that cron does not know is named with its place; the others are looked at too."""
    broken = {"field": "days", "triggerAtHour": 24}
    found = rules(schedule.TYPE, {"rule": {"interval": [{}, rule, broken]}})
    assert len(found) == 2
    assert found[0].startswith(expected)
    assert found[1].startswith("rule.interval[2].triggerAtHour: must be a whole number from 0 to 23, got 24")
    with pytest.raises(InvalidInputError):
        schedule.crons({"rule": {"interval": [{}, rule]}})


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        (schedule.TYPE, {"rule": {"interval": ["daily"]}}, "rule.interval: must be a list of objects"),
        (schedule.TYPE, {"rule": []}, "rule: must be an object"),
        (cron.TYPE, {}, "triggerTimes.item: must have a time at least"),
        (interval.TYPE, {}, "interval: must be whole minutes below an hour"),
    ],
)
def test_schedules_of_a_wrong_form(kind: Any, parameters: dict[str, Any], expected: str) -> None:
    """Parameters of another form are told as such."""
    [found] = rules(kind, parameters)
    assert found.startswith(expected)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"path": "orders/new"}, webhook.Hook("GET", "orders/new")),
        ({"path": "/o/:id", "httpMethod": "POST", "authentication": "headerAuth"},
         webhook.Hook("POST", "o/:id", "headerAuth")),
        ({"path": "o", "responseMode": "lastNode", "responseData": "allEntries", "responseCode": 201},
         webhook.Hook("GET", "o", answers="lastNode", data="allEntries", status=201)),
        ({"path": "o", "options": {"responseCode": {"values": {"responseCode": 202}}, "responseData": "thanks"}},
         webhook.Hook("GET", "o", status=202, body="thanks")),
        ({"path": "o", "options": {
            "responseCode": {"values": {"responseCode": "customCode", "customCode": 418}}, "noResponseBody": True,
            "responseHeaders": {"entries": [{"name": "X-Kind", "value": "tea"}, {"name": ""}]}}},
         webhook.Hook("GET", "o", status=418, headers=(("X-Kind", "tea"),), body="")),
    ],
)  # fmt: skip
def test_hooks(parameters: dict[str, Any], expected: webhook.Hook) -> None:
    """What the service has to listen for and to answer is read from the parameters of each version."""
    assert rules(webhook.TYPE, parameters) == []
    assert webhook.hook_of(parameters) == expected


def answers(*headers: tuple[str, Any], status: Any = None, custom: Any = None) -> dict[str, Any]:
    """Return parameters of a webhook that answers so."""
    entries = [{"name": name, "value": value} for name, value in headers]
    chosen = {"responseCode": "customCode" if custom is not None else status, "customCode": custom}
    options = {"responseHeaders": {"entries": entries}, "responseCode": {"values": chosen}}
    return {"path": "o", "options": options}


HEADER = "options.responseHeaders.entries[1]"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"path": "o", "responseCode": 100}, "responseCode: must be a whole number from 200 to 599, got 100"),
        ({"path": "o", "responseCode": "yes"}, "responseCode: must be a whole number from 200 to 599, got 'yes'"),
        (answers(status=101), "options.responseCode.values.responseCode: must be a whole number from 200"),
        (answers(custom=600), "options.responseCode.values.customCode: must be a whole number from 200 to 599"),
        ({"path": "o", "options": {"noResponseBody": "maybe"}}, "options.noResponseBody: must be true or false"),
        (answers(("a", "b"), ("x y", "1")), f"{HEADER}.name: must be the name of a header"),
        (answers(("a", "b"), ("x\r\ny", "1")), f"{HEADER}.name: must be the name of a header"),
        (answers(("a", "b"), ("é", "1")), f"{HEADER}.name: must be the name of a header"),
        (answers(("a", "b"), ("Content-Length", "3")), f"{HEADER}.name: must not be one that says how an answer is"),
        (answers(("a", "b"), ("transfer-encoding", "chunked")), f"{HEADER}.name: must not be one that says how"),
        (answers(("a", "b"), ("x", "1\r\nset-cookie: a=b")), f"{HEADER}.value: must be Latin-1 text"),
        (answers(("a", "b"), ("x", "a\0b")), f"{HEADER}.value: must be Latin-1 text"),
        (answers(("a", "b"), ("x", "€")), f"{HEADER}.value: must be Latin-1 text"),
        (answers(("a", "b"), ("x", [1])), f"{HEADER}.value: must be a text"),
        ({"path": "o", "options": {"responseHeaders": {"entries": [7]}}},
         "options.responseHeaders.entries[0]: must be an object"),
    ],
)  # fmt: skip
def test_answers_that_http_cannot_carry(parameters: dict[str, Any], expected: str) -> None:
    """They are told before anything listens, and what was stored before is not listened to."""
    [found] = rules(webhook.TYPE, parameters)
    assert found.startswith(expected)
    with pytest.raises(InvalidInputError):
        webhook.hook_of(parameters)


def test_headers_that_http_can_carry() -> None:
    """Spaces around a value are none of it; numbers are texts."""
    parameters = answers(("X-Kind", " thé\t"), ("x-count", 7), status=404)
    assert rules(webhook.TYPE, parameters) == []
    made = webhook.hook_of(parameters)
    assert (made.status, made.headers) == (404, (("X-Kind", "thé"), ("x-count", "7")))


def typed(*rows: tuple[str, str], **options: Any) -> dict[str, Any]:
    """Return parameters that name fields and their types."""
    values = [{"name": name, "type": kind} for name, kind in rows]
    return {"inputSource": "workflowInputs", "workflowInputs": {"values": values}, "inputOptions": options}


@pytest.mark.parametrize(
    ("parameters", "version", "expected"),
    [
        ({}, 1, {"n": "7", "extra": [1]}),
        ({"inputSource": "passthrough"}, 1.1, {"n": "7", "extra": [1]}),
        (typed(("n", "string"), ("gone", "number")), 1.1, {"n": "7", "gone": None}),
        (typed(("n", "any"), ("extra", "array")), 1.1, {"n": "7", "extra": [1]}),
        (typed(("n", "number"), attemptToConvertTypes=True), 1.1, {"n": 7}),
        (typed(("extra", "string"), attemptToConvertTypes=True), 1.1, {"extra": "[1]"}),
        (
            typed(("yes", "boolean"), ("list", "array"), ("none", "object"), attemptToConvertTypes=True),
            1.1,
            {"yes": True, "list": [2], "none": None},
        ),
        (typed(("n", "number"), ignoreTypeErrors=True), 1.1, {"n": "7"}),
        ({"inputSource": "jsonExample", "jsonExample": '{"n": "a", "x": null}'}, 1.1, {"n": "7", "x": None}),
    ],
)
async def test_inputs_of_a_called_flow(parameters: dict[str, Any], version: float, expected: dict[str, Any]) -> None:
    """A flow is given what it asks for: null where there is nothing, other types only if that is wanted."""
    given = [{"n": "7", "extra": [1]} | ({"yes": "TRUE", "list": "[2]"} if "yes" in expected else {})]
    [out] = await run_type(execute_workflow_trigger.TYPE, parameters, given=given, version=version)
    assert jsons(out) == [expected]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (typed(("n", "number")), "the field 'n' must be of type number, got string: 7"),
        (typed(("yes", "number")), "the field 'yes' must be of type number, got boolean: True"),
        (typed(("n", "boolean"), attemptToConvertTypes=True), "the field 'n' must be of type boolean, got string"),
        (typed(("n", "object"), attemptToConvertTypes=True), "the field 'n' must be of type object, got string"),
    ],
)
async def test_inputs_of_a_wrong_type(fields: dict[str, Any], message: str) -> None:
    """A value of another type ends the run that was called."""
    with pytest.raises(NodeError, match=message):
        await run_type(execute_workflow_trigger.TYPE, fields, given=[{"n": "7", "yes": True}])


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        (webhook.TYPE, {}, "path: must be a path"),
        (webhook.TYPE, {"path": "={{ 1 }}"}, "path: must be a path"),
        (webhook.TYPE, {"path": "o/../up"}, "path: must be a path"),
        (webhook.TYPE, {"path": "o/..."}, "path: must be a path"),
        (webhook.TYPE, {"path": ".hidden/o.json"}, None),
        (webhook.TYPE, {"path": "a b"}, "path: must be a path"),
        (webhook.TYPE, {"path": "o", "httpMethod": "TRACE"}, "httpMethod: must be one of GET"),
        (webhook.TYPE, {"path": "o", "httpMethod": ["GET"], "multipleMethods": True}, "multipleMethods: is not"),
        (webhook.TYPE, {"path": "o", "responseMode": "responseNode"}, 'responseMode: "responseNode" is not supported'),
        (webhook.TYPE, {"path": "o", "responseData": "firstEntryBinary"}, 'responseData: "firstEntryBinary" is not'),
        (webhook.TYPE, {"path": "o", "authentication": "jwtAuth"}, 'authentication: "jwtAuth" is not supported: use'),
        (webhook.TYPE, {"path": "o", "options": {"ipWhitelist": "10.0.0.1"}}, "options.ipWhitelist: is not supp"),
        (webhook.TYPE, {"path": "o", "options": {"rawBody": True}}, "options.rawBody: is not supported: use"),
        (webhook.TYPE, {"path": "o", "options": {"responseData": "={{ 1 }}"}}, "options.responseData: must be written"),
        (webhook.TYPE, {"path": "o", "options": {"responseHeaders": {"entries": [{"name": "={{ 1 }}"}]}}},
         "options.responseHeaders: must be written out"),
        (execute_workflow_trigger.TYPE, {"inputSource": "form"}, "inputSource: must be one of"),
        (execute_workflow_trigger.TYPE, typed(("n", "date")), "workflowInputs.values: must have types of any"),
        (execute_workflow_trigger.TYPE, {"inputSource": "jsonExample", "jsonExample": "{oops"}, "jsonExample: must be"),
        (execute_workflow_trigger.TYPE, {"inputSource": "jsonExample", "jsonExample": "[]"}, "jsonExample: must be"),
    ],
)  # fmt: skip
def test_checks(kind: Any, parameters: dict[str, Any], expected: str | None) -> None:
    """What cannot be done is told before anything runs, with what to do instead."""
    found = rules(kind, parameters)
    assert len(found) == (expected is not None), found
    assert expected is None or found[0].startswith(expected)
