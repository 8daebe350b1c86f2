"""A Ray cluster for tests, in namespaces of its own: they have a loopback alone, and end with their first process.

Ray takes the address of the host for its own unless there is only a loopback, so nothing of it is to be seen outside.
What runs there reaches PostgreSQL by the file of its socket.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Self

from tests.backends.server import die_with_parent
from tests.waiting import wait_until_sync

PORT = 26379
#: The least that Ray takes.
_STORE_BYTES = 80_000_000
RAY = str(Path(sys.executable).with_name("ray"))


@cache
def why_not() -> str:
    """Return why there can be no cluster here; empty when there can."""
    command = ["unshare", "-n", "-p", "-f", "--mount-proc", "true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except OSError as error:
        return f"namespaces need `unshare`: {error}"
    return "" if tried.returncode == 0 else f"namespaces are not permitted here: {tried.stderr.strip()}"


@dataclass
class RayCluster:
    """One cluster, which is there inside its `with`."""

    root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="hrray", dir="/tmp")))
    nodes: list[str] = field(default_factory=list)
    _holder: subprocess.Popen[bytes] | None = None
    _inner: int = 0

    @property
    def address(self) -> str:
        """What `[ray] address` is there."""
        return f"{self.nodes[0]}:{PORT}"

    @property
    def environment(self) -> dict[str, str]:
        """What processes of the cluster and its drivers need."""
        return {
            "HOME": str(self.root), "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(self.root),
        }  # fmt: skip

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _begin(self) -> None:
        """Make the namespaces, and the token that all need to come in."""
        command = ["unshare", "-n", "-p", "-f", "--mount-proc", "sh", "-c", "ip link set lo up && echo up && cat"]
        self._holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"up\n"
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self._inner = int(children.read_text().split()[0])
        token = self.root / ".ray" / "auth_token"
        token.parent.mkdir()
        token.write_text(token_hex(32))

    def command(self, *words: str, folder: Path | None = None) -> list[str]:
        """Return a command that runs words in there, in a folder."""
        # `nsenter` begins in the root folder of the namespace.
        return ["nsenter", "-t", str(self._inner), "-n", "-p", "-m", "env", "-C", str(folder or self.root), *words]

    def run(self, *words: str, environ: Mapping[str, str] | None = None) -> str:
        """Run a command in there to its end, and return what it wrote."""
        done = subprocess.run(
            self.command(*words), env={**_clean(), **self.environment, **(environ or {})}, cwd=self.root,
            capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start_node(self, *options: str, cpus: int = 2) -> str:
        """Start the head node, or one more, and return its address."""
        address = f"127.0.0.{len(self.nodes) + 1}"
        role = ["--address", self.address] if self.nodes else [
            "--head", "--port", str(PORT), "--include-dashboard=false", "--temp-dir", str(self.root / "r"),
        ]  # fmt: skip
        self.run(
            RAY, "start", *role, "--node-ip-address", address, "--num-cpus", str(cpus),
            "--object-store-memory", str(_STORE_BYTES), "--disable-usage-stats", *options,
        )  # fmt: skip
        self.nodes.append(address)
        return address

    def pids(self, pattern: str) -> list[int]:
        """Return the processes in there whose command line matches, as they are numbered there."""
        found = subprocess.run(self.command("pgrep", "-f", pattern), capture_output=True, text=True, check=False)
        return [int(word) for word in found.stdout.split()]

    def kill(self, pids: Sequence[int]) -> None:
        """End processes as a power cut does."""
        assert pids
        subprocess.run(self.command("kill", "-9", *map(str, pids)), check=True)

    def kill_node(self, address: str) -> None:
        """End a node: its processes end with the first one."""
        self.kill(self.pids(_raylet(address)))
        wait_until_sync(lambda: not self.lives(address))

    def lives(self, address: str) -> bool:
        """Whether a node is there."""
        return bool(self.pids(_raylet(address)))

    def _remove(self) -> None:
        """End everything in there, and remove its files."""
        if self._holder is not None:
            with self._holder:
                os.kill(self._inner or self._holder.pid, signal.SIGKILL)
        if self._inner:
            wait_until_sync(lambda: not Path(f"/proc/{self._inner}").exists())
        shutil.rmtree(self.root, ignore_errors=True)


def _raylet(address: str) -> str:
    return f"raylet/raylet.*--node_ip_address={address} "


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "HEADRACE_"))}
