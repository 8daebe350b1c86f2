"""Rules read from a YAML or JSON file. An error names file, key, rule and value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headrace.apps.report.errors import RulesError
from headrace.apps.report.tagging.rules import Rules

MOST_BYTES = 256 * 1024
_MOST_SHOWN = 10
_WORDS = {"extra_forbidden": "is not a known key; remove it", "missing": "is missing; add it"}


def load_rules(path: Path | str) -> Rules:
    """Read rules of modules from a `.yaml`, `.yml` or `.json` file of at most 256 KiB. Raises `RulesError`."""
    path = Path(path)
    return parse_rules(_parsed(_text_of(path), path), str(path))


def parse_rules(data: Any, where: str) -> Rules:
    """Return the rules that a JSON value holds; `where` begins what is said of a fault. Raises `RulesError`."""
    if not isinstance(data, dict):
        raise RulesError(f"{where}: rules must be a mapping with the key 'modules', got {_shown(data)}")
    try:
        return Rules.model_validate(data)
    except ValidationError as error:
        faults = [_fault(dict(detail), where) for detail in error.errors(include_url=False)]
        more = [f"… and {len(faults) - _MOST_SHOWN} more"] if len(faults) > _MOST_SHOWN else []
        raise RulesError("\n".join(faults[:_MOST_SHOWN] + more)) from None


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RulesError(f"{path} cannot be read: {error.strerror or error}. Name an existing file.") from None
    if len(content) > MOST_BYTES:
        raise RulesError(f"{path} is larger than {MOST_BYTES // 1024} KiB; rules of modules are shorter.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RulesError(f"{path} is not UTF-8 (byte {error.start}). Save it as UTF-8.") from None


def _parsed(text: str, path: Path) -> Any:
    if path.suffix.lower() == ".json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RulesError(f"{path} is not valid JSON: {error}. Correct it.") from None
    import yaml  # only who has rules needs it

    try:
        # An alias lets a few lines stand for gigabytes.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=yaml.SafeLoader)):
            raise RulesError(f"{path}: aliases (*name) are not supported. Write the value out.")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RulesError(f"{path} is not valid YAML: {' '.join(str(error).split())[:200]}. Correct it.") from None


def _fault(detail: dict[str, Any], where: str) -> str:
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"]).lstrip(".")
    if detail["type"] == "value_error":
        return f"{where}: {key or 'rules'} {detail['msg'].removeprefix('Value error, ')}"
    words = _WORDS.get(detail["type"]) or f"is wrong: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    return f"{where}: {key} {words}, got {_shown(detail['input'])}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
