"""The process executor: handlers in child processes, killed on timeout and cancel, one call at a time each.

A child talks JSON lines on its standard input and output (`ports/wire.py`); nothing is pickled. It ends with its
worker: its input closes, and on Linux the kernel kills it (PR_SET_PDEATHSIG, set by the child).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.model.errors import ExecutorCrashedError
from headrace.ports.executor import Call
from headrace.ports.wire import decode_completion, encode_call

#: A line holds a result of at most 256 KiB, JSON-escaped once more.
_LINE_LIMIT = 4 * 1024 * 1024
_MAX_IDLE = 4
_END_SECONDS = 5.0


class ProcessExecutor:
    """Runs calls in children started as `command`; idle children are kept for the next call."""

    def __init__(self, command: Sequence[str], *, reuse: bool = True) -> None:
        self._command = tuple(command)
        self._reuse = reuse
        self._idle: list[Process] = []
        self._busy: set[Process] = set()
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, call: Call) -> Any:
        """Run the call in a child and return its Completion; a child that dies raises ExecutorCrashedError."""
        child = await self._take()
        self._busy.add(child)
        healthy = False
        try:
            completion = await _converse(child, call)
            healthy = True
            return completion
        finally:
            self._busy.discard(child)
            if healthy and self._reuse and len(self._idle) < _MAX_IDLE:
                self._idle.append(child)
            else:
                await asyncio.shield(self._end(child))

    async def _take(self) -> Process:
        while self._idle:
            child = self._idle.pop()
            if child.returncode is None:
                return child
        child = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, limit=_LINE_LIMIT, start_new_session=True, env=dict(os.environ)
        )
        _offer_to_oom_killer(child.pid)
        return child

    async def close(self) -> None:
        """Kill every child."""
        for child in self._busy:
            _kill(child)
        children, self._idle = self._idle, []
        for child in children:
            self._end(child)
        await asyncio.gather(*self._ending)

    def _end(self, child: Process) -> asyncio.Task[None]:
        """Kill a child in a task that `close` waits for, whoever else does not."""
        task = asyncio.create_task(_end(child))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task


def _offer_to_oom_killer(pid: int) -> None:
    """Let the kernel pick this child, not the worker, when memory runs out, even before the child has begun.

    The memory of a process that was just killed is there a moment longer, in which the kernel may look for another.
    """
    # Not Linux, or the child is gone.
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


async def _converse(child: Process, call: Call) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    progressed = False
    try:
        child.stdin.write(encode_call(call))
        await child.stdin.drain()
        while line := await child.stdout.readline():
            message = json.loads(line)
            if "completion" in message:
                return decode_completion(message)
            progressed = progressed or message.get("stored", False)
            call.on_activity()
    except (ConnectionError, ValueError):
        # A broken pipe, or a line that is cut or too long: either way this child is of no more use.
        pass
    raise ExecutorCrashedError(
        f"the child process that ran the attempt died ({await _status(child)}); it may have run out of memory",
        progressed=progressed,
    )


async def _status(child: Process) -> str:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(2):
            code = await child.wait()
            return f"signal {-code}" if code < 0 else f"exit code {code}"
    return "no exit code"


def _kill(child: Process) -> None:
    # The child leads a group: what its handler started ends with it.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


async def _end(child: Process) -> None:
    assert child.stdout is not None
    _kill(child)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            # To the end: only then does asyncio close the pipes.
            while await child.stdout.read(_LINE_LIMIT):
                pass
            await child.wait()
