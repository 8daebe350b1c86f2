"""extractFromFile: what is in a file, as the JSON of items."""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.nodes import fields
from headrace.nodes.base import Fault, Item, Named, NodeError, OneCall, Shape, ours
from headrace.nodes.binary import DATA, member, without
from headrace.nodes.checking import is_expression, one_of, unused, written
from headrace.nodes.json_texts import parsed_json, wrong_part
from headrace.nodes.parameters import Parameters
from headrace.nodes.tables import Dialect, as_records, part_of, read_csv
from headrace.nodes.texts import decoded

_SHEETS = ("xlsx", "xls", "ods")
_VALUES = ("fromJson", "text", "xml", "binaryToPropery")
_OPERATIONS = ("csv", *_SHEETS, "pdf", *_VALUES)
_INSTEAD = {
    "html": "save the table as CSV or XLSX, or read it as text",
    "rtf": "save the file as text, PDF or XLSX",
    "fromIcs": "read it as text, and take its lines apart",
}
_KEPT = ("json", "binary", "both")
#: A base64 text must fit into a value beside other things.
MAX_BASE64 = 32 * 1024 * 1024


class ExtractFromFileType(Named):
    """Reads the binary member `binaryPropertyName` of each item by its `operation`.

    Of csv, xlsx, xls and ods each row becomes an item; of pdf its text; fromJson, text, xml and binaryToPropery
    (base64) put one value at `destinationKey`.
    """

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return operations and options that we have no reader for."""
        found = one_of(parameters, "operation", _OPERATIONS, default="csv", instead=_INSTEAD)
        for name in ("rawData", "readAsString"):
            rule = "must be off: cells are read as the texts, numbers and dates that they are"
            found += unused(parameters, f"options.{name}", rule)
        kept = written(parameters, "options.keepSource", "json")
        if kept not in _KEPT and not is_expression(kept):
            found.append(Fault("options.keepSource", f"must be one of {', '.join(_KEPT)}, got {kept!r}"))
        return found

    async def run_one(self, call: OneCall) -> list[Item]:
        """Return the items of the file. Raises NodeError."""
        at = call.parameters
        operation = at.one_of("operation", _OPERATIONS, "csv")
        data = await call.services.files.get(member(call.item, _name(at)))
        if operation == "csv":
            return await asyncio.to_thread(lambda: _items(_csv(data, at)))
        if operation in _SHEETS:
            rows = await call.services.readers.sheet(data, name=at.text("options.sheetName") or None)
            wanted = at.text("options.range")
            return _items(_records(part_of(rows, wanted) if wanted else rows, at))
        if operation == "pdf":
            return [_beside(call.item, at, await _pdf(call, data))]
        return [_beside(call.item, at, await asyncio.to_thread(_value, operation, data, at))]


def _name(at: Parameters) -> str:
    return at.text("binaryPropertyName") or DATA


def _items(records: Iterable[dict[str, Any]]) -> list[Item]:
    return [{"json": record} for record in records]


def _csv(data: bytes, at: Parameters) -> Iterable[dict[str, Any]]:
    # The first lines may be of another kind; they end where text files do, whatever stands in quotes.
    before = max(at.whole("options.fromLine", 0) - 1, 0)
    lines = decoded(data, at.text("options.encoding", "utf-8")).split("\n", before)
    most = at.whole("options.maxRowCount", -1, least=-1)
    delimiter = at.text("options.delimiter") or ","
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise NodeError(f"options.delimiter must be one character, got {delimiter[:20]!r}")
    header = at.flag("options.headerRow", True)
    dialect = Dialect(
        delimiter,
        relaxed=at.flag("options.relaxQuotes"),
        skipped=_skipped(at),
        most=None if most < 0 else most + header,
    )
    return _records(read_csv(lines[before] if before < len(lines) else "", dialect), at)


def _skipped(at: Parameters) -> float | None:
    if not at.flag("options.skipRecordsWithErrors.value.enabled"):
        return None
    most = at.whole("options.skipRecordsWithErrors.value.maxSkippedRecords", -1, least=-1)
    return math.inf if most < 0 else most


def _records(rows: list[list[Any]], at: Parameters) -> Iterable[dict[str, Any]]:
    header, empty = at.flag("options.headerRow", True), at.flag("options.includeEmptyCells")
    return as_records(rows, header=header, empty=empty)


async def _pdf(call: OneCall, data: bytes) -> dict[str, Any]:
    at = call.parameters
    most = at.whole("options.maxPages", 0) or None
    pages = await call.services.readers.pdf(data, password=at.text("options.password") or None, max_pages=most)
    text = "\n".join(pages) if at.flag("options.joinPages", True) else pages
    return {"numrender": len(pages), "text": text} | ({} if most else {"numpages": len(pages)})


def _value(operation: str, data: bytes, at: Parameters) -> dict[str, Any]:
    place = at.text("destinationKey") or DATA
    if operation == "binaryToPropery":
        if len(data) > MAX_BASE64:
            raise NodeError(f"a file of {len(data):,} bytes is too large for JSON: at most {MAX_BASE64 >> 20} MiB")
        return fields.put({}, place, base64.b64encode(data).decode())
    text = decoded(data, at.text("options.encoding", "utf8"))
    found = fields.put({}, place, _parsed(text) if operation == "fromJson" else text)
    # A plain name adds nothing to what was looked at already.
    if len(fields.steps_of(place)) > 1 and (wrong := wrong_part(found)):
        raise NodeError(f"parameters.destinationKey leads too deep: {wrong}: use fewer steps")
    return found


def _parsed(text: str) -> Any:
    try:
        return parsed_json(text)
    except ValueError as error:
        raise NodeError(f"the file is no JSON that can be kept: {error}; correct it, or read it as text") from None


def _beside(item: Item, at: Parameters, json: dict[str, Any]) -> Item:
    """Return an item with what was read, and with as much of the old one as `options.keepSource` says."""
    kept, name = at.text("options.keepSource"), _name(at)
    binary = {"binary": item["binary"]} if kept in ("binary", "both") else without(item, name)
    return {"json": {**(item["json"] if kept in ("json", "both") else {}), **json}, **binary}


TYPE = ExtractFromFileType(
    "extractFromFile",
    ours("extractFromFile", "n8n-nodes-base.extractFromFile"),
    (1, 1.1),
    "reads CSV, JSON, spreadsheets, PDF and text into items",
    Shape.EACH,
)
