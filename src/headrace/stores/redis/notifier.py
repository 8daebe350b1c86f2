"""Hints by PUBLISH and SUBSCRIBE (see `headrace.hinting`). One may ride on the script that inserts jobs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from headrace.hinting import CHECK_EVERY, CHECK_TIMEOUT, ServerNotifier
from headrace.stores.redis.connection import Server
from headrace.stores.redis.wire import Wire


class RedisNotifier(ServerNotifier):
    """The notifier port on Redis."""

    def __init__(self, server: Server, *, listen: bool = True) -> None:
        super().__init__(f"{server.options.root}:hints", tells=listen, listens=listen, rides=True)
        self._server = server

    async def _publish(self, payloads: Sequence[str]) -> None:
        sent = [self._server.call("PUBLISH", self._channel, payload) for payload in payloads]
        await asyncio.gather(*sent, return_exceptions=True)

    async def _listen(self) -> None:
        wire = await self._server.connect(factory=_Listening)
        assert isinstance(wire, _Listening)
        try:
            await self._listen_on(wire)
        finally:
            wire.abort()

    async def _listen_on(self, wire: _Listening) -> None:
        wire.on_message = self._heard
        await wire.ask(("SUBSCRIBE", self._channel))
        self._connected()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY):
                    await wire.ended.wait()
            # A link that was cut silently looks merely quiet. Raises where the connection is closed.
            async with asyncio.timeout(CHECK_TIMEOUT):
                await wire.ask(("PING",))


class _Listening(Wire):
    """A connection in the state of a subscriber: messages come between the answers."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.on_message: Callable[[str], None] = lambda _: None

    def answered(self, value: Any) -> None:
        """Tell of a message; anything else is an answer."""
        if isinstance(value, list) and value and value[0] == "message":
            self.on_message(str(value[2]))
        else:
            super().answered(value)
