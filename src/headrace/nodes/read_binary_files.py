"""readBinaryFiles: readFile for the first item alone, as n8n's older node of this name does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes.asking import check_text
from headrace.nodes.base import Call, Fault, Items, Named
from headrace.nodes.read_file import found_files


class ReadBinaryFilesType(Named):
    """Reads the files that `fileSelector` finds, once however many items there are; their `json` is empty."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a missing path."""
        return check_text(parameters, "fileSelector", 'a path, or a pattern such as "in/*.csv"')

    async def run(self, call: Call) -> list[Items]:
        """Return the items of the files. Raises NodeError."""
        found = await found_files(call.services.files, call.at(), must=False)
        return [[{**item, "json": {}, "pairedItem": {"item": 0}} for item in found]]


TYPE = ReadBinaryFilesType(
    "readBinaryFiles",
    ("n8n-nodes-base.readBinaryFiles",),
    (1, 1),
    "reads files of the flows' folder, once for all items",
)
