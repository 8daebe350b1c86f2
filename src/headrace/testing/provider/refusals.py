"""Errors as the wire carries them, and the faults that give no answer at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from headrace.testing.provider.faults import Fault, FaultKind
from headrace.testing.provider.wire import HttpConnection

JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json"}


def error_body(message: str, *, code: str | None = None, param: str | None = None) -> bytes:
    """The body of an error."""
    error = {"message": message, "type": "scripted_error", "code": code, "param": param}
    return json.dumps({"error": error}).encode()


async def fail(connection: HttpConnection, fault: Fault, headers: Mapping[str, str]) -> int | None:
    """Send the error of a fault that gives no answer at all; its status, or None where the fault is another one."""
    if fault.kind is FaultKind.HANG:
        await asyncio.Event().wait()
    if fault.kind is FaultKind.ERROR_BODY:
        body = error_body("something went wrong", code="server_error")
        await connection.respond(200, {**JSON_HEADERS, **headers}, body)
        return 200
    if fault.kind not in (FaultKind.RATE_LIMIT, FaultKind.SERVER_ERROR):
        return None
    is_limit = fault.kind is FaultKind.RATE_LIMIT
    status = fault.status or (429 if is_limit else 500)
    code = fault.code or ("rate_limit_exceeded" if is_limit else "server_error")
    body = error_body(fault.message, code=code, param=fault.param)
    await connection.respond(status, {**JSON_HEADERS, **headers, **_retry_after(fault)}, body)
    return status


def _retry_after(fault: Fault) -> dict[str, str]:
    if fault.retry_after is None:
        return {}
    seconds = fault.retry_after.total_seconds()
    return {"retry-after": str(-int(-seconds // 1)), "retry-after-ms": str(int(seconds * 1000))}
