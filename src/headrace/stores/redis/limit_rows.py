"""Limits as scripts give them: caps, rates, breakers and shares for reading."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from headrace.model.admission import BreakerView, CapView, RateView, ShareView
from headrace.model.breaker import BreakerRecord, BreakerRule, BreakerState, OnOpen
from headrace.model.limits import Rate
from headrace.stores.redis.rows import instant, parse_id, span


def rule_fields(rule: BreakerRule) -> list[str]:
    """Return names and values of the fields of a breaker's hash that its rule sets."""
    fields = {
        "max_failures": str(rule.failures),
        "min_calls": str(rule.min_calls),
        "window": str(span(rule.window)),
        "cooldown": str(span(rule.cooldown)),
        "on_open": rule.on_open.value,
    }
    if rule.error_rate is not None:
        fields["error_rate"] = repr(rule.error_rate)
    return [word for pair in fields.items() for word in pair]


def cap_view(key: str, declared: str | None, override: str | None, running: int) -> CapView:
    """Return a cap, for reading."""
    return CapView(
        key, None if declared is None else int(declared), None if override is None else int(override), running
    )


def rate_view(name: str, *row: str | None) -> RateView:
    """Return a rate limit, for reading; `row` is two figures declared, two of an operator, level and closing time."""
    per_second, burst, set_per_second, set_burst, level, closed_until = row
    return RateView(
        name,
        declared=_rate(per_second, burst),
        override=_rate(set_per_second, set_burst),
        level=float(level or 0),
        closed_until=None if closed_until is None else instant(closed_until),
    )


def _rate(per_second: str | None, burst: str | None) -> Rate | None:
    return None if per_second is None or burst is None else Rate(float(per_second), float(burst))


def breaker_view(key: str, fields: Sequence[str]) -> BreakerView:
    """Return a breaker, for reading; names and values come in turn."""
    row = dict(zip(fields[::2], fields[1::2], strict=True))
    rule = BreakerRule(
        failures=int(row["max_failures"]),
        error_rate=float(row["error_rate"]) if "error_rate" in row else None,
        min_calls=int(row["min_calls"]),
        window=timedelta(microseconds=int(row["window"])),
        cooldown=timedelta(microseconds=int(row["cooldown"])),
        on_open=OnOpen(row["on_open"]),
    )
    record = BreakerRecord(
        state=BreakerState(row["state"]),
        failures=int(row.get("failures", 0)),
        calls=int(row.get("calls", 0)),
        errors=int(row.get("errors", 0)),
        window_at=instant(row["window_at"]) if "window_at" in row else None,
        retry_at=instant(row["retry_at"]) if "retry_at" in row else None,
        probe=_probe(row["probe"]) if "probe" in row else None,
    )
    return BreakerView(key, rule, record)


def _probe(text: str) -> tuple[UUID, int]:
    job_id, _, attempt = text.partition(" ")
    return parse_id(job_id), int(attempt)


def share_view(queue: str, fair_key: str, weight: str, finish: str) -> ShareView:
    """Return a fair key, for reading."""
    return ShareView(queue, fair_key, float(weight), float(finish))
