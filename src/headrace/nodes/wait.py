"""wait: goes on after some time, at a given time, or when somebody says so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.nodes import checking
from headrace.nodes.base import Call, Fault, Items, Named, NodeError, ours
from headrace.nodes.moments import moment_of
from headrace.nodes.pairing import of_all, passed
from headrace.nodes.parameters import Parameters

_RESUMES = ("timeInterval", "specificTime", "webhook")
_FORM = {"form": 'use "webhook": a page of your own sends its form as the signal'}
_UNITS = {
    "seconds": timedelta(seconds=1),
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
}
_LIMITS = ("afterTimeInterval", "atSpecifiedTime")
#: A wait takes no place of a worker, but it ends one day.
_LONGEST = timedelta(days=3660)
_LOGIN = "must be none: signals come through our own interface, which asks for its own login"


class WaitType(Named):
    """Passes its items on when the wait is over; what a signal brings takes their place.

    `resume: webhook` waits for the signal `RUN/NODE`, of the id of the run and the name of the node; in the later
    rounds of a loop for `RUN/NODE/1`, `RUN/NODE/2` … Without a `limitWaitTime` it waits for as long as it takes; when
    the limit has passed, the items go on as they are.
    """

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a wrong way to resume, a wrong unit."""
        found = checking.one_of(parameters, "resume", _RESUMES, default=_RESUMES[0], instead=_FORM)
        if found:
            return found
        resume = checking.written(parameters, "resume", _RESUMES[0])
        if resume == "timeInterval":
            return _check_unit(parameters, "unit")
        if resume == "specificTime":
            return _check_time(parameters, "dateTime")
        if checking.written(parameters, "incomingAuthentication", "none") != "none":
            found.append(Fault("incomingAuthentication", _LOGIN))
        if checking.written(parameters, "responseMode", "onReceived") != "onReceived":
            found.append(Fault("responseMode", "must be onReceived: a signal is answered at once"))
        return found + _check_limit(parameters)

    async def run(self, call: Call) -> list[Items]:
        """Return the items, or one with what the signal brought."""
        at = call.at()
        resume = at.one_of("resume", _RESUMES, _RESUMES[0])
        if resume == "webhook":
            return [await _signalled(call, at)]
        if resume == "timeInterval":
            # Version 1 has an hour where nothing is written, later ones 5 seconds, as in n8n.
            amount, unit = (5.0, "seconds") if call.version >= 1.1 else (1.0, "hours")
            delay = _interval(at, "amount", amount, "unit", unit)
        else:
            delay = await _until(call, at, "dateTime")
        await call.services.wait(delay)
        return [passed(call.items)]


def signal_of(run_id: str, node: str) -> str:
    """Return the key of the signal that a node of a run waits for.

    Within loops whoever runs the flow puts the rounds behind it: a key has its signal once.

    >>> signal_of("0198", "Approval")
    '0198/Approval'
    """
    return f"{run_id}/{node}"


async def _signalled(call: Call, at: Parameters) -> Items:
    signal = signal_of(str(call.scope_of(0, 0).execution.get("id")), call.name)
    payload = await call.services.wait(await _limit(call, at), signal=signal)
    if payload is None:
        return passed(call.items)
    data = payload if isinstance(payload, dict) else {"data": payload}
    return [{"json": data, "pairedItem": of_all(call.items)}]


async def _limit(call: Call, at: Parameters) -> timedelta | None:
    if not at.flag("limitWaitTime"):
        return None
    if at.one_of("limitType", _LIMITS, _LIMITS[0]) == "afterTimeInterval":
        return _interval(at, "resumeAmount", 1.0, "resumeUnit", "hours")
    return await _until(call, at, "maxDateAndTime")


def _interval(at: Parameters, amount: str, count: float, unit: str, word: str) -> timedelta:
    found = at.number(amount, count)
    each = _UNITS[at.one_of(unit, tuple(_UNITS), word)]
    if not 0 <= found <= _LONGEST / each:
        raise InvalidInputError(f"parameters.{amount}", f"must be from 0 to {_LONGEST / each:g}", found)
    return found * each


async def _until(call: Call, at: Parameters, path: str) -> timedelta:
    """Return how long it is until a time; none when it has passed."""
    now = await call.services.now()
    moment = moment_of(at.get(path), call.zone)
    if moment is None:
        told = checking.shown(at.get(path))
        raise NodeError(f"parameters.{path} must be a time such as 2026-03-05T12:30:00, got {told}")
    if moment - now > _LONGEST:
        raise NodeError(f"parameters.{path} must be within {_LONGEST.days} days, got {moment.isoformat()}")
    return max(moment - now, timedelta())


def _check_unit(parameters: Mapping[str, Any], path: str) -> list[Fault]:
    value = checking.written(parameters, path, "hours")
    if checking.is_expression(value):
        return []
    return checking.one_of(parameters, path, _UNITS, default="hours", instead={})


def _check_time(parameters: Mapping[str, Any], path: str) -> list[Fault]:
    value = checking.written(parameters, path)
    if checking.is_expression(value) or moment_of(value, UTC) is not None:
        return []
    return [Fault(path, f"must be a time such as 2026-03-05T12:30:00, got {checking.shown(value)}")]


def _check_limit(parameters: Mapping[str, Any]) -> list[Fault]:
    if checking.written(parameters, "limitWaitTime") is not True:
        return []
    found = checking.one_of(parameters, "limitType", _LIMITS, default=_LIMITS[0], instead={})
    if checking.written(parameters, "limitType") == "atSpecifiedTime":
        return found + _check_time(parameters, "maxDateAndTime")
    return found + _check_unit(parameters, "resumeUnit")


TYPE = WaitType("wait", ours("wait", "n8n-nodes-base.wait"), (1, 1.1), "waits for a time or for a signal")
