"""One table of a file, read with care: each mistake is told with the file, the key, the rule and the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from math import isfinite
from typing import Any, NoReturn

from headrace import ConfigError
from headrace.ray_settings import parse_size

#: Seconds that a time may have: 30 days.
LONGEST = 2_592_000


@dataclass(frozen=True, slots=True)
class Section:
    """A table; `path` leads to it from the top of `file`. Every reader raises ConfigError."""

    file: str
    path: str
    table: Mapping[str, Any]
    known: Sequence[str]

    @classmethod
    def of(cls, file: str, path: str, value: Any, known: Sequence[str]) -> Section:
        """Return a table of which only these keys may be given; an empty one where nothing is."""
        value = {} if value is None else value
        if not isinstance(value, Mapping):
            raise ConfigError(f"{file}: {path or 'the file'} must be a table of keys, got {value!r:.80}")
        for key in value:
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                fix = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
                raise ConfigError(f"{file}: unknown key {_joined(path, key)}; {fix}")
        return cls(file, path, value, known)

    def inner(self, key: str, known: Sequence[str]) -> Section:
        """Return a table within this one."""
        return Section.of(self.file, _joined(self.path, key), self.table.get(key), known)

    def rows(self, key: str, known: Sequence[str]) -> Iterator[Section] | None:
        """Return the tables of a list; None where it is not given."""
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            self._refuse(key, "must be a list of tables", value)
        place = _joined(self.path, key)
        return (Section.of(self.file, f"{place}[{index}]", row, known) for index, row in enumerate(value))

    def number(self, key: str, default: float, *, least: float = 0, most: float = 1_000_000) -> float:
        """Return a number within bounds."""
        value = self._given(key, default)
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        if not (whole and isfinite(value) and least <= value <= most):
            self._refuse(key, f"must be a number from {least:,} to {most:,}", value)
        return float(value)

    def whole(self, key: str, default: int, *, least: int = 1, most: int = 100_000) -> int:
        """Return a whole number within bounds."""
        value = self._given(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self._refuse(key, f"must be a whole number from {least:,} to {most:,}", value)
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self._given(key, default)
        if not isinstance(value, bool):
            self._refuse(key, "must be true or false", value)
        return bool(value)

    def seconds(self, key: str, default: timedelta, *, least: float) -> timedelta:
        """Return a time that is given in seconds."""
        return timedelta(seconds=self.number(key, default.total_seconds(), least=least, most=LONGEST))

    def size(self, key: str, default: int) -> int:
        """Return bytes, of a size such as "32GB", of at least one."""
        value = self._given(key, default)
        if not isinstance(value, str | int) or isinstance(value, bool):
            self._refuse(key, 'must be a size such as "32GB" or "512MiB"', value)
        size = parse_size(f"{self.file}: {_joined(self.path, key)}", str(value))
        if size < 1:
            self._refuse(key, "must be more than nothing", value)
        return size

    def optional(self, key: str, read: Callable[[str], int]) -> int | None:
        """Return what `read` makes of a key; None where it is not given."""
        return None if self.table.get(key) is None else read(key)

    def _given(self, key: str, default: Any) -> Any:
        value = self.table.get(key)
        return default if value is None else value

    def _refuse(self, key: str, rule: str, value: Any) -> NoReturn:
        raise ConfigError(f"{self.file}: {_joined(self.path, key)} {rule}, got {value!r:.80}")


def _joined(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)
