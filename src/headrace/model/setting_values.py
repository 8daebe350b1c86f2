"""Values of settings as files and the environment write them: texts, numbers, durations, lists. Secrets stay hidden."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args, get_origin

from headrace.model.durations import parse_duration
from headrace.model.errors import ConfigError, InvalidInputError

#: Python itself refuses texts of more than some thousand digits.
_WHOLE, _NUMBER = re.compile(r"-?[0-9]{1,1000}"), re.compile(r"[0-9]{1,1000}\.?[0-9]{0,1000}|\.[0-9]{1,1000}")


def check_secret(where: str, raw: Any, kind: Any) -> None:
    """Raise ConfigError for a secret, or what has one in it, of another form than its type, without showing it."""
    several = get_origin(kind) is tuple
    listed = several and isinstance(raw, list) and all(isinstance(one, str) for one in raw)
    if not (listed or isinstance(raw, str)):
        raise ConfigError(f"{where} must be {'a list of texts' if several else 'text'} in quotes")


def _duration(where: str, raw: Any) -> timedelta:
    try:
        return parse_duration(float(raw) if isinstance(raw, str) and _is_number(raw) else raw, field=where)
    except InvalidInputError as error:
        raise ConfigError(str(error)) from None


def _is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text))


def _whole_number(where: str, raw: Any) -> int:
    if isinstance(raw, str) and _WHOLE.fullmatch(raw):
        return int(raw)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    raise ConfigError(str(InvalidInputError(where, "must be a whole number", raw)))


def _number(where: str, raw: Any) -> float:
    if isinstance(raw, str) and _is_number(raw):
        return float(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        with suppress(OverflowError):
            return float(raw)
    raise ConfigError(str(InvalidInputError(where, "must be a number", raw)))


def _boolean(where: str, raw: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in words:
        return words[raw.lower()]
    raise ConfigError(f"{where} must be true or false, got {raw!r}")


def _text(where: str, raw: Any) -> str:
    if isinstance(raw, str):
        return raw
    raise ConfigError(f"{where} must be text in quotes, got {raw!r}")


def _texts(where: str, raw: Any) -> tuple[str, ...]:
    if isinstance(raw, str):
        return tuple(part.strip() for part in raw.split(",") if part.strip())
    if isinstance(raw, list) and all(isinstance(item, str) for item in raw):
        return tuple(raw)
    raise ConfigError(f'{where} must be a list of texts such as ["a", "b"], got {raw!r}')


def _path(where: str, raw: Any) -> Path:
    return Path(_text(where, raw)).expanduser()


_CONVERTERS: dict[type, Callable[[str, Any], Any]] = {
    timedelta: _duration,
    bool: _boolean,
    int: _whole_number,
    float: _number,
    str: _text,
    Path: _path,
}


def convert(where: str, raw: Any, kind: Any) -> Any:
    """Return a value as the type that a key has. Raises ConfigError naming the key, the rule and the value.

    >>> convert("HEADRACE_X", "90s", timedelta | None)
    datetime.timedelta(seconds=90)
    """
    if get_origin(kind) is tuple:
        return _texts(where, raw)
    chosen = next((item for item in get_args(kind) if item is not type(None)), kind)
    return _CONVERTERS[chosen](where, raw)
