"""The data directory of the embedded PostgreSQL: made, checked and freed of what a crash left behind."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headrace.hosting import Account
from headrace.stores.postgres.embedded.account import can_enter, run_as, user_name
from headrace.stores.postgres.embedded.binaries import Binaries
from headrace.stores.postgres.embedded.errors import DataDirectoryError, OtherMajorVersionError, PostgresStartError
from headrace.stores.postgres.embedded.files import sync_directory, write_durably

USER = "headrace"
#: A bare environment: no PG… variable of the user's may change what is started. TZ spares initdb a search.
ENVIRONMENT = {"TZ": "UTC", "LC_ALL": "C", "PATH": os.defpath}
_INITDB_SECONDS = 300.0


class Cluster:
    """The data and the password in one home. Its methods are called under the home's `start.lock`."""

    def __init__(self, home: Path, account: Account | None) -> None:
        self.data = home / "data"
        self.password_file = home / "password"
        self._home, self._account = home, account

    def password(self) -> str:
        """The password of the one user. Raises DataDirectoryError when its file is gone."""
        try:
            return self.password_file.read_text(encoding="ascii").strip()
        except FileNotFoundError as error:
            raise DataDirectoryError(
                f"{self.password_file} is missing, so nobody can log in to the data beside it. Restore that file, or "
                f"remove {self._home} to begin anew"
            ) from error

    def prepare(self, binaries: Binaries, *, sync: bool) -> None:
        """Make the data directory if there is none; else see that these programs and this account can use it."""
        self._remove_drafts()
        if not self.data.exists():
            self._create(binaries, sync=sync)
            return
        self._check(binaries)
        self._remove_stale_pid_file()

    def is_ready(self, pid: int) -> bool:
        """Whether the server with this pid accepts connections, by its own word in its own data directory."""
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _create(self, binaries: Binaries, *, sync: bool) -> None:
        """Make the data beside their final place, so that a crash in between leaves no half of them there."""
        if not self.password_file.exists():
            write_durably(self.password_file, secrets.token_urlsafe(24))
        draft = Path(tempfile.mkdtemp(prefix="initdb-", dir=self._home))
        try:
            password_copy = draft / "password"  # initdb reads it as the account, who cannot read the original
            write_durably(password_copy, self.password())
            if self._account is not None:
                for path in (password_copy, draft):  # from the inside out: never touch what is the account's already
                    os.chown(path, self._account.uid, self._account.gid)
            self._run_initdb(binaries, draft, sync=sync)
            (draft / "data").rename(self.data)
            sync_directory(self._home)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _run_initdb(self, binaries: Binaries, draft: Path, *, sync: bool) -> None:
        command: list[str | Path] = [
            binaries.folder / "initdb",
            f"--pgdata={draft / 'data'}",
            f"--pwfile={draft / 'password'}",
            f"--username={USER}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-instructions",
            *_locale(binaries.major),
            *_sync(binaries.major, sync=sync),
        ]
        try:
            done = run_as(self._account, command, timeout=_INITDB_SECONDS, env=ENVIRONMENT)
        except subprocess.TimeoutExpired as error:
            raise PostgresStartError(f"initdb did not end within {_INITDB_SECONDS:g} s. Try again") from error
        if done.returncode != 0:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
            raise PostgresStartError(f"initdb could not make {self.data} (exit code {done.returncode})", log_tail=tail)

    def _check(self, binaries: Binaries) -> None:
        version_file = self.data / "PG_VERSION"
        if not version_file.exists():
            raise DataDirectoryError(
                f"{self.data} is no PostgreSQL data directory: it has no file PG_VERSION. Restore it, or remove "
                f"{self._home} to begin anew"
            )
        found = version_file.read_text(encoding="ascii").strip()
        if found != str(binaries.major):
            raise OtherMajorVersionError(self.data, found=found, needed=str(binaries.major))
        self._check_owner()
        self.password()  # before a server runs into which nobody could log in
        self.password_file.chmod(0o600)

    def _check_owner(self) -> None:
        owner, needed = self.data.stat().st_uid, self._account.uid if self._account else os.geteuid()
        if owner != needed:
            raise DataDirectoryError(
                f"{self.data} belongs to {user_name(owner)}, but PostgreSQL would run as {user_name(needed)} and "
                f"accepts only its own. Give it to {user_name(needed)} (chown -R), or run as its owner"
            )
        if self._account is not None and not can_enter(self._account, self.data):
            raise DataDirectoryError(
                f"{user_name(needed)}, as whom PostgreSQL runs under root, cannot get into {self.data}. Open the "
                "directories above it to others (chmod o+x), or move it back to where it was"
            )

    def _remove_stale_pid_file(self) -> None:
        """After a kill of everything the file stays, and a reused pid in it would keep PostgreSQL from starting."""
        path = self.data / "postmaster.pid"
        if sys.platform != "linux" or not path.exists():
            return
        pid = (path.read_text(encoding="utf-8", errors="replace").splitlines() or [""])[0].strip()
        if not pid.isdecimal() or not _works_in(int(pid), self.data):
            path.unlink()

    def _remove_drafts(self) -> None:
        for draft in self._home.glob("initdb-*"):
            shutil.rmtree(draft, ignore_errors=True)


def _works_in(pid: int, data: Path) -> bool:
    """Whether a process has its working directory there, as every server has in its data directory."""
    try:
        return Path(f"/proc/{pid}/cwd").samefile(data)
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return False  # none, or another user's: not a server on these data


def _locale(major: int) -> Sequence[str]:
    # The built-in locale sorts alike on every system and outlives changes of the C library's collations.
    builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return ["--locale=C", *builtin] if major >= 17 else ["--locale=C"]


def _sync(major: int, *, sync: bool) -> Sequence[str]:
    if not sync:
        return ["--no-sync"]
    # One call for the whole file system, in place of a thousand for its files: 0.1 s instead of up to 3 s.
    return ["--sync-method=syncfs"] if major >= 17 and sys.platform == "linux" else []
