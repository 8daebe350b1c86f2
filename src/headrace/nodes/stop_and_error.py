"""stopAndError: ends the run with an error of one's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.nodes import checking
from headrace.nodes.base import Call, Fault, Items, Named, NodeError, ours
from headrace.nodes.parameters import Parameters

_KINDS = ("errorMessage", "errorObject")


class StopAndErrorType(Named):
    """Fails with a message, or with an object whose `message` is one; what else the object has becomes its details."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a wrong kind of error, or an object that is none."""
        found = checking.one_of(parameters, "errorType", _KINDS, default=_KINDS[0], instead={})
        value = checking.written(parameters, "errorObject")
        if found or checking.written(parameters, "errorType") != "errorObject" or checking.is_expression(value):
            return found
        return [] if _object(value) is not None else [Fault("errorObject", _rule(value))]

    def run(self, call: Call) -> list[Items]:
        """Raise NodeError."""
        at = call.at()
        if at.one_of("errorType", _KINDS, _KINDS[0]) == "errorMessage":
            raise NodeError(at.text("errorMessage") or f"the node {call.name!r} stopped the run")
        raise _error(at, call.name)


def _error(at: Parameters, name: str) -> NodeError:
    value = at.get("errorObject")
    found = _object(value)
    if found is None:
        return NodeError(f"parameters.errorObject {_rule(value)}")
    message = found.get("message") or found.get("description") or f"the node {name!r} stopped the run"
    return NodeError(message if isinstance(message, str) else json.dumps(message), details=found)


def _object(value: object) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _rule(value: object) -> str:
    return f'must be a JSON object such as {{"message": "out of stock"}}, got {str(value)[:60]!r}'


TYPE = StopAndErrorType(
    "stopAndError", ours("stopAndError", "n8n-nodes-base.stopAndError"), (1, 1), "ends the run with an error"
)
