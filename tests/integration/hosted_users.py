"""A small server to be hosted, and user processes of it; run as a script it is such a user: `DIRECTORY OPTION`."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace.hosting import HostedServer, ServerState, acquire

LINGER = timedelta(seconds=0.25)
#: Far above what anything here takes, so that only a fault reaches it.
PATIENCE = timedelta(seconds=20)
PATIENCE_SECONDS = PATIENCE.total_seconds()

#: Tells everyone who connects its pid, which is how a user knows that this very server answers.
SERVER = """
import os, signal, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        client, _ = server.accept()
        client.sendall(str(os.getpid()).encode())
        client.close()
"""


def answers(state: ServerState) -> bool:
    """Whether the server described, and no other, answers on its port."""
    assert state.server is not None
    try:
        with socket.create_connection(("127.0.0.1", state.port), timeout=5) as client:
            return client.recv(64) == str(state.server.pid).encode()
    except OSError:
        return False


def answering_server(directory: Path, **changes: Any) -> HostedServer:
    """The server of these tests, living in `directory`."""
    server = HostedServer(
        directory=directory,
        command=lambda port: [sys.executable, "-IS", "-c", SERVER, str(port)],
        ready=answers,
        linger=LINGER,
        start_timeout=PATIENCE,
    )
    return replace(server, **changes)


def be_a_user(directory: Path, option: str) -> None:
    """What a user process does: acquire, say what it got, hold on until its standard input ends."""
    if option == "never-ready":
        # The linger is long, so that whoever comes after the death of this user finds the server.
        acquire(answering_server(directory, linger=PATIENCE, ready=lambda state: print(state.server, flush=True)))
    hosted = acquire(answering_server(directory))
    if option == "forks" and os.fork() == 0:
        sys.stdout.close()
        sys.stdin.read()
        os._exit(0)
    assert hosted.state.server is not None
    print(json.dumps({"server": hosted.state.server.pid, "port": hosted.port}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    # As a terminal leaves them: a test run in the background, or under nohup, hands them on ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    be_a_user(Path(sys.argv[1]), sys.argv[2])
