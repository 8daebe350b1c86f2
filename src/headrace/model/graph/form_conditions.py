"""Conditions as JSON: `{"path": "page.score", "op": "lt", "value": 0.8}`, and `all`, `any` and `not` of others."""

from __future__ import annotations

from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.graph.bindings import is_path
from headrace.model.graph.conditions import Condition, Every, Never, Some, Test
from headrace.model.graph.holding import OPS, UNARY_OPS
from headrace.model.graph.members import Members, list_of

MAX_CONDITION_DEPTH = 16


def parse_condition(data: Any, field: str) -> Condition:
    """Return a condition of its JSON form. Raises InvalidInputError naming the path of what is wrong.

    >>> parse_condition({"path": "page.score", "op": "lt", "value": 0.8}, "when")
    Test(path=('page', 'score'), op='lt', value=0.8)
    """
    form = Members(data, field)
    parsed: Condition
    if form.has("all"):
        parsed = Every(form.need("all", list_of(parse_condition)))
    elif form.has("any"):
        parsed = Some(form.need("any", list_of(parse_condition)))
    elif form.has("not"):
        parsed = Never(form.need("not", parse_condition))
    else:
        parsed = Test(form.get("path", _path, ()), form.need("op", _op), form.raw("value"))
    form.close()
    return parsed


def _op(value: Any, field: str) -> str:
    if isinstance(value, str) and value in OPS:
        return value
    raise InvalidInputError(field, f"must be one of {', '.join(OPS)}", value)


def _path(value: Any, field: str) -> tuple[str | int, ...]:
    if isinstance(value, str):
        return tuple(value.split(".")) if value else ()
    if is_path(value):
        return tuple(value)
    raise InvalidInputError(field, 'must be a text such as "page.score", or an array of keys and indices', value)


def condition_form(condition: Condition) -> dict[str, Any]:
    """Return the JSON form of a condition; `parse_condition` is the inverse.

    >>> condition_form(Never(Test(("url",), "missing")))
    {'not': {'path': ['url'], 'op': 'missing'}}
    """
    match condition:
        case Every():
            return {"all": [condition_form(part) for part in condition.parts]}
        case Some():
            return {"any": [condition_form(part) for part in condition.parts]}
        case Never():
            return {"not": condition_form(condition.part)}
        case Test():
            form: dict[str, Any] = {"path": list(condition.path)} if condition.path else {}
            form["op"] = condition.op
            return form if condition.value is None else {**form, "value": condition.value}


def check_condition(condition: Condition, field: str) -> None:
    """Raise InvalidInputError for a comparison that there is not, or conditions nested deeper than 16."""
    todo = [(condition, field, 1)]
    for one, at, depth in todo:  # which grows
        if depth > MAX_CONDITION_DEPTH:
            raise InvalidInputError(field, f"must not be nested deeper than {MAX_CONDITION_DEPTH}", depth)
        match one:
            case Every() | Some():
                word = "all" if isinstance(one, Every) else "any"
                todo.extend((part, f"{at}.{word}[{index}]", depth + 1) for index, part in enumerate(one.parts))
            case Never():
                todo.append((one.part, f"{at}.not", depth + 1))
            case Test():
                _check_test(one, at)


def _check_test(test: Test, field: str) -> None:
    _op(test.op, f"{field}.op")
    if not is_path(test.path):
        _path(None, f"{field}.path")
    if test.op in ("in", "not_in") and not isinstance(test.value, list | tuple):
        raise InvalidInputError(f"{field}.value", f"of {test.op} must be an array", test.value)
    if test.op in UNARY_OPS and test.value is not None:
        raise InvalidInputError(f"{field}.value", f"must be left out, {test.op} compares with nothing", test.value)
