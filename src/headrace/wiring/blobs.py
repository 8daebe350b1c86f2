"""The blob storage's part of the wiring: it turns `[blob_storage]` into where large values lie."""

from __future__ import annotations

from contextlib import AsyncExitStack

from headrace.model.errors import ConfigError
from headrace.ports.blob_store import BlobStore
from headrace.settings import MEMORY_URL, Settings

#: The folder of local blobs in the directory of the settings.
FOLDER = "blobs"


def open_blobs(settings: Settings, stack: AsyncExitStack) -> BlobStore:
    """Return the blob storage that the settings name; what has to be closed goes on `stack`.

    Nothing is connected or made on disk yet. Beside a store in memory it is in memory too, unless a place is named.
    Raises ConfigError.
    """
    blobs = _open(settings)
    stack.push_async_callback(blobs.close)
    return blobs


def _open(settings: Settings) -> BlobStore:
    chosen = settings.blob_storage
    if chosen.type in ("s3", "minio"):
        return _open_s3(settings)
    if chosen.type == "memory" or (_keeps_nothing(settings) and chosen.path is None):
        from headrace.blobs.memory import MemoryBlobs

        return MemoryBlobs()
    from headrace.blobs.local import LocalBlobs

    return LocalBlobs(chosen.path or settings.directory / FOLDER)


def _open_s3(settings: Settings) -> BlobStore:
    try:
        from headrace.blobs.s3 import S3Blobs, S3Site
    except ImportError:
        raise ConfigError("blob_storage.type s3 and minio need a package more: pip install 'headrace[s3]'") from None
    chosen = settings.blob_storage
    return S3Blobs(
        S3Site(
            chosen.bucket, chosen.endpoint, chosen.region, access_key=chosen.access_key, secret_key=chosen.secret_key
        )
    )


def _keeps_nothing(settings: Settings) -> bool:
    queue = settings.queue
    return queue.type == "memory" or queue.url == MEMORY_URL or (queue.type != "redis" and not queue.enable_persistence)
