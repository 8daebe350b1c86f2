"""What a run of a flow is started with: items and variables of files, and the flow that follows its failure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace import InvalidInputError
from headrace.apps.flows.checks import Find, check_flow
from headrace.apps.flows.form import Flow
from headrace.apps.flows.reading import parse_json, read_json
from headrace.apps.flows.triggers import ERROR_TRIGGER, triggers_of

#: What exports say where no error workflow was chosen.
_NONE_CHOSEN = (None, "DEFAULT")
_MEMBERS = frozenset({"json", "binary", "pairedItem", "error"})


def read_input(text: str) -> Any:
    """Return the JSON of a file, or of standard input for "-". Raises FlowError naming it."""
    if text != "-":
        return read_json(Path(text))
    try:
        return parse_json(sys.stdin.read(), "standard input")
    except UnicodeDecodeError as error:
        raise InvalidInputError("standard input", "must be JSON in UTF-8", str(error)) from None


def items_of(data: Any) -> list[dict[str, Any]]:
    """Return items for what people write: items, plain objects, or a single one. Raises InvalidInputError.

    >>> items_of([{"city": "Ulm"}, {"city": "Jena"}]), items_of({"json": {"a": 1}})
    ([{'json': {'city': 'Ulm'}}, {'json': {'city': 'Jena'}}], [{'json': {'a': 1}}])
    """
    rows = data if isinstance(data, list) else [data]
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            field = f"input[{number}]" if isinstance(data, list) else "input"
            raise InvalidInputError(field, 'must be an object: an item {"json": {…}}, or plain data', row)
    whole = [_is_item(row) for row in rows]
    if not any(whole):
        return [{"json": row} for row in rows]
    for number, row in enumerate(rows):
        if not whole[number]:
            rule = 'must be an item {"json": {…}} as others are; write all of them so, or all as plain data'
            raise InvalidInputError(f"input[{number}]", rule, row)
        if row.get("binary"):
            rule = "must not be given: a new run has no files yet; let a readFile node read them"
            raise InvalidInputError(f"input[{number}].binary", rule, row["binary"])
    return rows


def _is_item(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("json"), dict) and row.keys() <= _MEMBERS


def variables_of(settings: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Return what `$vars` is: the settings', and over them those that are given. Raises InvalidInputError."""
    if given is not None and not isinstance(given, dict):
        raise InvalidInputError("vars", "must be an object of names and values", given)
    return {**settings, **(given or {})}


def alarm_of(flow: Flow, find: Find) -> tuple[Flow | None, str]:
    """Return the flow that follows a failure of this one; where it names one that cannot follow, why not.

    One that names none follows itself, if it has an error trigger. The engine follows no run that follows a failure.
    """
    name = flow.error_flow
    if name in _NONE_CHOSEN:
        return (flow if _follows(flow) else None), ""
    assert name is not None
    found = flow if name in (flow.name, flow.id) else find(name)
    if found is None:
        return None, f"names the error workflow {name!r}, which is not there: nothing follows when a run fails"
    if not _follows(found):
        rest = "which has no errorTrigger that is switched on: nothing follows when a run fails; add one to it"
        return None, f"names the error workflow {found.name!r}, {rest}"
    problems = [] if found is flow else check_flow(found, find).problems
    if problems:
        return None, f"names the error workflow {found.name!r}, which cannot run: {problems[0]}"
    return found, ""


def _follows(flow: Flow) -> bool:
    """Whether a flow can begin with a failure."""
    return any(kind.name == ERROR_TRIGGER for _, kind in triggers_of(flow))
