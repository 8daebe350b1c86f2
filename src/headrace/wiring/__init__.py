"""The only module that names adapters: it turns settings into stores, executors, a model and a worker."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.clock import SystemClock
from headrace.engine.attempt import Proceed, compose
from headrace.engine.attempts import AttemptFactory
from headrace.engine.breaker_reports import BreakerReports
from headrace.engine.grants import Grants
from headrace.engine.late_limiter import LateLimiter
from headrace.engine.levels import eligible_jobs
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.loops.resizer import ElasticOptions
from headrace.engine.middleware.breaker import BreakerMiddleware
from headrace.engine.middleware.park import park
from headrace.engine.middleware.part import play_part
from headrace.engine.middleware.retry import RetryMiddleware
from headrace.engine.middleware.time_limit import limit_time
from headrace.engine.middleware.usage import meter_usage
from headrace.engine.registry import RunsIn
from headrace.engine.shift import ShiftOptions
from headrace.engine.worker import DutyOptions, Worker
from headrace.engine.workflows.parts import RunParts
from headrace.executors.inline import InlineExecutor
from headrace.executors.process import ProcessExecutor
from headrace.executors.thread import ThreadExecutor
from headrace.model.errors import ConfigError
from headrace.model.queue import QueueRule
from headrace.model.stats import Retention
from headrace.ports.executor import Executor
from headrace.ports.limiter import Limiter
from headrace.ports.stores import Stores
from headrace.runtime import Runtime
from headrace.settings import Settings
from headrace.wiring.blobs import open_blobs
from headrace.wiring.caches import open_caches
from headrace.wiring.farm import make_farm
from headrace.wiring.line_keeping import make_line_keeping
from headrace.wiring.pruning import prune_loops
from headrace.wiring.workflows import open_means, run_loops

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.llm.gateway import LLM
    from headrace.llm.quota import Quotas
    from headrace.stores.redis import RedisSite

LOG = logging.getLogger("headrace.wiring")

__all__ = [
    "SystemClock",
    "adopt",
    "compose_child",
    "make_worker",
    "migrate",
    "open_runtime",
    "open_stores",
    "pending_migrations",
]


def child_command() -> tuple[str, ...]:
    """Return how to start a child process that finds the same modules as this one."""
    return (sys.executable, "-m", "headrace.child", *(entry for entry in sys.path if entry))


async def open_runtime(
    settings: Settings, queue_rules: dict[str, QueueRule] | None = None, *, lent: Stores | None = None
) -> Runtime:
    """Open the store that the settings name, and everything over it; `queue_rules` by the names of queues.

    `lent`: stores of somebody else in its place, which are not closed with the rest.
    """
    stack = AsyncExitStack()
    try:
        stores = lent or await open_stores(settings, stack)
        if lent is None:
            stack.push_async_callback(stores.close)
        limiter = await _open_limiter(settings, stores, stack)
        blobs = open_blobs(settings, stack)
    except BaseException:
        await stack.aclose()
        raise
    gateway = _LazyGateway(settings, stores, limiter, stack)
    return Runtime(
        settings, stores, llm=gateway.llm, means=open_means(settings, stores, blobs, stack),
        jobs_leave=gateway.jobs_leave, close_others=stack.aclose, limiter=limiter, caches=open_caches(settings),
        queue_rules={} if queue_rules is None else queue_rules,
    )  # fmt: skip


async def _open_limiter(settings: Settings, stores: Stores, stack: AsyncExitStack) -> Limiter:
    """Return the limiter that the settings name; without one the store's own."""
    if not settings.limits.url:
        return stores.limiter
    limiter = limiter_beside(settings, stack)
    await limiter.open()
    return limiter


def limiter_beside(settings: Settings, stack: AsyncExitStack) -> LateLimiter:
    """Return the limiter that the settings name, not connected yet; what has to be released goes on `stack`."""
    from headrace.stores.redis import open_redis_limiter

    limiter = LateLimiter(lambda: open_redis_limiter(settings.limits.url, prefix=settings.queue.stream_prefix))
    stack.push_async_callback(limiter.close)
    return limiter


