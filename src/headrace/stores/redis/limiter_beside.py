"""A limiter on a Redis server beside another store, for `[limits] url`."""

from __future__ import annotations

from contextlib import suppress

from headrace.model.errors import NotAllowedError
from headrace.ports.clock import Clock
from headrace.stores.redis.addresses import LIMITER_URL, parse_address
from headrace.stores.redis.checks import check_role, read_facts
from headrace.stores.redis.connection import Server, ServerOptions
from headrace.stores.redis.limiter import RedisLimiter
from headrace.stores.redis.namespace import Namespace


class LimiterBeside(RedisLimiter):
    """A limiter with connections of its own. What it holds may be thrown away at any time, FLUSHALL included."""

    def __init__(self, server: Server, clock: Clock | None = None) -> None:
        super().__init__(Namespace(server, server.options.root, None, clock))
        self._server = server

    async def close(self) -> None:
        """End its connections."""
        await self._server.close()


async def open_redis_limiter(url: str, *, prefix: str = "headrace", clock: Clock | None = None) -> LimiterBeside:
    """Open a limiter on the Redis server, service or cluster at `url`; all its keys begin with `{PREFIX::limits}:`,
    which no namespace of a store can be.

    No persistence is asked of the server. `clock` replaces the server's, for tests. Raises ConfigError for a URL that
    cannot be read or names a replica, StoreUnavailableError, NotAllowedError.

    >>> limiter = await open_redis_limiter("redis://localhost/0")  # doctest: +SKIP
    """
    server = Server(ServerOptions(parse_address(url, setting=LIMITER_URL), root=f"{{{prefix}::limits}}"))
    try:
        await server.call("PING", read=True)
        with suppress(NotAllowedError):
            check_role(await read_facts(server), server.options.address)
    except BaseException:
        await server.close()
        raise
    return LimiterBeside(server, clock)
