"""Options of nodes as people write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from headrace.model.backoff import Backoff
from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.graph.nodes import OnError, OnOpen, RetryRule
from headrace.model.numbers import check_whole
from headrace.model.priority import parse_priority

W = TypeVar("W", bound=StrEnum)

_NODE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STRATEGIES = ("fixed", "linear", "exponential_backoff")


def parse_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return checked options of a node by the names of `NodeOptions`. Raises InvalidInputError naming a wrong one."""
    for name in given:
        if name not in _PARSERS:
            raise InvalidInputError("options", f"must be among name, {', '.join(_PARSERS)}", name)
    return {name: _PARSERS[name](value) for name, value in given.items()}


def check_node_id(value: object) -> str:
    """Return `value` if it can be the id of a node, else raise InvalidInputError.

    >>> check_node_id("parse-2")
    'parse-2'
    """
    if isinstance(value, str) and _NODE_ID.fullmatch(value):
        return value
    raise InvalidInputError("name", "must be 1 to 64 of the characters A-Z a-z 0-9 _ -", value)


def parse_join(value: object) -> int | None:
    """Return how many predecessors have to lead on: "all" is None, "any" is 1."""
    if value == "all":
        return None
    if value == "any":
        return 1
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise InvalidInputError("join", 'must be "all", "any" or how many of them, at least 1', value)


def parse_on_error(value: object) -> OnError:
    """Return what a failed node does to what comes behind it."""
    return _word(OnError, "on_error", value)


def parse_retry(value: object) -> RetryRule:
    """Return the retry policy of a node: a `RetryRule`, a mapping of its fields, or a `Backoff`."""
    if isinstance(value, RetryRule):
        return value
    if isinstance(value, Backoff):
        return _of_backoff(value)
    if isinstance(value, Mapping):
        return _of_mapping(value)
    rule = 'must be a mapping such as {"strategy": "fixed", "max_tries": 3, "base": "5s"}, or a Backoff'
    raise InvalidInputError("retry", rule, value)


def parse_limit(field: str, value: Any, *, most: timedelta = timedelta(days=366)) -> timedelta:
    """Return a time that is longer than nothing. Raises InvalidInputError."""
    limit = parse_duration(value, field=field)
    if not timedelta() < limit <= most:
        raise InvalidInputError(field, f"must be more than 0 and at most {most.days} days", value)
    return limit


def _word(kind: type[W], field: str, value: object) -> W:
    words = [str(word) for word in kind]
    if isinstance(value, str) and value in words:
        return kind(value)
    raise InvalidInputError(field, f"must be one of {', '.join(words)}", value)


def _of_backoff(policy: Backoff) -> RetryRule:
    if policy.never or policy.by_error or policy.factor not in (1.0, 2.0):
        rule = "of a node has one policy for all errors, with factor 1 or 2; write what differs on the task"
        raise InvalidInputError("retry", rule, policy)
    strategy = "fixed" if policy.factor == 1.0 else "exponential_backoff"
    return RetryRule(strategy, policy.max_attempts, policy.base, policy.cap, policy.jitter)


def _of_mapping(given: Mapping[Any, Any]) -> RetryRule:
    parsers: dict[str, Callable[[Any], Any]] = {
        "strategy": _strategy,
        "max_tries": lambda value: check_whole("retry.max_tries", value, most=100),
        "base": lambda value: parse_duration(value, field="retry.base"),
        "cap": lambda value: parse_duration(value, field="retry.cap"),
        "jitter": _jitter,
        "on": _classes,
    }
    for name in given:
        if name not in parsers:
            raise InvalidInputError("retry", f"must have only {', '.join(parsers)}", name)
    return RetryRule(**{name: parsers[name](value) for name, value in given.items()})


def _strategy(value: object) -> str:
    if isinstance(value, str) and value in _STRATEGIES:
        return value
    raise InvalidInputError("retry.strategy", f"must be one of {', '.join(_STRATEGIES)}", value)


def _jitter(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidInputError("retry.jitter", "must be True or False", value)


def _classes(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidInputError("retry.on", "must be a list of exception classes or their names", value)
    names = tuple(one.__name__ if isinstance(one, type) else one for one in value)
    for name in names:
        if not isinstance(name, str):
            raise InvalidInputError("retry.on", "must be a list of exception classes or their names", value)
    return names


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "on_error": parse_on_error,
    "join": parse_join,
    "retry": parse_retry,
    "timeout": lambda value: parse_limit("timeout", value, most=timedelta(days=1)),
    "priority": parse_priority,
    "version": lambda value: check_whole("version", value),
    "estimate": lambda value: parse_limit("estimate", value),
    "on_open": lambda value: _word(OnOpen, "on_open", value),
}
