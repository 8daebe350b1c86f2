"""Values of runs: small ones travel as they are, large ones lie in the blob storage and a reference travels.

Guaranteed: what is loaded is what was stored, byte for byte by its length and SHA-256, or an error; data that look like
a reference come back as they were. A blob is written before anything refers to it. Files of a run stay bytes: their
marks in values are left as they are, and a run reads those of its own folder alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import UUID

from headrace.model.errors import BlobStoreError, ConfigError, InvalidInputError, NotFoundError, PayloadTooLargeError
from headrace.model.reference import (
    INLINE_BYTES,
    MAX_VALUE_BYTES,
    FileMark,
    Reference,
    files_in,
    json_text,
    may_be_marked,
    reference_text,
    references,
    replace_references,
    spell,
    unwrap,
    wrap,
)
from headrace.ports.blob_store import BlobStore

#: So many blobs are read or written at once.
AT_ONCE = 8


def runs_folder(store_id: str) -> str:
    """Return the folder that has one for each run of a store: other stores may use the same storage.

    >>> runs_folder("5f0c")
    '5f0c/runs/'
    """
    return f"{store_id}/runs/"


class Values:
    """Stores and loads JSON texts of runs of the store whose id `store_id` returns. Without `blobs` large ones are
    refused."""

    def __init__(self, blobs: BlobStore | None, store_id: Callable[[], Awaitable[str]]) -> None:
        self.blobs = blobs
        self._store_id = store_id
        self._room = asyncio.Semaphore(AT_ONCE)

    async def store(self, run_id: UUID, text: str) -> str:
        """Return what stands for user data, JSON text: the text itself up to 64 KiB, else a reference to its blob.

        Raises PayloadTooLargeError above 64 MiB, ConfigError without a blob storage, BlobStoreError,
        StoreUnavailableError.
        """
        return await self.store_composed(run_id, json_text(wrap(json.loads(text))) if may_be_marked(text) else text)

    async def store_composed(self, run_id: UUID, text: str) -> str:
        """Do what `store` does for a text made of texts that were stored: its references stay references."""
        if len(text) <= INLINE_BYTES // 4:
            return text
        data = _encoded(text)
        if len(data) <= INLINE_BYTES:
            return text
        if len(data) > MAX_VALUE_BYTES:
            raise PayloadTooLargeError("value", f"must be at most {MAX_VALUE_BYTES >> 20} MiB", f"{len(data)} bytes")
        return reference_text(await self._put(run_id, data))

    async def store_apart(self, run_id: UUID, texts: Iterable[str]) -> list[str]:
        """Return references to texts that were stored, however short they are: the whole they are for is too large."""
        try:
            async with asyncio.TaskGroup() as group:
                puts = [group.create_task(self._put(run_id, _encoded(text))) for text in texts]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # one of them says enough
        return [reference_text(put.result()) for put in puts]

    async def load(self, text: str) -> Any:
        """Return the user data of a stored text, parsed, with what lies behind its references.

        Raises BlobStoreError naming the key where a blob is missing or not what was stored (`lost`), or cannot be read.
        """
        value = json.loads(text)
        if not may_be_marked(text):
            return value
        texts: dict[Reference, str] = {}
        wanted = references(value)
        while wanted:
            found = await self._get_all(wanted)
            texts |= found
            wanted = {one for item in found.values() for one in _references_in(item)} - texts.keys()
        return unwrap(value, texts)

    async def load_text(self, text: str, *, most: int | None = None) -> str | None:
        """Return what `load` does as JSON text, as it was stored: what lies behind references is not parsed.

        None where that would be more than `most` long; nothing more is read then. Raises BlobStoreError as `load` does.
        """
        parts = await _spelled(text)
        while most is None or sum(map(_size, parts)) <= most:
            wanted = {part for part in parts if isinstance(part, Reference)}
            if not wanted:
                return "".join(map(str, parts))
            found = {one: await _spelled(item) for one, item in (await self._get_all(wanted)).items()}
            parts = [piece for part in parts for piece in (found[part] if isinstance(part, Reference) else [part])]
        return None

    async def take_over(self, run_id: UUID, text: str, source: UUID | None = None) -> str:
        """Return a stored text of another run for this one: its blobs are copied, as they may go with that run.

        So are the files it names that are of the run `source`; marks that name none there are data, and stay.
        """
        others: dict[Reference, Reference] = {}
        for reference in _references_in(text):
            inner = await self.take_over(run_id, (await self._get(reference)).decode(), source)
            others[reference] = await self._put(run_id, _encoded(inner))
        if source is not None:
            for file in files_in(text):
                await self._copy_file(run_id, file, source)
        return json_text(replace_references(json.loads(text), others)) if others else text

    async def put_file(self, run_id: UUID, data: bytes) -> FileMark:
        """Store a file of a run, and return what stands for it. The same bytes are stored once.

        Raises PayloadTooLargeError above 64 MiB, ConfigError without a blob storage, BlobStoreError,
        StoreUnavailableError.
        """
        if len(data) > MAX_VALUE_BYTES:
            raise PayloadTooLargeError("file", f"must be at most {MAX_VALUE_BYTES >> 20} MiB", f"{len(data)} bytes")
        if self.blobs is None:
            raise ConfigError("there is nowhere to put files of runs: set [blob_storage] in headrace.toml")
        reference = await self._put(run_id, data)
        return FileMark(reference.bytes, reference.sha256)

    async def get_file(self, run_id: UUID, file: FileMark) -> bytes:
        """Return a file of a run. Raises BlobStoreError where it has none such (`lost`), or it cannot be read."""
        folder = runs_folder(await self._store_id())
        return await self._get(Reference(f"{folder}{run_id}/{file.sha256}", file.bytes, file.sha256))

    async def _copy_file(self, run_id: UUID, file: FileMark, source: UUID) -> None:
        try:
            data = await self.get_file(source, file)
        except BlobStoreError as error:
            if error.lost:
                return
            raise
        await self._put(run_id, data)

    async def _put(self, run_id: UUID, data: bytes) -> Reference:
        if self.blobs is None:
            rule = (
                f"a value of {len(data)} bytes is larger than {INLINE_BYTES >> 10} KiB and there is nowhere to put it"
            )
            raise ConfigError(f"{rule}: set [blob_storage] in headrace.toml")
        digest = (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()
        folder = runs_folder(await self._store_id())
        reference = Reference(f"{folder}{run_id}/{digest}", len(data), digest)
        async with self._room:
            await self.blobs.put_blob(reference.key, data)
        return reference

    async def _get_all(self, wanted: Iterable[Reference]) -> dict[Reference, str]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {reference: group.create_task(self._get(reference)) for reference in wanted}
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # one of them says enough
        return {reference: task.result().decode() for reference, task in tasks.items()}

    async def _get(self, reference: Reference) -> bytes:
        key = reference.key
        if self.blobs is None:
            raise ConfigError(f"the value {key} lies in a blob storage: set [blob_storage] in headrace.toml")
        async with self._room:
            try:
                data = await self.blobs.get_blob(key)
            except (NotFoundError, InvalidInputError):
                raise _lost(key, "is missing: it was removed, or [blob_storage] changed") from None
        if len(data) != reference.bytes:
            raise _lost(key, f"has {len(data)} bytes, {reference.bytes} were stored: it was changed")
        digest = (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()
        if digest != reference.sha256:
            raise _lost(key, f"is not what was stored: its SHA-256 is {digest}")
        return data


async def _spelled(text: str) -> list[str | Reference]:
    """Return the parts of a stored text; one that has to be parsed for that is parsed off the event loop."""
    return await asyncio.to_thread(spell, text) if may_be_marked(text) else [text]


def _size(part: str | Reference) -> int:
    return part.bytes if isinstance(part, Reference) else len(part)


def _lost(key: str, what: str) -> BlobStoreError:
    return BlobStoreError(f"the blob {key} {what}", lost=True)


def _references_in(text: str) -> set[Reference]:
    return references(json.loads(text)) if may_be_marked(text) else set()


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        rule, shown = "must not contain lone surrogates", text[:40].encode("ascii", "replace")
        raise InvalidInputError("value", rule, shown) from None
