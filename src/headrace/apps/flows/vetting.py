"""Items that no store can keep: NUL characters, lone surrogates, numbers without end, data nested too deeply.

They come from outside, with one answer among many: that item fails, and the others do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace import InvalidInputError, PayloadTooLargeError
from headrace.model.payload import encode_json
from headrace.model.reference import MAX_VALUE_BYTES
from headrace.nodes.base import Item, Items

#: An item that cannot be kept, and why.
Refused = tuple[Item, InvalidInputError]


def vet(ports: Sequence[Items]) -> tuple[list[Items], list[Refused]]:
    """Return the items that can be kept, and those that cannot. Raises PayloadTooLargeError for more than 64 MiB.

    >>> vet([[{"json": {"a": 1}}, {"json": {"a": "\\0"}}]])[0]
    [[{'json': {'a': 1}}]]
    """
    if _fault(list(ports)) is None:
        return list(ports), []
    kept: list[Items] = []
    refused: list[Refused] = []
    for items in ports:
        kept.append([])
        for item in items:
            fault = _fault(item)
            if fault is None:
                kept[-1].append(item)
            else:
                refused.append((item, fault))
    return kept, refused


def _fault(value: object) -> InvalidInputError | None:
    try:
        encode_json(value, field="an item that it puts out", most=MAX_VALUE_BYTES)
    except PayloadTooLargeError:
        raise
    except InvalidInputError as error:
        return error
    return None
