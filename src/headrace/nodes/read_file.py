"""readFile: the files of a folder as binary data of items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes.asking import check_text
from headrace.nodes.base import Fault, Item, Items, Named, NodeError, OneCall, Shape, ours
from headrace.nodes.binary import DATA, stored
from headrace.nodes.checking import one_of
from headrace.nodes.parameters import Parameters
from headrace.nodes.services import Files

#: Files that one pattern may find.
MOST_FILES = 1_000
_FACTS = ("fileName", "mimeType", "fileExtension")
_GLOB = frozenset("*?[")
#: From this version on a pattern that finds nothing is an error.
_LOUD = 1.1


class ReadFileType(Named):
    """Reads the files that `fileSelector` finds, one output item for each; or the file at `filePath` into the item.

    Paths are below the folder that flows may use. The data go to `binary`, to the member
    `options.dataPropertyName` ("data"); `options` may say another fileName, mimeType and fileExtension.
    """

    def fits(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether the node that reads and writes files is to read."""
        told: object = parameters.get("operation")
        return told != "write"

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return another operation than reading, and a missing path."""
        path = "filePath" if "filePath" in parameters else "fileSelector"
        found = one_of(parameters, "operation", ("read",), default="read", instead={})
        return found + check_text(parameters, path, 'a path, or a pattern such as "in/*.csv"')

    async def run_one(self, call: OneCall) -> list[Item]:
        """Return the items of the files. Raises NodeError."""
        at, files = call.parameters, call.services.files
        if not at.has("filePath"):
            return await found_files(files, at, must=call.version >= _LOUD)
        path, name = at.text("filePath"), at.text("dataPropertyName") or DATA
        made = await stored(files, await files.read(path), path)
        return [{"json": call.item["json"], "binary": {**call.item.get("binary", {}), name: made}}]


async def found_files(files: Files, at: Parameters, *, must: bool) -> Items:
    """Return an item for each file that `fileSelector` finds; `must`: none is an error. Raises NodeError."""
    pattern = at.text("fileSelector").replace("\\", "/")
    name = at.text("options.dataPropertyName") or at.text("dataPropertyName") or DATA
    facts = {fact: at.text(f"options.{fact}") for fact in _FACTS}
    if _GLOB.isdisjoint(pattern):
        return [await _item(files, pattern, name, facts)]
    out: Items = []
    async for path in files.find(pattern):
        if len(out) == MOST_FILES:
            raise NodeError(f"{pattern!r} finds more than {MOST_FILES:,} files: read them by narrower patterns")
        out.append(await _item(files, path, name, facts))
    if must and not out:
        raise NodeError(f"{pattern!r} finds no file: correct parameters.fileSelector, or put a file there")
    return out


async def _item(files: Files, path: str, name: str, facts: Mapping[str, str]) -> Item:
    made = await stored(files, await files.read(path), path, facts)
    told = {key: made[key] for key in (*_FACTS, "fileSize")}
    return {"json": {**told, "filePath": path}, "binary": {name: made}}


TYPE = ReadFileType(
    "readFile",
    ours("readFile", "n8n-nodes-base.readWriteFile", "n8n-nodes-base.readBinaryFile"),
    (1, 1.1),
    "reads files of the flows' folder as binary data",
    Shape.EACH,
)
