"""Calls that a worker handed to another process: how a handler runs there, with its context and its checkpoints.

Child processes of a worker run theirs this way (`headrace.child`), and so do those of a farm (`headrace.farm`).
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.app import App
from headrace.engine.attempt import Attempt, RunPart
from headrace.engine.attempts import call_plainly, steps_below
from headrace.engine.context import CURRENT, Context
from headrace.engine.gathering import call_alone
from headrace.engine.kept_lines import LineKeeping
from headrace.engine.registry import TaskDef
from headrace.model.backoff import Backoff
from headrace.model.errors import ConfigError
from headrace.model.job import ClaimedJob
from headrace.ports.executor import Call, Executor
from headrace.wiring import SystemClock
from headrace.wiring.line_keeping import make_line_keeping


@dataclass(frozen=True, slots=True)
class Handed:
    """A call as it arrived: its job, the rest of its fence, and whom to tell what while it runs."""

    app: App
    task: TaskDef
    job: ClaimedJob
    session: UUID
    #: Seconds that it may run.
    timeout: float
    #: Called when a checkpoint was stored, and when an answer was: a crash after it is not the same crash again.
    on_stored: Callable[[], None] = lambda: None
    on_paid: Callable[[], Awaitable[None]] | None = None
    on_activity: Callable[[], None] = lambda: None
    #: What it is of a run, where that is known here, and the retries of its node.
    part: RunPart | None = None
    backoff: Backoff | None = None


@dataclass(slots=True)
class LazySteps:
    """Checkpoints that open the app only when a handler uses them."""

    apps: OpenApps
    handed: Handed

    async def load(self) -> dict[str, str]:
        """Return the stored steps. Raises ConfigError on a store that this process does not share."""
        jobs = (await self._open()).runtime.stores.jobs
        return steps_below(self.handed.job.step_prefix, await jobs.load_steps(self.handed.job.id))

    async def save(self, name: str, value: str) -> str:
        """Store a step under the attempt's fence. Raises ConfigError as `load` does."""
        job = self.handed.job
        stored = await (await self._open()).runtime.stores.jobs.save_step(
            job.id, attempt=job.attempt, session=self.handed.session, name=job.step_prefix + name, value=value
        )
        self.handed.on_stored()
        return stored

    async def _open(self) -> App:
        app = self.handed.app
        if app.settings.queue.type == "memory":
            raise ConfigError("ctx.step in a child process needs a store that processes share: use PostgreSQL")
        await self.apps.open(app)
        return app


@dataclass(slots=True)
class OpenApps:
    """The apps that this process has open, and their resources: opened once, closed with `stack`."""

    stack: AsyncExitStack
    #: Sync handlers that run, also those nobody waits for any more. Their threads alone change it.
    threads_busy: int = 0
    _opened: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _resources: dict[int, Any] = field(default_factory=dict)
    _keeping: dict[int, LineKeeping] = field(default_factory=dict)

    async def open(self, app: App) -> None:
        """Open an app once."""
        if id(app) not in self._opened:
            await self.stack.enter_async_context(app)
            self._opened.add(id(app))

    async def enter_lifespan(self, app: App) -> None:
        """Enter an app's lifespan once."""
        if app.lifespan is not None and id(app) not in self._resources:
            await self.open(app)
            self._resources[id(app)] = await self.stack.enter_async_context(app.lifespan(app))

    async def attempt(self, handed: Handed, executor: Executor) -> Attempt:
        """Return the attempt of a call, for `run_attempt`."""
        app, task, job = handed.app, handed.task, handed.job
        # Sync handlers run in a thread, and share the connections of async ones.
        app.sync.adopt(asyncio.get_running_loop())
        await self.enter_lifespan(app)
        context = Context(
            job_id=job.id, task=job.task, queue=job.queue, attempt=job.attempt,
            deadline=SystemClock().now() + timedelta(seconds=handed.timeout), steps=LazySteps(self, handed),
            resources=self._resources.get(id(app)), batch_id=job.batch_id, index=job.ordinal, run=job.run,
            on_activity=handed.on_activity, in_thread=not inspect.iscoroutinefunction(task.function),
            last_try=job.failures + 1 >= job.max_attempts, emission=app.emission, keeping=self._keeping_of(app),
        )  # fmt: skip
        call = Call(
            job=job, session=handed.session, timeout=handed.timeout, target=task.target,
            invoke=self._invoke(handed, context), on_activity=lambda: context.on_activity(),
        )  # fmt: skip
        return Attempt(
            job, task, context, executor, call, on_paid=handed.on_paid, part=handed.part, backoff=handed.backoff
        )

    def _keeping_of(self, app: App) -> LineKeeping:
        if id(app) not in self._keeping:
            self._keeping[id(app)] = make_line_keeping(app.settings, SystemClock())
        return self._keeping[id(app)]

    def _invoke(self, handed: Handed, context: Context) -> Callable[[], Any]:
        task, job = handed.task, handed.job

        async def run(*args: Any, **kwargs: Any) -> Any:
            if inspect.iscoroutinefunction(task.function):
                # It may call models and enqueue, as it does in a worker; a sync one has `app.sync`, which opens itself.
                await self.open(handed.app)
                return await task.function(*args, **kwargs)
            # In a thread, so that `app.sync` works inside sync handlers as it does in a worker.
            return await asyncio.to_thread(self._call_sync, task.function, *args, **kwargs)

        async def invoke() -> Any:
            if task.gather is not None:
                return await call_alone(task, job.args, context, run)
            args, kwargs = task.codec.decode(job.args, context)
            CURRENT.set(context)
            return await run(*args, **kwargs)

        return invoke

    def _call_sync(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self.threads_busy += 1
        try:
            return call_plainly(function, *args, **kwargs)
        finally:
            with self._lock:
                self.threads_busy -= 1
