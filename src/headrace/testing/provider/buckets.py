"""Token buckets: what each call takes from the quotas, gives back, and how long one must wait that finds too little."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.testing.provider.quota import Quota, QuotaChange

#: Sums of fractions are not exact: so little may be missing.
_TOLERANCE = 1e-6
_MINUTE, _DAY = 60.0, 86_400.0
#: The buckets of tokens; the share of a call each one counts is in `_amounts`.
_TOKEN_BUCKETS = ("tokens_per_minute", "input_tokens_per_minute", "output_tokens_per_minute")
_REQUEST_BUCKETS = ("requests_per_minute", "requests_per_day")
#: Told where calls in flight are the bound and none of them says when it will end.
_GUESSED_WAIT = 0.1


class Bucket:
    """One quota: `limit` units per `period` seconds, of which `capacity` may be there at once."""

    def __init__(self, limit: float, period: float, *, capacity: float, now: float) -> None:
        self.limit, self.period, self.capacity = limit, period, capacity
        #: Units taken and not given back.
        self.used = 0.0
        self._level, self._at = capacity, now

    @property
    def rate(self) -> float:
        """Units that come per second."""
        return self.limit / self.period

    def level(self, now: float) -> float:
        """Units that are there; negative while a debt is paid off."""
        return min(self.capacity, self._level + self.rate * max(0.0, now - self._at))

    def wait(self, units: float, now: float) -> float:
        """Seconds until so many may be taken. More than fits in may be taken from a full bucket, and is owed."""
        missing = min(units, self.capacity) - self.level(now)
        return 0.0 if missing <= _TOLERANCE else missing / self.rate

    def until_full(self, now: float) -> float:
        """Seconds until nothing is missing."""
        return max(0.0, self.capacity - self.level(now)) / self.rate

    def take(self, units: float, now: float) -> None:
        """Take units; negative ones are given back."""
        self._level, self._at = self.level(now) - units, now
        self.used += units

    def spoil(self, units: float, now: float) -> None:
        """Take what is there of so many units."""
        self.take(max(0.0, min(units, self.level(now))), now)

    def change(self, limit: float, *, capacity: float, now: float) -> None:
        """Set another limit from now on; what is there beyond the new capacity is lost."""
        self._level, self._at = min(self.level(now), capacity), now
        self.limit, self.capacity = limit, capacity


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call may not pass, and when it would."""

    #: Name of the limit that lets it in last, such as `tokens_per_minute`.
    limit: str
    #: Seconds until it would pass; infinite where it never can.
    wait: float
    needed: float


@dataclass(slots=True)
class _Waiting:
    """A change that waits; both counts begin when it was scheduled."""

    change: QuotaChange
    accepted_before: int
    first_at: float | None = None

    def due_at(self, accepted: int, now: float) -> float | None:
        if self.change.after_calls is not None:
            return now if accepted - self.accepted_before >= self.change.after_calls else None
        if self.first_at is None or self.change.after is None:
            return None
        at = self.first_at + self.change.after.total_seconds()
        return at if at <= now else None


@dataclass(slots=True)
class Lease:
    """What a call that was let in has taken so far."""

    input_tokens: int
    max_tokens: int
    accepted_at: float
    taken: dict[str, float] = field(default_factory=dict)
    #: Tokens that are charged so far, whether a bucket counts them or not.
    charged_input: int = 0
    charged_output: int = 0
    #: When its answer will be whole, where that is known.
    ends_at: float = math.inf
    settled: bool = False


