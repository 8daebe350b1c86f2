"""The façade people use: tasks, jobs, batches, a worker. It asks the wiring for its parts on first use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, cast, overload
from uuid import UUID

from headrace.batch import Batch
from headrace.database_verbs import DatabaseVerbs
from headrace.definitions import GatherDecorator, GatherOptions, TaskOptions, define_task
from headrace.engine.context import Context
from headrace.engine.draining import drain_queue, resume_queue
from headrace.engine.operations import find_queue, set_queue_paused
from headrace.engine.registry import Registry, TaskDef
from headrace.engine.retrying import with_retries
from headrace.event_verbs import EventVerbs
from headrace.handles import JobHandle
from headrace.limits import Limits
from headrace.model.backlog import Backlog, Drained, OnFull, QueueState
from headrace.model.durations import parse_duration
from headrace.model.errors import ConfigError, InvalidInputError, NotFoundError
from headrace.model.ids import parse_id
from headrace.model.job import JobSpec
from headrace.model.names import check_name
from headrace.model.numbers import check_whole
from headrace.model.queue import QueueOptions, QueueRule
from headrace.model.run import NODES_QUEUE, WORKFLOWS_QUEUE
from headrace.settings import Settings, load_settings, use_store
from headrace.tasks import SubmitOptions, Task, TaskCall, new_batch
from headrace.webhook_verbs import WebhookVerbs
from headrace.workflow_verbs import WorkflowVerbs

if TYPE_CHECKING:
    from headrace.budgets import Budgets
    from headrace.caches import Cache
    from headrace.canvas import Workflow
    from headrace.dead_letters import DeadLetters
    from headrace.engine.events.host import EventHost
    from headrace.engine.events.parts import EventParts
    from headrace.engine.llm_queries import PoolView
    from headrace.engine.worker import Worker
    from headrace.files import Files
    from headrace.llm.dedupe import NameBook, Rule, Scorer
    from headrace.llm.gateway import LLM
    from headrace.model.schedule import CatchUp, Declaration
    from headrace.runtime import Runtime
    from headrace.schedules import ScheduleDef
    from headrace.stores.memory.tables import MemoryTables
    from headrace.sync import SyncClient

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Callable[[Backlog], Any])

Lifespan = Callable[["App"], AbstractAsyncContextManager[Any]]


class TaskDecorator(Protocol):
    """What `@app.task(...)` returns: a task of the function's arguments and result, async or not.

    A context that comes first is not an argument of the task; one that stands elsewhere is for type checkers.
    """

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class App(WorkflowVerbs, EventVerbs, WebhookVerbs, DatabaseVerbs):
    """Tasks and the store they run on.

    `url`: "postgresql://…", or "memory://" for tests; without it `HEADRACE_URL`, headrace.toml, or an embedded
    PostgreSQL in `./.headrace`. `lifespan(app)` is an async context manager entered by each worker; what it yields
    is `ctx.resources`. `settings` replaces file and environment.

    >>> from headrace import App
    >>> app = App("memory://")
    >>> @app.task
    ... async def double(number: int) -> int:
    ...     return 2 * number
    >>> async def main() -> None:
    ...     async with app.worker():
    ...         handle = await double.enqueue(21)
    ...         print(await handle.result())
    >>> import asyncio; asyncio.run(main())
    42
    """

    def __init__(
        self, url: str | None = None, *, lifespan: Lifespan | None = None, settings: Settings | None = None
    ) -> None:
        self.registry = Registry()
        self._schedules: dict[str, ScheduleDef] = {}
        self._workflows: dict[str, Workflow] = {}
        self._queue_options: dict[str, QueueOptions] = {}
        #: Whether its workers take part in runs though it declares no workflow: in runs of those that are stored.
        self.works_runs = False
        self.lifespan = lifespan
        self._url = url
        self._given_settings = settings
        #: What a test lends it in place of the stores that the settings name: see `headrace.testing`.
        self.lent: MemoryTables | None = None
        self._runtime: Runtime | None = None
        self._users = 0
        #: How jobs are stored, by the name of the task: one object per task, so that inserts need not compare them.
        self._specs: dict[str, tuple[TaskDef, JobSpec]] = {}
        #: Whoever opens the app at the same moment shares one store.
        self._opening = asyncio.Lock()

    @cached_property
    def settings(self) -> Settings:
        """Settings of file and environment, read on first use. Raises ConfigError naming key and fix."""
        settings = self._given_settings or load_settings()
        return settings if self._url is None else use_store(settings, self._url)

    # Tasks

    @overload
    def task(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self, *, batch_size: int, max_wait: float | str | timedelta = ..., **options: Unpack[TaskOptions]
    ) -> GatherDecorator: ...
    @overload
    def task(self, **options: Unpack[TaskOptions]) -> TaskDecorator: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:  # type: ignore[misc]
        """Register a function as a task; see `TaskOptions` and `GatherOptions` for the options and their defaults.

        `async def` runs on the event loop, `def` in a thread, and either in a child process with `cpu=True`. Raises
        InvalidInputError for a wrong option, ConfigError for a name in use.
        """
        if function is None:
            return lambda decorated: self._register(decorated, cast(GatherOptions, options))
        return self._register(function, cast(GatherOptions, options))

    def _register(self, function: Callable[..., Any], options: TaskOptions) -> Task[Any, Any]:
        definition = define_task(function, cast(GatherOptions, options))
        self.registry.add(definition)
        return Task(self, definition)

    def queue(self, name: str, **options: Unpack[QueueOptions]) -> QueueRule:
        """Declare a queue; see `QueueOptions`. `[queues.NAME]` of headrace.toml wins over what is declared here.

        Limits hold over all workers together; how many jobs one worker runs at once is for `headrace worker --queue`.
        Raises InvalidInputError for a wrong option, ConfigError for a queue declared twice.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> app.queue("llm", concurrency=20, rate_limit="30/m", fair="batch").concurrency
        20
        """
        rule = QueueRule.parse(name, **options)
        if self._queue_options.setdefault(name, options) != options:
            raise ConfigError(
                f"queue {name!r} is declared twice; write one app.queue({name!r}, …) with all its options"
            )
        self.registry.queue_rules[name] = rule
        if self.is_open:
            self._settle_queues()
        return rule

    def on_backlog(self, hook: H, /) -> H:
        """Call `hook` with a `Backlog` when the backlog of a queue becomes an alarm, and when it is over.

        It runs in the worker that leads, wherever the app has workers: a coroutine, or a function in a thread, for at
        most 10 s. Thresholds are `alarm_size` and `alarm_age` of the queue.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> @app.on_backlog
        ... async def page(backlog) -> None:
        ...     print(backlog.queue, backlog.ready, backlog.rings)
        """
        self.registry.backlog_hooks.append(hook)
        return hook

    def _settle_queues(self) -> None:
        """Let the settings win over what the code declares of queues. Raises ConfigError for what does not fit."""
        for name, table in self.settings.queues.items():
            given, options = table.options(), dict(self._queue_options.get(name, {}))
            if given.get("on_full") == OnFull.REFUSE:
                options.pop("wait_timeout", None)  # of the waiting that is turned off here
            try:
                self.registry.queue_rules[name] = QueueRule.parse(name, **cast(QueueOptions, options | given))
            except InvalidInputError as error:
                raise ConfigError(f"[queues.{name}] {error}") from None

    # Schedules

    def cron(
        self, expression: str, *, tz: str = "UTC", catch_up: CatchUp | str = "skip", **options: Unpack[TaskOptions]
    ) -> TaskDecorator:
        """Register a function as a task that runs by a schedule, once per fire time in the whole cluster.

        `expression`: minute, hour, day of month, month, day of week, by the clocks of `tz`, a zone of the IANA
        database. `catch_up`: what becomes of fire times that passed while no worker led: "skip" (those more than a
        minute late), "one" job for all, or "all" (a job each, at most the latest 100). The schedule has the name of
        the task. The function takes no arguments but a `Context`, whose `scheduled_at` is the fire time, or has
        defaults. Raises InvalidInputError naming field, rule and value, also for a day that never comes.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> @app.cron("0 3 * * *", tz="Europe/Berlin", catch_up="one")
        ... async def nightly() -> None: ...
        >>> [declaration.name for declaration in app.declarations()]
        ['nightly']
        """

        if callable(expression):
            # Without parentheses the function itself: it would be gone, with no word.
            rule = 'must say when, as in @app.cron("0 3 * * *")'
            raise InvalidInputError("cron", rule, getattr(expression, "__name__", expression))

        def decorate(function: Callable[..., Any]) -> Task[Any, Any]:
            task = self._register(function, options)
            self.schedule(task, expression, tz=tz, catch_up=catch_up)
            return task

        return cast(TaskDecorator, decorate)

    def schedule(  # noqa: PLR0913 - keyword-only
        self, task: Task[..., Any] | TaskCall[..., Any], expression: str, *, name: str | None = None, tz: str = "UTC",
        catch_up: CatchUp | str = "skip", args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Run a task by a schedule, with arguments; a task may have several, each under a `name` of its own.

        `task`: a task, or one with options: `report.options(priority="bulk")`. The rest is as for `cron`. Workers
        declare it when they start. Raises InvalidInputError, ConfigError for a name in use.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> @app.task
        ... async def report(region: str) -> None: ...
        >>> for region in ("north", "south"):
        ...     app.schedule(report, "0 6 * * 1-5", name=f"report-{region}", args=[region])
        """
        from headrace.schedules import define_schedule

        made = define_schedule(task, expression, name=name, tz=tz, catch_up=catch_up, args=args, kwargs=kwargs)
        known = self._schedules.get(made.name)
        if known is not None and not known.is_again(made):
            raise ConfigError(f"there are two schedules {made.name!r}; give one of them another name=")
        self._schedules[made.name] = made

    def declarations(self) -> list[Declaration]:
        """Return the schedules as a worker declares them. Raises InvalidInputError for arguments that do not fit."""
        return [schedule.declaration() for schedule in self._schedules.values()]

    def spec_of(self, definition: TaskDef) -> JobSpec:
        """Return how jobs of a task are stored under this app's settings: no job is without bounds."""
        known = self._specs.get(definition.name)
        if known is not None and known[0] is definition:
            return known[1]
        retries = 0 if definition.spec.at_most_once else self.settings.queue.max_retries
        spec = replace(
            definition.spec,
            max_attempts=definition.spec.max_attempts or 1 + retries,
            timeout=definition.spec.timeout or self.settings.worker.max_processing_time,
        )
        self._specs[definition.name] = definition, spec
        return spec

    # Opening and closing

    async def __aenter__(self) -> App:
        """Open as a client: submit and read, work nothing. Raises ConfigError when open on another event loop."""
        self.forget_gone_runtime()
        async with self._opening:
            if self._runtime is None:
                from headrace.wiring import open_runtime

                self._settle_queues()
                self.settle_webhooks()
                lent = None if self.lent is None else self.lent.stores
                self._runtime = await open_runtime(self.settings, self.registry.queue_rules, lent=lent)
            elif self._runtime.loop is not asyncio.get_running_loop():
                raise ConfigError(
                    "the app is open on another event loop (of another thread, or of app.sync); use it from there, "
                    "or make an App of its own for this loop"
                )
            self._users += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._users -= 1
        if self._users == 0 and self._runtime is not None:
            runtime, self._runtime = self._runtime, None
            await runtime.close()

    @property
    def runtime(self) -> Runtime:
        """The open parts. Raises ConfigError when the app is not open."""
        if self._runtime is None:
            raise ConfigError(
                "the app is not open; use `async with app:` (client), `async with app.worker():` (client that also "
                "works jobs here), or `app.sync` from synchronous code"
            )
        return self._runtime

    @property
    def is_open(self) -> bool:
        """Whether the app is open."""
        return self._runtime is not None

    def forget_gone_runtime(self) -> None:
        """In a forked child, or after the end of its loop: drop the old connections without touching them."""
        if self._runtime is not None and self._runtime.gone:
            self._runtime, self._users, self._opening = None, 0, asyncio.Lock()

    @asynccontextmanager
    async def worker(
        self, *, queues: Mapping[str, int] | Iterable[str] | None = None, concurrency: int | None = None,
        grace: float | str | timedelta | None = None,
    ) -> AsyncIterator[Worker]:  # fmt: skip
        """Open the app and work jobs in this process until the block ends.

        `queues`: names, or slots by name; default every queue of the app's tasks. `concurrency`: slots per queue
        where none are given; a queue of tasks with a `batch_size` has at least twice the largest of these. On leaving,
        running handlers may end within `grace` (default `[worker] shutdown_grace`); the rest is released, uncharged.
        """
        from headrace.wiring import make_worker
        from headrace.wiring.events import make_event_host

        wait = self.settings.worker.shutdown_grace if grace is None else parse_duration(grace, field="grace")
        async with self, AsyncExitStack() as stack:
            resources = await stack.enter_async_context(self.lifespan(self)) if self.lifespan is not None else None
            slots = self._slots(queues, self.settings.worker.concurrency if concurrency is None else concurrency)
            worker = make_worker(self, slots, resources)
            host = make_event_host(self, resources, telemetry=worker.telemetry)
            try:
                await worker.start()
                await host.start()
                await self.warn_of_followers()
                yield worker
            finally:
                with self.runtime.jobs_leave():
                    await worker.stop(wait, beside=host.stop(wait))

    def _slots(self, queues: Mapping[str, int] | Iterable[str] | None, default: int) -> dict[str, int]:
        if isinstance(queues, str):
            raise InvalidInputError("queues", 'must be a list of names or slots by name, such as ["llm"]', queues)
        named = queues if queues is not None else [*self.registry.queues(), *self._engine_queues()]
        if not isinstance(named, Mapping):
            named = {queue: self.registry.slots(queue, default) for queue in named}
        slots = dict(named)
        for queue, count in slots.items():
            check_name("queue", queue)
            check_whole(f"concurrency of queue {queue}", count)
        if not slots:
            raise ConfigError("the app has no tasks, so there is no queue to work on; register one with @app.task")
        return slots

    def _engine_queues(self) -> list[str]:
        """Return the queues of runs, where the app works any; `[worker]` says which of them its workers take."""
        worker = self.settings.worker
        taken = ((WORKFLOWS_QUEUE, worker.workflow_processor_enabled), (NODES_QUEUE, worker.node_processor_enabled))
        return [queue for queue, enabled in taken if enabled and (self._workflows or self.works_runs)]

    # Jobs and batches

    async def submit(
        self, task: Task[Any, Any], items: Iterable[Any] | AsyncIterable[Any], **options: Unpack[SubmitOptions]
    ) -> Batch:
        """Make a batch of one job per item and return it once it is stored; see `SubmitOptions`.

        Up to 10,000 items of a list go in one transaction; longer lists and generators are streamed. With a `key`,
        the same items give the same batch, also to a second submitter, who continues a stream that was cut; other
        items raise ConflictError.
        """
        if not isinstance(task, Task):
            raise InvalidInputError("task", "must be a function registered with @app.task", task)
        batch = new_batch(task, options)
        await self.check_webhook(options.get("webhook"))
        texts = task.definition.codec.encode_items(items, spread=options.get("spread", False))
        return Batch(self, await self.runtime.batches.submit(batch, texts))

    async def find_batch(self, task: Task[Any, Any], key: str) -> Batch | None:
        """Return the batch submitted for `task` under `key`, if there is one."""
        view = await self.runtime.stores.inspect.find_batch(task.name, key)
        return None if view is None else Batch(self, view.id)

    async def drain(
        self, queue: str, *, timeout: float | str | timedelta | None = None,
        on_look: Callable[[Drained], None] | None = None,
    ) -> Drained:  # fmt: skip
        """Let no more jobs into a queue, and wait until those it has are done; return what is left at `timeout`.

        Within a second every process that enqueues into it gets QueueClosedError. Retries of what was accepted run.
        The queue stays closed until `resume`. `done` takes 1.5 s at least, until all processes have `heard` that it is
        closed: with a shorter `timeout` the answer for an empty queue is `empty`, and not `done`, for one of them may
        still let a job in. `on_look` is told how far it is. Raises DrainStoppedError when somebody
        opens the queue meanwhile, and QueuePausedError, which is one too, when it is paused.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> async def main() -> None:
        ...     async with app:
        ...         print((await app.drain("llm", timeout="10s")).done)
        >>> import asyncio; asyncio.run(main())
        True
        """
        limit = None if timeout is None else parse_duration(timeout, field="timeout")
        return await drain_queue(self.runtime.stores, check_name("queue", queue), timeout=limit, on_look=on_look)

    async def pause(self, queue: str, *, reason: str | None = None, force: bool = False) -> None:
        """Stop claiming jobs of a queue, in every worker, until `resume`; running jobs go on, new ones may be enqueued.

        `reason` (1 to 500 characters) is shown to whoever looks at the queue. Raises NotFoundError for a queue that
        no task or `App.queue` of this app names and that has no jobs, workers or setting yet, unless `force`.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> rule = app.queue("llm")
        >>> async def main() -> None:
        ...     async with app:
        ...         await app.pause("llm", reason="quota used up")
        ...         await app.resume("llm")
        >>> import asyncio; asyncio.run(main())
        """
        known = check_name("queue", queue) in {*self.registry.queue_rules, *self.registry.queues()}
        if not (force or known):
            await find_queue(self.runtime.stores.inspect, queue)
        await set_queue_paused(self.runtime.stores, queue, paused=True, reason=reason)

    async def resume(self, queue: str) -> None:
        """Claim jobs of a paused queue again, and let jobs into one that was drained: here at once, elsewhere within a
        second.
        """
        await resume_queue(self.runtime.stores, check_name("queue", queue))
        await self.runtime.intake.look_again()

    async def queue_state(self, queue: str) -> QueueState:
        """Return whether a queue is paused, and why, or closed. Raises StoreUnavailableError.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> async def main() -> None:
        ...     async with app:
        ...         await app.pause("llm", reason="upgrade", force=True)
        ...         print((await app.queue_state("llm")).paused_reason)
        >>> import asyncio; asyncio.run(main())
        upgrade
        """
        check_name("queue", queue)
        states = await with_retries(lambda _: self.runtime.stores.control.queue_states())
        return states.get(queue) or QueueState()

    async def pool(self, name: str) -> PoolView:
        """Return a quota of models as the live processes tell of it, some seconds old: `app.pool(app.llm.pool)`.

        It has the calls `in_flight` and `waiting`, and in `flows` the units per second that pass. Raises
        StoreUnavailableError.
        """
        from headrace.engine.llm_queries import look_at_pool

        return await look_at_pool(self.runtime.stores.inspect, name)

    def job(self, job_id: UUID | str) -> JobHandle[Any]:
        """Return a handle on a job by id. Raises InvalidInputError for what is no id."""
        return JobHandle(self, job_id if isinstance(job_id, UUID) else parse_id("job id", job_id))

    def batch(self, batch_id: UUID | str) -> Batch:
        """Return a handle on a batch by id. Raises InvalidInputError for what is no id."""
        return Batch(self, batch_id if isinstance(batch_id, UUID) else parse_id("batch id", batch_id))

    def find_task(self, name: str) -> Task[Any, Any]:
        """Return a task by name. Raises NotFoundError naming those there are."""
        definition = self.registry.get(name)
        if definition is None:
            known = ", ".join(sorted(task.name for task in self.registry)) or "none"
            raise NotFoundError(f"no task {name!r} in this app; it has: {known}")
        return Task(self, definition)

    @asynccontextmanager
    async def event_host(
        self, parts: EventParts, *, grace: float | str | timedelta | None = None
    ) -> AsyncIterator[EventHost]:
        """Open the app and do a part of the work with events until the block ends; for `headrace relay` and others."""
        from headrace.wiring.events import make_event_host

        wait = self.settings.worker.shutdown_grace if grace is None else parse_duration(grace, field="grace")
        async with self, AsyncExitStack() as stack:
            resources = None
            if self.lifespan is not None and parts.agents != ():
                resources = await stack.enter_async_context(self.lifespan(self))
            host = make_event_host(self, resources, parts)
            try:
                await host.start()
                yield host
            finally:
                await host.stop(wait)

    # Others

    @cached_property
    def limits(self) -> Limits:
        """Limits at run time: `show`, `set_cap`, `set_rate`, `set_weight`, `take`."""
        return Limits(lambda: self.runtime, self.registry)

    @property
    def llm(self) -> LLM:
        """The model: `extract`, `extract_items`, `stream_items`, `complete`, `embed`, `using`.

        Answers are stored before they are used, and never paid twice; quotas and budgets are kept over all processes.
        """
        return self.runtime.llm()

    @cached_property
    def budgets(self) -> Budgets:
        """How much model calls may cost, by day, tenant, batch or run: `set`, `show`, `remove`."""
        from headrace.budgets import Budgets

        return Budgets(lambda: self.runtime)

    def cache(
        self, name: str, *, entries: int = 10_000, bytes: int = 1 << 30, ttl: float | str | timedelta = "1h"
    ) -> Cache:
        """Return a cache: values by key, at most so many `entries` and `bytes`, each good for `ttl`, at most 30 days.

        All who name it give it the same bounds. Raises InvalidInputError; its verbs raise ConfigError for other bounds.
        """
        from headrace.caches import Cache
        from headrace.model.cache import CacheBounds

        return Cache(self, name, CacheBounds(entries, bytes, parse_duration(ttl, field="ttl")))

    def names(self, scope: str, rule: Rule | Scorer | None = None) -> NameBook:
        """Return the book of names of a scope: each name is given once, over all processes, and none like another.

        `rule`: a `headrace.llm.dedupe.Rule`, or the scorer of one, such as "edits" (default: "typos"); the same for all
        books of a scope. The app has to be open. Raises InvalidInputError, ConfigError where it is not.
        """
        from headrace.llm.dedupe import NameBook, Rule, Similarity

        chosen = Rule(similarity=Similarity(rule)) if isinstance(rule, str) else rule
        return NameBook(self.runtime.stores.names, scope, chosen)

    @cached_property
    def files(self) -> Files:
        """Files of runs, such as PDFs: `put` within a task of a workflow, `get` there and elsewhere."""
        from headrace.files import Files

        return Files(lambda: self.runtime)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """Failed jobs that were not run again: `list` groups them by their error, `redrive` runs them again."""
        from headrace.dead_letters import DeadLetters

        return DeadLetters(self)

    @cached_property
    def sync(self) -> SyncClient:
        """Run coroutines of this app from synchronous code: `app.sync(task.enqueue(1))`."""
        from headrace.sync import SyncClient

        return SyncClient(self)
