"""The folder that flows may use: no path leads out of it, files are written whole, patterns are bounded."""

from __future__ import annotations

import asyncio
import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.flows import folder as folders
from headrace.apps.flows.files import RunFiles
from headrace.apps.flows.folder import Folder
from headrace.flow_settings import FlowSettings
from headrace.nodes.base import NodeError
from tests.unit.engine_app import QUICK, quick_app


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder for flows, beside which there is a secret."""
    (tmp_path / "secret.txt").write_text("no")
    root = tmp_path / "flows"
    (root / "in" / "deep").mkdir(parents=True)
    for path in ("in/a.csv", "in/b.txt", "in/deep/c.csv", "in/.hidden.csv", "top.csv"):
        (root / path).write_text(path)
    return root


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt", "in/../../secret.txt", "/etc/passwd", "~/x", "in\\..\\..\\secret.txt", "a\0b", "", "/", ".",
        "{root}/../secret.txt", "{root}x/secret.txt", "{root}", "x" * 3_000, "outside/secret.txt", "secret-link",
        "in/pipe", "in", "in/a.csv/x", "none.csv", "x" * 300, "\ud800",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_folder(path: str, root: Path) -> None:
    """Neither steps upwards, absolute paths, symbolic links, nor what is no file at all, is read."""
    (root / "outside").symlink_to(root.parent)
    (root / "secret-link").symlink_to(root.parent / "secret.txt")
    os.mkfifo(root / "in/pipe")
    with pytest.raises(NodeError) as caught:
        Folder(root).read(path.replace("{root}", str(root)))
    assert str(caught.value).encode(), "an error is kept as any text"


@pytest.mark.parametrize("path", ["../x", "outside/x", "in", "in/.x", "in/a.csv/x", "/x", "x" * 300])
def test_nothing_is_written_outside_of_the_folder(path: str, root: Path) -> None:
    """Nor over a folder, nor as a hidden file; no draft is left behind."""
    (root / "outside").symlink_to(root.parent)
    before = sorted(root.parent.rglob("*"))
    with pytest.raises(NodeError):
        Folder(root).write(path, b"bad", append=False)
    assert sorted(root.parent.rglob("*")) == before


def test_a_link_is_replaced_and_not_written_through(root: Path) -> None:
    """Writing a file in the place of a link leaves what the link led to alone."""
    (root / "link").symlink_to(root.parent / "secret.txt")
    folder = Folder(root)
    with pytest.raises(NodeError, match="symbolic link"):
        folder.write("link", b"x", append=True)
    folder.write("link", b"x", append=False)
    assert ((root.parent / "secret.txt").read_text(), folder.read("link")) == ("no", b"x")


def test_files_are_written_whole(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are made on the way, also that of flows; where the end fails the old file stays, and no draft."""
    folder = Folder(root / "new")
    folder.write("a/b/c.txt", b"one", append=True)
    folder.write(f"{root}/new/a/b/c.txt", b"two", append=True)
    assert folder.read("./a//b/c.txt") == b"onetwo"

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NodeError, match=r"a/b/c\.txt cannot be written: No space left"):
        folder.write("a/b/c.txt", b"three", append=False)
    assert [path.name for path in (root / "new/a/b").iterdir()] == ["c.txt"]
    assert folder.read("a/b/c.txt") == b"onetwo"


