"""Where an embedded PostgreSQL lives: its data, password, locks and log.

That is `DIRECTORY/postgres`. Only as root, where `nobody` cannot get into DIRECTORY, it is a system directory
named by `DIRECTORY/location`; later starts follow that file, also after the checkout has moved.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from pathlib import Path

from headrace.hosting import Account
from headrace.hosting.locks import FileLock, wait_until
from headrace.stores.postgres.embedded.account import can_own, check_account, user_name
from headrace.stores.postgres.embedded.errors import DataDirectoryError
from headrace.stores.postgres.embedded.files import write_durably
from headrace.stores.postgres.embedded.system import is_trusted, system_directory

_CHOOSING_SECONDS = 30.0
_logger = logging.getLogger("headrace.postgres")


def find_home(directory: Path, account: Account | None) -> Path:
    """The home that belongs to `directory`, chosen and made when there is none yet.

    Raises DataDirectoryError when it belongs to another user or has vanished, OSError when it cannot be made.
    """
    directory = directory.absolute()
    if _make(directory, closed=False):
        (directory / ".gitignore").write_text("*\n", encoding="ascii")  # nobody wants a database in their history
    home = _known(directory, account)
    if home is None:
        assert account is not None
        home = _choose(directory, account)
    _make(home, closed=account is None)
    _check_owner(home)
    return home


def _known(directory: Path, account: Account | None) -> Path | None:
    """The home as an earlier start has settled it; for anybody but root it never is in question."""
    if (directory / "location").exists():
        return _follow(directory, account)
    home = directory / "postgres"
    return home if account is None or (home / "data").exists() else None


def _choose(directory: Path, account: Account) -> Path:
    """Root's first start here: the checkout if `nobody` can have data in it, else a system directory."""
    check_account(account)
    home = directory / "postgres"
    if home.exists():
        _check_owner(home)
    choosing = FileLock(directory / "location.lock")
    try:
        if not wait_until(choosing.try_exclusive, time.monotonic() + _CHOOSING_SECONDS):
            raise DataDirectoryError(f"another process holds {choosing.path}. Wait, then try again")
        _make(home, closed=False)
        if can_own(account, home):
            return home
        with contextlib.suppress(OSError):
            home.rmdir()
        # Somebody who chose at the same time may have been first.
        return _known(directory, account) or _move_out(directory, account)
    finally:
        choosing.close()


def _move_out(directory: Path, account: Account) -> Path:
    home = _new_home(system_directory(account), hashlib.sha256(os.fsencode(directory)).hexdigest()[:16])
    write_durably(home / "checkout", str(directory))
    write_durably(directory / "location", str(home), mode=0o644)
    _logger.info("the embedded PostgreSQL of %s lives in %s", directory, home)
    return home


def _new_home(parent: Path, name: str) -> Path:
    """A home that did not exist: who removed `location` wants an empty store, and the data before it are kept."""
    number = 1
    while not _make(home := parent / (name if number == 1 else f"{name}-{number}"), closed=False):
        number += 1
    return home


def _follow(directory: Path, account: Account | None) -> Path:
    location = directory / "location"
    home = Path(location.read_text(encoding="utf-8").strip())
    if account is None:
        raise DataDirectoryError(
            f"{location} says that root started the embedded PostgreSQL of this directory, with its data in {home}. "
            f"Run as root, or remove {location} to begin anew with an empty store"
        )
    owner = home / "checkout"
    if not home.is_absolute() or not is_trusted(home) or not owner.is_file():
        raise DataDirectoryError(
            f"{location} names {home}, which is no home of an embedded PostgreSQL that belongs to root alone. "
            f"Restore it, or remove {location} to begin anew with an empty store"
        )
    before = Path(owner.read_text(encoding="utf-8").strip())
    if before != directory:
        if _still_claims(before, home):
            raise DataDirectoryError(
                f"{location} names {home}, which belongs to {before}: this directory is a copy of that one, and the "
                f"data were not copied with it. Remove {location} to begin anew with an empty store"
            )
        write_durably(owner, str(directory))  # the checkout was moved
    return home


def _still_claims(directory: Path, home: Path) -> bool:
    location = directory / "location"
    return location.exists() and location.read_text(encoding="utf-8").strip() == str(home)


def _make(directory: Path, *, closed: bool) -> bool:
    """Whether the directory was made now; root makes it one that others may pass through, whatever the umask says."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        if directory.is_dir():
            return False
        raise
    if closed:
        directory.chmod(0o700)
    elif os.geteuid() == 0:
        directory.chmod(0o711)
    return True


def _check_owner(home: Path) -> None:
    owner = home.stat().st_uid
    if owner != os.geteuid():
        raise DataDirectoryError(
            f"{home} belongs to {user_name(owner)}, who started the embedded PostgreSQL of this directory first, and "
            f"this is {user_name(os.geteuid())}. Run as {user_name(owner)}, or remove {home} to begin anew"
        )
