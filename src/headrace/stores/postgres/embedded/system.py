"""Root's directory outside any checkout, for data and binaries that `nobody` must reach."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from headrace.hosting import Account
from headrace.stores.postgres.embedded.account import can_enter
from headrace.stores.postgres.embedded.errors import DataDirectoryError

#: Tried in this order.
SYSTEM_DIRECTORIES = (Path("/var/lib/headrace"), Path("/var/tmp/headrace-root"))  # noqa: S108 - checked by is_trusted


def system_directory(account: Account) -> Path:
    """The first system directory that is root's alone to write and that the account can enter; made when missing."""
    for directory in SYSTEM_DIRECTORIES:
        if _made(directory) and is_trusted(directory) and can_enter(account, directory):
            return directory
    names = " nor ".join(str(directory) for directory in SYSTEM_DIRECTORIES)
    raise DataDirectoryError(
        f"the account PostgreSQL runs as cannot reach this directory, and neither {names} can be used instead: each "
        "must belong to root, be writable by root alone and be open to others (mode 755). Correct one of them, move "
        "to a directory that others may enter, or run as an ordinary user"
    )


def is_trusted(path: Path) -> bool:
    """Whether only root can change what lies at `path`: no link, root's, writable by nobody else, as all above it."""
    try:
        return _is_roots_alone(path.lstat()) and all(
            _is_roots_alone(parent.stat(), may_be_sticky=True) for parent in path.parents
        )
    except OSError:
        return False


def _made(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o755)
        directory.chmod(0o755)  # whatever the umask says
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def _is_roots_alone(found: os.stat_result, *, may_be_sticky: bool = False) -> bool:
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0:
        return False
    # In a sticky directory (/var/tmp) others may add entries, but neither rename nor remove ours.
    sticky = may_be_sticky and bool(found.st_mode & stat.S_ISVTX)
    return sticky or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
