"""dateTime: dates that are made, moved, rounded, compared, taken apart and written.

A date is an ISO text, one of some other usual forms, or a number of seconds or milliseconds since 1970. One without a
zone is meant in the zone of the flow. formatDate leaves a date in the zone it is written with, unless
`options.timezone` is true; the other operations give dates in the zone of the flow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault as DateFault
from headrace.model.expressions.functions.dates import MEMBERS
from headrace.model.expressions.functions.patterns import formatted
from headrace.model.expressions.functions.spans import moved, start_of
from headrace.model.expressions.moments import Moment
from headrace.model.expressions.scope import Scope
from headrace.model.schedule import find_zone
from headrace.nodes import checking
from headrace.nodes.base import Call, Fault, Item, Items, Named, NodeError, ours
from headrace.nodes.date_patterns import read_date
from headrace.nodes.date_spans import UNITS, duration_text, time_between
from headrace.nodes.moments import moment_of
from headrace.nodes.parameters import Parameters

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?|-?\.[0-9]+")
_PARTS = ("year", "month", "week", "day", "hour", "minute", "second")
#: Numbers below are seconds, others milliseconds.
_MILLISECONDS_FROM = 10**12
_Operation = Callable[[Parameters, tzinfo, datetime], Any]


class DateTimeType(Named):
    """One operation for each item; the item becomes its result, beside its own fields if these are wanted."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return an operation that there is not; version 1 had other ones."""
        if version < 2:
            return [Fault("action", "is of typeVersion 1: use typeVersion 2, with operation formatDate or addToDate")]
        found = checking.one_of(parameters, "operation", tuple(_OPERATIONS), default="getCurrentDate", instead={})
        if checking.written(parameters, "operation") == "roundDate":
            found += checking.one_of(parameters, "mode", ("roundDown", "roundUp"), default="roundDown", instead={})
        return found

    async def run(self, call: Call) -> list[Items]:
        """Return an item with the result for each."""
        now = await call.services.now()
        return [call.each(lambda item, at: _one(item, at, call.zone, now))]


def _one(item: Item, at: Parameters, zone: tzinfo, now: datetime) -> Item:
    operation, name = _OPERATIONS[at.one_of("operation", tuple(_OPERATIONS), "getCurrentDate")]
    try:
        value = operation(at, zone, now)
    except DateFault as fault:
        raise NodeError(f"the date {fault}") from None
    made: Item = {"json": {at.text("outputFieldName", name) or name: value}}
    if not at.flag("options.includeInputFields"):
        return made
    files = {"binary": item["binary"]} if "binary" in item else {}
    return {"json": {**item.get("json", {}), **made["json"]}, **files}


def date_of(value: Any, zone: tzinfo, field: str) -> datetime:
    """Return the date that a value is, in the zone it is written with. Raises InvalidInputError.

    >>> from datetime import UTC
    >>> date_of("1772704800", UTC, "date").isoformat()
    '2026-03-05T10:00:00+00:00'
    """
    number = value
    if isinstance(value, str) and len(value) <= 20 and _NUMBER.fullmatch(value.strip()):
        # Four digits are a year, not the first hour of 1970.
        number = float(value) if len(value.strip()) > 4 else value
    if isinstance(number, int | float) and not isinstance(number, bool):
        found = moment_of(number if abs(number) >= _MILLISECONDS_FROM else number * 1000, zone)
        return _known(found, value, field).astimezone(zone)
    return _known(moment_of(value, zone), value, field)


def _known(found: datetime | None, value: Any, field: str) -> datetime:
    if found is None:
        rule = "must be a date such as 2026-03-05 or 2026-03-05T12:30:00Z, or a number of seconds or milliseconds"
        raise InvalidInputError(field, rule, value)
    return found


def _moment(at: Parameters, path: str, zone: tzinfo) -> Moment:
    return Moment(date_of(at.get(path), zone, f"{at.field}.{path}").astimezone(zone))


def _current(at: Parameters, zone: tzinfo, now: datetime) -> str:
    name = at.text("options.timezone")
    moment = Moment(now.astimezone(find_zone(name) if name else zone))
    return moment.iso if at.flag("includeTime", True) else start_of(moment, "days").iso


def _moved(sign: int) -> _Operation:
    def move(at: Parameters, zone: tzinfo, now: datetime) -> str:
        unit = at.one_of("timeUnit", UNITS, "days")
        return moved(_moment(at, "magnitude", zone), {unit: at.number("duration", 0)}, sign).iso

    return move


def _format(at: Parameters, zone: tzinfo, now: datetime) -> str | None:
    value = at.get("date")
    if value is None:
        return None
    pattern = at.text("options.fromFormat")
    found = read_date(at.text("date"), pattern, zone) if pattern else date_of(value, zone, f"{at.field}.date")
    form = at.text("format", "MM/dd/yyyy")
    written = found.astimezone(zone) if at.flag("options.timezone") else found
    return formatted(Run(Scope()), written, at.text("customFormat") if form == "custom" else form)


def _round(at: Parameters, zone: tzinfo, now: datetime) -> str:
    moment = _moment(at, "date", zone)
    if at.one_of("mode", ("roundDown", "roundUp"), "roundDown") == "roundDown":
        return start_of(moment, at.one_of("toNearest", _PARTS, "month") + "s").iso
    unit = at.one_of("to", _PARTS, "month") + "s"
    return start_of(moved(moment, {unit: 1}, 1), unit).iso


def _extract(at: Parameters, zone: tzinfo, now: datetime) -> int:
    part = at.one_of("part", _PARTS, "month")
    return int(MEMBERS["weekNumber" if part == "week" else part](_moment(at, "date", zone).at))


def _between(at: Parameters, zone: tzinfo, now: datetime) -> dict[str, float] | str:
    start, end = _moment(at, "startDate", zone), _moment(at, "endDate", zone)
    asked = {f"{name.removesuffix('s')}s" for name in at.names("units") or ["day"]}
    if not asked <= set(UNITS):
        raise InvalidInputError(f"{at.field}.units", f"must be some of {', '.join(UNITS)}", sorted(asked))
    found = time_between(start, end, asked)
    return duration_text(found) if at.flag("options.isoString") else found


#: By operation: what it does, and the field that its result is put into unless another is named.
_OPERATIONS: Mapping[str, tuple[_Operation, str]] = {
    "getCurrentDate": (_current, "currentDate"),
    "addToDate": (_moved(1), "newDate"),
    "subtractFromDate": (_moved(-1), "newDate"),
    "formatDate": (_format, "formattedDate"),
    "roundDate": (_round, "roundedDate"),
    "getTimeBetweenDates": (_between, "timeDifference"),
    "extractDate": (_extract, "datePart"),
}

TYPE = DateTimeType(
    "dateTime",
    ours("dateTime", "n8n-nodes-base.dateTime"),
    (2, 2),
    "makes, moves, compares and writes dates",
)
