"""Blobs in a folder: nothing half written is ever seen, whoever dies, and nobody else can read them."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.blobs.local import LocalBlobs
from headrace.model.errors import BlobStoreError, NotFoundError

#: Puts a blob, and is killed by the system while it writes the next, after a megabyte of three.
WRITER = """
import asyncio, resource, signal, sys
from pathlib import Path
from headrace.blobs.local import LocalBlobs

async def main():
    blobs = LocalBlobs(Path(sys.argv[1]))
    await blobs.put_blob("runs/1/a", b"old")
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    await blobs.put_blob(sys.argv[2], b"x" * 3_000_000)

asyncio.run(main())
"""


async def listed(blobs: LocalBlobs) -> list[str]:
    """Return all keys."""
    return sorted([key async for key, _ in blobs.list_blobs("")])


@pytest.mark.parametrize("key", ["runs/1/a", "runs/1/b"])
async def test_a_writer_killed_in_the_middle_leaves_no_half_blob(tmp_path: Path, key: str) -> None:
    """A process that dies while it writes: the blob of before is there, whole, and half of another never."""
    writer = subprocess.run([sys.executable, "-c", WRITER, tmp_path, key], check=False)
    assert writer.returncode == -signal.SIGXFSZ
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) == 1_000_003
    blobs = LocalBlobs(tmp_path)
    assert await listed(blobs) == ["runs/1/a"]
    assert await blobs.get_blob("runs/1/a") == b"old"
    await blobs.put_blob(key, b"new")
    assert await blobs.get_blob(key) == b"new"


async def test_a_write_that_fails_leaves_the_old_blob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full while the new blob is synced: the old one stays, no draft does, and the error says why."""
    blobs = LocalBlobs(tmp_path)
    await blobs.put_blob("runs/1/a", b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(BlobStoreError, match=r"runs/1/a cannot be written \(No space left on device\)"):
            await blobs.put_blob("runs/1/a", b"new")
    assert await blobs.get_blob("runs/1/a") == b"old"
    assert [path.name for path in (tmp_path / "runs" / "1").iterdir()] == ["a"]


async def test_a_blob_is_synced_before_it_is_seen_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order that survives a power cut: the data, then the name, then the folder."""
    await LocalBlobs(tmp_path).put_blob("runs/1/before", b"x")
    done: list[str] = []
    sync, rename = os.fsync, Path.replace

    def watched_sync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def watched_rename(self: Path, target: Path) -> Path:
        done.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(Path, "replace", watched_rename)
    await LocalBlobs(tmp_path).put_blob("runs/1/a", b"x")
    assert done == ["file", "rename", "folder"]
    done.clear()
    await LocalBlobs(tmp_path).put_blob("runs/2/a", b"x")
    assert done == ["folder", "file", "rename", "folder"]


async def test_drafts_are_no_blobs_and_old_ones_go(tmp_path: Path) -> None:
    """What a dead writer left is not listed; once an hour old it is removed on the way, a younger one is not."""
    blobs = LocalBlobs(tmp_path)
    await blobs.put_blob("runs/1/a", b"x")
    old, young = tmp_path / "runs" / "1" / ".0ld", tmp_path / "runs" / "1" / ".y0ung"
    for draft in (old, young):
        draft.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert await listed(blobs) == ["runs/1/a"]
    assert (old.exists(), young.exists()) == (False, True)


async def test_only_the_owner_may_read(tmp_path: Path) -> None:
    """Files are made with mode 0600 and folders with 0700, whatever the umask says."""
    before = os.umask(0)
    try:
        await LocalBlobs(tmp_path / "blobs").put_blob("runs/1/a", b"x")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "blobs").rglob("*")}
    assert modes == {"runs": 0o700, "1": 0o700, "a": 0o600}
    assert stat.S_IMODE((tmp_path / "blobs").stat().st_mode) == 0o700


async def test_empty_folders_go_with_their_last_blob(tmp_path: Path) -> None:
    """Removing the last blob of a run removes its folder, and never the storage itself or what others need."""
    blobs = LocalBlobs(tmp_path / "blobs")
    for key in ("runs/1/a", "runs/1/b", "runs/2/a"):
        await blobs.put_blob(key, b"x")
    await blobs.delete_blob("runs/1/a")
    assert (tmp_path / "blobs" / "runs" / "1").exists()
    await blobs.delete_blob("runs/1/b")
    assert not (tmp_path / "blobs" / "runs" / "1").exists()
    await blobs.delete_blob("runs/2/a")
    assert list((tmp_path / "blobs").iterdir()) == []


async def test_a_folder_that_goes_while_a_blob_comes_is_made_again(tmp_path: Path) -> None:
    """Putting into a folder that another call empties at the same moment always succeeds."""
    blobs = LocalBlobs(tmp_path)

    async def work(name: str) -> None:
        for _ in range(50):
            await blobs.put_blob(f"runs/1/{name}", b"x")
            assert await blobs.get_blob(f"runs/1/{name}") == b"x"
            await blobs.delete_blob(f"runs/1/{name}")

    await asyncio.gather(*(work(name) for name in "abcd"))
    assert await listed(blobs) == []


async def test_a_storage_that_cannot_answer_says_so(tmp_path: Path) -> None:
    """A path that is no folder is a BlobStoreError for what writes; it holds nothing for what reads."""
    (tmp_path / "file").write_text("x")
    blobs = LocalBlobs(tmp_path / "file")
    with pytest.raises(BlobStoreError, match=r"\[blob_storage\] path = .*file: runs/1/a cannot be written"):
        await blobs.put_blob("runs/1/a", b"x")
    with pytest.raises(NotFoundError):
        await blobs.get_blob("runs/1/a")
    assert await listed(LocalBlobs(tmp_path / "nowhere")) == []
