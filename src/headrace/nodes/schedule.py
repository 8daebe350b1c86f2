"""schedule: begins runs at given times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.nodes import checking
from headrace.nodes.base import Call, Fault, Items, Named, Shape, ours
from headrace.nodes.parameters import Parameters
from headrace.nodes.schedule_rules import rule_cron, rule_entries

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}


@dataclass(frozen=True, slots=True)
class ScheduleType(Named):
    """Begins a run at each of its times; gives what the run was started with, or the time of the run."""

    entries: Callable[[Mapping[str, Any]], Iterator[Parameters]] = rule_entries
    cron_of: Callable[[Parameters], str] = rule_cron

    def crons(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return a cron expression of five fields for each rule. Raises InvalidInputError naming the rule."""
        return [self.cron_of(entry) for entry in self.entries(parameters)]

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return the rules that cannot be kept."""
        faults: list[Fault] = []
        try:
            for entry in self.entries(parameters):
                faults += self._check(entry)
        except InvalidInputError as error:
            faults.append(_fault(error))
        return faults

    def _check(self, entry: Parameters) -> list[Fault]:
        try:
            self.cron_of(entry)
        except InvalidInputError as error:
            return [_fault(error)]
        return []

    async def run(self, call: Call) -> list[Items]:
        """Return the items of the run, or one that tells its time in the zone of the flow."""
        if call.given:
            return [call.given]
        moment = await call.services.now()
        return [[{"json": moment_fields(moment.astimezone(call.zone))}]]


def crons(parameters: Mapping[str, Any]) -> list[str]:
    """Return a cron expression for each rule of a scheduleTrigger. Raises InvalidInputError naming the rule.

    >>> crons({"rule": {"interval": [{"field": "hours", "hoursInterval": 6}, {"field": "days", "triggerAtHour": 8}]}})
    ['0 */6 * * *', '0 8 * * *']
    """
    return TYPE.crons(parameters)


def moment_fields(moment: datetime) -> dict[str, str]:
    """Return a time in the words that flows written for n8n look for.

    >>> moment_fields(datetime.fromisoformat("2026-03-05T14:30:00+00:00"))["Readable date"]
    'March 5th 2026, 2:30:00 pm'
    """
    clock = f"{moment.hour % 12 or 12}:{moment:%M:%S} {'am' if moment.hour < 12 else 'pm'}"
    month, day = _MONTHS[moment.month - 1], f"{moment.day}{_ENDINGS.get(moment.day, 'th')}"
    offset = moment.isoformat()[-6:]
    return {
        "timestamp": moment.isoformat(timespec="milliseconds"),
        "Readable date": f"{month} {day} {moment.year}, {clock}",
        "Readable time": clock,
        "Day of week": _DAYS[moment.weekday()],
        "Year": str(moment.year),
        "Month": month,
        "Day of month": f"{moment:%d}",
        "Hour": f"{moment:%H}",
        "Minute": f"{moment:%M}",
        "Second": f"{moment:%S}",
        "Timezone": f"{moment.tzinfo} (UTC{offset})",
    }


def _fault(error: InvalidInputError) -> Fault:
    return Fault(error.field.removeprefix("parameters."), f"{error.rule}, got {checking.shown(error.value)}")


TYPE = ScheduleType(
    "schedule",
    ours("schedule", "headrace.scheduleTrigger", "n8n-nodes-base.scheduleTrigger"),
    (1, 1.3),
    "begins runs at given times",
    Shape.TRIGGER,
)
