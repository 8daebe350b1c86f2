"""The process that looks after one hosted server.

It starts the server, starts it again when it dies after having run for a while, and stops it once it gets the
exclusive lock of `users.lock` after `linger` without users. It lives in a process session of its own, so that no
terminal's Ctrl-C or hang-up reaches it or the server. It does not decide whether the server answers: its users ask.
Killed itself, it takes the server along where the kernel can do that (Linux); elsewhere the next start does it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from headrace.hosting.descendants import adopt_orphans, die_with_parent, end_orphans
from headrace.hosting.locks import FileLock, wait_until
from headrace.hosting.processes import ProcessId, identify
from headrace.hosting.spec import Launch
from headrace.hosting.state import LOG_FILE, Phase, ServerState, write_state

#: Above this size the log is emptied, so that a server up for months cannot fill the disk with it.
LOG_LIMIT_BYTES = 64 * 1024 * 1024


class Supervisor:
    """One server from its start to its end."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._directory = Path(launch.directory)
        self._users = FileLock(self._directory / "users.lock")
        self._alive = FileLock(self._directory / "server.lock", follows_forks=True)
        self._look_out_seconds = min(0.5, max(0.02, launch.linger_seconds / 8))
        self._idle_since: float | None = None
        self._last_use_ns = 0
        self._told_to_stop = False
        self._phase = Phase.RUNNING
        self._exit_code: int | None = None

    def start(self) -> None:
        """Start the server. Raises OSError when its command cannot be run, BlockingIOError when one runs already."""
        if not wait_until(self._alive.try_exclusive, time.monotonic() + 0.2):
            raise BlockingIOError
        self._wake_up = _signal_pipe(on_terminate=self._stop_soon)
        self._log = _open_log(self._directory)
        self._spawn()

    def run(self) -> None:
        """Look after the server until it has ended for good."""
        while self._goes_on():
            select.select([self._wake_up], [], [], self._look_out_seconds)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_up, 4096)
            self._limit_log()
        if self._server.poll() is None:
            self._stop()
        end_orphans()
        self._write_state()

    def say(self, what: str) -> None:
        """Add a line to the server's log."""
        with contextlib.suppress(OSError):  # a full disk must not stop the supervisor
            os.write(self._log, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC [supervisor] {what}\n".encode())

    def _goes_on(self) -> bool:
        if self._server.poll() is not None:
            return self._restarted()
        if self._told_to_stop:
            self.say("stopping the server: told to stop")
        elif self._users.is_deleted():
            self.say("stopping the server: its directory was removed")
        elif self._is_unused():
            self.say(f"stopping the server: no user for {self._launch.linger_seconds:g} s")
        else:
            return True
        return False

    def _is_unused(self) -> bool:
        """Whether nobody has used the server for the linger; then newcomers are held off until it has stopped."""
        if not self._users.try_exclusive():
            self._idle_since = None
            return False
        now, last_use_ns = time.monotonic(), self._users.modified_at_ns()
        if self._idle_since is None or last_use_ns != self._last_use_ns:
            self._idle_since, self._last_use_ns = now, last_use_ns
        if now - self._idle_since >= self._launch.linger_seconds:
            return True
        self._users.unlock()
        return False

    def _restarted(self) -> bool:
        self._exit_code = self._server.returncode
        self.say(f"the server ended by itself with exit code {self._exit_code}")
        self._phase = Phase.FAILED
        if self._told_to_stop or time.monotonic() - self._started_at < self._launch.restart_after_seconds:
            return False
        end_orphans()  # they hold its files and memory, and a new server would find those in use
        try:
            self._spawn()
        except OSError as error:
            self.say(f"the server cannot be started again: {error}")
            return False
        return True

    def _spawn(self) -> None:
        launch = self._launch
        account = launch.account
        self._started_at = time.monotonic()
        self._server = subprocess.Popen(  # noqa: S603 - the command is the caller's own
            launch.command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=dict(launch.environment),
            cwd=launch.working_directory,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            process_group=0,
            # Held by every process of the server, this lock says for sure when the last of them is gone.
            pass_fds=[self._alive.fileno()],
            # After the change of user, which would clear it.
            preexec_fn=die_with_parent(signal.Signals(launch.stop_signal)),
        )
        self._phase, self._exit_code = Phase.RUNNING, None
        self._write_state()
        self.say(f"started the server: pid {self._server.pid}, port {launch.port}")

    def _stop(self) -> None:
        self._phase = Phase.STOPPING
        self._write_state()
        self._server.send_signal(self._launch.stop_signal)
        try:
            self._server.wait(self._launch.stop_timeout_seconds)
        except subprocess.TimeoutExpired:
            self.say("killing the server: it did not stop in time")
            os.killpg(self._server.pid, signal.SIGKILL)
        self._exit_code = self._server.wait()
        self._phase = Phase.STOPPED
        self.say(f"the server has stopped with exit code {self._exit_code}")

    def _write_state(self) -> None:
        launch = self._launch
        supervisor = identify(os.getpid())
        assert supervisor is not None
        server: ProcessId | None = identify(self._server.pid) if self._server.returncode is None else None
        state = ServerState(
            phase=self._phase,
            launch=launch.name,
            port=launch.port,
            supervisor=supervisor,
            server=server,
            exit_code=self._exit_code,
            details=launch.details,
        )
        try:
            write_state(self._directory, state)
        except OSError as error:
            self.say(f"{self._directory} cannot be written: {error}")
            if self._phase is Phase.RUNNING:
                self._server.send_signal(self._launch.stop_signal)
                raise

    def _limit_log(self) -> None:
        if os.fstat(self._log).st_size > LOG_LIMIT_BYTES:
            os.ftruncate(self._log, 0)

    def _stop_soon(self) -> None:
        self._told_to_stop = True


def main() -> None:
    """Read a launch from standard input, start its server, say how that went on standard output, look after it."""
    launch = Launch.from_json(sys.stdin.read())
    if os.fork():
        os._exit(0)  # the user's process gets no child it would have to wait for
    os.umask(0o077)
    adopt_orphans()
    try:
        supervisor = Supervisor(launch)
        supervisor.start()
    except BlockingIOError:
        _answer({"outcome": "busy"})
        return
    except OSError as error:
        _answer({"outcome": "failed", "errno": error.errno, "file": error.filename, "reason": error.strerror})
        return
    _answer({"outcome": "started"})
    supervisor.run()


def _answer(words: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the starter died; the next user finds the server running
        os.write(1, json.dumps(words).encode())
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # closes the pipe: the starter reads up to here
    os.dup2(nowhere, 0)


def _signal_pipe(*, on_terminate: Callable[[], None]) -> int:
    """Descriptor that becomes readable on any signal handled here; Ctrl-C and hang-ups are nobody's business."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    # Handlers, not SIG_IGN: the server would inherit the latter and be deaf to its own stop signal.
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    signal.signal(signal.SIGTERM, lambda _number, _frame: on_terminate())
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _open_log(directory: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(directory / LOG_FILE, flags, 0o600)
