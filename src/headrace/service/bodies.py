"""Bodies of requests: read within bounds of size and time, and JSON that every store takes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.types import Message, Receive

from headrace.model.errors import InvalidInputError
from headrace.model.payload import encode_json
from headrace.model.strict_json import json_fault, refuse_constant, unique_members
from headrace.service.problems import RequestError

#: Bytes of one body, and seconds that it may take to arrive.
MOST_BYTES, MOST_SECONDS = 1 << 20, 30.0


async def read_body(
    receive: Receive, length: str | None, *, most: int = MOST_BYTES, seconds: float = MOST_SECONDS
) -> bytes:
    """Return the body of a request, at most `most` bytes. `length`: what its header says.

    Raises RequestError: 400, 408, 413.
    """
    if length is not None and not (length.isascii() and length.isdigit()):
        raise RequestError(400, "invalid_request", f"Content-Length must be a number, got {length[:40]!r}")
    if length is not None and (len(length) > 18 or int(length) > most):
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _read(receive, most)
    except TimeoutError:
        raise RequestError(408, "request_timeout", f"the body did not arrive within {seconds:g} s") from None


async def _read(receive: Receive, most: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise RequestError(400, "disconnected", "the client went away")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(most: int) -> RequestError:
    fix = "store the data elsewhere and pass a reference to it"
    return RequestError(413, "payload_too_large", f"a body must be at most {most >> 10} KiB: {fix}")


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read, and then what comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def parse_json(body: bytes) -> Any:
    """Return the value of a body, null of an empty one. Raises RequestError 400 with the code `invalid_json`.

    Not taken: other encodings than UTF-8, keys that stand twice, NaN and infinities, NUL characters, lone surrogates,
    nesting above 64.

    >>> parse_json(b'{"page": [7]}')
    {'page': [7]}
    """
    if not body:
        return None
    try:
        value = json.loads(body.decode(), object_pairs_hook=unique_members, parse_constant=refuse_constant)
        encode_json(value, field="the body", most=4 * MOST_BYTES)
    except UnicodeDecodeError:
        raise _not_json("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _not_json(f"{error.msg} in line {error.lineno}, column {error.colno}") from None
    except InvalidInputError as error:
        raise _not_json(f"it {error.rule}") from None
    except RecursionError:
        raise _not_json("it is nested too deeply") from None
    except ValueError as error:
        raise _not_json(json_fault(error)) from None
    return value


def _not_json(why: str) -> RequestError:
    return RequestError(400, "invalid_json", f"the body is not JSON that can be taken: {why}")
