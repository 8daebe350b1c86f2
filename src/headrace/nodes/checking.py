"""What the `check` of types is made of: looks at parameters as they were written, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.nodes.base import Fault
from headrace.nodes.parameters import Parameters, whole_text

_SHOWN = 80


def is_expression(value: object) -> bool:
    """Whether a value is computed when the node runs.

    >>> is_expression("={{ $json.id }}"), is_expression("id")
    (True, False)
    """
    return isinstance(value, str) and value.startswith("=")


def shown(value: object) -> str:
    """Return a value for a message, shortened; whatever JSON it is, there is a text for it.

    >>> shown("a"), len(shown("a" * 1_000))
    ("'a'", 80)
    """
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def written(parameters: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """Return what stands at a dotted path, expressions as they are.

    >>> written({"options": {"reset": True}}, "options.reset")
    True
    """
    return Parameters(parameters).get(path, default)


def one_of(
    parameters: Mapping[str, Any], path: str, allowed: Iterable[str], *, default: str, instead: Mapping[str, str]
) -> list[Fault]:
    """Return a fault unless one of the allowed words stands there; `instead`: what to do in place of known others.

    The word is what the parameters below it depend on, so it cannot be an expression.
    """
    value = written(parameters, path, default)
    if isinstance(value, str) and value in allowed:
        return []
    if isinstance(value, str) and value in instead:
        return [Fault(path, f'"{value}" is not supported: {instead[value]}')]
    if is_expression(value):
        return [Fault(path, f"must be written out, not computed: one of {', '.join(allowed)}")]
    return [Fault(path, f"must be one of {', '.join(allowed)}, got {shown(value)}")]


def unused(parameters: Mapping[str, Any], path: str, message: str) -> list[Fault]:
    """Return a fault where something is asked for that we do not do; nothing, false and empty ask for nothing."""
    return [Fault(path, message)] if written(parameters, path) else []


def whole(parameters: Mapping[str, Any], path: str, *, least: int, most: int = 2**31 - 1) -> list[Fault]:
    """Return a fault where something else than a whole number within bounds is written; an expression may be one."""
    value = written(parameters, path)
    if value is None or is_expression(value):
        return []
    if isinstance(value, str) and whole_text(value):
        value = int(value)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    if fits and least <= value <= most:
        return []
    return [Fault(path, f"must be a whole number from {least} to {most}, got {shown(value)}")]


def named(parameters: Mapping[str, Any], path: str, what: str) -> list[Fault]:
    """Return a fault where no names are written: a list of texts, or one text with commas between."""
    value = written(parameters, path)
    if isinstance(value, str) and value.strip(" ,"):
        return []
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return []
    return [Fault(path, f"must name {what}, got {shown(value)}")]
