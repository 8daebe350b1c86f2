"""The handle cache port on a Redis server beside the store: what it holds may be thrown away at any time.

A handle that waits is put only where none is: so it never takes the place of one that has ended, without a script.
"""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import datetime
from typing import Any

from headrace.model.errors import HeadraceError
from headrace.model.resume_handle import HandleState, HandleView
from headrace.ports.handle_cache import CACHE_SECONDS
from headrace.stores.redis.addresses import LIMITER_URL, parse_address
from headrace.stores.redis.connection import Server, ServerOptions
from headrace.stores.redis.rows import to_json
from headrace.stores.redis.wire import Word

LOG = logging.getLogger("headrace.handles")

#: The store answers as fast: what takes longer is no help.
PATIENCE_SECONDS = 1.0
#: A server that did not answer is left alone so long.
AWAY_SECONDS = 5.0

_TUPLES = ("expect_types", "request_types", "agents")
_NUMBERS = ("expect_count", "arrived")
_TIMES = ("created_at", "expires_at", "ended_at")


class RedisHandleCache:
    """Handles, with connections of its own. What came with a token is not kept here."""

    def __init__(self, server: Server) -> None:
        self._server = server
        #: What its keys begin with.
        self.root = server.options.root
        self._away, self._away_until = False, 0.0

    async def get(self, correlation_id: str) -> HandleView | None:
        """Return a handle, if it is remembered."""
        text = await self._ask("GET", self._key(correlation_id), read=True)
        return None if text is None else _read(text, correlation_id)

    async def put(self, handle: HandleView) -> None:
        """Remember a handle; one that waits only where none is remembered."""
        only_new = () if handle.state.final else ("NX",)
        await self._ask("SET", self._key(handle.correlation_id), _write(handle), "EX", CACHE_SECONDS, *only_new)

    async def close(self) -> None:
        """End its connections."""
        await self._server.close()

    def _key(self, correlation_id: str) -> str:
        return f"{self.root}:resume:{correlation_id}"

    async def _ask(self, *words: Word, read: bool = False) -> Any:
        """Return the answer to a command, or None while the server is away."""
        now = asyncio.get_running_loop().time
        if now() < self._away_until:
            return None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await self._server.call(*words, read=read)
        except (HeadraceError, TimeoutError) as error:
            self._note_away(error, now())
            return None
        self._away = False
        return answer

    def _note_away(self, error: Exception, now: float) -> None:
        self._away_until = now + AWAY_SECONDS
        if not self._away:
            why = str(error) or f"no answer within {PATIENCE_SECONDS:g} s"
            LOG.warning("the cache of resume handles is away, and the store is asked instead: %s", why)
        self._away = True


def _write(handle: HandleView) -> str:
    facts = {name: getattr(handle, name) for name in (*_NUMBERS, "target", "wake_due")}
    facts |= {name: list(getattr(handle, name)) for name in _TUPLES}
    times = {name: getattr(handle, name) for name in _TIMES}
    facts |= {name: None if at is None else at.isoformat() for name, at in times.items()}
    return to_json({**facts, "state": handle.state.value})


def _read(text: str, correlation_id: str) -> HandleView | None:
    """Return the handle of a text; None for what another version wrote."""
    try:
        facts: dict[str, Any] = json.loads(text)
        return HandleView(
            correlation_id=correlation_id,
            state=HandleState(facts["state"]),
            target=str(facts["target"]),
            wake_due=bool(facts["wake_due"]),
            expect_types=tuple(facts["expect_types"]),
            request_types=tuple(facts["request_types"]),
            agents=tuple(facts["agents"]),
            expect_count=int(facts["expect_count"]),
            arrived=int(facts["arrived"]),
            created_at=datetime.fromisoformat(facts["created_at"]),
            expires_at=datetime.fromisoformat(facts["expires_at"]),
            ended_at=None if facts["ended_at"] is None else datetime.fromisoformat(facts["ended_at"]),
        )
    except (ValueError, TypeError, KeyError):
        return None


def make_handle_cache(url: str, *, prefix: str = "headrace") -> RedisHandleCache:
    """Return a cache on the Redis server, service or cluster at `url`; it connects when it is first asked.

    Its keys are `{PREFIX::handles}:resume:CORRELATION_ID`, which no namespace of a store can be. Raises ConfigError for
    a URL that cannot be read.

    >>> cache = make_handle_cache("redis://localhost/0")  # doctest: +SKIP
    """
    options = ServerOptions(parse_address(url, setting=LIMITER_URL), root=f"{{{prefix}::handles}}")
    return RedisHandleCache(Server(options))