async def open_stores(settings: Settings, stack: AsyncExitStack) -> Stores:
    """Open the store; what has to be released after it goes on `stack`."""
    queue = settings.queue
    if _in_memory(settings):
        from headrace.stores.memory import open_memory_stores

        if queue.type != "memory":
            LOG.warning("queue.enable_persistence = false: every job is lost with this process")
        return open_memory_stores()
    if queue.type == "redis":
        from headrace.stores.redis import open_redis_stores

        return await open_redis_stores(
            _redis_site(settings), max_pool_size=queue.max_pool_size, listen=queue.enable_listen_notify
        )
    from headrace.stores.postgres import open_postgres_stores

    dsn, embedded = queue.url, not queue.url
    if embedded:
        dsn = await _start_embedded(settings, stack)
    return await open_postgres_stores(
        dsn,
        schema=queue.schema,
        max_pool_size=queue.max_pool_size,
        pooled=queue.pooled,
        listen=queue.enable_listen_notify,
        listen_dsn=queue.listen_url or None,
        auto_migrate=embedded,
    )


async def pending_migrations(settings: Settings) -> list[str]:
    """Return the names of the migrations that `migrate` would apply to the configured store; changes nothing."""
    if settings.queue.type == "redis":
        from headrace.stores.redis import namespace_is_missing

        site = _redis_site(settings)
        return [f"namespace {site.root}"] if await namespace_is_missing(site) else []
    from headrace.stores.postgres import migrate as migrations

    async with AsyncExitStack() as stack:
        address = await _migration_address(settings, stack)
        return [] if address is None else await migrations.pending(address, schema=settings.queue.schema)


async def migrate(settings: Settings) -> list[str]:
    """Bring the configured store to the schema of this version; return the names of what was applied."""
    if settings.queue.type == "redis":
        from headrace.stores.redis import create_namespace

        site = _redis_site(settings)
        return [f"namespace {site.root}"] if await create_namespace(site) else []
    from headrace.stores.postgres import migrate as migrations

    async with AsyncExitStack() as stack:
        address = await _migration_address(settings, stack)
        return [] if address is None else await migrations.apply(address, schema=settings.queue.schema)


async def adopt(settings: Settings) -> str:
    """Put in force what the configured store holds now, after it lost its data; return what that is, in words.

    Raises ConfigError for a store that cannot lose its data without anybody noticing.
    """
    if settings.queue.type != "redis":
        raise ConfigError("only a Redis store is adopted after a loss; restore a PostgreSQL database from its backup")
    from headrace.stores.redis import adopt as adopt_namespace

    site = _redis_site(settings)
    identity = await adopt_namespace(site)
    return f"namespace {site.root}, epoch {identity.epoch[:8]} of {identity.created_at:%Y-%m-%d %H:%M} UTC"


def _redis_site(settings: Settings) -> RedisSite:
    from headrace.stores.redis import RedisSite

    queue = settings.queue
    memory = settings.directory / "redis-epochs.json"
    return RedisSite(queue.url, queue.stream_prefix, queue.consumer_group, memory, queue.unsafe_no_persistence)


def _in_memory(settings: Settings) -> bool:
    queue = settings.queue
    return queue.type == "memory" or (queue.type != "redis" and not queue.enable_persistence)


async def _migration_address(settings: Settings, stack: AsyncExitStack) -> str | None:
    """Return where the schema is changed, past any pooler; None for a store without one."""
    queue = settings.queue
    if _in_memory(settings):
        return None
    return queue.listen_url or queue.url or await _start_embedded(settings, stack)


async def _start_embedded(settings: Settings, stack: AsyncExitStack) -> str:
    from headrace.stores.postgres.embedded import start_embedded

    server = await asyncio.to_thread(start_embedded, settings.directory)
    stack.callback(server.release)
    keeper = Keeper(server.ensure)
    keeper.start()
    stack.push_async_callback(keeper.stop)
    return server.dsn


