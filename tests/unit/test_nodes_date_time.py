"""The node type of dates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headrace.model.errors import InvalidInputError
from headrace.nodes import date_time
from headrace.nodes.base import NodeError
from headrace.nodes.date_patterns import read_date
from tests.unit.node_calls import jsons, make_call, rules, run_call

BERLIN = ZoneInfo("Europe/Berlin")


async def results(parameters: dict[str, Any], *rows: dict[str, Any], zone: Any = BERLIN) -> list[dict[str, Any]]:
    """Return what the operation makes of rows, in a zone."""
    call = make_call(date_time.TYPE, parameters, rows or [{}])
    call.zone = zone
    return jsons((await run_call(date_time.TYPE, call))[0])


def op(operation: str, **parameters: Any) -> dict[str, Any]:
    """Return parameters of an operation."""
    return {"operation": operation, "outputFieldName": "x", **parameters}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (op("getCurrentDate"), "2026-03-05T13:30:00.000+01:00"),
        (op("getCurrentDate", includeTime=False), "2026-03-05T00:00:00.000+01:00"),
        (op("getCurrentDate", options={"timezone": "Asia/Tokyo"}), "2026-03-05T21:30:00.000+09:00"),
        (op("addToDate", magnitude="2026-01-31", duration=1, timeUnit="months"), "2026-02-28T00:00:00.000+01:00"),
        (op("addToDate", magnitude="2026-03-28T12:00:00", duration=1), "2026-03-29T12:00:00.000+02:00"),
        (op("addToDate", magnitude="2026-03-28T12:00:00", duration="24", timeUnit="hours"),
         "2026-03-29T13:00:00.000+02:00"),
        (op("addToDate", magnitude="2026-03-05T10:00:00Z", duration=1, timeUnit="quarters"),
         "2026-06-05T11:00:00.000+02:00"),
        (op("subtractFromDate", magnitude=1772704800, duration=90, timeUnit="minutes"),
         "2026-03-05T09:30:00.000+01:00"),
        (op("subtractFromDate", magnitude="1772704800000", duration=1, timeUnit="years"),
         "2025-03-05T11:00:00.000+01:00"),
        (op("roundDate", date="2026-03-05T10:20:30Z"), "2026-03-01T00:00:00.000+01:00"),
        (op("roundDate", date="2026-03-05T10:20:30Z", toNearest="week"), "2026-03-02T00:00:00.000+01:00"),
        (op("roundDate", date="2026-03-05T10:20:30Z", toNearest="minute"), "2026-03-05T11:20:00.000+01:00"),
        (op("roundDate", date="2026-03-05T10:20:30Z", mode="roundUp"), "2026-04-01T00:00:00.000+02:00"),
        (op("extractDate", date="2026-03-05T23:30:00Z", part="day"), 6),
        (op("extractDate", date="2026-03-05"), 3),
        (op("extractDate", date="2026-03-05", part="week"), 10),
        (op("formatDate", date="2026-03-05T10:00:00Z"), "03/05/2026"),
        (op("formatDate", date="2026-03-05T23:30:00Z", format="yyyy-MM-dd"), "2026-03-05"),
        (op("formatDate", date="2026-03-05T23:30:00Z", format="yyyy-MM-dd", options={"timezone": True}), "2026-03-06"),
        (op("formatDate", date="2026-03-05T10:00:00", format="X"), "1772701200"),
        (op("formatDate", date="2026-03-05", format="custom", customFormat="cccc, d. MMMM"), "Thursday, 5. March"),
        (op("formatDate", date="05.03.26 8:07 PM", format="custom", customFormat="yyyy-MM-dd HH:mm",
            options={"fromFormat": "dd.MM.yy h:mm a"}), "2026-03-05 20:07"),
        (op("formatDate", date=None), None),
        (op("getTimeBetweenDates", startDate="2026-03-01", endDate="2026-03-05T12:00"), {"days": 4.5}),
        (op("getTimeBetweenDates", startDate="2026-01-31", endDate="2026-03-02T06:30", units=["day", "month", "hour"]),
         {"months": 1, "days": 2, "hours": 6.5}),
        (op("getTimeBetweenDates", startDate="2026-03-05", endDate="2026-03-01", units="week, days"),
         {"weeks": 0, "days": -4}),
        (op("getTimeBetweenDates", startDate="2026-03-28T12:00", endDate="2026-03-29T12:00", units=["hour"]),
         {"hours": 23}),
        (op("getTimeBetweenDates", startDate="2025-01-01", endDate="2026-03-03T04:05:06.250",
            units=["year", "quarter", "month", "day", "hour", "minute", "second", "millisecond"],
            options={"isoString": True}), "P1Y2M2DT4H5M6.25S"),
        (op("getTimeBetweenDates", startDate="2026-03-01", endDate="2026-03-01", options={"isoString": True}), "PT0S"),
    ],
)  # fmt: skip
async def test_operations(parameters: dict[str, Any], expected: Any) -> None:
    """Each operation goes by the calendar for days and more, by the clock for less, in the zone of the flow."""
    assert await results(parameters) == [{"x": expected}]


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ({}, "currentDate"),
        ({"operation": "addToDate"}, "newDate"),
        ({"operation": "subtractFromDate"}, "newDate"),
        ({"operation": "formatDate"}, "formattedDate"),
        ({"operation": "roundDate"}, "roundedDate"),
        ({"operation": "extractDate"}, "datePart"),
        ({"operation": "getTimeBetweenDates"}, "timeDifference"),
    ],
)
async def test_names_of_results(operation: dict[str, Any], name: str) -> None:
    """A result has a name of its operation unless another is given."""
    day = "2026-03-05"
    [found] = await results({"magnitude": day, "date": day, "startDate": day, "endDate": day, **operation})
    assert list(found) == [name]


async def test_input_fields_are_kept() -> None:
    """The item's own fields and files stay if that is wanted, and it is paired with where it came from."""
    item = {"json": {"day": "2026-03-05", "n": 1}, "binary": {"data": {"id": "b"}}, "pairedItem": {"item": 9}}
    parameters = {"operation": "extractDate", "date": "={{ $json.day }}", "options": {"includeInputFields": True}}
    call = make_call(date_time.TYPE, parameters, [{"day": "2026-01-01"}, item])
    [out] = await run_call(date_time.TYPE, call)
    assert jsons(out) == [{"day": "2026-01-01", "datePart": 1}, {"day": "2026-03-05", "n": 1, "datePart": 3}]
    assert out[1]["binary"] == {"data": {"id": "b"}}
    assert [one["pairedItem"] for one in out] == [{"item": 0}, {"item": 1}]


