"""Two declarations of one limit that do not agree: who made them, and in what they differ, as people write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from headrace.model.breaker import BreakerRule
from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError
from headrace.model.limits import Rate


class Declarations:
    """What several sources declare of one kind of limit, by name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.values: dict[str, Any] = {}
        self._sources: dict[str, str] = {}

    def add(self, more: Mapping[str, Any], source: str) -> None:
        """Take in what a source, such as "task ask", declares. Raises ConfigError where another one says otherwise."""
        for name, value in more.items():
            first = self.values.setdefault(name, value)
            known = self._sources.setdefault(name, source)
            if first != value:
                one, other = _differing(first, value)
                raise ConfigError(
                    f"{self.kind} {name!r} is declared twice, as {one} by {known} and as {other} by {source}; declare "
                    "it in one place and only name it in others"
                )


def _differing(one: Any, other: Any) -> tuple[str, str]:
    """Return two values in words, without what is the same of both.

    >>> _differing(Rate.parse("5/s"), Rate.parse("600/m"))
    ('5/s', '10/s')
    >>> _differing(Rate.parse("5/s"), Rate.parse("5/s", burst=10))
    ('5/s, burst 5', '5/s, burst 10')
    >>> _differing(BreakerRule(), BreakerRule(failures=9, cooldown=timedelta(minutes=1)))
    ('failures=5, cooldown=30s', 'failures=9, cooldown=1m')
    """
    if isinstance(one, Rate) and isinstance(other, Rate):
        if one.per_second != other.per_second:
            return one.text, other.text
        return f"{one.text}, burst {one.burst:g}", f"{other.text}, burst {other.burst:g}"
    if isinstance(one, BreakerRule) and isinstance(other, BreakerRule):
        names = [item.name for item in fields(BreakerRule) if getattr(one, item.name) != getattr(other, item.name)]
        return _options(one, names), _options(other, names)
    return str(one), str(other)


def _options(rule: BreakerRule, names: list[str]) -> str:
    values = {name: getattr(rule, name) for name in names}
    shown = {name: format_duration(value) if isinstance(value, timedelta) else value for name, value in values.items()}
    return ", ".join(f"{name}={value}" for name, value in shown.items())
