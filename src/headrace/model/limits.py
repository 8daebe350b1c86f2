"""Rates, and the gate of a job: what must let it pass before it starts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from headrace.model.breaker import BreakerRule
from headrace.model.errors import InvalidInputError
from headrace.model.names import check_name

_PERIODS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_RATE = re.compile(r"(?P<amount>[0-9]+(\.[0-9]+)?)/(?P<period>[smhd])")
_RATE_RULE = 'must be a number of units per s, m, h or d, such as "30/m", from 0.001/d to 1000000000/s'
#: Rates that differ by a smaller part are written alike.
_NEAR = 1e-6
_LEAST_PER_SECOND, MOST_UNITS = 0.001 / 86_400, 1e9
#: The longest wait that is told: a debt at a small rate takes longer than a timedelta can hold.
_LONGEST_WAIT = 1e9
#: No closing of a rate limit or breaker is longer: providers count by days at most, and what says more is no wait.
LONGEST_CLOSING = timedelta(days=7)
#: Fair keys and concurrency keys are part of an index key.
MAX_GATE_KEY = 128
#: A PostgreSQL index entry holds 2,704 bytes.
MAX_GATE_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket's settings: `per_second` units flow in, at most `burst` are kept.

    The bucket is full at first. A job that needs more than `burst` units starts when the bucket is full and leaves it
    in debt, so that in any span of t seconds at most `burst + per_second · t` units are used, plus one such job.

    >>> Rate.parse("30/m")
    Rate(per_second=0.5, burst=1.0)
    """

    per_second: float
    burst: float

    @classmethod
    def parse(cls, value: Rate | str, *, burst: float | None = None, field: str = "rate") -> Rate:
        """Return the rate of a text such as "30/m" (s, m, h, d); `burst` defaults to one second's worth, at least 1.

        A `Rate` has a burst of its own and is returned as it is. Raises InvalidInputError naming `field` or `burst`.
        """
        match = _RATE.fullmatch(value) if isinstance(value, str) else None
        if isinstance(value, Rate):
            if burst is not None:
                raise InvalidInputError("burst", "must be that of the Rate: write Rate(per_second, burst)", burst)
            per_second, burst = value.per_second, value.burst
        elif match is not None:
            per_second = float(match["amount"]) / _PERIODS[match["period"]]
        else:
            raise InvalidInputError(field, _RATE_RULE, value)
        if not _is_number(per_second) or not _LEAST_PER_SECOND <= per_second <= MOST_UNITS:
            raise InvalidInputError(field, _RATE_RULE, value)
        if burst is not None and (not _is_number(burst) or not 0 < burst <= MOST_UNITS):
            raise InvalidInputError("burst", "must be a number above 0, at most 1e9", burst)
        return cls(float(per_second), float(max(1.0, per_second) if burst is None else burst))

    @property
    def text(self) -> str:
        """The flow as people write it and `parse` reads it: whole where it can be, else in the fewest characters.

        >>> [Rate.parse(text).text for text in ("30/m", "2/s", "60/m", "1000/d", "0.5/d", "0.25/s")]
        ['30/m', '2/s', '1/s', '1000/d', '0.5/d', '15/m']
        """
        amounts = {period: self.per_second * seconds for period, seconds in _PERIODS.items()}
        for period, amount in amounts.items():
            if abs(amount - round(amount)) < _NEAR * amount:
                return f"{round(amount)}/{period}"
        return min((f"{_decimal(amount)}/{period}" for period, amount in amounts.items()), key=len)

    def after(self, level: float, elapsed: timedelta) -> float:
        """Return the level of a bucket that stood at `level` and was left alone for `elapsed`.

        >>> Rate.parse("10/s").after(-5.0, timedelta(seconds=1))
        5.0
        """
        return min(self.burst, level + max(0.0, elapsed.total_seconds()) * self.per_second)

    def missing(self, level: float, units: float) -> timedelta:
        """Return how long a bucket at `level` must be left alone before it lets `units` pass; zero: they may pass now.

        >>> Rate.parse("10/s").missing(0.0, 5.0)
        datetime.timedelta(microseconds=500000)
        """
        need = min(units, self.burst)
        return timedelta(seconds=min(max(0.0, need - level) / self.per_second, _LONGEST_WAIT))

    def needed(self, units: float, wait: timedelta) -> float:
        """Return the level, not below zero, from which a bucket lets `units` pass after it was left alone for `wait`.

        >>> Rate.parse("10/s").needed(5.0, timedelta(seconds=0.2))
        3.0
        """
        return max(0.0, min(units, self.burst) - wait.total_seconds() * self.per_second)


