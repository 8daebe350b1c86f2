"""Reading the JSON of flows: files, and values with the paths by which errors name them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace import InvalidInputError
from headrace.model.strict_json import refuse_constant, unique_members

#: A flow with pinned data may be larger than the graph it becomes.
MAX_FLOW_BYTES = 16 * 1024 * 1024


class FlowError(InvalidInputError):
    """The flow cannot be read. Correct the named field."""

    code = "invalid_flow"


def read_json(path: Path) -> Any:
    """Return the JSON of a file. Raises FlowError naming the file, and the line and column of a fault."""
    try:
        if path.stat().st_size > MAX_FLOW_BYTES:
            raise FlowError(str(path), f"must have at most {MAX_FLOW_BYTES >> 20} MiB", f"{path.stat().st_size} bytes")
        content = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise FlowError(str(path), "must be a file that is there", str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise FlowError(str(path), "must be a file of UTF-8 text that can be read", str(error)) from None
    return parse_json(content, str(path))


def parse_json(content: str, field: str) -> Any:
    """Return the JSON of a text. Raises FlowError with the line and column of a fault."""
    try:
        return json.loads(content, parse_constant=refuse_constant, object_pairs_hook=unique_members)
    except RecursionError:
        raise FlowError(field, "must not be nested so deeply", "JSON") from None
    except json.JSONDecodeError as error:
        raise FlowError(field, "must be JSON", f"{error.msg} in line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise FlowError(field, "must be JSON", str(error)) from None


def members(value: Any, field: str) -> dict[str, Any]:
    """Return an object. Raises FlowError."""
    if isinstance(value, dict):
        return value
    raise FlowError(field, "must be an object", value)


def listed(value: Any, field: str) -> list[Any]:
    """Return a list. Raises FlowError."""
    if isinstance(value, list):
        return value
    raise FlowError(field, "must be a list", value)


def text(value: Any, field: str, default: str | None = None) -> str:
    """Return a text; `default` for null, unless it must be given. Raises FlowError."""
    if value is None and default is not None:
        return default
    if isinstance(value, str) and (value or default is not None):
        return value
    raise FlowError(field, "must be a text", value)


def flag(value: Any, field: str) -> bool:
    """Return a truth value; null is false. Raises FlowError."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise FlowError(field, "must be true or false", value)


def number(value: Any, field: str, default: float) -> float:
    """Return a number; `default` for null. Raises FlowError."""
    if value is None:
        return default
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise FlowError(field, "must be a number", value)
