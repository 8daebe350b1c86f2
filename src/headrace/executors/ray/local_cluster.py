"""A Ray cluster of this machine alone, for development: its nodes are groups of processes that outlive the command."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from headrace.executors.ray.listening import open_to_others
from headrace.executors.ray.local_state import (
    LOCK_FILE,
    LocalNode,
    LocalState,
    NodeSize,
    read_state,
    remove_state,
    token_file,
    write_state,
)
from headrace.executors.ray.process_groups import ProcessGroup, stop_groups
from headrace.hosting.locks import FileLock, wait_until
from headrace.hosting.ports import candidate_ports
from headrace.hosting.processes import identify
from headrace.model.errors import BrokerUnavailableError, InvalidInputError

#: The port of the first choice, so that workers find the next cluster where the last one was.
PORT = 26_379
START_SECONDS = 60.0
#: How long the processes of a node have to end by themselves.
STOP_SECONDS = 3.0
#: Of those who may know why a node does not start, who knows best first.
_LOGS = ("start-*.log", *(f"session_2*/logs/{name}" for name in ("*.err", "gcs_server.out", "raylet*.out")))
_TELLING = re.compile(r"Error|Failed|Too many|open files|denied|in use| [ECF] ")
_STACK = re.compile(r"raise |File |/|\*\*\*|\[symbolize|\[[-0-9 :,]+ W ")
_STARTER = [sys.executable, "-m", "headrace.executors.ray.node_process"]
#: Ray takes the address of the host in place of 127.0.0.1, and listens everywhere, unless it is told that this machine
#: is for no cluster of several machines; the variable is named after the systems on which that is so anyway.
_LOOPBACK_ONLY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def driver_environment(state: LocalState) -> dict[str, str]:
    """Return what a process needs in its environment before it imports Ray, to find its way into the cluster."""
    return {
        "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(state.token_file), "RAY_USAGE_STATS_ENABLED": "0",
        **_LOOPBACK_ONLY,
    }  # fmt: skip


class LocalCluster:
    """The cluster of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def state(self) -> LocalState | None:
        """Return what runs; None where nothing does."""
        state = read_state(self._directory)
        return state if state is not None and state.is_running else None

    def up(self, sizes: Sequence[NodeSize], port: int | None) -> tuple[LocalState, bool]:
        """Start a node of each size, the first as head; return what runs then, and whether it was started now.

        Raises InvalidInputError for a port that is taken, BrokerUnavailableError with the reason when Ray does not
        start; nothing of it is left then.
        """
        with self._locked():
            if (running := self.state()) is not None:
                return running, False
            self._clear_away()
            address = f"127.0.0.1:{_free_port(port)}"
            folder = Path(tempfile.mkdtemp(prefix="hrray-", dir=_short_folder()))
            state = LocalState(address, folder, token_file(self._directory), "")
            try:
                for number, size in enumerate(sizes):
                    state = self._start_node(state, number, size)
                self._refuse_outsiders(state)
            except BaseException:
                self._clear_away()
                shutil.rmtree(folder, ignore_errors=True)
                raise
            return state, True

    def down(self) -> LocalState | None:
        """Stop what `up` has started, and return what that was; None where there was nothing."""
        with self._locked():
            return self._clear_away()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._directory / LOCK_FILE)
        try:
            if not wait_until(lock.try_exclusive, time.monotonic() + START_SECONDS, seconds=0.1):
                raise BrokerUnavailableError("another process has been starting or stopping this cluster for a minute")
            yield
        finally:
            lock.close()

    def _clear_away(self) -> LocalState | None:
        state = read_state(self._directory)
        if state is not None:
            stop_groups([node.group for node in state.nodes], within=STOP_SECONDS)
            shutil.rmtree(state.folder, ignore_errors=True)
        remove_state(self._directory)
        return state

    def _start_node(self, state: LocalState, number: int, size: NodeSize) -> LocalState:
        told = {
            "head": number == 0, "name": f"local-{number}", "address": state.address, "folder": str(state.folder),
            "cpus": size.cpus, "memory": size.memory_bytes, "object_store": size.object_store_bytes,
        }  # fmt: skip
        with (state.folder / f"start-{number}.log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(  # noqa: S603 - our own module
                _STARTER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                env={**_clean_environment(), **driver_environment(state)},
            )  # fmt: skip
            # At once: whoever comes after a crash of this process stops what it has begun.
            begun = self._note(state, LocalNode(size, ProcessGroup(process.pid, ()).seen()))
            answer = ""
            with suppress(subprocess.TimeoutExpired):
                answer, _ = process.communicate(json.dumps(told), timeout=START_SECONDS)
        node = replace(begun.nodes[-1], group=begun.nodes[-1].group.seen())
        if process.poll() != 0:
            self._note(state, node)
            raise BrokerUnavailableError(f"node {number} of the Ray cluster does not start: {why_not(state.folder)}")
        said = json.loads(answer.splitlines()[-1])
        vital = tuple(one for pid in said["vital"] if (one := identify(pid)) is not None)
        return self._note(replace(state, ray=said["ray"]), replace(node, vital=vital))

    def _note(self, state: LocalState, node: LocalNode) -> LocalState:
        """Write what runs with one node more, and return it."""
        state = replace(state, nodes=(*state.nodes, node))
        write_state(self._directory, state)
        return state

    def _refuse_outsiders(self, state: LocalState) -> None:
        pids = [one.pid for node in state.nodes for one in node.group.members]
        if places := open_to_others(pids):
            raise BrokerUnavailableError(
                f"this version of Ray ({state.ray}) listens beyond loopback, at {places[0]}: the cluster was stopped"
            )


def why_not(folder: Path) -> str:
    """Return the reason that logs give, at last those of Ray's own processes."""
    logs = [log for pattern in _LOGS for log in sorted(folder.glob(pattern))]
    lines = [line.strip() for log in logs for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    # Warnings, and what a crash leaves of its stack, say little to a reader.
    telling = [line for line in lines if _TELLING.search(line) and not _STACK.match(line)]
    chosen = list(dict.fromkeys(telling or [line for line in lines if line] or ["its logs are empty"]))[:3]
    return "; ".join(line[:300] for line in chosen)


def _free_port(asked: int | None) -> int:
    found = next(iter(candidate_ports(PORT if asked is None else asked)), None)
    if found is None or (asked is not None and found != asked):
        raise InvalidInputError("port", "must be free on 127.0.0.1", asked)
    return found


def _short_folder() -> str | None:
    """Return where Ray's folder is made: paths of its sockets have room for 107 bytes, and it adds 60 of its own."""
    return None if len(tempfile.gettempdir()) <= 24 else "/tmp"  # noqa: S108 - made with a random name, for this user


def _clean_environment() -> dict[str, str]:
    """Return the environment without what says how a worker is set, or another cluster of Ray."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "HEADRACE_"))}
