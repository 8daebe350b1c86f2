"""The beat of a worker of the farm: a thread that says that it is alive, and whether it takes messages."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from headrace.executors.celery.presence import BEAT_SECONDS, forget, say_worker
from headrace.executors.celery.site import PATIENCE, CelerySite
from headrace.model.farm import FarmWorker

LOG = logging.getLogger("headrace.celery")

#: A worker whose consumer takes nothing for so long while the broker answers is of no use: it ends. Longer than Celery
#: waits between two tries to connect.
HOPELESS_SECONDS = 90.0


@dataclass(slots=True)
class Pulse:
    """Shows that the consumer takes messages: it notes it about every second."""

    _at: float = field(default_factory=time.monotonic)

    def note(self) -> None:
        """Note that it does."""
        self._at = time.monotonic()

    @property
    def beats(self) -> bool:
        """Whether it did a moment ago."""
        return time.monotonic() - self._at < PATIENCE


@dataclass(slots=True)
class Beat:
    """Says every two seconds that the worker is alive, also while it waits for its last jobs."""

    site: CelerySite
    said: FarmWorker
    pids: Callable[[], Collection[int]]
    pulse: Pulse
    #: Since when the broker hears this, and the consumer takes nothing.
    _idle_since: float | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; again is nothing: Celery says that it is ready after each new connection."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name="headrace-farm-beat", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Say from now on that nothing is begun any more."""
        self.said = replace(self.said, closing=True)

    def stop(self) -> None:
        """Say that the worker is gone."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        client: Any = Redis.from_url(
            self.site.url, socket_timeout=BEAT_SECONDS, socket_connect_timeout=BEAT_SECONDS, decode_responses=True
        )
        with client:
            while True:
                with contextlib.suppress(RedisError, OSError):
                    self._say(client)
                if self._stopped.wait(BEAT_SECONDS):
                    break
            with contextlib.suppress(RedisError, OSError), client.pipeline(transaction=False) as pipe:
                forget(pipe, self.site, "worker", self.said.id)
                pipe.execute()

    def _say(self, client: Any) -> None:
        # The time first: a process that is begun after it may be missing.
        at, taking = time.time(), self.pulse.beats
        said = replace(self.said, pids=frozenset(self.pids()), at=at, closing=self.said.closing or not taking)
        with client.pipeline(transaction=False) as pipe:
            say_worker(pipe, self.site, said)
            pipe.execute()
        if taking or self.said.closing:
            self._idle_since = None
            return
        # The broker has just answered: if the consumer does not come back to it now, it never will.
        now = time.monotonic()
        self._idle_since = now if self._idle_since is None else self._idle_since
        if now - self._idle_since > HOPELESS_SECONDS:
            LOG.error("the worker ends: the broker answers, and for %d s no message was taken", HOPELESS_SECONDS)
            logging.shutdown()
            os._exit(1)
