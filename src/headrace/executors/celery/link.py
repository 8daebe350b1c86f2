"""What both sides of a farm tell each other beside messages: hints. All of them may be lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from redis import asyncio as redis
from redis.exceptions import RedisError

from headrace.executors.celery.site import PATIENCE, CelerySite
from headrace.model.errors import BrokerUnavailableError
from headrace.model.farm import Fence

#: Channels: a call that ended, and a call that is to end.
_ENDED, _STOP = "ended", "stop"
#: How soon a listener that lost the broker tries again.
AGAIN_SECONDS = 0.5
#: Seconds without a word until a listener asks if the server is still there.
ASK_AFTER = 10


class Link:
    """Connections of one event loop to the broker."""

    def __init__(self, site: CelerySite) -> None:
        self.site = site
        self.client: Any = redis.Redis.from_url(
            site.url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, decode_responses=True
        )

    async def check(self) -> None:
        """Raise BrokerUnavailableError unless the broker answers; never with the address, which may hold a password."""
        try:
            await self.client.ping()
        except (RedisError, OSError) as error:
            raise BrokerUnavailableError(
                f"the Celery broker does not answer ({type(error).__name__}); check [celery] broker_url, and that the "
                "server runs"
            ) from None

    async def tell_end(self, fence: Fence) -> None:
        """Tell that a call has ended."""
        await self._tell(_ENDED, fence)

    async def tell_stop(self, fence: Fence) -> None:
        """Tell that a call is to end."""
        await self._tell(_STOP, fence)

    async def hear_ends(self, on_hint: Callable[[Fence], None]) -> None:
        """Hear of calls that have ended, until cancelled."""
        await self._listen_on(_ENDED, on_hint)

    async def hear_stops(self, on_hint: Callable[[Fence], None]) -> None:
        """Hear of calls that are to end, until cancelled."""
        await self._listen_on(_STOP, on_hint)

    async def _tell(self, channel: str, fence: Fence) -> None:
        with contextlib.suppress(RedisError, OSError):
            await self.client.publish(self.site.key(channel), fence.word)

    async def _listen_on(self, channel: str, on_hint: Callable[[Fence], None]) -> None:
        # However often the broker goes away.
        while True:
            with contextlib.suppress(RedisError, OSError):
                await self._listen(channel, on_hint)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _listen(self, channel: str, on_hint: Callable[[Fence], None]) -> None:
        client: Any = redis.Redis.from_url(
            self.site.url, socket_connect_timeout=PATIENCE, health_check_interval=ASK_AFTER, decode_responses=True
        )
        async with client, client.pubsub() as pubsub:
            await pubsub.subscribe(self.site.key(channel))
            while True:
                message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=ASK_AFTER)
                if message is not None:
                    with contextlib.suppress(ValueError):
                        on_hint(Fence.parse(str(message["data"])))

    async def close(self) -> None:
        """Hang up."""
        await self.client.aclose()
