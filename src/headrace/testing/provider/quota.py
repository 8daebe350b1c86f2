"""What the scripted provider allows, and when that changes: read from arguments, a command line or a request."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from typing import Any, Literal, get_args

from headrace.model.durations import format_duration, parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole

Reserve = Literal["max_tokens", "prompt", "actual", "split"]
RetryStyle = Literal["ms", "seconds", "retry_info", "none"]
HeaderStyle = Literal["openai", "anthropic", "none"]

_RATES = ("requests_per_minute", "tokens_per_minute", "input_tokens_per_minute", "output_tokens_per_minute")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "reserve": get_args(Reserve),
    "retry_style": get_args(RetryStyle),
    "headers": get_args(HeaderStyle),
}
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Limits of the account, as token buckets that fill all the time. The default limits nothing.

    >>> Quota.parse("requests_per_minute=600,burst=10s").burst
    datetime.timedelta(seconds=10)
    """

    requests_per_minute: float | None = None
    #: prompt and answer together
    tokens_per_minute: float | None = None
    input_tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    #: A bucket that holds a whole day's requests.
    requests_per_day: float | None = None
    #: Most calls in flight.
    concurrency: int | None = None
    #: How much of a quota per minute may be used at once after a pause.
    burst: timedelta = timedelta(seconds=1)
    #: What a call takes when it begins: `max_tokens` (prompt and the most tokens of the answer), `prompt` (the answer
    #: is charged at its end), `actual` (all is charged at the end), `split` (the prompt; the answer as it is written).
    reserve: Reserve = "max_tokens"
    #: Give back what was reserved and not used, before the answer's last byte is sent.
    refund: bool = True
    #: Refused calls use the quotas of requests too.
    count_refused: bool = False
    #: Tokens reserved for an answer whose request sets no bound.
    default_max_tokens: int = 1_000
    #: Leading blocks of 128 tokens of a prompt that was answered before are free, and told as `cached_tokens`.
    cached_prefix: bool = False
    #: How a refusal says when to come again: `ms` (`retry-after-ms` and `retry-after`), `seconds` (`retry-after`
    #: alone), `retry_info` (in the body, as Gemini does) or `none`.
    retry_style: RetryStyle = "ms"
    #: Whose headers tell limits, what remains and when all is there again; `none` hides the limits.
    headers: HeaderStyle = "openai"

    def __post_init__(self) -> None:
        for name in (*_RATES, "requests_per_day"):
            _check_rate(name, getattr(self, name))
        if self.concurrency is not None:
            check_whole("quota concurrency", self.concurrency)
        check_whole("quota default_max_tokens", self.default_max_tokens)
        if self.burst <= timedelta():
            raise InvalidInputError("quota burst", "must be a positive duration", self.burst)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise InvalidInputError(f"quota {name}", f"must be one of {', '.join(choices)}", getattr(self, name))

    @classmethod
    def parse(cls, text: str) -> Quota:
        """Read `name=value,…`. Raises InvalidInputError that names what was not understood."""
        return cls().changed(read_pairs(text))

    def changed(self, changes: Mapping[str, Any]) -> Quota:
        """Return this quota with some values changed; values may be texts, and `none` takes a limit away.

        >>> Quota(requests_per_minute=600).changed({"requests_per_minute": "300"}).requests_per_minute
        300.0
        """
        return replace(self, **{name: _read(name, value) for name, value in changes.items()})

    def to_json(self) -> dict[str, Any]:
        """Return all values as JSON has them; the burst as a duration such as `1s`."""
        return {**asdict(self), "burst": format_duration(self.burst)}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """A change that waits: for a time since the next call that is let in, or for a number of calls let in from now on.

    >>> QuotaChange.parse("after_calls=2000:requests_per_minute=300").after_calls
    2000
    """

    #: New values by name, as `Quota.changed` takes them.
    changes: Mapping[str, Any]
    after: timedelta | None = None
    after_calls: int | None = None

    def __post_init__(self) -> None:
        if (self.after is None) == (self.after_calls is None):
            raise InvalidInputError("quota change", "needs either 'after' (a duration) or 'after_calls'", self.after)
        Quota().changed(self.changes)

    @classmethod
    def parse(cls, text: str) -> QuotaChange:
        """Read `after=30s:name=value,…` or `after_calls=2000:name=value,…`. Raises InvalidInputError."""
        when, colon, changes = text.partition(":")
        if not colon:
            raise InvalidInputError("quota change", "must look like after_calls=2000:requests_per_minute=300", text)
        return cls.of({**read_pairs(when), **read_pairs(changes)})

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> QuotaChange:
        """Return the change in this mapping: `after` or `after_calls`, and the new values. Raises InvalidInputError."""
        changes = {name: value for name, value in values.items() if name not in ("after", "after_calls")}
        after, calls = values.get("after"), values.get("after_calls")
        return cls(
            changes=changes,
            after=None if after is None else parse_duration(_seconds(after), field="quota change after"),
            after_calls=None if calls is None else check_whole("quota change after_calls", _whole(calls)),
        )


def read_pairs(text: str) -> dict[str, str]:
    """Read `name=value,…`. Raises InvalidInputError where a value is missing."""
    pairs: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInputError("quota", "must look like requests_per_minute=600,burst=10s", pair)
        pairs[name.strip()] = value.strip()
    return pairs


def _check_rate(name: str, value: float | None) -> None:
    if value is not None and not (value > 0 and math.isfinite(value)):
        raise InvalidInputError(f"quota {name}", "must be a positive number, or None for no limit", value)


def _number(value: Any) -> float | None:
    return None if value is None or value == "none" else float(value)


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _seconds(value: Any) -> Any:
    return float(value) if isinstance(value, str) and value.replace(".", "", 1).isdigit() else value


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else _TRUTHS[str(value).lower()]


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys((*_RATES, "requests_per_day"), _number),
    "concurrency": lambda value: None if value is None or value == "none" else _whole(value),
    "burst": lambda value: parse_duration(_seconds(value), field="quota burst"),
    **dict.fromkeys(("refund", "count_refused", "cached_prefix"), _truth),
    "default_max_tokens": _whole,
    **dict.fromkeys(_CHOICES, str),
}


def _read(name: str, value: Any) -> Any:
    if name not in _READERS:
        raise InvalidInputError("quota", f"takes only {', '.join(field.name for field in fields(Quota))}", name)
    try:
        return _READERS[name](value)
    except (ValueError, TypeError, KeyError):
        raise InvalidInputError(
            f"quota {name}", "must be a number, a duration or a truth value as told", value
        ) from None
