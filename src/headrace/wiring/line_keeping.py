"""From settings to how lines of handlers are kept: how many, and which secrets are taken out of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from headrace.engine.kept_lines import LineKeeping
from headrace.model.errors import ConfigError
from headrace.model.redaction import Redaction
from headrace.ports.clock import Clock
from headrace.settings import Settings


def make_line_keeping(settings: Settings, clock: Clock) -> LineKeeping:
    """Return how the lines of attempts are kept."""
    most = settings.worker.keep_log_lines
    return LineKeeping(most, clock.now, Redaction.of(set(secrets_of(settings)) if most else set()))


def secrets_of(settings: Settings) -> Iterator[str]:
    """Yield the secrets that the settings hold or name: what is not shown of them, and the passwords of their URLs."""
    yield from _hidden_in(settings)
    for name in settings.flows.credentials:
        try:
            yield settings.flows.credential(name).secret
        except ConfigError:
            # One that names a variable which is not set: there is nothing to hide.
            continue


def _hidden_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _hidden_in(each)
    elif is_dataclass(value):
        for item in fields(value):
            held = getattr(value, item.name)
            yield from _hidden_in(held) if item.repr else _texts(held)


def _texts(held: Any) -> Iterator[str]:
    for text in (held,) if isinstance(held, str) else held if isinstance(held, tuple) else ():
        yield text
        yield from _passwords(text)


def _passwords(text: str) -> Iterator[str]:
    try:
        password = urlsplit(text).password if "://" in text else None
    except ValueError:
        return
    if password:
        yield password
        yield unquote(password)
