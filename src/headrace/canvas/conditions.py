"""Conditions as people write them: `when("score").lt(0.8) & when("tries").ge(2)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Never

from headrace.canvas.references import references
from headrace.model.errors import InvalidInputError
from headrace.model.graph import conditions
from headrace.model.graph.conditions import Condition


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition; `&`, `|` and `~` make others of it."""

    condition: Condition

    def __and__(self, other: Clause) -> Clause:
        return Clause(conditions.Every((self.condition, as_condition("condition", other))))

    def __or__(self, other: Clause) -> Clause:
        return Clause(conditions.Some((self.condition, as_condition("condition", other))))

    def __invert__(self) -> Clause:
        return Clause(conditions.Never(self.condition))

    def __bool__(self) -> Never:
        rule = "is known only in a run and cannot stand in `and`, `or`, `not` or an `if`: use &, |, ~ and choose(…)"
        raise InvalidInputError("condition", rule, self.condition)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a condition is about; its methods say which."""

    path: tuple[str | int, ...]

    def eq(self, value: Any) -> Clause:
        """Return the condition that it equals a value."""
        return self._test("eq", value)

    def ne(self, value: Any) -> Clause:
        """Return the condition that it does not equal a value."""
        return self._test("ne", value)

    def lt(self, value: Any) -> Clause:
        """Return the condition that it is less than a value."""
        return self._test("lt", value)

    def le(self, value: Any) -> Clause:
        """Return the condition that it is at most a value."""
        return self._test("le", value)

    def gt(self, value: Any) -> Clause:
        """Return the condition that it is more than a value."""
        return self._test("gt", value)

    def ge(self, value: Any) -> Clause:
        """Return the condition that it is at least a value."""
        return self._test("ge", value)

    def in_(self, values: Sequence[Any]) -> Clause:
        """Return the condition that it equals one of the values."""
        return self._test("in", list(values))

    def not_in(self, values: Sequence[Any]) -> Clause:
        """Return the condition that it equals none of the values."""
        return self._test("not_in", list(values))

    def contains(self, value: Any) -> Clause:
        """Return the condition that it has a value in it: an entry, a part of a text, the name of a member."""
        return self._test("contains", value)

    def starts_with(self, text: str) -> Clause:
        """Return the condition that it is a text that begins with `text`."""
        return self._test("starts_with", text)

    def ends_with(self, text: str) -> Clause:
        """Return the condition that it is a text that ends with `text`."""
        return self._test("ends_with", text)

    def exists(self) -> Clause:
        """Return the condition that it is there, null included."""
        return self._test("exists")

    def missing(self) -> Clause:
        """Return the condition that it is not there."""
        return self._test("missing")

    def truthy(self) -> Clause:
        """Return the condition that it is neither null, false, 0, "", [] nor {}, nor missing."""
        return self._test("truthy")

    def falsy(self) -> Clause:
        """Return the condition that it is null, false, 0, "", [], {} or missing."""
        return self._test("falsy")

    def empty(self) -> Clause:
        """Return the condition that it is null, "", [], {} or missing."""
        return self._test("empty")

    def _test(self, op: str, value: Any = None) -> Clause:
        if any(True for _ in references(value)):
            rule = "must compare with data; a task can compare what only the run knows, and a condition ask its result"
            raise InvalidInputError("when", rule, value)
        return Clause(conditions.Test(self.path, op, value))


def when(*path: str | int) -> Subject:
    """Return what a condition is about: what lies at a path of the value, or, without a path, the value.

    >>> when("page", "score").lt(0.8).condition
    Test(path=('page', 'score'), op='lt', value=0.8)
    """
    for key in path:
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise InvalidInputError("when", 'must have names and positions, as in when("page", 0)', key)
    return Subject(path)


def as_condition(field: str, value: object) -> Condition:
    """Return a condition as data. Raises InvalidInputError."""
    if isinstance(value, Clause):
        return value.condition
    if isinstance(value, Condition):
        return value
    raise InvalidInputError(field, 'must be a condition such as when("score").lt(0.8)', value)
