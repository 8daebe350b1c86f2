"""What a webhook answers beside its body: a status and headers that HTTP can carry."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.nodes import checking
from headrace.nodes.base import Fault
from headrace.nodes.parameters import Parameters

#: Those below it tell that the answer is still to come.
LEAST_STATUS, MOST_STATUS = 200, 599
#: Answers of these have no body.
BODILESS = frozenset({204, 205, 304})
_HEADERS = "options.responseHeaders.entries"
#: Headers that say how an answer is sent, which only the service knows.
_OF_THE_WIRE = frozenset({
    "connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def faults_of(at: Parameters) -> list[Fault]:
    """Return what of an answer HTTP cannot carry."""
    reads: tuple[Callable[[Parameters], Any], ...] = (
        status_of, headers_of, lambda given: given.flag("options.noResponseBody"),
    )  # fmt: skip
    found = []
    for read in reads:
        try:
            read(at)
        except InvalidInputError as error:
            said = f"{error.rule}, got {checking.shown(error.value)}"
            found.append(Fault(error.field.removeprefix("parameters."), said))
    return found


def status_of(at: Parameters) -> int:
    """Return the status of an answer. Raises InvalidInputError.

    Version 1 has a number, version 2 a choice with one of its own beside it.

    >>> status_of(Parameters({"options": {"responseCode": {"values": {"responseCode": 201}}}}))
    201
    """
    values = "options.responseCode.values"
    chosen = at.get(f"{values}.responseCode")
    member = "customCode" if chosen == "customCode" else "responseCode"
    path = "responseCode" if chosen is None else f"{values}.{member}"
    return at.whole(path, 200, least=LEAST_STATUS, most=MOST_STATUS)


def headers_of(at: Parameters) -> tuple[tuple[str, str], ...]:
    """Return the headers of an answer; those without a name ask for nothing. Raises InvalidInputError.

    >>> headers_of(Parameters({"options": {"responseHeaders": {"entries": [{"name": "X-Kind", "value": "tea"}]}}}))
    (('X-Kind', 'tea'),)
    """
    found = []
    for index, one in enumerate(at.listed(_HEADERS)):
        field = f"{at.field}.{_HEADERS}[{index}]"
        if not isinstance(one, dict):
            raise InvalidInputError(field, 'must be an object: {"name": …, "value": …}', one)
        found.append(_header(Parameters(one, field=field)))
    return tuple(header for header in found if header[0])


def _header(entry: Parameters) -> tuple[str, str]:
    # Spaces around a value are none of it.
    name, value = entry.text("name").strip(), entry.text("value").strip(" \t")
    if name and not _NAME.fullmatch(name):
        rule = "must be the name of a header, of letters, digits and signs such as -, without spaces"
        raise InvalidInputError(f"{entry.field}.name", rule, name)
    if name.lower() in _OF_THE_WIRE:
        rule = "must not be one that says how an answer is sent: leave it out, the service sends what is right"
        raise InvalidInputError(f"{entry.field}.name", rule, name)
    if not _VALUE.fullmatch(value):
        rule = "must be Latin-1 text without line breaks and other control characters: percent-encode it"
        raise InvalidInputError(f"{entry.field}.value", rule, value)
    return name, value
