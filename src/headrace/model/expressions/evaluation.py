"""The language from outside: values with expressions in them, evaluated, checked and looked through."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from headrace.model.expressions.budget import MAX_DEPTH, MAX_SIZE, Run
from headrace.model.expressions.errors import ExpressionError, ExpressionLimitError, Fault, LimitFault
from headrace.model.expressions.evaluating import data_of, text_of_pieces
from headrace.model.expressions.moments import Moment
from headrace.model.expressions.scope import Scope
from headrace.model.expressions.syntax import Call, OtherNode, Part, Root, children
from headrace.model.expressions.templates import Template, template_of
from headrace.model.expressions.values import kind
from headrace.model.expressions.writing import check_json_size

_T = TypeVar("_T")
#: A text or a list of this size is JSON of at most six times as much; what is larger is measured.
_SMALL = MAX_SIZE // 6 - 1_000
_CLOCK_ROOTS = ("$now", "$today")


def evaluate(value: Any, scope: Scope, *, field: str = "value") -> Any:
    """Return a value with all expressions in it evaluated; it may share parts with the scope: change neither.

    Texts that begin with "=" are templates: `={{ … }}` alone gives the value of the expression, with its type; with
    text around it, or several, a text. Raises ExpressionError, ExpressionLimitError.

    >>> evaluate({"total": "={{ $json.price * 2 }}"}, Scope(item={"json": {"price": 4}}))
    {'total': 8}
    """
    return _each(value, field, lambda text, where: _evaluated(text, scope, where))


def check(value: Any, *, field: str = "value") -> None:
    """Raise ExpressionSyntaxError unless all expressions in a value are of the language, or ExpressionLimitError.

    >>> check({"total": "={{ $json.price * 2 }}"})
    """
    _each(value, field, _parsed)


def node_names(value: Any) -> frozenset[str]:
    """Return the names of other nodes that expressions in a value refer to. Raises as `check` does.

    >>> sorted(node_names(["={{ $('A').item.json.x + $node['B'].json.y }}", '={{ $items("C").length }}']))
    ['A', 'B', 'C']
    """
    return frozenset(part.name for part in _parts(value) if isinstance(part, OtherNode))


def uses_now(value: Any) -> bool:
    """Whether an expression in a value asks for the time. Raises as `check` does.

    >>> uses_now("={{ $now.toISO() }}"), uses_now("={{ $json.now }}")
    (True, False)
    """
    return any(_asks_for_time(part) for part in _parts(value))


def _asks_for_time(part: Part) -> bool:
    if isinstance(part, Root):
        return part.name in _CLOCK_ROOTS
    return isinstance(part, Call) and part.function.name in ("DateTime.now", "Date.now")


def _parts(value: Any) -> Iterator[Part]:
    templates: list[Template] = []
    _each(value, "value", lambda text, where: templates.append(_parsed(text, where)))
    for template in templates:
        waiting = list(template.pieces)
        while waiting:
            part = waiting.pop()
            waiting += children(part)
            yield part


def _each(value: Any, field: str, use: Callable[[str, str], Any], depth: int = 0) -> Any:
    """Return a value with what `use` makes of each template in it, named by where it stands."""
    if type(value) is str:
        return use(value, field) if value.startswith("=") else value
    if not isinstance(value, dict | list) or not value:
        return value
    if depth >= MAX_DEPTH:
        raise ExpressionLimitError(field, f"must be nested at most {MAX_DEPTH} levels deep", kind(value))
    if isinstance(value, list):
        return [_each(one, f"{field}[{index}]", use, depth + 1) for index, one in enumerate(value)]
    return {name: _each(one, f"{field}.{name}", use, depth + 1) for name, one in value.items()}


def _parsed(text: str, field: str) -> Template:
    return _named(text, field, lambda: template_of(text))


def _evaluated(text: str, scope: Scope, field: str) -> Any:
    try:
        return _value(Run(scope), template_of(text))
    except Fault as fault:
        raise fault.error(field, text) from None
    except UnicodeError:
        rule = "cannot be evaluated: a text has a half of a surrogate pair, which is no character"
        raise ExpressionError(field, rule, text) from None
    except ArithmeticError:
        raise ExpressionError(field, "cannot be evaluated: a number is out of range", text) from None
    except (RecursionError, MemoryError):
        raise ExpressionLimitError(field, "is nested too deeply, or makes values that are too large", text) from None


def _named(text: str, field: str, make: Callable[[], _T]) -> _T:
    try:
        return make()
    except Fault as fault:
        raise fault.error(field, text) from None


def _value(run: Run, template: Template) -> Any:
    if not template.single:
        return _fitting(run, text_of_pieces(run, list(template.pieces)))
    value = data_of(run, template.pieces[0])
    if template.path and not isinstance(value, float):
        return value
    return _fitting(run, value)


def _fitting(run: Run, value: Any) -> Any:
    """Return a result that was made, if it is JSON, and not too large as that."""
    if type(value) is float and not math.isfinite(value):
        raise Fault("the result is no number")
    if type(value) is str and len(value) <= _SMALL // 4:
        return value
    if type(value) in (str, list, dict) and _weight(run, value, 0) > _SMALL:
        check_json_size(run, value)
    return value


def _weight(run: Run, value: Any, depth: int) -> int:
    """Return about how large a value is, and look at all that is in it. Raises Fault, LimitFault."""
    if depth > MAX_DEPTH:
        raise LimitFault(f"the result is nested more than {MAX_DEPTH} levels deep")
    if type(value) is str:
        return 4 * len(value) if not value.isascii() else len(value) + 2
    if type(value) is list:
        return 2 + sum(_weight(run, one, depth + 1) for one in run.each(value))
    if type(value) is dict:
        return 2 + sum(4 * len(name) + 4 + _weight(run, one, depth + 1) for name, one in run.each(value.items()))
    if type(value) is float and not math.isfinite(value):
        raise Fault("a number in the result is none")
    if type(value) is Moment:
        raise Fault("there is a date in the result that is no text")
    return 24
