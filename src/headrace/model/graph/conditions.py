"""Conditions on a value: what edges and loops decide by. Data, never code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Test:
    """Compares what lies at a path of the value with another value; see `holds`."""

    path: tuple[str | int, ...]
    op: str
    value: Any = None
    #: It is no test of pytest.
    __test__: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Every:
    """Holds when all of its parts do."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Holds when one of its parts does."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Never:
    """Holds when its part does not."""

    part: Condition


Condition = Test | Every | Some | Never
