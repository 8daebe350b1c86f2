"""Conditions as if, filter and switch have them since their version 2, 2 and 3: a list of comparisons, each typed.

`options` say whether letters of another case are others, and whether values are converted to the type (`loose`) or
refused (`strict`). Older ones: see `comparisons`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.scope import Scope
from headrace.model.expressions.values import truthy
from headrace.nodes.base import Fault
from headrace.nodes.checking import is_expression, shown
from headrace.nodes.conversions import number_of, parsed, text_of, truth_of
from headrace.nodes.moments import moment_of
from headrace.nodes.operations import OPERATIONS, fault_of
from headrace.nodes.parameters import Parameters

_COMBINATORS = ("and", "or")
_STRICT_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip
_METHODS = {"string": ".toString()", "number": ".toNumber()", "boolean": ".toBoolean()"}


@dataclass(frozen=True, slots=True)
class Rules:
    """How values are compared."""

    ignore_case: bool = False
    strict: bool = True
    #: 2: "false" is false where values are converted; 3: an empty text is no number, before it was 0.
    edition: int = 1
    zone: tzinfo = UTC


def zone_of(scope: Scope | None) -> tzinfo:
    """Return the zone that dates without one are meant in: that of the flow."""
    now = None if scope is None else scope.now
    return UTC if now is None or now.tzinfo is None else now.tzinfo


def rules_of(conditions: Mapping[str, Any], at: Parameters, edition: int) -> Rules:
    """Return the rules that conditions carry with them; without any those of the node's own options."""
    options = conditions.get("options")
    zone = zone_of(at.scope)
    if not isinstance(options, Mapping):
        loose = at.flag("looseTypeValidation") or at.flag("options.looseTypeValidation")
        return Rules(at.flag("options.ignoreCase"), not loose, edition, zone)
    written = options.get("version", 1)
    strict = options.get("typeValidation") == "strict"
    return Rules(not options.get("caseSensitive"), strict, written if isinstance(written, int) else 1, zone)


def holds(conditions: Any, at: Parameters, *, path: str, edition: int = 1) -> bool:
    """Whether conditions hold, their expressions evaluated already. Raises InvalidInputError naming the one at fault.

    >>> less = {"leftValue": 2, "rightValue": 3, "operator": {"type": "number", "operation": "lt"}}
    >>> holds({"conditions": [less], "combinator": "and"}, Parameters({}), path="conditions")
    True
    """
    faults = check(conditions, path)
    if faults:
        raise InvalidInputError(f"{at.field}.{faults[0].parameter}", faults[0].message)
    rules = rules_of(conditions, at, edition)
    field = f"{at.field}.{path}.conditions"
    tests = (_holds(one, f"{field}[{number}]", rules) for number, one in enumerate(conditions["conditions"]))
    return any(tests) if conditions.get("combinator") == "or" else all(tests)


def check(conditions: Any, path: str) -> list[Fault]:
    """Return what of conditions cannot be done; they may have expressions."""
    if is_expression(conditions):
        return [Fault(path, "must be written out, not computed")]
    found = conditions.get("conditions") if isinstance(conditions, Mapping) else None
    if not isinstance(found, list):
        return [Fault(path, 'must have a list "conditions"')]
    combinator = conditions.get("combinator", "and")
    faults = (
        []
        if combinator in _COMBINATORS
        else [Fault(f"{path}.combinator", f'must be "and" or "or", got {shown(combinator)}')]
    )
    for number, one in enumerate(found):
        wrong = _fault(one)
        if wrong:
            faults.append(Fault(f"{path}.conditions[{number}].operator", wrong))
    return faults


def _fault(condition: Any) -> str | None:
    operator = condition.get("operator") if isinstance(condition, Mapping) else None
    if not isinstance(operator, Mapping):
        return 'must be an object such as {"type": "string", "operation": "equals"}'
    return fault_of(operator.get("type"), operator.get("operation"))


def _holds(condition: Mapping[str, Any], field: str, rules: Rules) -> bool:
    operator = condition["operator"]
    kind = operator["type"]
    operation = OPERATIONS[kind][operator["operation"]]
    left = _typed(condition.get("leftValue"), kind, f"{field}.leftValue", rules)
    right = None
    if operation.right:
        right = _typed(condition.get("rightValue"), operation.right, f"{field}.rightValue", rules)
    if operator["operation"] in ("exists", "notExists"):
        return operation.test(left, right)
    if kind == "string":
        left, right = left or "", right or ""
    if rules.ignore_case:
        left = [_lower(one) for one in left] if isinstance(left, list) else _lower(left)
        right = _lower(right)
    return operation.test(left, right)


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _typed(value: Any, kind: str, field: str, rules: Rules) -> Any:
    """Return a value as the type that it is compared as; null stays null. Raises InvalidInputError."""
    if kind == "any" or value is None:
        return value
    if kind == "number" and rules.edition >= 3 and (value == [] or (isinstance(value, str) and not value.strip())):
        return None
    if rules.strict and kind in _STRICT_TYPES:
        fits = isinstance(value, _STRICT_TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
        made = value if fits else None
    else:
        made = _converted(value, kind, rules)
    if made is None:
        raise InvalidInputError(field, _rule(kind, rules), value)
    return made


def _converted(value: Any, kind: str, rules: Rules) -> Any:
    if kind == "boolean":
        found = truth_of(value) if rules.edition >= 2 else None
        return truthy(value) if found is None else found
    if kind == "dateTime":
        return moment_of(value, rules.zone)
    if kind == "string":
        return text_of(value)
    if kind == "number":
        return number_of(value)
    wanted = _STRICT_TYPES[kind][0]
    return parsed(value, wanted) if isinstance(value, str) else value if isinstance(value, wanted) else None


def _rule(kind: str, rules: Rules) -> str:
    if kind == "dateTime":
        return 'is compared as a date and must be one, such as "2026-03-01T09:00:00Z" or milliseconds since 1970'
    if not rules.strict:
        return f"is compared as {kind} and cannot become one: change the type of the operator, or the value"
    method = f", or write {_METHODS[kind]} behind the value" if kind in _METHODS else ""
    return (
        f"is compared as {kind} and must be one, as types are strict here: "
        f'change the type of the operator, set options.typeValidation to "loose"{method}'
    )
