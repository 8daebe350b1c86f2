"""Bodies of HTTP requests, each with the type that says what it is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from headrace.nodes import fields
from headrace.nodes.base import NodeError, OneCall
from headrace.nodes.binary import member
from headrace.nodes.http_values import (
    Pairs,
    as_json,
    as_text,
    flattened,
    json_at,
    named_values,
    object_at,
    rows_at,
)
from headrace.nodes.parameters import Parameters

_FORM = "application/x-www-form-urlencoded"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")
#: The first versions send bodies with these methods alone.
_WITH_BODY = ("DELETE", "PATCH", "POST", "PUT")


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent; an empty type says nothing of it."""

    data: bytes | None = None
    mime: str = ""

    def with_type(self, headers: Pairs) -> Pairs:
        """Return headers with the type; one that is written wins, but for forms of several parts."""
        if not self.mime:
            return headers
        written = [one for one in headers if one[0].lower() == "content-type"]
        if written and not self.mime.startswith("multipart/"):
            return headers
        return [*(one for one in headers if one not in written), ("Content-Type", self.mime)]


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    data: bytes
    file: str = ""
    mime: str = ""


async def body_of(call: OneCall, method: str) -> Body:
    """Return the body that the parameters describe. Raises NodeError, InvalidInputError."""
    try:
        return await _body(call, method)
    except UnicodeEncodeError:
        rule = "has a half of a surrogate pair, which is no character and cannot be sent: take it out before"
        raise NodeError(f"the body of the request {rule}") from None


async def _body(call: OneCall, method: str) -> Body:
    if call.version < 3:
        return await _first_body(call) if method in _WITH_BODY else Body()
    at = call.parameters
    if not at.flag("sendBody"):
        return Body()
    match at.text("contentType", "json"):
        case "json":
            return _json(_fields(call) if at.text("specifyBody", "keypair") == "keypair" else json_at(at, "jsonBody"))
        case "form-urlencoded":
            return _form(at)
        case "multipart-form-data":
            return _multipart([await _part(call, row) for row in rows_at(at, "bodyParameters.parameters")])
        case "binaryData":
            return await _file(call, at.text("inputDataFieldName"))
        case _:
            return Body(at.text("body").encode(), at.text("rawContentType"))


def _fields(call: OneCall) -> dict[str, Any]:
    """Return the object that rows describe; since version 4 a dot in a name leads into an object."""
    rows = rows_at(call.parameters, "bodyParameters.parameters")
    if call.version < 4:
        return named_values(rows)
    made: dict[str, Any] = {}
    for row in rows:
        made = fields.put(made, as_text(row["name"]), row.get("value"))
    return made


def _form(at: Parameters) -> Body:
    if at.text("specifyBody", "keypair") == "string":
        return Body(urlencode(parse_qsl(at.text("body"), keep_blank_values=True)).encode(), _FORM)
    pairs = flattened(named_values(rows_at(at, "bodyParameters.parameters")), "indices")
    return Body(urlencode(pairs).encode(), _FORM)


def _json(value: Any) -> Body:
    return Body(as_json(value).encode(), "application/json")


async def _part(call: OneCall, row: dict[str, Any]) -> _Part:
    if row.get("parameterType") == "formBinaryData":
        return await _file_part(call, as_text(row["name"]), as_text(row.get("inputDataFieldName")))
    return _Part(as_text(row["name"]), as_text(row.get("value")).encode())


async def _file_part(call: OneCall, name: str, binary: str) -> _Part:
    found = member(call.item, binary)
    data = await call.services.files.get(found)
    return _Part(name, data, as_text(found.get("fileName")) or "file", as_text(found.get("mimeType")))


async def _file(call: OneCall, binary: str) -> Body:
    found = member(call.item, binary)
    data = await call.services.files.get(found)
    return Body(data, as_text(found.get("mimeType")) or "application/octet-stream")


def _multipart(parts: Sequence[_Part]) -> Body:
    """Return a form of several parts; what is between them follows from them, so that each try sends the same."""
    heads = [_head(part) for part in parts]
    digest = hashlib.sha256(b"\0".join([*heads, *(part.data for part in parts)])).hexdigest()
    between = f"headrace-{digest[:40]}".encode()
    chunks = [b"--%b\r\n%b\r\n%b\r\n" % (between, head, part.data) for head, part in zip(heads, parts, strict=True)]
    return Body(b"".join(chunks) + b"--%b--\r\n" % between, f"multipart/form-data; boundary={between.decode()}")


def _head(part: _Part) -> bytes:
    lines = f'Content-Disposition: form-data; name="{_quoted(part.name)}"'
    if part.file:
        mime = part.mime if part.mime and not _UNSAFE.search(part.mime) else "application/octet-stream"
        lines += f'; filename="{_quoted(part.file)}"\r\nContent-Type: {mime}'
    return f"{lines}\r\n".encode()


def _quoted(text: str) -> str:
    """Return a name as browsers write it into forms."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


async def _first_body(call: OneCall) -> Body:
    """Return the body as versions 1 and 2 describe it."""
    at = call.parameters
    kind = at.text("options.bodyContentType", "json")
    mime = at.text("options.bodyContentCustomMimeType")
    if at.flag("jsonParameters") and at.flag("sendBinaryData"):
        return await _first_files(call, kind, mime)
    values: Any = None
    if not at.flag("jsonParameters"):
        values = named_values(rows_at(at, "bodyParametersUi.parameter")) or None
    elif at.get("bodyParametersJson") not in (None, ""):
        values = at.get("bodyParametersJson") if kind == "raw" else json_at(at, "bodyParametersJson")
    if values is None:
        return Body(None, mime)
    if kind == "raw":
        return Body(as_text(values).encode(), mime)
    made = _json(values) if kind == "json" else _first_form(kind, values, at)
    return Body(made.data, mime if mime and kind != "multipart-form-data" else made.mime)


def _first_form(kind: str, values: Any, at: Parameters) -> Body:
    given = values if isinstance(values, dict) else object_at(at, "bodyParametersJson")
    pairs = flattened(given, "indices")
    if kind == "form-urlencoded":
        return Body(urlencode(pairs).encode(), _FORM)
    return _multipart([_Part(name, value.encode()) for name, value in pairs])


async def _first_files(call: OneCall, kind: str, mime: str) -> Body:
    """Return a body of files: one as it is, or a form of those that "key:binary,key:binary" names."""
    written = call.parameters.text("binaryPropertyName", "data")
    if kind == "raw":
        body = await _file(call, written)
        return Body(body.data, mime or body.mime)
    named = [one.strip().rpartition(":") for one in written.split(",")]
    if len(named) > 1 and not all(key for key, _, _ in named):
        rule = 'must name a key for each of several files: "key1:binary1,key2:binary2"'
        raise NodeError(f"parameters.binaryPropertyName {rule}, got {written!r}")
    return _multipart([await _file_part(call, key or "file", binary) for key, _, binary in named])
