"""Opening the Redis store: one server, one namespace, all ports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.ports.clock import Clock
from headrace.ports.stores import Stores
from headrace.stores.redis import epoch as epochs
from headrace.stores.redis.addresses import parse_address
from headrace.stores.redis.admission import RedisAdmission
from headrace.stores.redis.audit_store import RedisAuditStore
from headrace.stores.redis.batch_store import RedisBatchStore
from headrace.stores.redis.budget_store import RedisBudgetStore
from headrace.stores.redis.call_store import RedisCallStore
from headrace.stores.redis.checks import check_server
from headrace.stores.redis.connection import Server, ServerOptions
from headrace.stores.redis.control_store import RedisControlStore
from headrace.stores.redis.epoch import Epoch, Identity, Memory
from headrace.stores.redis.feed_store import RedisFeedStore
from headrace.stores.redis.inspect import RedisInspect
from headrace.stores.redis.job_store import RedisJobStore
from headrace.stores.redis.limiter import RedisLimiter
from headrace.stores.redis.memo_store import RedisMemoStore
from headrace.stores.redis.name_store import RedisNameStore
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.notifier import RedisNotifier
from headrace.stores.redis.run_store import RedisRunStore
from headrace.stores.redis.schedule_store import RedisScheduleStore
from headrace.stores.redis.session_store import RedisSessionStore
from headrace.stores.redis.signal_store import RedisSignalStore
from headrace.stores.redis.token_store import RedisTokenStore
from headrace.stores.redis.workflow_store import RedisWorkflowStore

#: What `consumer_group` is unless somebody chooses: it then leaves the names of keys alone.
DEFAULT_GROUP = "headrace"
#: Connections of a worker's heartbeat, which must not wait for those of others.
HEARTBEAT = 1


@dataclass(frozen=True, slots=True)
class RedisSite:
    """Where a store is. `memory` is a file that remembers epochs, `unsafe` allows a server without persistence."""

    url: str
    prefix: str = "headrace"
    group: str = DEFAULT_GROUP
    memory: Path | None = None
    unsafe: bool = False

    @property
    def root(self) -> str:
        """The hash tag of all keys: prefix and group, of which the default one goes without saying.

        >>> RedisSite("redis://", "shop").root, RedisSite("redis://", "shop", "nightly").root
        ('{shop}', '{shop:nightly}')
        """
        return "{" + (self.prefix if self.group == DEFAULT_GROUP else f"{self.prefix}:{self.group}") + "}"


async def open_redis_stores(
    site: RedisSite, *, max_pool_size: int = 10, listen: bool = True, clock: Clock | None = None
) -> Stores:
    """Open the store of a namespace that `create_namespace` made, on a server that can be trusted with jobs.

    `max_pool_size` bounds all connections together: those for commands, the one that listens, and the one of a worker's
    heartbeat. `clock` replaces the server's clock, for tests. Raises ConfigError for a server that may lose jobs (see
    `checks.py`), StoreVersionError for a namespace that was never made, StorageResetError for one that lost its data,
    StoreUnavailableError, NotAllowedError.

    >>> stores = await open_redis_stores(RedisSite("redis://localhost"))  # doctest: +SKIP
    """
    epoch = Epoch()
    options = ServerOptions(parse_address(site.url), site.root, size=max(1, max_pool_size - HEARTBEAT - int(listen)))
    server = Server(options, on_reset=epoch.found_reset)
    try:
        await check_server(server, unsafe=site.unsafe)
        epoch.value = (await epochs.open_epoch(server, Memory(site.memory))).value
    except BaseException:
        await server.close()
        raise
    namespace = Namespace(server, site.root, epoch, clock)
    notifier = RedisNotifier(server, listen=listen)

    async def close() -> None:
        await notifier.close()
        await server.close()

    @asynccontextmanager
    async def private_sessions() -> AsyncIterator[RedisSessionStore]:
        private = Server(replace(options, size=HEARTBEAT), on_reset=epoch.found_reset, finder=server.finder)
        try:
            yield RedisSessionStore(Namespace(private, site.root, epoch, clock))
        finally:
            await private.close()

    return Stores(
        jobs=RedisJobStore(namespace, notifier),
        batches=RedisBatchStore(namespace),
        sessions=RedisSessionStore(namespace),
        control=RedisControlStore(namespace),
        inspect=RedisInspect(namespace, server, listening=lambda: notifier.listening, clock=clock),
        memo=RedisMemoStore(namespace),
        notifier=notifier,
        private_sessions=private_sessions,
        foreign=None,
        close=close,
        admission=RedisAdmission(namespace),
        limiter=RedisLimiter(namespace),
        schedules=RedisScheduleStore(namespace),
        calls=RedisCallStore(namespace),
        budgets=RedisBudgetStore(namespace),
        names=RedisNameStore(namespace),
        runs=RedisRunStore(namespace, notifier),
        workflows=RedisWorkflowStore(namespace),
        signals=RedisSignalStore(namespace, notifier),
        feeds=RedisFeedStore(namespace, notifier),
        tokens=RedisTokenStore(namespace),
        audit=RedisAuditStore(namespace),
    )


async def create_namespace(site: RedisSite) -> bool:
    """Make the namespace of a store that was never used; return whether it was made now."""
    async with _checked(site) as server:
        return await epochs.create_namespace(server, Memory(site.memory, make=True))


async def namespace_is_missing(site: RedisSite) -> bool:
    """Whether `create_namespace` would make one."""
    async with _checked(site) as server:
        return await epochs.read_identity(server) is None


async def adopt(site: RedisSite) -> Identity:
    """Put in force what the server holds now, in place of what was lost; return its identity."""
    async with _checked(site) as server:
        return await epochs.adopt(server, Memory(site.memory, make=True))


@asynccontextmanager
async def _checked(site: RedisSite) -> AsyncIterator[Server]:
    server = Server(ServerOptions(parse_address(site.url), site.root, size=1))
    try:
        await check_server(server, unsafe=site.unsafe)
        yield server
    finally:
        await server.close()
