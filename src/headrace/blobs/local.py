"""Blobs as files below a folder of this machine, or of a file system that all processes see.

Guaranteed: a reader finds a blob whole or not at all, whenever a writer or the machine dies, and what was put is on
disk: it is written under another name in the same folder, synced, renamed, and the folder is synced.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from headrace.blobs.keys import check_key, check_prefix, check_size
from headrace.blobs.slices import in_slices
from headrace.model.errors import BlobStoreError, NotFoundError

T = TypeVar("T")

#: No key begins so: what is being written is no blob yet.
_DRAFT = "."
#: A draft that was not touched for so many seconds has lost its writer.
_DRAFT_SECONDS = 3_600.0
#: A folder that became empty may be removed while a blob is put there: then it is made again.
_TRIES = 10


class LocalBlobs:
    """Files of mode 0600 in folders of mode 0700; the folder is made with the first blob."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    async def put_blob(self, key: str, data: bytes) -> None:
        """Store a blob, whole or not at all; an equal key is replaced. Raises BlobStoreError."""
        await self._in_thread("written", check_key(key), lambda: self._write(self._root / key, data))

    async def get_blob(self, key: str, *, most: int | None = None) -> bytes:
        """Return a blob. Raises NotFoundError, PayloadTooLargeError, BlobStoreError."""
        return await self._in_thread("read", check_key(key), lambda: self._read(key, most))

    async def delete_blob(self, key: str) -> None:
        """Remove a blob, if it is there, and folders that are empty then. Raises BlobStoreError."""
        await self._in_thread("removed", check_key(key), lambda: self._remove(self._root / key))

    async def list_blobs(self, prefix: str) -> AsyncIterator[tuple[str, datetime]]:
        """Return key and time of the last change of the blobs below a prefix. Raises BlobStoreError.

        Drafts whose writer died long ago are removed on the way.
        """
        folder = check_prefix(prefix)
        try:
            async for found in in_slices(lambda: self._walk(self._root / folder, folder)):
                yield found
        except OSError as error:
            raise self._error("listed", folder or "everything", error) from None

    async def close(self) -> None:
        """Release nothing: no file is left open."""

    async def _in_thread(self, done: str, key: str, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise self._error(done, key, error) from None

    def _error(self, done: str, what: str, error: OSError) -> BlobStoreError:
        reason = error.strerror or type(error).__name__
        return BlobStoreError(f"[blob_storage] path = {self._root}: {what} cannot be {done} ({reason})")

    def _read(self, key: str, most: int | None) -> bytes:
        try:
            check_size(key, (self._root / key).stat().st_size, most)
            return (self._root / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise NotFoundError(f"no blob {key} in {self._root}") from None

    def _write(self, path: Path, data: bytes) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                _make_folder(path.parent)
                _write_durably(path, data)
                break
            except FileNotFoundError:
                if not tries_left:
                    raise

    def _remove(self, path: Path) -> None:
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        with suppress(OSError):  # one that is not empty stays
            for folder in path.parents:
                if folder == self._root:
                    break
                folder.rmdir()

    def _walk(self, folder: Path, prefix: str) -> Iterator[tuple[str, datetime]]:
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            key = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(folder / entry.name, key)
                continue
            with suppress(FileNotFoundError):  # removed meanwhile
                changed_at = entry.stat(follow_symlinks=False).st_mtime
                if not entry.name.startswith(_DRAFT):
                    yield key, datetime.fromtimestamp(changed_at, UTC)
                elif changed_at < time.time() - _DRAFT_SECONDS:
                    Path(entry.path).unlink()


def _write_durably(path: Path, data: bytes) -> None:
    draft = path.with_name(f"{_DRAFT}{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, durably; whoever makes one at the same time is no error."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
