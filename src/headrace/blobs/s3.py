"""Blobs in S3, or in a server of its protocol such as MinIO, by `obstore`: the extra `headrace[s3]`.

S3 stores an object whole or not at all, and answers when it is durable. The calls of obstore that block are run in
threads: after its asynchronous ones a process can end by SIGABRT at its exit, when their threads meet a Python that is
being taken down.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from headrace.blobs.keys import check_key, check_prefix, check_size
from headrace.blobs.slices import in_slices
from headrace.model.errors import BlobStoreError, ConfigError, NotFoundError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config, S3Credential

T = TypeVar("T")

_DEFAULT_REGION = "us-east-1"
#: Short, because whoever asks tries again: nodes have retries of their own.
_RETRIES, _RETRY_TIME = 3, timedelta(seconds=30)
_TIMES: ClientConfig = {"connect_timeout": "5s", "timeout": "120s"}
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3}[ A-Za-z]*)")
#: How obstore tells what went wrong; NotFound, TimeoutError and the like are Python's own.
_FAULTS = (BaseError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class S3Site:
    """Where a bucket is. Without keys those of the environment or the machine are used, as AWS's own tools do."""

    bucket: str
    endpoint: str = ""
    region: str = ""
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)

    def config(self) -> S3Config:
        """Return what obstore is told of it: nothing of what is not given."""
        told: S3Config = {}
        if self.endpoint:
            told["endpoint"] = self.endpoint
        if region := self.region or (self.endpoint and _DEFAULT_REGION):
            told["region"] = region
        return told

    def credentials(self) -> S3Credential:
        """Return the keys that are given."""
        return {
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "token": None,
            "expires_at": None,
        }


class S3Blobs:
    """The objects of one bucket; nothing is connected before the first call."""

    def __init__(self, site: S3Site) -> None:
        """Raises ConfigError for a site that obstore does not take."""
        self._site = site
        options: ClientConfig = {"allow_http": site.endpoint.startswith("http://"), **_TIMES}
        try:
            self._store = S3Store(
                site.bucket,
                config=site.config(),
                # By a function: beside keys of the configuration the AWS_SESSION_TOKEN of somebody else would be sent.
                credential_provider=site.credentials if site.access_key else None,
                client_options=options,
                retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_TIME},
            )
        except _FAULTS as error:
            raise ConfigError(f"[blob_storage] cannot be used ({self._reason(error)})") from None

    async def put_blob(self, key: str, data: bytes) -> None:
        """Store a blob, whole or not at all; an equal key is replaced. Raises BlobStoreError."""
        # Parts would be several calls; one takes up to 5 GiB.
        await self._ask("written", check_key(key), lambda: obstore.put(self._store, key, data, use_multipart=False))

    async def get_blob(self, key: str, *, most: int | None = None) -> bytes:
        """Return a blob. Raises NotFoundError, PayloadTooLargeError, BlobStoreError."""

        def read() -> bytes:
            found = obstore.get(self._store, key)
            check_size(key, found.meta["size"], most)
            return bytes(found.bytes())

        return await self._ask("read", check_key(key), read)

    async def delete_blob(self, key: str) -> None:
        """Remove a blob, if it is there. Raises BlobStoreError."""
        try:
            await self._ask("removed", check_key(key), lambda: obstore.delete(self._store, key))
        except NotFoundError:
            return

    async def list_blobs(self, prefix: str) -> AsyncIterator[tuple[str, datetime]]:
        """Return key and time of the last change of the blobs below a prefix. Raises BlobStoreError."""
        folder = check_prefix(prefix)
        try:
            async for found in in_slices(lambda: self._walk(folder)):
                yield found
        except _FAULTS as error:
            raise self._error("listed", folder or "everything", error) from None

    async def close(self) -> None:
        """Release nothing: connections go with the object."""

    def _walk(self, folder: str) -> Iterator[tuple[str, datetime]]:
        for some in obstore.list(self._store, folder or None):
            for found in some:
                yield found["path"], found["last_modified"]

    async def _ask(self, done: str, key: str, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self._error(done, key, error) from None
            raise NotFoundError(f"no blob {key} in bucket {self._site.bucket}") from None
        except _FAULTS as error:
            raise self._error(done, key, error) from None

    def _error(self, done: str, what: str, error: Exception) -> BlobStoreError:
        where = f"bucket {self._site.bucket}{f' at {self._site.endpoint}' if self._site.endpoint else ''}"
        return BlobStoreError(f"[blob_storage] {where}: {what} cannot be {done} ({self._reason(error)})")

    def _reason(self, error: Exception) -> str:
        """Return what went wrong in a few words; servers may repeat what was sent, so keys are taken out."""
        text = str(error)
        found = [match[1].strip() for pattern in (_STATUS, _CODE) if (match := pattern.search(text))]
        # Behind its first line obstore shows its own insides.
        told = ", ".join(found) or text.partition("\n")[0].rpartition(" - ")[2][:200] or type(error).__name__
        for secret in filter(None, (self._site.secret_key, self._site.access_key)):
            told = told.replace(secret, "…")
        return told
