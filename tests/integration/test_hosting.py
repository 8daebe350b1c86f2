"""A hosted server lives as long as it has users: not shorter, not longer, and never twice."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace.hosting
from headrace.hosting import (
    HostingDirectoryError,
    InUseElsewhereError,
    Phase,
    ServerNotReadyError,
    ServerStartError,
    ServerState,
    acquire,
)
from headrace.hosting.processes import ProcessId, identify
from headrace.hosting.state import read_state, write_state
from tests.integration import hosted_users
from tests.integration.hosted_users import LINGER, PATIENCE_SECONDS, SERVER, answering_server, answers
from tests.waiting import wait_until_sync


def gone(process: ProcessId | None) -> bool:
    """Whether the process ends in time."""
    assert process is not None
    return wait_until_sync(lambda: not process.is_alive())


def stays(process: ProcessId | None, *, seconds: float) -> bool:
    """Whether the process is alive for all of that time."""
    assert process is not None
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < deadline:
        if not process.is_alive():
            return False
        pause.wait(0.02)
    return True


class Users:
    """User processes of one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *, count: int = 1, option: str = "plain") -> list[subprocess.Popen[str]]:
        """Start users at the same time, each in a process group of its own."""
        package = str(Path(headrace.hosting.__file__).parents[2])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        started = [
            subprocess.Popen(
                [sys.executable, hosted_users.__file__, str(self._directory), option],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": path},
                process_group=0,
            )
            for _ in range(count)
        ]
        self._started += started
        return started

    def end(self) -> None:
        """Kill those that are left, and reap all."""
        for user in self._started:
            user.kill()
            user.communicate()


def told_by(user: subprocess.Popen[str]) -> Any:
    """The next line of JSON a user says."""
    assert user.stdout is not None
    return json.loads(user.stdout.readline())


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A directory for a server; nothing of it may be left running after the test."""
    home = tmp_path / "server"
    yield home
    state = read_state(home)
    if state is not None:
        state.supervisor.send(signal.SIGTERM)
        assert gone(state.supervisor)
        assert state.server is None or gone(state.server)


@pytest.fixture
def users(directory: Path) -> Iterator[Users]:
    """Starts user processes, which end with the test."""
    started = Users(directory)
    yield started
    started.end()


def server_of(directory: Path) -> ServerState:
    """The state of a server that runs."""
    state = read_state(directory)
    assert state is not None and state.is_running()
    return state


def test_users_that_start_together_share_one_server(directory: Path, users: Users) -> None:
    """Processes that start at the same moment get one server between them."""
    told = [told_by(user) for user in users.start(count=4)]
    assert len({(one["server"], one["port"]) for one in told}) == 1


def test_a_server_stops_after_the_kill_of_every_user(directory: Path, users: Users) -> None:
    """SIGKILL of all users leaves no server behind."""
    both = users.start(count=2)
    for user in both:
        told_by(user)
    state = server_of(directory)
    for user in both:
        user.kill()
    assert gone(state.server) and gone(state.supervisor)
    after = read_state(directory)
    assert after is not None and after.phase is Phase.STOPPED and after.exit_code == 0


def test_a_new_user_within_the_linger_keeps_the_server(directory: Path) -> None:
    """A server outlives a gap between users that is shorter than its linger, and stays for the new one."""
    server = answering_server(directory, linger=timedelta(seconds=1))
    with acquire(server) as first:
        state = first.state
    with acquire(server) as second:
        assert second.state.server == state.server
        assert stays(state.server, seconds=1.6)


def test_a_user_shorter_than_the_look_out_begins_the_linger_anew(directory: Path) -> None:
    """A use so short that the supervisor never sees its lock still counts as a use."""
    server = answering_server(directory, linger=timedelta(seconds=1.5))
    with acquire(server) as first:
        state = first.state
    for _ in range(5):
        assert stays(state.server, seconds=0.5)
        with acquire(server) as visit:
            assert visit.state.server == state.server


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_in_one_terminal_does_not_stop_the_server_of_another(
    directory: Path, users: Users, number: signal.Signals
) -> None:
    """Ctrl-C or a hang-up for the process group of the user that started the server ends that user only."""
    (starter,) = users.start()
    started = told_by(starter)
    (other,) = users.start()
    assert told_by(other) == started
    os.killpg(starter.pid, number)
    assert starter.wait(PATIENCE_SECONDS) != 0
    state = server_of(directory)
    assert state.server is not None and state.server.pid == started["server"] and answers(state)
    assert stays(state.server, seconds=3 * LINGER.total_seconds())
    other.kill()
    assert gone(state.server)


def test_a_forked_child_is_no_user(directory: Path, users: Users) -> None:
    """A child forked by a user does not keep the server up after that user was killed."""
    (user,) = users.start(option="forks")
    told_by(user)
    state = server_of(directory)
    user.kill()
    user.wait()
    assert user.stdin is not None and not user.stdin.closed  # its child still waits there
    assert gone(state.server)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_a_server_dies_with_its_supervisor_and_comes_back_on_its_port(directory: Path) -> None:
    """SIGKILL of the supervisor ends the server; a user that lives on gets it back under the same address."""
    with acquire(answering_server(directory)) as hosted:
        before = hosted.state
        before.supervisor.send(signal.SIGKILL)
        assert gone(before.server)
        after = hosted.ensure()
        assert answers(after)
        assert after.port == before.port and after.server != before.server


def test_a_server_left_without_supervisor_is_stopped_before_the_next_start(directory: Path) -> None:
    """Where the kernel did not take the server along, the next start ends it and starts its own."""
    deaf = f"import ctypes; ctypes.CDLL(None).prctl(1, 0)\n{SERVER}"
    with acquire(answering_server(directory, command=lambda port: [sys.executable, "-c", deaf, str(port)])) as hosted:
        before = hosted.state
        before.supervisor.send(signal.SIGKILL)
        assert gone(before.supervisor)
        assert before.server is not None and before.server.is_alive()
        after = hosted.ensure()
        assert not before.server.is_alive()
        assert after.server != before.server and answers(after)


def test_a_server_that_dies_is_started_again(directory: Path) -> None:
    """A server killed after it ran for a while is back on its port without any user's doing."""
    with acquire(answering_server(directory, restart_after=timedelta(0))) as hosted:
        before = hosted.state
        assert before.server is not None
        before.server.send(signal.SIGKILL)
        wait_until_sync(lambda: (read_state(directory) or before).server not in (None, before.server))
        after = server_of(directory)
        assert wait_until_sync(lambda: answers(after)) and after.port == before.port


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to the supervisor")
def test_what_a_dead_server_leaves_behind_is_ended_before_the_next(directory: Path) -> None:
    """A child of a killed server, deaf and in a session of its own, does not live on beside the new server."""
    forking = f"""
import os, signal, threading
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("child", os.getpid(), flush=True)
    threading.Event().wait()
{SERVER}"""
    server = answering_server(
        directory,
        command=lambda port: [sys.executable, "-IS", "-c", forking, str(port)],
        restart_after=timedelta(0),
    )
    log = directory / "server.log"
    with acquire(server) as hosted:
        before = hosted.state
        wait_until_sync(lambda: "child" in log.read_text())
        child = identify(int(log.read_text().split("child", 1)[1].split()[0]))
        assert child is not None and before.server is not None
        before.server.send(signal.SIGKILL)
        wait_until_sync(lambda: (read_state(directory) or before).server not in (None, before.server))
        assert not child.is_alive()