class Keeper(Loop):
    """Keeps the embedded server running while it is used, also when its supervisor was killed."""

    name = "embedded-keeper"

    def __init__(self, ensure: Callable[[], object], interval: timedelta = timedelta(seconds=2)) -> None:
        super().__init__(interval)
        self._ensure = ensure

    async def step(self) -> None:
        """Start the server again if it is gone; cheap while it runs."""
        await asyncio.to_thread(self._ensure)


class _LazyGateway:
    """Makes the gateway on first use: what it needs is heavy to import."""

    def __init__(self, settings: Settings, stores: Stores, limiter: Limiter, stack: AsyncExitStack) -> None:
        self._means = settings, stores, limiter, stack
        self._opened: tuple[LLM, Quotas] | None = None

    def llm(self) -> LLM:
        """Return it, made or not."""
        from headrace.wiring.gateway import open_gateway

        self._opened = self._opened or open_gateway(*self._means)
        return self._opened[0]

    def jobs_leave(self) -> AbstractContextManager[None]:
        """Let jobs that wait for a quota leave their slots."""
        return self._opened[1].jobs_leave() if self._opened is not None else nullcontext()


def make_worker(app: App, slots: dict[str, int], resources: Any) -> Worker:
    """Return a worker of an open app."""
    settings, stores = app.settings, app.runtime.stores
    clock = SystemClock()
    factory = AttemptFactory(
        registry=app.registry,
        jobs=stores.jobs,
        executors={
            RunsIn.LOOP: InlineExecutor(),
            RunsIn.THREAD: ThreadExecutor(),
            RunsIn.PROCESS: ProcessExecutor(child_command()),
        },
        alone=ProcessExecutor(child_command(), reuse=False),
        proceed=compose(
            [
                RetryMiddleware(),
                BreakerMiddleware(BreakerReports(stores.admission)),
                park,
                limit_time,
                meter_usage,
                play_part,
            ]
        ),
        clock=clock,
        max_processing_time=settings.worker.max_processing_time,
        resources=resources,
        runs=RunParts(app.runtime.means, app.start_by_name),
        emission=app.emission,
        keeping=make_line_keeping(settings, clock),
        farm=make_farm(app, settings, stores.jobs),
    )
    shift = ShiftOptions(
        queues=slots,
        batch_size=settings.worker.batch_size,
        poll_interval=settings.worker.poll_interval,
        lease=settings.queue.visibility_timeout,
        heartbeat_interval=settings.worker.heartbeat_interval,
    )
    rules = {name: rule.elastic for name, rule in app.registry.queue_rules.items() if rule.elastic is not None}
    limiter = app.runtime.limiter
    grants = None if limiter is stores.limiter else Grants(limiter, stores.admission)
    return Worker(
        stores, factory, shift=shift, duties=_duties(settings), clock=clock,
        admit=None if grants is None else grants.admit_jobs, end_admitting=None if grants is None else grants.close,
        declarations=app.declarations(), loops=partial(_other_loops, settings, app.runtime),
        elastic=ElasticOptions(rules, settings.worker.resize_interval),
        count_eligible=partial(eligible_jobs, stores, limiter),
    )  # fmt: skip


def _other_loops(settings: Settings, runtime: Runtime, leadership: Leadership) -> list[Loop]:
    """Return the duties of a worker that are for runs, feeds, the audit and events."""
    return [*run_loops(settings, runtime, leadership), *prune_loops(settings, runtime.stores, leadership)]


def _duties(settings: Settings) -> DutyOptions:
    recovery = settings.recovery
    return DutyOptions(
        check_interval=recovery.check_interval,
        aggregate_interval=recovery.aggregate_interval,
        seal_timeout=recovery.seal_timeout,
        prune_interval=recovery.prune_interval,
        retention=Retention(
            succeeded=recovery.keep_succeeded,
            failed=recovery.keep_failed,
            cancelled=recovery.keep_cancelled,
            answers=recovery.keep_answers,
        ),
    )


def compose_child() -> tuple[Executor, Proceed]:
    """Return how a child process runs a handler: its retry policy decides there, its worker keeps the time."""
    return InlineExecutor(), compose([RetryMiddleware(), BreakerMiddleware(), park, meter_usage])
