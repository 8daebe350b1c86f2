"""BlobStore: whole blobs by key, the same in memory, in a folder and in S3."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.blobs.local import LocalBlobs
from headrace.blobs.memory import MemoryBlobs
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.ports.blob_store import BlobStore

WRONG_KEYS = [
    "", "/", "/etc/passwd", "a/", "a//b", "../a", "runs/../../a", "runs/./a", "runs/.a", ".", "a b", "a\\b", "a\n", "ä",
    "a\x00b", "runs/" + "x" * 201, "/".join(["x" * 100] * 11),
]  # fmt: skip


@pytest.fixture(params=["memory", "local", "s3"])
async def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    """Open an empty storage of each kind."""
    opened: BlobStore
    if request.param == "s3":
        pytest.importorskip("obstore")
        pytest.importorskip("moto")
        from headrace.blobs.s3 import S3Blobs
        from tests.backends.s3 import new_site

        opened = S3Blobs(new_site())
    else:
        opened = MemoryBlobs() if request.param == "memory" else LocalBlobs(tmp_path / "blobs")
    yield opened
    await opened.close()


async def keys_of(blobs: BlobStore, prefix: str) -> list[str]:
    """Return the keys below a prefix."""
    return sorted([key async for key, _ in blobs.list_blobs(prefix)])


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
async def test_a_blob_is_kept_as_it_was(blobs: BlobStore, size: int) -> None:
    """What is read is what was put, byte for byte; an equal key is replaced."""
    data = bytes(range(256)) * (size // 256) + bytes(range(size % 256))
    await blobs.put_blob("runs/1/a", data)
    assert await blobs.get_blob("runs/1/a") == data
    await blobs.put_blob("runs/1/a", b"other")
    assert await blobs.get_blob("runs/1/a") == b"other"


async def test_what_is_not_there_is_said_so(blobs: BlobStore) -> None:
    """Reading an unknown blob raises NotFoundError, also where only blobs below or above it are there."""
    await blobs.put_blob("runs/1/a", b"one")
    for key in ("a", "runs/1/b", "runs/1", "runs", "runs/1/a/b"):
        with pytest.raises(NotFoundError, match=key):
            await blobs.get_blob(key)
        await blobs.delete_blob(key)
    assert await blobs.get_blob("runs/1/a") == b"one"


async def test_a_removed_blob_is_gone(blobs: BlobStore) -> None:
    """Removing takes one blob and no other; removing again is no error, and its place can be used again."""
    await blobs.put_blob("runs/1/a", b"one")
    await blobs.put_blob("runs/2/a", b"two")
    await blobs.delete_blob("runs/1/a")
    await blobs.delete_blob("runs/1/a")
    with pytest.raises(NotFoundError):
        await blobs.get_blob("runs/1/a")
    assert await keys_of(blobs, "") == ["runs/2/a"]
    await blobs.put_blob("runs/1/a", b"again")
    assert await blobs.get_blob("runs/1/a") == b"again"


async def test_blobs_are_listed_below_a_prefix(blobs: BlobStore) -> None:
    """A prefix is a folder, with or without its slash: what only begins alike is not below it."""
    for key in ("runs/1/a", "runs/1/b.c", "runs/10/a", "runs-old/1/a", "z"):
        await blobs.put_blob(key, b"x")
    assert await keys_of(blobs, "runs/1") == await keys_of(blobs, "runs/1/") == ["runs/1/a", "runs/1/b.c"]
    assert await keys_of(blobs, "runs/") == ["runs/1/a", "runs/1/b.c", "runs/10/a"]
    assert await keys_of(blobs, "") == ["runs-old/1/a", "runs/1/a", "runs/1/b.c", "runs/10/a", "z"]
    assert await keys_of(blobs, "nothing/") == []


async def test_a_listing_is_complete_beyond_one_slice(blobs: BlobStore) -> None:
    """More blobs than are read at once are all listed, each once."""
    wanted = [f"runs/{number % 7}/{number}" for number in range(1_100)]
    for start in range(0, len(wanted), 50):
        await asyncio.gather(*(blobs.put_blob(key, b"x") for key in wanted[start : start + 50]))
    assert await keys_of(blobs, "runs/") == sorted(wanted)


async def test_the_time_of_the_last_change_is_told(blobs: BlobStore) -> None:
    """Each blob is listed with an aware time, about now."""
    await blobs.put_blob("runs/1/a", b"x")
    [(_, changed_at)] = [found async for found in blobs.list_blobs("runs/")]
    assert abs(datetime.now(UTC) - changed_at) < timedelta(minutes=1)


@pytest.mark.parametrize("key", WRONG_KEYS)
async def test_no_key_leads_out_of_the_storage(blobs: BlobStore, key: str) -> None:
    """Keys with empty parts, dots in front, or other characters are refused by every method."""
    for call in (blobs.put_blob(key, b"x"), blobs.get_blob(key), blobs.delete_blob(key)):
        with pytest.raises(InvalidInputError, match="key must be parts of"):
            await call
    if key not in ("", "/", "a/"):
        with pytest.raises(InvalidInputError):
            await keys_of(blobs, key)


async def test_writers_of_one_key_leave_one_of_their_blobs(blobs: BlobStore) -> None:
    """Whoever writes at the same moment, the blob is one of theirs, whole, at every reading."""
    bodies = [bytes([number]) * 100_000 for number in range(8)]
    await blobs.put_blob("runs/1/a", bodies[0])

    async def read() -> set[bytes]:
        return {await blobs.get_blob("runs/1/a") for _ in range(10)}

    seen, *_ = await asyncio.gather(read(), *(blobs.put_blob("runs/1/a", body) for body in bodies))
    assert seen <= set(bodies)
    assert await blobs.get_blob("runs/1/a") in bodies
    assert await keys_of(blobs, "") == ["runs/1/a"]