def test_a_server_that_dies_at_once_is_given_up_until_somebody_asks(directory: Path) -> None:
    """A short run is not repeated by the supervisor, only by a user."""
    with acquire(answering_server(directory, restart_after=timedelta(minutes=1))) as hosted:
        before = hosted.state
        assert before.server is not None
        before.server.send(signal.SIGKILL)
        assert gone(before.supervisor)
        assert (read_state(directory) or before).phase is Phase.FAILED
        assert answers(hosted.ensure())


def test_a_reused_pid_is_not_taken_for_the_server(directory: Path) -> None:
    """A state whose pids belong to younger processes now is not trusted."""
    with acquire(answering_server(directory)) as hosted:
        state = hosted.state
    assert gone(state.supervisor)
    stranger = ProcessId(os.getpid(), "1")
    write_state(directory, replace(state, phase=Phase.RUNNING, supervisor=stranger, server=stranger))
    with acquire(answering_server(directory)) as hosted:
        assert hosted.state.server not in (stranger, None) and answers(hosted.state)
    assert identify(os.getpid()) is not None


def test_a_starter_that_dies_half_way_leaves_a_server_to_join(directory: Path, users: Users) -> None:
    """A server whose starter was killed before it answered is joined by the next user, not started again."""
    (starter,) = users.start(option="never-ready")
    assert starter.stdout is not None
    assert "ProcessId" in starter.stdout.readline()
    begun = server_of(directory)
    starter.kill()
    with acquire(answering_server(directory)) as hosted:
        assert hosted.state.server == begun.server


