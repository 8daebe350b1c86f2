"""What is wrong with a template, said so that the reader can repair it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from headrace.apps.papers.yaml_file import YamlFile

MAX_SHOWN = 10

#: The known keys by the list they stand in: of the template itself (""), of "fields" and of "rows".
Keys = Mapping[str, Sequence[str]]

_RULES = {
    "missing": "is missing; add it",
    "literal_error": "must be {expected}",
    "string_type": "must be a text; put it in quotes",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entry",
    "too_long": "must have at most {max_length} entries",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping of keys to values",
    "greater_than_equal": "must be at least {ge}",
}
_NAME_RULES = {
    "name": "must be lower-case letters, digits, '_', '-' or '.', at most 64, such as clinical_trial",
    "*.name": "must begin with a lower-case letter and go on with letters, digits or '_', such as sample_size",
    "*.section": "must not be blank",
    "*.key": "must be names of fields of this group",
}


def explain(error: ValidationError, file: YamlFile, *, keys: Keys) -> str:
    """One line per fault: file, line, path, rule, value, fix."""
    faults: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        path = _path(detail)
        # A value that fits no branch of a union is one fault, not one per branch.
        faults.setdefault(_dotted(path), _line(detail, path, file, keys))
    lines = list(faults.values())
    more = [f"… and {len(lines) - MAX_SHOWN} more"] if len(lines) > MAX_SHOWN else []
    return "\n".join(lines[:MAX_SHOWN] + more)


def _path(detail: ErrorDetails) -> tuple[str | int, ...]:
    # Behind the key of a union pydantic adds the name of the branch it tried.
    branches = ("int", "str", "float", "bool", "constrained-int", "constrained-str")
    return tuple(step for step in detail["loc"] if step not in branches and "[" not in str(step))


def _dotted(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")


def _line(detail: ErrorDetails, path: Sequence[str | int], file: YamlFile, keys: Keys) -> str:
    line = file.line_of(path)
    where = f"{file.name}, line {line}" if line else file.name
    rule = _rule(detail, path, keys)
    says_all = detail["type"] in ("missing", "extra_forbidden", "value_error")
    return f"{where}: {_dotted(path) or 'template'} {rule}" + ("" if says_all else f", got {_shown(detail['input'])}")


def _rule(detail: ErrorDetails, path: Sequence[str | int], keys: Keys) -> str:
    kind, names = detail["type"], [step for step in path if isinstance(step, str)]
    if kind == "extra_forbidden":
        return _unknown_key(str(path[-1]), keys[names[-2] if len(names) > 1 else ""])
    if kind == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    if kind == "string_pattern_mismatch":
        return _NAME_RULES.get(names[-1] if len(names) == 1 else f"*.{names[-1]}", detail["msg"])
    if names == ["version"]:
        return 'must be a whole number from 1, or a text in quotes such as "1.2"'
    if names[-1:] == ["examples"]:
        return "must be texts, numbers, true or false"
    if names[-1:] == ["enum"] and kind == "string_type":
        return "must be texts; put each value in quotes (YAML reads yes, no and numbers as something else)"
    return _RULES.get(kind, detail["msg"]).format(**_context(detail))


def _context(detail: ErrorDetails) -> dict[str, Any]:
    return dict(detail.get("ctx") or {})


def _unknown_key(key: str, known: Sequence[str]) -> str:
    close = get_close_matches(key, known, n=1)
    fix = f"did you mean {close[0]!r}?" if close else "remove it"
    return f"is not a known key ({', '.join(known)}); {fix}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
