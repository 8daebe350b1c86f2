"""What a provider says of its quota beside an answer or an error: its headers, and Google's RetryInfo in a body.

A server is not believed everything: what is no plain number, or no number that can be meant, is as if it were not said.
`x-should-retry` is not read: what may be tried again follows from the class of an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from headrace.model.quota import Dimension, QuotaHint

#: A longer wait is shortened to it: a job that waits a day has its own means.
LONGEST_WAIT = timedelta(days=1)
#: More seconds are a mistake of the server, or a date in their place.
_MOST_SECONDS = 31 * 86_400.0
#: More units a minute has no account.
_MOST_UNITS = 1e12
_LONGEST_VALUE = 64

_PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_SPAN = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|us|µs|ns|d|h|m|s))+")
_SPAN_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|us|µs|ns|d|h|m|s)")
_SECONDS: Mapping[str, float] = {
    "d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9,
}  # fmt: skip
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]{5,}([Zz]|[+-][0-9]{2}:[0-9]{2})")
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"

#: Dimension by what headers call it; Cerebras adds the minute.
_OPENAI: Mapping[str, Dimension] = {
    "requests": Dimension.REQUESTS, "tokens": Dimension.TOKENS, "tokens-minute": Dimension.TOKENS,
}  # fmt: skip
_ANTHROPIC: Mapping[str, Dimension] = {
    "requests": Dimension.REQUESTS,
    "tokens": Dimension.TOKENS,
    "input-tokens": Dimension.INPUT_TOKENS,
    "output-tokens": Dimension.OUTPUT_TOKENS,
}
#: (field of the hint, dimension) by header.
_BY_HEADER: Mapping[str, tuple[str, Dimension]] = {
    **{
        f"x-ratelimit-{kind}-{name}": (kind, dimension)
        for name, dimension in _OPENAI.items()
        for kind in ("limit", "remaining", "reset")
    },
    **{
        f"anthropic-ratelimit-{name}-{kind}": (kind, dimension)
        for name, dimension in _ANTHROPIC.items()
        for kind in ("limit", "remaining", "reset")
    },
}


def read_hint(headers: Mapping[str, str], *, now: datetime, details: Iterable[Mapping[str, Any]] = ()) -> QuotaHint:
    """What these headers and the `details` of an error's body say. The reset of a bucket is no wait.

    >>> read_hint({"X-RateLimit-Remaining-Requests": "59"}, now=datetime.now(UTC)).remaining
    {<Dimension.REQUESTS: 'requests'>: 59.0}
    """
    said = {name.lower(): value for name, value in headers.items()}
    found: dict[str, dict[Dimension, Any]] = {"limit": {}, "remaining": {}, "reset": {}}
    for header, (kind, dimension) in _BY_HEADER.items():
        text = said.get(header)
        value = None if text is None else _reset(text, now) if kind == "reset" else _units(text)
        if value is not None:
            found[kind][dimension] = value
    return QuotaHint(
        retry_after=_later(read_retry_after(said, now=now), _retry_info(details)),
        # A limit of nothing is no quota: it would hold the pool for ever.
        limits={dimension: limit for dimension, limit in found["limit"].items() if limit > 0},
        remaining=found["remaining"],
        resets=found["reset"],
    )


def read_retry_after(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """The wait asked for: `retry-after-ms` first, then `retry-after` in seconds, then as an HTTP date.

    From 0 to a day; None where headers (names in lower case) do not say.

    >>> read_retry_after({"retry-after": "2"}, now=datetime.now(UTC))
    datetime.timedelta(seconds=2)
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        wait = _number(headers.get(name, ""))
        if wait is not None and (span := _wait(wait * unit)) is not None:
            return span
    text = headers.get("retry-after", "")
    if len(text) > _LONGEST_VALUE:
        return None
    try:
        until = parsedate_to_datetime(text)
        return _wait((_aware(until) - now).total_seconds())
    except (ValueError, OverflowError):
        return None


def _retry_info(details: Iterable[Mapping[str, Any]]) -> timedelta | None:
    delays = [entry.get("retryDelay") for entry in details if entry.get("@type") == _RETRY_INFO]
    spans = [_span(delay) for delay in delays if isinstance(delay, str)]
    return max((span for span in spans if span is not None), default=None)


def _later(one: timedelta | None, other: timedelta | None) -> timedelta | None:
    return max((wait for wait in (one, other) if wait is not None), default=None)


def _units(text: str) -> float | None:
    value = _number(text)
    return value if value is not None and value <= _MOST_UNITS else None


def _reset(text: str, now: datetime) -> timedelta | None:
    text = text.strip()
    if len(text) <= _LONGEST_VALUE and _INSTANT.fullmatch(text):
        try:
            return _wait((datetime.fromisoformat(text.upper()) - now).total_seconds())
        except (ValueError, OverflowError):
            return None
    seconds = _number(text)
    return _span(text) if seconds is None else _wait(seconds)


def _span(text: str) -> timedelta | None:
    """A span as Go and Google write it: "6m0s", "250ms", "34s"."""
    text = text.strip()
    if len(text) > _LONGEST_VALUE or not _SPAN.fullmatch(text):
        return None
    return _wait(sum(float(number) * _SECONDS[unit] for number, unit in _SPAN_PART.findall(text)))


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if len(text) <= _LONGEST_VALUE and _PLAIN_NUMBER.fullmatch(text) else None


def _wait(seconds: float) -> timedelta | None:
    """None beyond what can be meant. An instant that has passed is a wait of 0: clocks differ."""
    if not -_MOST_SECONDS <= seconds <= _MOST_SECONDS:
        return None
    return min(timedelta(seconds=max(seconds, 0.0)), LONGEST_WAIT)


def _aware(instant: datetime) -> datetime:
    """A date that says "-0000" has no zone, and means UTC."""
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