async def test_one_date_that_is_none() -> None:
    """In a call that is not strict the item fails by itself."""
    parameters = {"operation": "extractDate", "date": "={{ $json.day }}"}
    call = make_call(date_time.TYPE, parameters, [{"day": "soon"}, {"day": "2026-03-05"}], strict=False)
    assert jsons((await run_call(date_time.TYPE, call))[0]) == [{"datePart": 3}]
    [(item, error)] = call.failed
    assert item["json"] == {"day": "soon"}
    assert "parameters.date must be a date such as 2026-03-05" in str(error)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (op("addToDate"), "parameters.magnitude must be a date"),
        (op("addToDate", magnitude=True), "parameters.magnitude must be a date"),
        (op("addToDate", magnitude=1e300), "parameters.magnitude must be a date"),
        (op("addToDate", magnitude="2026-03-05", timeUnit="decades"), "parameters.timeUnit must be one of years"),
        (op("addToDate", magnitude="2026-03-05", duration=1e9, timeUnit="years"), "the date leads beyond the years"),
        (op("formatDate", date="2026-03-05", format="QQ"), "the date does not know `QQ`"),
        (
            op("formatDate", date="tomorrow", options={"fromFormat": "dd.MM"}),
            "'tomorrow' does not have the form 'dd.MM'",
        ),
        (
            op("getTimeBetweenDates", startDate="2026-03-05", endDate="2026-03-05", units=["eon"]),
            "parameters.units must",
        ),
        (op("getCurrentDate", options={"timezone": "Mars/Base"}), "tz must be a time zone"),
        (op("roundDate", date="2026-03-05", toNearest="decade"), "parameters.toNearest must be one of year"),
    ],
)
async def test_what_cannot_be_done(parameters: dict[str, Any], message: str) -> None:
    """A date, a unit or a pattern that means nothing is an error that names it."""
    with pytest.raises((NodeError, InvalidInputError), match=message):
        await results(parameters)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("20260305", "yyyyMMdd", "2026-03-05T00:00:00+01:00"),
        ("5 Mar 2026", "d MMM yyyy", "2026-03-05T00:00:00+01:00"),
        ("Thursday, March 5 61", "cccc, LLLL d yy", "1961-03-05T00:00:00+01:00"),
        ("12:05 am, 05/03/26", "hh:mm a, dd/MM/yy", "2026-03-05T00:05:00+01:00"),
        ("2026-03-05 at 10:00:01.250 -0530", "yyyy-MM-dd 'at' HH:mm:ss.SSS ZZZ", "2026-03-05T10:00:01.250000-05:30"),
        ("2026-03-05T10Z", "yyyy-MM-dd'T'HZ", "2026-03-05T10:00:00+00:00"),
        ("1772704800", "X", "2026-03-05T11:00:00+01:00"),
        ("1772704800500", "x", "2026-03-05T11:00:00.500000+01:00"),
    ],
)
def test_read_date(text: str, pattern: str, expected: str) -> None:
    """A date is read by the letters it is written with, in the zone it has or else in the given one."""
    assert read_date(text, pattern, BERLIN) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("text", "pattern", "message"),
    [
        ("31.02.2026", "dd.MM.yyyy", "there is no date '31.02.2026'"),
        ("13:00 pm 2026", "hh:mm a yyyy", "there is no date"),
        ("5 Foo 2026", "d MMM yyyy", "there is no date"),
        ("05.03.", "dd.MM.", "there is no date"),
        ("2026", "yyyy.MM", "does not have the form"),
        ("2026", "yyyyQ", "'Q' means nothing"),
        ("x", "yyyy 'at'", "does not have the form"),
        ("2026", "yyyy yyyy", "'yyyy' stands there twice"),
        ("1" * 90 + "x", "d''" * 60, "'d' stands there twice"),
        ("9" * 500, "y" * 500, "means nothing"),
    ],
)
def test_read_date_refuses(text: str, pattern: str, message: str) -> None:
    """What does not fit, or is no day of the calendar, is an error that says so."""
    with pytest.raises(NodeError, match=message):
        read_date(text, pattern, UTC)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (op("formatDate", format="custom"), None),
        ({"operation": "guess"}, "operation: must be one of getCurrentDate"),
        ({"operation": "={{ 1 }}"}, "operation: must be written out"),
        (op("roundDate", mode="nearest"), "mode: must be one of roundDown, roundUp"),
    ],
)
def test_checks(parameters: dict[str, Any], expected: str | None) -> None:
    """What cannot be done is told before anything runs."""
    found = rules(date_time.TYPE, parameters)
    assert len(found) == (expected is not None), found
    assert expected is None or found[0].startswith(expected)


def test_the_first_version() -> None:
    """Version 1 had other parameters: it is told which ones to use."""
    [found] = rules(date_time.TYPE, {"action": "calculate"}, version=1)
    assert found.startswith("action: is of typeVersion 1: use typeVersion 2")
