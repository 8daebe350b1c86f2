"""What was let in, refused, answered and used, second by second, so that the use of a quota can be computed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from headrace.testing.provider.buckets import Bucket, Lease, QuotaGate
from headrace.testing.provider.calls import CallLog
from headrace.testing.provider.quota import Quota


@dataclass(slots=True)
class Second:
    """One second of the server's life."""

    #: Whole seconds since the first call that was let in.
    second: int
    #: Calls let in.
    accepted: int = 0
    #: Calls refused by a quota.
    refused: int = 0
    #: Tokens of the calls let in: what they reserved, and once they have ended, what they were charged.
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Of prompt and answer together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A look at the server's counts. `GET /scripted/stats` gives the same as JSON; `Stats.read` reads it."""

    #: All calls that arrived.
    calls: int
    #: Calls by outcome: `open`, `answered`, `failed`, `aborted`, `refused`.
    outcomes: Mapping[str, int]
    #: Answers with status 429: refusals by a quota, and faults.
    rate_limited: int
    #: Refusals by the limit that caused them.
    refused_by: Mapping[str, int]
    #: Calls answered in full.
    paid: int
    #: Whole answers beyond the first of each content.
    paid_again: int
    #: Different contents.
    contents: int
    in_flight: int
    peak_in_flight: int
    #: Tokens of all calls that were let in and ended: `input`, `output`, `cached`.
    tokens: Mapping[str, int]
    #: `limit`, `capacity`, `level` and `used` of each bucket, by its name.
    buckets: Mapping[str, Mapping[str, float]]
    #: One entry for each second from the first call let in; `second` counts from there.
    seconds: Sequence[Second]
    #: Quotas in the order they ruled: `second` (since the first call let in; negative before it), `calls`, `quota`.
    quotas: Sequence[Mapping[str, Any]]
    #: `monotonic` and `wall` (seconds) of the first and last call let in, and of this look; None before the first.
    first_accepted_at: Mapping[str, float] | None
    last_accepted_at: Mapping[str, float] | None
    now: Mapping[str, float]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Stats:
        """The stats in the JSON of `GET /scripted/stats`."""
        known = {entry.name: data[entry.name] for entry in fields(cls)}
        return cls(**{**known, "seconds": tuple(Second(**second) for second in data["seconds"])})

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def per_minute(self, name: str = "accepted", first: int = 0, last: int | None = None) -> float:
        """Units per minute over whole seconds: `accepted`, `tokens`, `input_tokens`, `output_tokens` or `refused`.

        Counts the seconds from `first` up to and without `last` (None: up to the last one). Divided by the quota it is
        the share of it that was used.
        """
        window = self.seconds[first:last]
        return 60 * sum(getattr(second, name) for second in window) / len(window) if window else 0.0


class Tally:
    """The counts of one gate, second by second."""

    def __init__(self, gate: QuotaGate) -> None:
        self._gate = gate
        self.clear()

    def clear(self) -> None:
        """Start counting anew."""
        self.tokens: Counter[str] = Counter(input=0, output=0, cached=0)
        self.rate_limited = 0
        self.peak_in_flight = 0
        self._seconds: list[Second] = []
        self._first_at: float | None = None
        self._last_at: float | None = None
        self._refused_before: Counter[str] = Counter(self._gate.refused)

    def accepted(self, lease: Lease) -> None:
        """A call was let in."""
        if self._first_at is None:
            self._first_at = lease.accepted_at
        self._last_at = lease.accepted_at
        slot = self._slot(lease.accepted_at)
        slot.accepted += 1
        slot.input_tokens += lease.charged_input
        slot.output_tokens += lease.charged_output
        self.peak_in_flight = max(self.peak_in_flight, self._gate.in_flight)

    def refused(self) -> None:
        """A call was refused by a quota."""
        self.rate_limited += 1
        if self._first_at is not None:
            self._slot(self._gate.clock()).refused += 1

    def recharged(self, lease: Lease, before: tuple[int, int]) -> None:
        """A call was charged anew; `before`: its tokens of the prompt and of the answer until then."""
        if self._first_at is not None and lease.accepted_at >= self._first_at:
            slot = self._slot(lease.accepted_at)
            slot.input_tokens += lease.charged_input - before[0]
            slot.output_tokens += lease.charged_output - before[1]

    def look(self, log: CallLog) -> Stats:
        """The counts as they are now."""
        now = self._gate.catch_up()
        outcomes, per_content = log.outcomes(), log.answered_per_content()
        paid = sum(per_content.values())
        return Stats(
            calls=len(log.records),
            outcomes=outcomes,
            rate_limited=self.rate_limited,
            refused_by=dict(self._gate.refused - self._refused_before),
            paid=paid,
            paid_again=paid - len(per_content),
            contents=len(log.contents),
            in_flight=self._gate.in_flight,
            peak_in_flight=self.peak_in_flight,
            tokens=dict(self.tokens),
            buckets={name: _shown(bucket, now) for name, bucket in self._gate.buckets.items()},
            seconds=tuple(replace(second) for second in self._seconds),
            quotas=[self._ruled(*entry) for entry in self._gate.history],
            first_accepted_at=_instants(self._first_at, now),
            last_accepted_at=_instants(self._last_at, now),
            now={"monotonic": now, "wall": time.time()},
        )

    def _slot(self, at: float) -> Second:
        assert self._first_at is not None
        number = int(at - self._first_at)
        while len(self._seconds) <= number:
            self._seconds.append(Second(len(self._seconds)))
        return self._seconds[number]

    def _ruled(self, at: float, calls: int, quota: Quota) -> Mapping[str, Any]:
        second = None if self._first_at is None else round(at - self._first_at, 3)
        return {"second": second, "calls": calls, "quota": quota.to_json()}


def _shown(bucket: Bucket, now: float) -> Mapping[str, float]:
    figures = {"limit": bucket.limit, "capacity": bucket.capacity, "level": bucket.level(now), "used": bucket.used}
    return {name: round(value, 3) for name, value in figures.items()}


def _instants(at: float | None, now: float) -> Mapping[str, float] | None:
    return None if at is None else {"monotonic": at, "wall": time.time() - (now - at)}
