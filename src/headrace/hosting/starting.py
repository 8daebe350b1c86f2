"""Bringing a server up: one process at a time, under `start.lock`.

Whatever an earlier start left behind is settled first: a server that runs is joined, one that is stopping is waited
for, one whose supervisor died is stopped. Only when no process of it is left (its `server.lock` is free) is it
prepared and started.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from datetime import timedelta
from pathlib import Path

from headrace.hosting import boot
from headrace.hosting.errors import (
    HostingDirectoryError,
    InUseElsewhereError,
    ServerNotReadyError,
    ServerStartError,
)
from headrace.hosting.locks import FileLock, pause, wait_until
from headrace.hosting.ports import candidate_ports, is_free
from headrace.hosting.spec import HostedServer, Launch
from headrace.hosting.state import LOG_FILE, Phase, ServerState, log_size, log_tail, read_state

#: Starts tried when the chosen port was lost to somebody else between choosing and binding it.
MAX_LAUNCHES = 5
#: How long a held lock without a visible owner is taken for a start in progress elsewhere on this machine.
_HIDDEN_OWNER_GRACE = timedelta(seconds=1)


def running_state(server: HostedServer) -> ServerState | None:
    """The state of the server if it runs and answers now."""
    state = read_state(server.directory)
    if state is not None and state.is_running() and server.ready(state) and state.is_running():
        return state
    return None


def bring_up(server: HostedServer, deadline: float) -> ServerState:
    """Have the server running and answering, whoever starts it.

    The caller holds `users.lock` shared. Raises HostingError, and what `server.prepare` raises.
    """
    start = FileLock(server.directory / "start.lock")
    try:
        if not wait_until(start.try_exclusive, deadline):
            raise ServerNotReadyError(
                f"another process has been starting the server in {server.directory} for {_shown(server)}. "
                "Wait, then try again",
                log_tail=log_tail(server.directory),
            )
        return _Start(server, deadline).run()
    finally:
        start.close()


class _Start:
    """One caller's turn under `start.lock`."""

    def __init__(self, server: HostedServer, deadline: float) -> None:
        self._server = server
        self._directory = server.directory
        self._deadline = deadline
        self._log_from = log_size(server.directory)
        self._launches = 0
        self._launch: Launch | None = None
        self._stop_sent_at: float | None = None
        self._first_look_at = time.monotonic()

    def run(self) -> ServerState:
        """Look at what is there and act on it until the server answers."""
        while True:
            ready = running_state(self._server)
            if ready is not None:
                return ready
            if not self._start_if_free():
                self._settle_what_holds_it()
            if time.monotonic() >= self._deadline:
                raise ServerNotReadyError(
                    f"the server in {self._directory} did not answer within {_shown(self._server)}. It may still be "
                    "recovering: wait, then try again",
                    log_tail=self._log_tail(),
                )
            pause()

    def _start_if_free(self) -> bool:
        """Prepare and start the server if no process of an earlier one is left."""
        alive = FileLock(self._directory / "server.lock")
        try:
            if not alive.try_exclusive():
                return False
            self._judge_last_launch()
            if self._launches == 0:
                self._server.prepare()
            self._choose_port()
        finally:
            alive.close()
        self._launches += 1
        self._hand_over()
        return True

    def _judge_last_launch(self) -> None:
        """Raise if our own launch ended for a reason that another try would meet again."""
        if self._launch is None:
            return
        state = read_state(self._directory)
        ended_by_itself = state is None or state.launch != self._launch.name or state.phase is Phase.FAILED
        lost_port = not is_free(self._launch.port)
        if self._launches >= MAX_LAUNCHES or (ended_by_itself and not lost_port):
            code = state.exit_code if state is not None else None
            raise ServerStartError(
                f"the server in {self._directory} ended while it was starting (exit code {code}). "
                "Its last log lines say why",
                log_tail=self._log_tail(),
            )

    def _choose_port(self) -> None:
        last = read_state(self._directory) if self._launches == 0 else None
        # The last port again, so that clients which outlived a crash of the server reconnect by themselves.
        port = next(candidate_ports(last.port if last else None), None)
        if port is None:
            raise ServerStartError("no free port between 20000 and 31999 on 127.0.0.1. Stop some servers and try again")
        self._launch = Launch.of(self._server, name=uuid.uuid4().hex, port=port)

    def _hand_over(self) -> None:
        """Start a supervisor and give it the launch; returns once it has started the server."""
        assert self._launch is not None
        text = _run_supervisor(self._launch)
        answer = json.loads(text) if text else {"outcome": "failed", "errno": 0, "reason": "the supervisor died"}
        if answer["outcome"] == "busy":
            self._launch = None  # another supervisor was there first; its state will be found
            return
        if answer["outcome"] == "started":
            return
        if answer["errno"] in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise HostingDirectoryError(self._directory, OSError(answer["errno"], answer["reason"]))
        raise ServerStartError(
            f"the server cannot be started: {answer['reason']} ({answer.get('file') or self._launch.command[0]})",
            log_tail=self._log_tail(),
        )

    def _settle_what_holds_it(self) -> None:
        """A process of some server is left, and it does not answer: wait for it, or stop it when nobody else will."""
        state = read_state(self._directory)
        if state is None or state.is_supervised():
            return
        if not state.is_here():
            self._refuse_what_cannot_be_seen(state)
        elif state.server is not None and state.server.is_alive():
            self._stop_orphan(state)

    def _stop_orphan(self, state: ServerState) -> None:
        """Stop a server whose supervisor died; politely first."""
        assert state.server is not None
        now = time.monotonic()
        if self._stop_sent_at is None:
            self._stop_sent_at = now
            state.server.send(self._server.stop_signal)
        elif now - self._stop_sent_at > self._server.stop_timeout.total_seconds():
            state.server.send(signal.SIGKILL)

    def _refuse_what_cannot_be_seen(self, state: ServerState) -> None:
        # A supervisor that was started just now by another caller may not have replaced the old state yet.
        if time.monotonic() - self._first_look_at > _HIDDEN_OWNER_GRACE.total_seconds():
            raise InUseElsewhereError(
                f"the server in {self._directory} runs in another container or on another machine "
                f"({state.hostname}). Stop it there, or use another directory"
            )

    def _log_tail(self) -> str:
        return log_tail(self._directory, since=self._log_from)


def _run_supervisor(launch: Launch) -> str:
    """Start a supervisor in a session of its own, hand it the launch and return its answer."""
    directory = Path(launch.directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(directory / LOG_FILE, flags, 0o600), "wb") as log:
        done = subprocess.run(  # noqa: S603 - our own interpreter and file
            [sys.executable, "-P", "-s", "-S", boot.__file__, launch.directory],
            input=launch.to_json(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd="/",
            env=_supervisor_environment(),
            start_new_session=True,
            check=False,
        )
    return done.stdout


def _supervisor_environment() -> dict[str, str]:
    # Only what an interpreter may need: the supervisor outlives its starter and must not carry that one's secrets.
    names = ("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
    return {name: os.environ[name] for name in names if name in os.environ}


def _shown(server: HostedServer) -> str:
    return f"{server.start_timeout.total_seconds():g} s"
