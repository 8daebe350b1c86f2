"""Running verbs in a namespace: all keys of one store, behind one hash tag."""

from __future__ import annotations

from typing import Any, Protocol

from headrace.ports.clock import Clock
from headrace.stores.redis.epoch import Epoch, epoch_key
from headrace.stores.redis.faults import RefusedError
from headrace.stores.redis.rows import micros
from headrace.stores.redis.scripts import load_script
from headrace.stores.redis.wire import Word


class Caller(Protocol):
    """Sends commands to the server."""

    async def call(self, *words: Word, read: bool = False, raw: bool = False) -> Any:
        """Send one command and return its answer; see `connection.Server.call`."""
        ...


class Namespace:
    """The keys `{NAME}:…` under an epoch, None for data that may be thrown away. `clock` replaces the server's."""

    def __init__(self, server: Caller, root: str, epoch: Epoch | None, clock: Clock | None = None) -> None:
        self.root = root
        self._server, self._epoch = server, epoch
        self._clock = clock

    @property
    def epoch(self) -> str:
        """The epoch in force; empty where data may be thrown away."""
        return "" if self._epoch is None else self._epoch.value

    async def run(self, verb: str, /, *words: Word) -> Any:
        """Run the script `scripts/VERB.lua` and return its answer.

        A script that the server does not know, because it was restarted or its scripts were flushed, did nothing: it is
        sent again in full. Raises what `connection.Server.call` does.
        """
        script = load_script(verb)
        now = "" if self._clock is None else str(micros(self._clock.now()))
        # Every script looks for the second key first: without it the data is not what it was.
        keys = [self.root] if self._epoch is None else [self.root, epoch_key(self.root, self._epoch.value)]
        given: tuple[Word, ...] = (len(keys), *keys, now, *words)
        try:
            return await self._server.call("EVALSHA", script.sha, *given, read=script.reads)
        except RefusedError as error:
            if error.word != "NOSCRIPT":
                raise
        return await self._server.call("EVAL", script.text, *given, read=script.reads)
