"""Parameters of a node at one item: looked up by path, evaluated when they are asked for, checked for their type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.evaluation import evaluate
from headrace.model.expressions.scope import Scope
from headrace.nodes.conversions import text_of

_MISSING = object()
_WHOLE = re.compile(r"-?[0-9]{1,12}")
#: What Python reads as a number, and people do not write: digits of other scripts, 1_000, nan.
_NO_NUMBER = re.compile(r"[^0-9eE+. -]")


def whole_text(value: object) -> bool:
    """Whether a value is a text of digits that stands for a whole number.

    >>> whole_text(" -7 "), whole_text("--7"), whole_text("²")
    (True, False, False)
    """
    return isinstance(value, str) and _WHOLE.fullmatch(value.strip()) is not None


@dataclass(frozen=True, slots=True)
class Parameters:
    """Members of `raw`; without a scope they are taken as they are."""

    raw: Mapping[str, Any]
    scope: Scope | None = None
    #: Where they stand, for errors.
    field: str = "parameters"

    def has(self, path: str) -> bool:
        """Whether something is written there."""
        return self._find(path) is not _MISSING

    def get(self, path: str, default: Any = None) -> Any:
        """Return the value at a dotted path, expressions within it evaluated; `default` where nothing is written."""
        found = self._find(path)
        if found is _MISSING:
            return default
        return found if self.scope is None else evaluate(found, self.scope, field=f"{self.field}.{path}")

    def text(self, path: str, default: str = "") -> str:
        """Return a text; numbers and truth values become one. Raises InvalidInputError."""
        value = self.get(path, default)
        if isinstance(value, bool | int | float | str):
            return text_of(value)
        return default if value is None else self._refuse(path, "must be a text", value)

    def whole(self, path: str, default: int, least: int = 0, most: int = 2**31 - 1) -> int:
        """Return a whole number within bounds; a text of digits is one. Raises InvalidInputError."""
        value = self.get(path, default)
        if whole_text(value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self._refuse(path, f"must be a whole number from {least} to {most}", value)
        return int(value)

    def number(self, path: str, default: float) -> float:
        """Return a number; a text that is one counts. Raises InvalidInputError."""
        value = self.get(path, default)
        try:
            if not isinstance(value, bool) and isinstance(value, int | float | str):
                found = math.nan if isinstance(value, str) and _NO_NUMBER.search(value) else float(value)
                if math.isfinite(found):
                    return found
        except (ValueError, OverflowError):
            pass
        return float(self._refuse(path, "must be a number", value))

    def flag(self, path: str, default: bool = False) -> bool:
        """Return a truth value; "true" and "false" are some. Raises InvalidInputError."""
        value = self.get(path, default)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        return value if isinstance(value, bool) else bool(self._refuse(path, "must be true or false", value))

    def one_of(self, path: str, allowed: tuple[str, ...], default: str) -> str:
        """Return one of several words. Raises InvalidInputError naming them."""
        value = self.get(path, default)
        return value if value in allowed else str(self._refuse(path, f"must be one of {', '.join(allowed)}", value))

    def listed(self, path: str) -> list[Any]:
        """Return a list; nothing written is an empty one. Raises InvalidInputError."""
        value = self.get(path)
        if value is None:
            return []
        return value if isinstance(value, list) else list(self._refuse(path, "must be a list", value))

    def objects(self, path: str) -> list[dict[str, Any]]:
        """Return a list of objects; nothing written is an empty one. Raises InvalidInputError."""
        found = self.listed(path)
        if not all(isinstance(one, dict) for one in found):
            self._refuse(path, "must be a list of objects", found)
        return found

    def members(self, path: str) -> dict[str, Any]:
        """Return an object; nothing written is an empty one. Raises InvalidInputError."""
        value = self.get(path)
        if value is None:
            return {}
        return value if isinstance(value, dict) else dict(self._refuse(path, "must be an object", value))

    def names(self, path: str) -> list[str]:
        """Return names of fields: a list of texts, or one text with commas between. Raises InvalidInputError."""
        value = self.get(path, [])
        found = value.split(",") if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            self._refuse(path, "must be names of fields, with commas between them", value)
        return [one.strip() for one in found if one.strip()]

    def _find(self, path: str) -> Any:
        found: Any = self.raw
        for step in path.split("."):
            if not isinstance(found, Mapping) or step not in found:
                return _MISSING
            found = found[step]
        return found

    def _refuse(self, path: str, rule: str, value: object) -> Any:
        raise InvalidInputError(f"{self.field}.{path}", rule, value)
