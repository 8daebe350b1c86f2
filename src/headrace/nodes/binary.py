"""Binary data of items: what is said of a file by its name, and how nodes find the one they work on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes.base import Item, NodeError
from headrace.nodes.services import Files

#: The name of a binary member where none is given.
DATA = "data"
#: As few as are needed: types of files that flows work with.
_MIMES = {
    "csv": "text/csv",
    "gif": "image/gif",
    "htm": "text/html",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "tsv": "text/tab-separated-values",
    "txt": "text/plain",
    "webp": "image/webp",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "zip": "application/zip",
}


def extension_of(name: str) -> str:
    """Return the extension of a file's name in lower case, without its dot.

    >>> extension_of("in/Report.PDF"), extension_of(".profile"), extension_of("a")
    ('pdf', '', '')
    """
    stem, dot, extension = name.rpartition("/")[2].rpartition(".")
    return extension.lower() if dot and stem else ""


def mime_of(name: str) -> str:
    """Return the type of a file by its name.

    >>> mime_of("a.csv"), mime_of("a.unheard-of")
    ('text/csv', 'application/octet-stream')
    """
    return _MIMES.get(extension_of(name), "application/octet-stream")


async def stored(files: Files, data: bytes, name: str, facts: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Store data as a file of the run and return a binary member; `facts` replace what follows from the name."""
    facts = {key: value for key, value in (facts or {}).items() if value}
    name = facts.get("fileName", name.rpartition("/")[2])
    mime = facts.get("mimeType", mime_of(name))
    kept = await files.put(data, name=name, mime=mime)
    told = {"fileName": name, "mimeType": mime, "fileSize": len(data)}
    return {**kept, **told, "fileExtension": facts.get("fileExtension", extension_of(name))}


def member(item: Item, name: str) -> Mapping[str, Any]:
    """Return a binary member of an item. Raises NodeError naming those it has."""
    binary = item.get("binary")
    found = binary.get(name) if isinstance(binary, Mapping) else None
    if not isinstance(found, Mapping):
        known = ", ".join(binary) if isinstance(binary, Mapping) and binary else "none"
        raise NodeError(f"the item has no binary data {name!r} (it has: {known}): let a node before it read the file")
    return found


def without(item: Item, name: str) -> dict[str, Any]:
    """Return {"binary": …} with all binary members of an item but one, or nothing where none is left."""
    binary = {key: value for key, value in (item.get("binary") or {}).items() if key != name}
    return {"binary": binary} if binary else {}