class QuotaGate:
    """All buckets of one account, and the calls in flight. `clock`: seconds of a monotonic clock."""

    def __init__(
        self, quota: Quota, changes: Iterable[QuotaChange] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        self.quota = Quota()
        self.buckets: dict[str, Bucket] = {}
        self.accepted = 0
        #: Refusals by the limit that caused them.
        self.refused: Counter[str] = Counter()
        #: (instant, calls accepted before it, quota from then on)
        self.history: list[tuple[float, int, Quota]] = []
        self._waiting = [_Waiting(change, 0) for change in changes]
        self._leases: dict[int, Lease] = {}
        self.set(quota)

    @property
    def in_flight(self) -> int:
        """Calls that were let in and have not ended."""
        return len(self._leases)

    def set(self, quota: Quota, at: float | None = None) -> None:
        """Let this quota rule from now, or from an instant just passed. Calls in flight keep what they took."""
        now = self.clock() if at is None else at
        limits = {name: getattr(quota, name) for name in (*_REQUEST_BUCKETS, *_TOKEN_BUCKETS)}
        for name, limit in limits.items():
            if limit is None:
                self.buckets.pop(name, None)
                continue
            period = _DAY if name == "requests_per_day" else _MINUTE
            burst = limit if period == _DAY else max(1.0, limit / period * quota.burst.total_seconds())
            if name in self.buckets:
                self.buckets[name].change(limit, capacity=burst, now=now)
            else:
                self.buckets[name] = Bucket(limit, period, capacity=burst, now=now)
        self.quota = quota
        self.history.append((now, self.accepted, quota))

    def schedule(self, change: QuotaChange) -> None:
        """Let a change wait for its time, which counts from now on."""
        self._waiting.append(_Waiting(change, self.accepted))

    def catch_up(self) -> float:
        """Make the changes whose time has come; the present instant."""
        now = self.clock()
        for waiting in list(self._waiting):
            at = waiting.due_at(self.accepted, now)
            if at is not None:
                self._waiting.remove(waiting)
                self.set(self.quota.changed(waiting.change.changes), at)
        return now

    def admit(self, input_tokens: int, max_tokens: int | None) -> Lease | Refusal:
        """Let a call in, or say why not. `input_tokens` without the cached ones."""
        now = self.catch_up()
        lease = Lease(input_tokens, self.quota.default_max_tokens if max_tokens is None else max_tokens, now)
        reserved = self._reserved(lease)
        refusal = self._refusal(reserved, now)
        if refusal is not None:
            self.refused[refusal.limit] += 1
            if self.quota.count_refused:
                for name in self.buckets.keys() & set(_REQUEST_BUCKETS):
                    self.buckets[name].spoil(1.0, now)
            return refusal
        for name, units in reserved.items():
            self._take(lease, name, units, now)
        lease.charged_input, lease.charged_output = self._tokens_at_start(lease)
        self._leases[id(lease)] = lease
        self.accepted += 1
        for waiting in self._waiting:
            waiting.first_at = now if waiting.first_at is None else waiting.first_at
        return lease

    def _reserved(self, lease: Lease) -> dict[str, float]:
        amounts = _amounts(*self._tokens_at_start(lease))
        return {name: amounts[name] for name in self.buckets}

    def _tokens_at_start(self, lease: Lease) -> tuple[int, int]:
        rule = self.quota.reserve
        return (0 if rule == "actual" else lease.input_tokens), (lease.max_tokens if rule == "max_tokens" else 0)

    def _refusal(self, reserved: Mapping[str, float], now: float) -> Refusal | None:
        # Where nothing is taken at the start, a debt of earlier calls still keeps the next one out.
        needs = {name: max(1.0, units) for name, units in reserved.items()}
        for name, units in needs.items():
            if units > self.buckets[name].limit and units > self.buckets[name].capacity:
                return Refusal(name, math.inf, units)
        waits = {name: self.buckets[name].wait(units, now) for name, units in needs.items()}
        if self.quota.concurrency is not None and self.in_flight >= self.quota.concurrency:
            ends_at = min(lease.ends_at for lease in self._leases.values())
            waits["concurrency"] = ends_at - now if now < ends_at < math.inf else _GUESSED_WAIT
        name = max(waits, key=waits.__getitem__, default="")
        return Refusal(name, waits[name], needs.get(name, 1.0)) if name and waits[name] > 0 else None

    def _take(self, lease: Lease, name: str, units: float, now: float) -> None:
        bucket = self.buckets.get(name)
        if bucket is not None and units:
            bucket.take(units, now)
            lease.taken[name] = lease.taken.get(name, 0.0) + units

    def wrote(self, lease: Lease, output_tokens: int) -> None:
        """So many tokens of the answer are written so far: with the rule `split` they are charged now."""
        if self.quota.reserve == "split" and not lease.settled:
            now = self.clock()
            for name, units in _amounts(lease.input_tokens, output_tokens).items():
                if name in _TOKEN_BUCKETS:
                    self._take(lease, name, max(0.0, units - lease.taken.get(name, 0.0)), now)

    def settle(self, lease: Lease, input_tokens: int, output_tokens: int) -> None:
        """Charge what was used, and give back the rest of what was reserved. Later settlements change nothing."""
        if lease.settled:
            return
        lease.settled = True
        now = self.catch_up()
        used = _amounts(input_tokens, output_tokens)
        for name in _TOKEN_BUCKETS:
            missing = used[name] - lease.taken.get(name, 0.0)
            if missing > 0 or self.quota.refund:
                self._take(lease, name, missing, now)
        least_input, least_output = (0, 0) if self.quota.refund else (lease.charged_input, lease.charged_output)
        lease.charged_input = max(input_tokens, least_input)
        lease.charged_output = max(output_tokens, least_output)

    def end(self, lease: Lease) -> None:
        """The call is over: it counts no more as one in flight."""
        self._leases.pop(id(lease), None)


def _amounts(input_tokens: int, output_tokens: int) -> dict[str, float]:
    return {
        "requests_per_minute": 1.0,
        "requests_per_day": 1.0,
        "tokens_per_minute": float(input_tokens + output_tokens),
        "input_tokens_per_minute": float(input_tokens),
        "output_tokens_per_minute": float(output_tokens),
    }


def as_wait(seconds: float) -> timedelta:
    """Seconds as a duration, rounded up to whole milliseconds: who waits so long is let in."""
    return timedelta(milliseconds=math.ceil(round(seconds * 1000, 6)))
