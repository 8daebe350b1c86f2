"""Using a hosted server: `acquire` it, ask it for its port, `release` it."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from types import TracebackType

from headrace.hosting.errors import HostingDirectoryError, ServerNotReadyError
from headrace.hosting.locks import FileLock, wait_until
from headrace.hosting.spec import HostedServer
from headrace.hosting.starting import bring_up, running_state
from headrace.hosting.state import ServerState

_logger = logging.getLogger("headrace.hosting")


class Hosted:
    """One user's hold on a server. The server stays up while any hold is kept by a living process.

    A forked child does not share its parent's hold; it acquires its own.
    """

    def __init__(self, server: HostedServer, users: FileLock, state: ServerState) -> None:
        self._server, self._users, self._state = server, users, state

    @property
    def state(self) -> ServerState:
        """The server as it was last seen: its port, its pid, its details."""
        return self._state

    @property
    def port(self) -> int:
        """The port on 127.0.0.1 it listens on."""
        return self._state.port

    def ensure(self) -> ServerState:
        """Have the server running again after it was lost, on the same port if that is still free.

        Cheap while it runs; call it when connections are refused. Raises HostingError when it cannot be started.
        """
        if not self._users.is_open:
            raise ServerNotReadyError("this hold on the server was released, or is a forked parent's. Acquire it again")
        self._state = _running(self._server, _deadline(self._server))
        return self._state

    def release(self) -> None:
        """Give the hold back. The server stops `linger` after its last user. May be called twice."""
        self._users.close()

    def __enter__(self) -> Hosted:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def acquire(server: HostedServer) -> Hosted:
    """Use the server: join it when it runs, start it when it does not. Blocks until it answers; thread-safe.

    Raises HostingDirectoryError when its directory cannot be used, InUseElsewhereError when another container runs
    it, ServerStartError (with the last lines of its log) when it cannot be started, ServerNotReadyError when it does
    not answer within `start_timeout`; and whatever `prepare` raises.

        import socket, sys
        from pathlib import Path
        from headrace.hosting import HostedServer, ServerState, acquire

        def answers(state: ServerState) -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", state.port)) == 0

        files = HostedServer(
            directory=Path("/tmp/files-server"),
            command=lambda port: [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)],
            ready=answers,
        )
        with acquire(files) as hosted:
            print(f"http://127.0.0.1:{hosted.port}/")
    """
    try:
        server.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _acquire(server)
    except OSError as error:
        if not _concerns(server.directory, error):
            raise
        raise HostingDirectoryError(server.directory, error) from error


def _acquire(server: HostedServer) -> Hosted:
    deadline = _deadline(server)
    users = _join_users(server, deadline)
    try:
        state = _running(server, deadline)
    except BaseException:
        users.close()
        raise
    return Hosted(server, users, state)


def _running(server: HostedServer, deadline: float) -> ServerState:
    state = running_state(server)
    if state is None:
        begun_at = time.monotonic()
        state = bring_up(server, deadline)
        _logger.info("server in %s is up on port %d after %.2f s", server.directory, state.port, _since(begun_at))
    return state


def _join_users(server: HostedServer, deadline: float) -> FileLock:
    """A shared lock on `users.lock`. Not to be had while the supervisor stops the server for want of users."""
    while True:
        users = FileLock(server.directory / "users.lock")
        if not wait_until(users.try_shared, deadline):
            users.close()
            raise ServerNotReadyError(f"the server in {server.directory} is still stopping. Wait, then try again")
        if not users.is_deleted():
            users.touch()
            return users
        users.close()


def _concerns(directory: Path, error: OSError) -> bool:
    """Whether an error is about the server's own files, and not the caller's `prepare` or `ready`."""
    if not isinstance(error.filename, str | Path):
        return False
    path = Path(error.filename)
    return path.is_relative_to(directory) or directory.is_relative_to(path)


def _deadline(server: HostedServer) -> float:
    return time.monotonic() + server.start_timeout.total_seconds()


def _since(begun_at: float) -> float:
    return time.monotonic() - begun_at
