"""writeFile: binary data of items, or the items themselves, as files of a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.model.errors import HeadraceError
from headrace.nodes.asking import check_text
from headrace.nodes.base import Call, Fault, Item, Items, Named, NodeError, ours
from headrace.nodes.binary import DATA, member
from headrace.nodes.checking import one_of, written
from headrace.nodes.parameters import Parameters
from headrace.nodes.tables import write_csv
from headrace.nodes.texts import encoded

_FORMATS = ("binary", "json", "csv", "text")


class WriteFileType(Named):
    """Writes files below the folder that flows may use; each is written whole or not at all.

    `format` "binary" (usual): the member `dataPropertyName` of each item. "json", "csv": the `json` of all items that
    have the same `fileName`, together; "text": the `text` of each, a line each. `options.append` writes behind what a
    file has; a try that is repeated appends again. `options.columns`, `options.delimiter`, `options.header` are of CSV.
    """

    def fits(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether the node that reads and writes files is to write; it reads unless told."""
        told: object = parameters.get("operation", "read" if "fileSelector" in parameters else "write")
        return told == "write"

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a missing name, an unknown format, and JSON that is to be appended to."""
        found = check_text(parameters, "fileName", "the path of the file to write")
        found += one_of(parameters, "format", _FORMATS, default="binary", instead={"xlsx": "use csv"})
        if parameters.get("format") == "json" and written(parameters, "options.append"):
            found.append(Fault("options.append", "must be off for JSON: two lists in a file are no JSON; use csv"))
        if parameters.get("format") == "text":
            found += check_text(parameters, "text", "the text to write")
        return found

    async def run(self, call: Call) -> list[Items]:
        """Return the items, each with the name of its file. Raises NodeError."""
        if call.at().one_of("format", _FORMATS, "binary") == "binary":
            groups = [[index] for index in range(len(call.items))]
        else:
            groups = _by_file(call)
        out: dict[int, Item] = {}
        for group in groups:
            try:
                name = await _write(call, group)
            except HeadraceError as error:
                _fail(call, group, error)
                continue
            for index in group:
                item = call.items[index]
                out[index] = {**item, "json": {**item["json"], "fileName": name}, "pairedItem": {"item": index}}
        return [[out[index] for index in sorted(out)]]


def _by_file(call: Call) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for index in range(len(call.items)):
        try:
            groups.setdefault(call.at(index).text("fileName"), []).append(index)
        except HeadraceError as error:
            _fail(call, [index], error)
    return list(groups.values())


def _fail(call: Call, group: list[int], error: HeadraceError) -> None:
    if call.strict or error.transient:
        raise error
    call.failed += [({**call.items[index], "pairedItem": {"item": index}}, error) for index in group]


async def _write(call: Call, group: list[int]) -> str:
    at = call.at(group[0])
    name, append = at.text("fileName"), at.flag("options.append")
    kind = at.one_of("format", _FORMATS, "binary")
    if kind == "binary":
        wanted = member(call.items[group[0]], at.text("dataPropertyName") or DATA)
        data = await call.services.files.get(wanted)
    else:
        data = encoded(_text(kind, call, group, append=append))
    await call.services.files.write(name, data, append=append)
    return name


def _text(kind: str, call: Call, group: list[int], *, append: bool) -> str:
    at, records = call.at(group[0]), [call.items[index]["json"] for index in group]
    if kind == "json":
        return json.dumps(records, ensure_ascii=False, indent=2) + "\n"
    if kind == "text":
        return "".join(f"{call.at(index).text('text')}\n" for index in group)
    # A file that is appended to has its header already.
    header = at.flag("options.header", not append)
    return write_csv(records, at.names("options.columns"), delimiter=_delimiter(at), header=header)


def _delimiter(at: Parameters) -> str:
    found = at.text("options.delimiter") or ","
    if len(found) != 1 or found in '\r\n"':
        raise NodeError(f"options.delimiter must be one character, got {found[:20]!r}")
    return found


TYPE = WriteFileType(
    "writeFile",
    ours("writeFile", "n8n-nodes-base.readWriteFile", "n8n-nodes-base.writeBinaryFile"),
    (1, 1.1),
    "writes files of the flows' folder: binary data, JSON, CSV or text",
)
