"""Schedules as values: the rule of an app, what the scheduler reads and writes, and what people see.

A schedule is a row with two instants: fire times up to `after_at` are dealt with, and `next_at` is the one that comes
next, or None while it has to be planned. The arithmetic of cron expressions is `headrace.engine.cron`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from headrace.model.errors import InvalidInputError
from headrace.model.job import JobSpec, NewJob
from headrace.model.limits import Gate

MAX_EXPRESSION_LENGTH = 256
#: Fire times that `CatchUp.ALL` makes up for at most: the latest ones.
MAX_CATCH_UP = 100
#: A fire up to this late is on time, whatever the catch-up policy: another process may have to take over first.
ON_TIME = timedelta(minutes=1)
#: A schedule fires while a worker has declared it within this time: what no code asks for any more comes to rest.
DECLARED_FOR = timedelta(minutes=10)
#: Fires of one schedule that are remembered: what people see, and what no step of a clock can repeat.
KEPT_FIRES = 1_000


class CatchUp(StrEnum):
    """What becomes of fire times that passed while nobody fired them: no worker, no database."""

    #: they are left out
    SKIP = "skip"
    #: one job in place of all of them, for the latest
    ONE = "one"
    #: a job for each of the latest hundred
    ALL = "all"

    @classmethod
    def parse(cls, value: CatchUp | str) -> CatchUp:
        """Return the policy of a name. Raises InvalidInputError.

        >>> CatchUp.parse("one")
        <CatchUp.ONE: 'one'>
        """
        if value in tuple(cls):
            return cls(value)
        raise InvalidInputError("catch_up", f"must be one of {', '.join(cls)}", value)


@dataclass(frozen=True, slots=True)
class CronRule:
    """When a schedule fires: five fields (minute, hour, day of month, month, day of week) on the clocks of a zone.

    `check` looks at what needs no arithmetic, `engine.cron.Timetable` at all of it. A stored rule is read unchecked: it
    may be of a newer version, or of a zone that this machine does not know, and must not keep others from being read.

    >>> CronRule("0 3 * * *", "Europe/Berlin").text
    '0 3 * * * Europe/Berlin'
    """

    expression: str
    tz: str = "UTC"
    catch_up: CatchUp = CatchUp.SKIP

    def check(self) -> None:
        """Raise InvalidInputError unless there are five fields, a zone and a policy."""
        _check_expression(self.expression)
        find_zone(self.tz)
        CatchUp.parse(self.catch_up)

    @property
    def text(self) -> str:
        """What the fire times depend on: a schedule is planned anew when it changes."""
        return f"{' '.join(self.expression.split())} {self.tz}"


def _check_expression(value: object) -> None:
    rule = "must have five fields (minute, hour, day of month, month, day of week), such as 0 3 * * *"
    if not isinstance(value, str) or len(value) > MAX_EXPRESSION_LENGTH:
        raise InvalidInputError("cron", rule, value)
    count = len(value.split())
    if count == 6:
        rule = f"{rule}; seconds cannot be given, it fires once a minute at most"
    if count != 5:
        raise InvalidInputError("cron", rule, value)


def find_zone(value: object) -> ZoneInfo:
    """Return a time zone by its name in the IANA database. Raises InvalidInputError.

    >>> find_zone("Asia/Kathmandu").key
    'Asia/Kathmandu'
    """
    try:
        if isinstance(value, str) and value:
            return ZoneInfo(value)
    except (KeyError, ValueError, OSError):  # no such name, not a name at all, a folder of names
        pass
    rule = (
        "must be a time zone of the IANA database, such as Europe/Berlin or UTC (a system without that database needs "
        "`pip install tzdata`)"
    )
    raise InvalidInputError("tz", rule, value)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A schedule as an app asks for it; `args` is the JSON text of the call."""

    name: str
    rule: CronRule
    spec: JobSpec
    args: str

    def encode(self) -> str:
        """Return everything but the name as JSON text, for a store to keep.

        >>> plan = Declaration("nightly", CronRule("0 3 * * *"), JobSpec("clean"), '{"args":[],"kwargs":{}}')
        >>> Declaration.decode("nightly", plan.encode()) == plan
        True
        """
        rule = {"expression": self.rule.expression, "tz": self.rule.tz, "catch_up": self.rule.catch_up}
        facts = {"rule": rule, "spec": _spec_facts(self.spec), "args": self.args}
        return json.dumps(facts, separators=(",", ":"))

    @classmethod
    def decode(cls, name: str, text: str) -> Declaration:
        """Return the inverse of `encode`. Facts that only a newer version knows are left out."""
        facts = json.loads(text)
        rule = facts["rule"]
        catch_up = rule["catch_up"]
        known = CatchUp(catch_up) if catch_up in tuple(CatchUp) else CatchUp.SKIP
        return cls(name, CronRule(rule["expression"], rule["tz"], known), _spec(facts["spec"]), facts["args"])


def _spec_facts(spec: JobSpec) -> dict[str, Any]:
    facts = {item.name: getattr(spec, item.name) for item in fields(spec)}
    timeout, gate = spec.timeout, spec.gate
    return {
        **facts,
        "timeout": None if timeout is None else timeout.total_seconds(),
        "gate": None if gate is None else gate.text,
    }


def _spec(facts: dict[str, Any]) -> JobSpec:
    known = {item.name: facts[item.name] for item in fields(JobSpec) if item.name in facts}
    timeout, gate = known.get("timeout"), known.get("gate")
    known["timeout"] = None if timeout is None else timedelta(seconds=timeout)
    known["gate"] = None if gate is None else Gate.parse(gate)
    return JobSpec(**known)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule that has something to do: it is to be planned, or a fire time of it has come."""

    declaration: Declaration
    #: Fire times up to here are dealt with.
    after_at: datetime

    @property
    def name(self) -> str:
        """Its name."""
        return self.declaration.name


@dataclass(frozen=True, slots=True)
class DueSchedules:
    """What the store's clock says is to be done `now`, and when the next fire time of the others comes."""

    now: datetime
    schedules: tuple[Schedule, ...] = ()
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fire:
    """One fire time and the job that is made for it."""

    fire_at: datetime
    job: NewJob


@dataclass(frozen=True, slots=True)
class Firing:
    """One move of a schedule: the jobs of its fire times, up to which it is dealt with then, and when it goes on.

    It holds only for a schedule as it was read: `seen` is what the mover saw.
    """

    seen: Schedule
    fires: tuple[Fire, ...]
    after_at: datetime
    next_at: datetime


@dataclass(frozen=True, slots=True)
class FireRecord:
    """One fire, for reading: the time it was for, the job, and when that was made. `manual`: by `run-now`."""

    fire_at: datetime
    job_id: UUID
    fired_at: datetime
    manual: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """One schedule, for reading. `declared`: a worker that is or was alive a short while ago has it in its code."""

    declaration: Declaration
    paused: bool
    declared: bool
    declared_at: datetime
    after_at: datetime
    next_at: datetime | None
    last: FireRecord | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.declaration.name
