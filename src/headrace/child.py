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
import inspect
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from headrace.app import App
from headrace.engine.attempt import Attempt, describe, run_attempt
from headrace.engine.attempts import call_plainly, steps_below
from headrace.engine.context import CURRENT, Context
from headrace.engine.gathering import call_alone
from headrace.engine.registry import TaskDef
from headrace.model.errors import ConfigError
from headrace.model.job import ClaimedJob, Completion, JobState
from headrace.ports.executor import Call
from headrace.ports.wire import decode_call, encode_completion
from headrace.tasks import Task
from headrace.wiring import SystemClock, compose_child

_PR_SET_PDEATHSIG = 1
MAIN_MODULE = "__headrace_main__"


def load_target(target: str) -> Task[Any, Any]:
    """Import what `TaskDef.target` names and return the task."""
    module_name, _, qualname = target.rpartition(":")
    path = Path(module_name)
    if path.suffix == ".py":
        module = sys.modules.get(MAIN_MODULE) or _run_file(path)
    else:
        module = importlib.import_module(module_name)
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part)
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
class LazySteps:
    """Checkpoints that open the app only when a handler uses them."""

    child: Child
    app: App
    job: ClaimedJob
    session: UUID

    async def load(self) -> dict[str, str]:
        """Return the stored steps. Raises ConfigError on a store that this process does not share."""
        self._check_shared()
        await self.child.open(self.app)
        return steps_below(self.job.step_prefix, await self.app.runtime.stores.jobs.load_steps(self.job.id))

    async def save(self, name: str, value: str) -> str:
        """Store a step under the attempt's fence. Raises ConfigError as `load` does."""
        self._check_shared()
        await self.child.open(self.app)
        stored = await self.app.runtime.stores.jobs.save_step(
            self.job.id,
            attempt=self.job.attempt,
            session=self.session,
            name=self.job.step_prefix + name,
            value=value,
        )
        self.child.report_stored()
        return stored

    def _check_shared(self) -> None:
        if self.app.settings.queue.type == "memory":
            raise ConfigError("ctx.step in a child process needs a store that processes share: use PostgreSQL")


@dataclass(slots=True)
class Child:
    """The loop of a child: read a call, run it, answer."""

    output: BinaryIO
    stack: AsyncExitStack
    opened: set[int] = field(default_factory=set)
    resources: dict[int, Any] = field(default_factory=dict)

    def send(self, line: bytes) -> None:
        """Write one line of the protocol."""
        self.output.write(line)
        self.output.flush()

    def report_stored(self) -> None:
        """Tell the worker that a checkpoint or an answer is stored: a crash after it is not the same crash again."""
        self.send(b'{"stored":true}\n')

    async def open(self, app: App) -> None:
        """Open an app once."""
        if id(app) not in self.opened:
            await self.stack.enter_async_context(app)
            self.opened.add(id(app))

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
        app, definition = task.app, task.definition
        # Sync handlers run in a thread, and share the connections of async ones.
        app.sync.adopt(asyncio.get_running_loop())
        await self._enter_lifespan(app)
        in_thread = not inspect.iscoroutinefunction(definition.function)
        deadline = SystemClock().now() + timedelta(seconds=message["timeout"])
        context = Context(
            job_id=job.id, task=job.task, queue=job.queue, attempt=job.attempt,
            deadline=deadline, steps=LazySteps(self, app, job, message["session"]),
            resources=self.resources.get(id(app)), batch_id=job.batch_id, index=job.ordinal, run=job.run,
            on_activity=lambda: self.send(b'{"activity":true}\n'), in_thread=in_thread,
            emission=app.emission,
        )  # fmt: skip
        call = Call(
            job=job, session=message["session"], timeout=message["timeout"], target=message["target"],
            invoke=_invoke(definition, job, context, lambda: self.open(app)), on_activity=context.on_activity,
        )  # fmt: skip
        executor, proceed = compose_child()
        attempt = Attempt(job, definition, context, executor, call, on_paid=self.report_stored)
        return await run_attempt(attempt, proceed)

    async def _enter_lifespan(self, app: App) -> None:
        if app.lifespan is not None and id(app) not in self.resources:
            await self.open(app)
            self.resources[id(app)] = await self.stack.enter_async_context(app.lifespan(app))


def _invoke(
    task: TaskDef, job: ClaimedJob, context: Context, open_app: Callable[[], Awaitable[None]]
) -> Callable[[], Any]:
    async def run(*args: Any, **kwargs: Any) -> Any:
        if inspect.iscoroutinefunction(task.function):
            # It may call models and enqueue, as it does in a worker; a sync handler has `app.sync`, which opens itself.
            await open_app()
            return await task.function(*args, **kwargs)
        # In a thread, so that `app.sync` works inside sync handlers as it does in a worker.
        return await asyncio.to_thread(call_plainly, task.function, *args, **kwargs)

    async def invoke() -> Any:
        if task.gather is not None:
            return await call_alone(task, job.args, context, run)
        args, kwargs = task.codec.decode(job.args, context)
        CURRENT.set(context)
        return await run(*args, **kwargs)

    return invoke


async def _serve_all(lines: BinaryIO, output: BinaryIO) -> None:
    async with AsyncExitStack() as stack:
        child = Child(output, stack)
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