@dataclass(frozen=True, slots=True)
class Level:
    """How the bucket of a rate stands: the units it has, below zero in debt, and for how long nothing passes at all."""

    units: float
    closed: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit of a task: its jobs start only while the bucket `name` has enough, in all processes together.

    `rate` declares the bucket ("30/m"); None: declared elsewhere, and without a declaration it is no limit. `cost` is
    what one job takes, in units; None: the job's own cost (`options(cost=…)`), for example its tokens.
    """

    name: str
    rate: Rate | str | None = None
    burst: float | None = None
    cost: float | None = 1.0

    def __post_init__(self) -> None:
        check_name("Limit.name", self.name)
        if self.cost is not None:
            check_cost(self.cost, field="Limit.cost")
        if self.rate is None and self.burst is not None:
            raise InvalidInputError("Limit.rate", "must be given where burst is", None)
        if self.rate is not None:
            Rate.parse(self.rate, burst=self.burst, field="Limit.rate")

    @property
    def declared(self) -> Rate | None:
        """The rate that this limit declares."""
        return None if self.rate is None else Rate.parse(self.rate, burst=self.burst)


def _decimal(amount: float) -> str:
    """Return the shortest decimal that is as good as `amount`, without an exponent."""
    texts = (f"{amount:.{digits}f}" for digits in range(1, 20))
    return next(text for text in texts if abs(float(text) - amount) <= _NEAR * amount)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_cost(value: object, *, field: str = "cost") -> float:
    """Return a job's cost: a number above zero, at most 1e9. Raises InvalidInputError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e9:
        raise InvalidInputError(field, "must be a number above 0, at most 1e9", value)
    return float(value)


def check_weight(value: object, *, field: str = "weight") -> float:
    """Return the weight of a fair key: a number from 0.001 to 1,000. Raises InvalidInputError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.001 <= value <= 1_000:
        raise InvalidInputError(field, "must be a number from 0.001 to 1,000", value)
    return float(value)


def check_gate_key(field: str, value: object) -> str:
    """Return a fair key or concurrency key: 1–128 printable characters. Raises InvalidInputError."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_GATE_KEY or not value.isprintable():
        raise InvalidInputError(field, f"must be 1 to {MAX_GATE_KEY} printable characters", value)
    return value


@dataclass(frozen=True)
class Gate:
    """What must let a job pass before it starts. Jobs of one queue with equal gates form a lane.

    `fair_key`: whose share of the queue it uses; None is a share of its own. `key`: of the jobs of its queue with this
    concurrency key at most `key_limit` run at once; with 1 they run in order, and one that waits for a retry keeps its
    place. `caps`: names of caps, such as "task:render". `limits`: (bucket, units) of rate limits, None for the job's
    cost. `breakers`: names of circuit breakers.
    """

    fair_key: str | None = None
    key: str | None = None
    key_limit: int | None = None
    caps: tuple[str, ...] = ()
    limits: tuple[tuple[str, float | None], ...] = ()
    breakers: tuple[str, ...] = ()

    @property
    def in_order(self) -> bool:
        """Whether jobs of the lane's key keep their place until they have ended."""
        return self.key is not None and self.key_limit == 1

    @cached_property
    def text(self) -> str:
        """The gate as canonical JSON: the name of its lane in a store. Equal gates have equal texts.

        >>> Gate(fair_key="a", caps=("task:x",)).text
        '{"fair":"a","caps":["task:x"]}'
        """
        facts = {
            "fair": self.fair_key,
            "key": self.key,
            "key_limit": self.key_limit,
            "caps": sorted(self.caps),
            "limits": dict(sorted(self.limits)),
            "breakers": sorted(self.breakers),
        }
        text = json.dumps({name: value for name, value in facts.items() if value}, separators=(",", ":"))
        if len(text) > MAX_GATE_BYTES:
            rule = f"must take at most {MAX_GATE_BYTES} bytes together as JSON"
            raise InvalidInputError("fair key, concurrency key, caps, limits and breakers", rule, len(text))
        return text

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Return the inverse of `text`.

        >>> gate = Gate(key="u1", key_limit=1, limits=(("api", None),))
        >>> Gate.parse(gate.text) == gate
        True
        """
        facts: dict[str, Any] = json.loads(text)
        return cls(
            fair_key=facts.get("fair"),
            key=facts.get("key"),
            key_limit=facts.get("key_limit"),
            caps=tuple(facts.get("caps", ())),
            limits=tuple(facts.get("limits", {}).items()),
            breakers=tuple(facts.get("breakers", ())),
        )


def queue_cap(queue: str) -> str:
    """Return the name of the cap, and of the rate limit, that holds for all jobs of a queue."""
    return f"queue:{queue}"


def key_cap(queue: str, key: str) -> str:
    """Return the name of the cap that an operator sets for the jobs of a queue with a concurrency key.

    >>> key_cap("mail", "user:7")
    'key:mail:user:7'
    """
    return f"key:{queue}:{key}"


def task_cap(task: str) -> str:
    """Return the name of the cap that holds for all jobs of a task (`concurrency=`)."""
    return f"task:{task}"


@dataclass(frozen=True, slots=True)
class Declared:
    """The limits that an app declares in code and settings; what an operator set instead stays in force."""

    caps: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, Rate] = field(default_factory=dict)
    breakers: Mapping[str, BreakerRule] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.caps or self.rates or self.breakers)