def test_a_lost_port_is_replaced(directory: Path) -> None:
    """A port that somebody else binds between choice and use costs a retry, not the start."""
    thief = socket.socket()
    chosen: list[int] = []

    def command(port: int) -> list[str]:
        if not chosen:
            thief.bind(("127.0.0.1", port))
            thief.listen()
        chosen.append(port)
        return [sys.executable, "-c", SERVER, str(port)]

    def ready(state: ServerState) -> bool:
        return state.port != chosen[0] and answers(state)

    with thief, acquire(answering_server(directory, command=command, ready=ready)) as hosted:
        assert hosted.port == chosen[1] != chosen[0]


def test_a_server_that_ends_while_starting_says_why(directory: Path) -> None:
    """The last lines of the log come with the error, and the server is not tried over and over."""
    failing = answering_server(
        directory, command=lambda _: [sys.executable, "-c", "import sys; print('no such model'); sys.exit(3)"]
    )
    with pytest.raises(ServerStartError, match=r"exit code 3[\s\S]*no such model") as raised:
        acquire(failing)
    assert raised.value.log_tail.count("no such model") == 1


def test_a_command_that_does_not_exist_is_named(directory: Path) -> None:
    """A wrong path to the server's program is a clear error."""
    with pytest.raises(ServerStartError, match=r"No such file or directory \(/no/such/program\)"):
        acquire(answering_server(directory, command=lambda _: ["/no/such/program"]))


def test_a_server_that_never_answers_is_not_waited_for_for_ever(directory: Path) -> None:
    """After `start_timeout` the user gets a transient error, and the server nobody uses goes away."""
    silent = answering_server(directory, ready=lambda _: False, start_timeout=timedelta(seconds=1))
    with pytest.raises(ServerNotReadyError, match="did not answer within 1 s") as raised:
        acquire(silent)
    assert raised.value.transient
    assert gone(server_of(directory).server)


def test_a_server_of_another_container_is_refused(directory: Path) -> None:
    """A held lock whose owner lives in another pid namespace is named, not waited for until the end."""
    with acquire(answering_server(directory)) as hosted:
        real = hosted.state
        write_state(directory, replace(real, machine="elsewhere", hostname="the-other-box"))
        with pytest.raises(InUseElsewhereError, match="the-other-box"):
            acquire(answering_server(directory))


@pytest.mark.parametrize("place", ["a file", "a read-only system"])
def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, place: str) -> None:
    """A place without a writable directory gives one clear error."""
    path = Path("/sys/headrace")
    if place == "a file":
        path = tmp_path / "file"
        path.write_text("")
    with pytest.raises(HostingDirectoryError, match=str(path)):
        acquire(answering_server(path))


def test_a_removed_directory_ends_its_server(directory: Path, tmp_path: Path) -> None:
    """A server whose directory was deleted under it does not go on for nobody."""
    with acquire(answering_server(directory, linger=timedelta(hours=1))) as hosted:
        for path in list(directory.iterdir()):
            path.unlink()
        assert gone(hosted.state.server) and gone(hosted.state.supervisor)


def test_a_moved_directory_keeps_its_server(directory: Path, tmp_path: Path) -> None:
    """Moving the directory of a running server does not make a second one possible beside it."""
    with acquire(answering_server(directory)) as hosted:
        directory.rename(tmp_path / "moved")
        with acquire(answering_server(tmp_path / "moved")) as again:
            assert again.state.server == hosted.state.server
        (tmp_path / "moved").rename(directory)


def test_secrets_stay_out_of_command_lines_and_files(directory: Path) -> None:
    """The server's environment reaches it, but no command line and no file; the state is its owner's alone."""
    environment = {"PATH": os.defpath, "SECRET": "swordfish"}
    with acquire(answering_server(directory, environment=environment)) as hosted:
        state = hosted.state
        assert state.server is not None
        assert b"swordfish" in Path(f"/proc/{state.server.pid}/environ").read_bytes()
        for pid in (state.server.pid, state.supervisor.pid):
            assert b"swordfish" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"swordfish" not in Path(f"/proc/{state.supervisor.pid}/environ").read_bytes()
        for path in directory.iterdir():
            assert "swordfish" not in path.read_text() and path.stat().st_mode & 0o777 == 0o600


def test_a_forked_child_acquires_its_own_hold(directory: Path) -> None:
    """In a forked child the parent's hold is void, and says so, while a new one works."""
    with acquire(answering_server(directory)) as hosted:
        child = os.fork()
        if child == 0:
            try:
                hosted.ensure()
            except ServerNotReadyError:
                acquire(answering_server(directory)).release()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert hosted.ensure() == hosted.state


def test_a_hold_can_be_released_twice_and_not_used_after(directory: Path) -> None:
    """Releasing is idempotent; a released hold does not start servers."""
    hosted = acquire(answering_server(directory))
    hosted.release()
    hosted.release()
    with pytest.raises(ServerNotReadyError, match="released"):
        hosted.ensure()
