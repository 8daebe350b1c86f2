"""Who PostgreSQL runs as. It refuses root, so as root it runs as `nobody`; otherwise as the caller."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from headrace.hosting import Account
from headrace.stores.postgres.embedded.errors import AccountError

UNPRIVILEGED = "nobody"


def find_account() -> Account | None:
    """The account to change to, or None to stay the caller's. Raises AccountError when root has none."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError as error:
        raise AccountError(
            f"PostgreSQL refuses to run as root, and this system has no user {UNPRIVILEGED!r} to run it as. "
            "Add that user, run Headrace as an ordinary user, or set HEADRACE_URL to a PostgreSQL server"
        ) from error
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def run_as(
    account: Account | None, command: Sequence[str | Path], *, timeout: float = 30, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as the account, with its output captured and a bare environment."""
    return subprocess.run(  # noqa: S603 - our own commands
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        cwd="/",
        env={"PATH": os.environ.get("PATH", os.defpath), **(env or {})},
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        check=False,
    )


def check_account(account: Account) -> None:
    """Raise AccountError when this root may not become the account, as in some containers."""
    try:
        run_as(account, ["/bin/sh", "-c", ":"])
    except OSError as error:
        raise AccountError(
            f"PostgreSQL refuses to run as root, and this process may not become {UNPRIVILEGED!r} "
            f"({error.strerror}). Run Headrace as an ordinary user, give the container the capabilities SETUID and "
            "SETGID, or set HEADRACE_URL to a PostgreSQL server"
        ) from error


def can_enter(account: Account, directory: Path) -> bool:
    """Whether the account gets into the directory: asked of the kernel, as ACLs and mounts have their say too."""
    return run_as(account, ["/bin/sh", "-c", 'cd "$0"', directory]).returncode == 0


def can_own(account: Account, parent: Path) -> bool:
    """Whether a directory in `parent` can be given to the account, which can then write in it.

    False below a directory closed to others, and on file systems that keep no owners (some network and shared ones).
    """
    trial = Path(tempfile.mkdtemp(prefix="trial-", dir=parent))
    try:
        os.chown(trial, account.uid, account.gid)
        if trial.stat().st_uid != account.uid:
            return False
        return run_as(account, ["/bin/sh", "-c", 'cd "$0" && : > file && rm file', trial]).returncode == 0
    except PermissionError:
        return False
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def user_name(uid: int) -> str:
    """The name of a user id, or the id itself."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"