def test_files_have_a_largest_size(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read, written, or has grown by appending is bounded."""
    monkeypatch.setattr(folders, "MAX_BYTES", 1 << 20)
    folder = Folder(root)
    folder.write("x", b"." * (1 << 20), append=False)
    assert len(folder.read("x")) == 1 << 20
    with pytest.raises(NodeError, match="would be larger than 1 MiB"):
        folder.write("x", b".", append=True)
    (root / "y").write_bytes(b"." * ((1 << 20) + 1))
    with pytest.raises(NodeError, match="y is larger than 1 MiB"):
        folder.read("y")


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*.csv", ["top.csv"]),
        ("in/*.csv", ["in/a.csv"]),
        ("in/*", ["in/a.csv", "in/b.txt"]),
        ("**/*.csv", ["in/a.csv", "in/deep/c.csv", "top.csv"]),
        ("**", ["in/a.csv", "in/b.txt", "in/deep/c.csv", "top.csv"]),
        ("in/**/**/c.*", ["in/deep/c.csv"]),
        ("in/[a-b].???", ["in/a.csv", "in/b.txt"]),
        ("in/.*", ["in/.hidden.csv"]),
        ("top.csv", ["top.csv"]),
        ("{root}/in/*.txt", ["in/b.txt"]),
        ("out/*", []),
    ],
)
def test_patterns_find_files(pattern: str, paths: list[str], root: Path) -> None:
    """In order, below the folder alone: neither links nor hidden files that are not asked for."""
    (root / "in" / "link.csv").symlink_to(root.parent / "secret.txt")
    (root / "outside").symlink_to(root.parent)
    assert Folder(root).find(pattern.replace("{root}", str(root))) == paths


def test_patterns_are_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many files are found, and how many are looked at; what is no pattern here is named."""
    folder = Folder(root)
    for pattern, words in (("*.{a,b}", "braces"), ("../*", "leads out"), ("/etc/*", "leads out")):
        with pytest.raises(NodeError, match=words):
            folder.find(pattern)
    monkeypatch.setattr(folders, "MAX_FOUND", 1)
    with pytest.raises(NodeError, match="more than 1 files"):
        folder.find("**")
    monkeypatch.setattr(folders, "MAX_SEEN", 2)
    with pytest.raises(NodeError, match="more than 2 files would be looked at"):
        folder.find("**")


def test_repeated_folders_are_looked_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any folders below any folders are any folders: the pattern costs what the shorter one does."""
    monkeypatch.setattr(folders, "MAX_SEEN", 50)
    folder = Folder(root)
    assert folder.find("**/" * 600 + "*.csv") == folder.find("**/*.csv")
    assert folder.find("in/" + "**/" * 300 + "**") == folder.find("in/**")


def test_names_in_another_encoding_are_told(root: Path) -> None:
    """A file or a folder on the way whose name is no UTF-8 cannot be in an item: it is named, not left out."""
    name = os.fsdecode(b"caf\xe9.csv")
    try:
        (root / "in" / name).write_text("x")
        (root / "in" / "deep" / os.fsdecode(b"\xe9")).mkdir()
    except OSError:
        pytest.skip("names are UTF-8 on this file system")
    folder = Folder(root)
    for pattern, words in (("in/*", r"'in/caf\\udce9\.csv' has a name"), ("in/deep/*/*", r"'in/deep/\\udce9' has a")):
        with pytest.raises(NodeError, match=rf"{words}.*: rename it") as caught:
            folder.find(pattern)
        assert str(caught.value).isascii()
    assert folder.find("in/*.txt") == ["in/b.txt"]
    assert folder.find("in/deep/*") == ["in/deep/c.csv"]


async def test_appending_at_once_loses_nothing(root: Path) -> None:
    """Each writer waits for the one before it."""
    folder = Folder(root)
    await asyncio.gather(*(asyncio.to_thread(folder.write, "log", b"x", append=True) for _ in range(20)))
    assert folder.read("log") == b"x" * 20


def test_a_folder_that_is_not_there_is_an_error(root: Path) -> None:
    """Reading and looking name the path; nothing is made."""
    for use in (lambda: Folder(root / "none").read("a"), lambda: Folder(root / "none").find("*")):
        with pytest.raises(NodeError, match="No such file or directory"):
            use()
    assert not (root / "none").exists()


async def test_binary_data_are_files_of_their_run(root: Path) -> None:
    """They go to the run's files and come back; the folder is that of the settings unless another one is given."""
    app = quick_app(settings=replace(QUICK, flows=FlowSettings(files=root / "in")))

    @app.task
    async def there_and_back() -> dict[str, Any]:
        files = RunFiles(app, root)
        made = await files.put(b"abc", name="a.txt", mime="text/plain")
        await files.write("out.txt", await files.get(made), append=False)
        return {"made": made, "found": [path async for path in files.find("*.txt")]}

    app.workflow("flow", there_and_back.s())
    async with app.worker():
        found = await (await app.start("flow")).result("10s")
    assert found["found"] == ["out.txt"]
    assert await RunFiles(app, root).read("out.txt") == b"abc"
    assert await RunFiles(app).read("a.csv") == b"in/a.csv"
    assert found["made"] == {**found["made"], "fileName": "a.txt", "mimeType": "text/plain", "fileSize": 3}
    assert found["made"]["$file"]["bytes"] == 3
