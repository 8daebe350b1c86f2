"""The folder that flows may use: no path leads out of it, whatever a flow, a file's name or a symbolic link says.

Paths are opened step by step from the folder down, and links are never followed. Files are written under another name,
synced and renamed: a reader finds the old one or the new one.
"""

from __future__ import annotations

import errno
import fcntl
import fnmatch
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.nodes.base import NodeError

MAX_BYTES = 64 * 1024 * 1024
#: Folders and files that are looked at for one pattern, and files that it may find.
MAX_SEEN, MAX_FOUND, MAX_DEPTH = 100_000, 10_000, 32
_MAX_PATH = 2_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
#: No pattern finds names that begin so: what is being written is no file yet.
_DRAFT = "."


class Folder:
    """Files below `root`, which is made when the first file is written."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def read(self, path: str) -> bytes:
        """Return a file. Raises NodeError for one that is outside, missing, too large or no file."""
        *folders, name = self._parts(path)
        with _told(path, "read"), self._opened(folders, make=False) as folder:
            data = _content(path, folder, name)
        if len(data) > MAX_BYTES:
            raise NodeError(f"{path} is larger than {MAX_BYTES >> 20} MiB: split it")
        return data

    def write(self, path: str, data: bytes, *, append: bool) -> None:
        """Write a file, and the folders above it. Raises NodeError."""
        *folders, name = self._parts(path)
        if name.startswith(_DRAFT):
            raise NodeError(f"{path} begins with a dot: such files are not written; choose another name")
        with _told(path, "written"), self._opened(folders, make=True) as folder:
            if append:
                # Another writer's end must not be lost between reading and renaming.
                fcntl.flock(folder, fcntl.LOCK_EX)
                data = self._before(path, folder, name) + data
            if len(data) > MAX_BYTES:
                raise NodeError(f"{path} would be larger than {MAX_BYTES >> 20} MiB: write several files")
            _write(folder, name, data)

    def find(self, pattern: str) -> list[str]:
        """Return the paths that fit a pattern, in order; `**` stands for any folders. Raises NodeError."""
        parts = self._parts(pattern)
        # Alone at the end it means the files there, too.
        parts += ["*"] if parts[-1] == "**" else []
        # Any folders below any folders are any folders.
        parts = [part for number, part in enumerate(parts) if part != "**" or parts[number - 1 : number] != ["**"]]
        if "{" in pattern:
            raise NodeError(f"{pattern!r}: alternatives in braces are not supported; use one node for each")
        with _told(f"{pattern} below {self._root}", "looked for"):
            found = sorted(_Search(self._root).find(parts))
        if len(found) > MAX_FOUND:
            raise NodeError(f"{pattern!r} finds more than {MAX_FOUND:,} files: use narrower patterns")
        return found

    @staticmethod
    def _before(path: str, folder: int, name: str) -> bytes:
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return b""
        return _content(path, folder, name)

    def _parts(self, path: str) -> list[str]:
        """Return the steps of a path from the folder down. Raises NodeError for one that could lead out of it."""
        root = str(self._root)
        if "\0" in path or "\\" in path or len(path) > _MAX_PATH or _is_broken(path):
            rule = f"no NUL, no backslash, no half of a character, at most {_MAX_PATH} characters"
            raise NodeError(f"{path[:80]!r} is no path: {rule}")
        inside = path.removeprefix(root) if path == root or path.startswith(f"{root}/") else path
        parts = [part for part in inside.split("/") if part not in ("", ".")]
        if ".." in parts or (inside is path and path.startswith(("/", "~"))):
            raise NodeError(f"{path!r} leads out of the folder that flows may use, {root} ([flows] files)")
        if not parts:
            raise NodeError(f"{path!r} names no file; write a path below {root}")
        return parts

    @contextmanager
    def _opened(self, folders: list[str], *, make: bool) -> Iterator[int]:
        """Open a folder below the root, step by step."""
        if make:
            self._root.mkdir(parents=True, exist_ok=True)
        here = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in folders:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=here)
                below = os.open(name, _READ | os.O_DIRECTORY, dir_fd=here)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)


class _Search:
    """Looks for the files that fit a pattern."""

    def __init__(self, root: Path) -> None:
        self._root, self._seen = root, 0

    def find(self, parts: list[str]) -> set[str]:
        """Return the paths that fit."""
        found: set[str] = set()
        todo: list[tuple[str, tuple[str, ...]]] = [("", tuple(parts))]
        done = set(todo)
        for folder, left in todo:  # which grows
            for path, rest, is_folder in self._ways(folder, left):
                if is_folder == bool(rest) and _is_broken(path):
                    raise NodeError(f"{path!r} has a name in another encoding than UTF-8: rename it")
                if not rest and not is_folder:
                    found.add(path)
                elif rest and is_folder and (f"{path}/", rest) not in done:
                    done.add((f"{path}/", rest))
                    todo.append((f"{path}/", rest))
        return found

    def _ways(self, folder: str, left: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], bool]]:
        """Yield the entries of a folder that fit, with what is then left of the pattern, and whether it is a folder."""
        for name, is_folder in self._entries(folder):
            for rest in _steps(left, name):
                yield f"{folder}{name}", rest, is_folder

    def _entries(self, folder: str) -> Iterator[tuple[str, bool]]:
        if folder.count("/") > MAX_DEPTH:
            return
        with os.scandir(self._root / folder) as entries:
            for entry in entries:
                self._seen += 1
                if self._seen > MAX_SEEN:
                    raise NodeError(f"more than {MAX_SEEN:,} files would be looked at: begin the pattern with a folder")
                if entry.is_symlink():
                    continue
                yield entry.name, entry.is_dir(follow_symlinks=False)


def _steps(parts: tuple[str, ...], name: str) -> Iterator[tuple[str, ...]]:
    """Yield what is left of a pattern behind an entry of this name, in each way that it fits."""
    while parts and parts[0] == "**":
        if not name.startswith(_DRAFT):
            yield parts
        parts = parts[1:]
    if parts and _fits(name, parts[0]):
        yield parts[1:]


def _is_broken(name: str) -> bool:
    """Whether a name cannot be written down: it holds bytes that are no UTF-8, or half of a character."""
    try:
        return not name.isascii() and not name.encode()
    except UnicodeEncodeError:
        return True


def _fits(name: str, part: str) -> bool:
    hidden = name.startswith(_DRAFT) and not part.startswith(_DRAFT)
    return not hidden and re.match(fnmatch.translate(part), name) is not None


def _content(path: str, folder: int, name: str) -> bytes:
    # Without blocking: a pipe that nobody writes to would hold us for good.
    with open(os.open(name, _READ | os.O_NONBLOCK, dir_fd=folder), "rb") as file:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NodeError(f"{path} is no file")
        return file.read(MAX_BYTES + 1)


def _write(folder: int, name: str, data: bytes) -> None:
    draft = f"{_DRAFT}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise
    os.fsync(folder)


@contextmanager
def _told(path: str, done: str) -> Iterator[None]:
    """Tell what the system says of a path in the words of a node's error."""
    try:
        yield
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        link = number in (errno.ELOOP, errno.EMLINK)
        why = "it is a symbolic link, and none is followed" if link else getattr(error, "strerror", None) or "no name"
        raise NodeError(f"{path} cannot be {done}: {why}") from None
