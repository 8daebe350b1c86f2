"""From the options of tasks and calls to the gate of their jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal

from headrace.model.breaker import BreakerRule, OnOpen
from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.job import JobSpec
from headrace.model.limits import (
    LONGEST_CLOSING,
    MOST_UNITS,
    Declared,
    Gate,
    Limit,
    Rate,
    check_cost,
    check_gate_key,
    task_cap,
)
from headrace.model.names import check_name
from headrace.model.queue import check_cap
from headrace.model.quota import check_pools, pool_gate

_DEFAULT = BreakerRule()


@dataclass(frozen=True)
class Breaker:
    """A circuit breaker: after failures the jobs behind it wait, or fail, until one of them has shown that it works.

    It opens after `failures` failed calls in a row, or, with `error_rate` (0 to 1), when more than that share of at
    least `min_calls` (default 10) calls within `window` (default 1 minute) failed. A call is an attempt of a job. Where
    a task has a `batch_size`, the attempts of several jobs are one call, however many: it failed if it raised, or
    answered each of them with an error. After `cooldown`, at most 7 days, exactly one job, the probe, is let through.
    Tasks that name the same breaker share it, in all processes. `on_open`: "wait", or "fail" without running, with kind
    `breaker_open`. Raises InvalidInputError.

    >>> Breaker("openai", failures=3, cooldown="10s").rule.cooldown
    datetime.timedelta(seconds=10)
    """

    name: str
    failures: int = 5
    error_rate: float | None = None
    min_calls: int | None = None
    window: float | str | timedelta | None = None
    cooldown: float | str | timedelta = timedelta(seconds=30)
    on_open: Literal["wait", "fail"] = "wait"
    rule: BreakerRule = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_name("breaker.name", self.name)
        for option, value in (("min_calls", self.min_calls), ("window", self.window)):
            if value is not None and self.error_rate is None:
                raise InvalidInputError(f"breaker.{option}", "goes with error_rate=, such as error_rate=0.5", value)
        cooldown = parse_duration(self.cooldown, field="breaker.cooldown")
        if cooldown > LONGEST_CLOSING:
            raise InvalidInputError("breaker.cooldown", "must be at most 7d", self.cooldown)
        rule = BreakerRule(
            failures=self.failures,
            error_rate=self.error_rate,
            min_calls=_DEFAULT.min_calls if self.min_calls is None else self.min_calls,
            window=_DEFAULT.window if self.window is None else parse_duration(self.window, field="breaker.window"),
            cooldown=cooldown,
            on_open=_on_open(self.on_open),
        )
        object.__setattr__(self, "rule", rule)


def _on_open(value: object) -> OnOpen:
    try:
        return OnOpen(str(value))
    except ValueError:
        raise InvalidInputError("breaker.on_open", 'must be "wait" or "fail"', value) from None


def task_gate(name: str, options: Mapping[str, Any]) -> tuple[Gate | None, Declared]:
    """Return the gate that a task's jobs share, and the limits that it declares. Raises InvalidInputError.

    Looks at the options `concurrency`, `limits`, `rate_limit`, `pools` and `breaker`.
    """
    cap, limits, breakers = options.get("concurrency"), _limits(options.get("limits", ())), _breakers(options)
    rates = {limit.name: limit.declared for limit in limits if limit.declared is not None}
    units = {limit.name: limit.cost for limit in limits}
    for pool in check_pools(options.get("pools", ())):
        # A bucket that never runs empty: it is there to be closed.
        rates[pool_gate(pool)] = Rate(MOST_UNITS, MOST_UNITS)
        units[pool_gate(pool)] = 1.0
    if (rate := options.get("rate_limit")) is not None:
        rates[task_cap(name)] = Rate.parse(rate, field="rate_limit")
        units[task_cap(name)] = 1.0
    declared = Declared(
        caps={} if cap is None else {task_cap(name): check_cap(cap)},
        rates=rates,
        breakers={breaker.name: breaker.rule for breaker in breakers if isinstance(breaker, Breaker)},
    )
    names = tuple(breaker.name if isinstance(breaker, Breaker) else breaker for breaker in breakers)
    return checked(Gate(caps=tuple(declared.caps), limits=tuple(units.items()), breakers=names)), declared


def _limits(value: object) -> Sequence[Limit]:
    items = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    for item in items:
        if not isinstance(item, Limit):
            raise InvalidInputError("limits", 'must be a list of Limit, such as [Limit("openai", "60/m")]', item)
    names = [item.name for item in items]
    if len(set(names)) < len(names):
        raise InvalidInputError("limits", "must name each bucket once", names)
    return items


def _breakers(options: Mapping[str, Any]) -> Sequence[Breaker | str]:
    value = options.get("breaker", ())
    items = tuple(value) if isinstance(value, list | tuple) else (value,)
    for item in items:
        if not isinstance(item, Breaker):
            check_name("breaker", item)
    names = [item.name if isinstance(item, Breaker) else item for item in items]
    if len(set(names)) < len(names):
        raise InvalidInputError("breaker", "must name each breaker once", names)
    return items


def checked(gate: Gate) -> Gate | None:
    """Return a gate, None for one that holds nothing back. Raises InvalidInputError for one that is too large."""
    if gate.key is None and gate.key_limit is not None:
        raise InvalidInputError("key_limit", "needs a concurrency_key= that it is the limit of", gate.key_limit)
    if gate.key is not None and gate.key_limit is None:
        gate = replace(gate, key_limit=1)
    return None if gate.text == "{}" else gate


#: Options of a call that become a part of its gate.
_PARTS = {"fair_key": "fair_key", "concurrency_key": "key", "key_limit": "key_limit"}


def gate_change(name: str, value: Any) -> tuple[str, Any] | None:
    """Return a checked option of the gate, None for any other option. Raises InvalidInputError."""
    match name:
        case "fair_key" | "concurrency_key":
            return name, check_gate_key(name, value)
        case "key_limit":
            return name, check_cap(value, field=name)
        case "cost":
            return name, check_cost(value)
        case _:
            return None


def with_changes(spec: JobSpec, changes: Mapping[str, Any]) -> JobSpec:
    """Return how jobs are stored after checked options of a call. Raises InvalidInputError for those that need others.

    >>> with_changes(JobSpec("render"), {"fair_key": "acme", "priority": 3}).gate
    Gate(fair_key='acme', key=None, key_limit=None, caps=(), limits=(), breakers=())
    """
    own = {name: value for name, value in changes.items() if name not in _PARTS}
    parts = {_PARTS[name]: value for name, value in changes.items() if name in _PARTS}
    if parts:
        own["gate"] = checked(replace(spec.gate or Gate(), **parts))
    return replace(spec, **own) if own else spec
