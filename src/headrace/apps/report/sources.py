"""Where the file of a report lies: on this machine, in the folder of the service, or in the bucket of the store."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from headrace import App, ConfigError, InvalidInputError, NotFoundError
from headrace.apps.report.errors import UnreadableFileError
from headrace.apps.report.opening import app

#: Begins a reference to a file in the folder of `[report] files`; what begins with neither is a path.
FILE, OBJECT = "file:", "s3://"
#: Bytes of a name, and of an object.
MOST_NAME, MOST_BYTES = 200, 50 * 1000 * 1000
_CHANGED = "changed after the report was begun: begin another one"
_RULE = "must be the name of a file in the folder, without / and \\, control characters or a dot at its beginning"


def files_folder(given: App) -> Path:
    """Return the folder of files that callers of the service name or send."""
    settings = given.settings
    return (settings.report.files or settings.directory / "report-files").resolve()


async def find_source(ref: str) -> dict[str, Any]:
    """Return what a job is told of a file, wherever it lies; an object is fetched to know what is in it.

    Raises UnreadableFileError, InvalidInputError, PayloadTooLargeError, BlobStoreError.
    """
    source = await asyncio.to_thread(source_of, ref)
    if not ref.startswith(OBJECT):
        return source
    data = await _fetched(ref)
    return source | {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def source_of(ref: str) -> dict[str, Any]:
    """Return what a job is told of a file: where it is, what it is called, and what is in it.

    Raises UnreadableFileError for a path that cannot be read, InvalidInputError for another reference.
    """
    if ref.startswith(OBJECT):
        name = PurePosixPath(ref).name
        if not _is_plain(name):
            raise InvalidInputError("file_ref", f"must be {OBJECT}BUCKET/KEY, whose end is the name of a file", ref)
        return {"ref": ref, "name": name, "sha256": "", "size": 0}
    path = path_of(app, ref)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
    except OSError as error:
        raise UnreadableFileError(f"{ref} cannot be read ({error.strerror}): name a file that is there") from None
    told = ref if ref.startswith(FILE) else str(path.resolve())
    return {"ref": told, "name": path.name, "sha256": digest, "size": size}


def path_of(given: App, ref: str) -> Path:
    """Return the path behind a reference to a file. Raises InvalidInputError."""
    if not ref.startswith(FILE):
        return Path(ref)
    name = ref.removeprefix(FILE)
    if not _is_plain(name):
        raise InvalidInputError("file_ref", f"{_RULE}, of at most {MOST_NAME} bytes", name)
    folder = files_folder(given)
    path = folder / name
    if not path.resolve().is_relative_to(folder):
        raise InvalidInputError("file_ref", "must not be a link that leads out of the folder: copy the file", name)
    return path


def _is_plain(name: str) -> bool:
    """Whether it is the name of a file, and of no path."""
    plain = name.isprintable() and not any(sign in name for sign in "/\\") and not name.startswith((".", "~$"))
    return plain and 1 <= len(name.encode("utf-8", "replace")) <= MOST_NAME


@asynccontextmanager
async def local_file(source: Mapping[str, Any]) -> AsyncIterator[Path]:
    """Give the path of a file while it is read.

    Raises UnreadableFileError where it is another than it was, or is not there; BlobStoreError.
    """
    ref = str(source["ref"])
    if ref.startswith(OBJECT):
        data = await _fetched(ref)
        if source["sha256"] != hashlib.sha256(data).hexdigest():
            raise UnreadableFileError(f"{ref} {_CHANGED}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / str(source["name"])
            await asyncio.to_thread(path.write_bytes, data)
            yield path
        return
    now = await asyncio.to_thread(source_of, ref)
    if source["sha256"] != now["sha256"]:
        raise UnreadableFileError(f"{ref} {_CHANGED}")
    yield path_of(app, ref)


async def _fetched(ref: str) -> bytes:
    try:
        return await app.files.fetch(ref, most=MOST_BYTES)
    except (ConfigError, InvalidInputError, NotFoundError) as error:
        raise UnreadableFileError(f"{ref} cannot be read: {error}") from None
