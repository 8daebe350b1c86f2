"""A child process of a worker: runs one call at a time, told and answered in JSON lines.

`python -m headrace.child`. Its standard output is the protocol; what handlers print goes to standard error. It ends
when its input closes or its parent dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib
import importlib.util
import os
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from headrace.calling import Handed, OpenApps
from headrace.engine.attempt import describe, run_attempt
from headrace.model.job import ClaimedJob, Completion, JobState
from headrace.ports.wire import decode_call, encode_completion
from headrace.tasks import Task
from headrace.wiring import compose_child

_PR_SET_PDEATHSIG = 1
MAIN_MODULE = "__headrace_main__"


def load_named(target: str) -> Any:
    """Import what "module:qualname" or "/path.py:qualname" names and return it."""
    module_name, _, qualname = target.rpartition(":")
    found: Any = load_module(module_name)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def load_module(name: str) -> Any:
    """Import a module, or the script at "/path.py"."""
    path = Path(name)
    if path.suffix == ".py":
        return sys.modules.get(MAIN_MODULE) or _run_file(path)
    return importlib.import_module(name)


def load_target(target: str) -> Task[Any, Any]:
    """Import what `TaskDef.target` names and return the task."""
    found = load_named(target)
    if not isinstance(found, Task):
        raise TypeError(f"{target} is not a task; a task must keep its name in its module to run in a child process")
    return found


def _run_file(path: Path) -> Any:
    """Import a script under another name than `__main__`, so that its main part does not run."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(MAIN_MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MAIN_MODULE] = module
    spec.loader.exec_module(module)
    return module


@dataclass(slots=True)
class Child:
    """The loop of a child: read a call, run it, answer."""

    output: BinaryIO
    apps: OpenApps

    def send(self, line: bytes) -> None:
        """Write one line of the protocol."""
        self.output.write(line)
        self.output.flush()

    async def serve(self, line: bytes) -> None:
        """Run one call and answer it."""
        message = decode_call(line)
        job: ClaimedJob = message["job"]
        try:
            task = load_target(message["target"])
            completion = await self._run(task, job, message)
        except Exception as error:
            completion = Completion(job.id, job.attempt, JobState.FAILED, error=describe(error, with_trace=True))
        if completion is not None:
            self.send(encode_completion(completion))

    async def _run(self, task: Task[Any, Any], job: ClaimedJob, message: dict[str, Any]) -> Completion | None:
        handed = Handed(
            task.app, task.definition, job, message["session"], message["timeout"],
            on_stored=self._say_stored, on_paid=self._say_paid,
            on_activity=lambda: self.send(b'{"activity":true}\n'),
        )  # fmt: skip
        executor, proceed = compose_child()
        return await run_attempt(await self.apps.attempt(handed, executor), proceed)

    def _say_stored(self) -> None:
        self.send(b'{"stored":true}\n')

    async def _say_paid(self) -> None:
        self._say_stored()


async def _serve_all(lines: BinaryIO, output: BinaryIO) -> None:
    async with AsyncExitStack() as stack:
        child = Child(output, OpenApps(stack))
        while line := await asyncio.to_thread(lines.readline):
            await child.serve(line)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Serve calls until the input closes."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Modules are found where the worker finds them.
    sys.path[:] = [*sys.argv[1:], *(entry for entry in sys.path if entry not in sys.argv[1:])]
    # The protocol gets descriptors of its own: handlers, and programs they start, may use 0 and 1 as they like.
    lines, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    # Its worker is gone, and with it whoever would read an answer.
    with contextlib.suppress(BrokenPipeError):
        asyncio.run(_serve_all(lines, output))


if __name__ == "__main__":
    main()
