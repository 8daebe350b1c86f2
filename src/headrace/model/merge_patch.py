"""JSON merge patch (RFC 7386), and how it changes the arguments of a job that is run again."""

from __future__ import annotations

from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.payload import encode_json

_PARTS = {"args": list, "kwargs": dict}


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` as a merge patch changes it, leaving both as they are.

    Objects are merged member by member, null removes a member, and everything else, arrays included, is replaced whole.

    >>> merge_patch({"model": "a", "n": 1, "tags": [1, 2]}, {"model": "b", "n": None, "tags": [3]})
    {'model': 'b', 'tags': [3]}
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def check_argument_patch(patch: Any, *, field: str = "patch") -> dict[str, Any]:
    """Return a patch of a call's arguments. Raises InvalidInputError naming what is wrong with it.

    It holds `args`, all positional arguments anew, or `kwargs`, a merge patch of the keyword arguments, or both.
    """
    if not isinstance(patch, dict) or not patch or not patch.keys() <= _PARTS.keys():
        raise InvalidInputError(field, 'must be a JSON object with "args", "kwargs" or both', patch)
    if not isinstance(patch.get("args", []), list):
        rule = "must be an array: it replaces all positional arguments; [] removes them"
        raise InvalidInputError(f"{field}.args", rule, patch["args"])
    if not isinstance(patch.get("kwargs", {}), dict):
        rule = "must be an object: its members replace keyword arguments, null removes one"
        raise InvalidInputError(f"{field}.kwargs", rule, patch["kwargs"])
    return patch


def patch_arguments(arguments: Any, patch: dict[str, Any], *, field: str = "arguments") -> str:
    """Return the argument text of a job with a checked patch applied. Raises InvalidInputError, PayloadTooLargeError.

    >>> patch_arguments({"args": [7], "kwargs": {"model": "a"}}, {"kwargs": {"model": "b"}})
    '{"args":[7],"kwargs":{"model":"b"}}'
    """
    return encode_json(merge_patch(arguments, patch), field=field)
