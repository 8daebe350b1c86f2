"""Who is alive on a farm, and how much room it has: one loop per worker that looks at the broker twice a second.

It is a loop of its own, as a broker that does not answer must not keep anybody from reading the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from redis.exceptions import RedisError

from headrace.executors.celery.judging import Roll
from headrace.executors.celery.link import Link
from headrace.executors.celery.presence import BEAT_SECONDS, forget, look, say_sender
from headrace.model.farm import room

LOG = logging.getLogger("headrace.celery")

LOOK_SECONDS = 0.5
#: One who comes to others that send jobs takes none for so long: they learn of it, and it learns what they hold.
SETTLE_SECONDS = BEAT_SECONDS + 3 * LOOK_SECONDS
#: A queue that nobody serves is worth a word after so long, and again after so long.
SAY_AGAIN_SECONDS = 60.0


class Sight:
    """Knows the workers of the farm, and who else sends jobs there."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.id = uuid4().hex
        self._roll = Roll()
        #: Who sends jobs, with what each has out of which queues, as they said it last.
        self._senders: Mapping[str, Mapping[str, int]] = {}
        #: How many calls this worker has out of each queue that it sends jobs of.
        self.out: Counter[str] = Counter()
        self._said_at = -BEAT_SECONDS
        #: Since when others know that this worker sends jobs of each queue.
        self._known_at: dict[str, float] = {}
        self._unserved: dict[str, float] = {}

    @property
    def roll(self) -> Roll:
        """Who was alive at the last look; it does not change."""
        return replace(self._roll)

    def room(self, queue: str, taken: Mapping[str, int]) -> int:
        """Return how many more jobs of a queue may be claimed, by what was seen last."""
        self._warn(queue)
        if queue not in self._known_at:
            # It is said with the next look that it sends jobs of this one.
            self.out.setdefault(queue, 0)
            self._said_at = -BEAT_SECONDS
            return 0
        rivals = self._senders.keys() - {self.id}
        if rivals and _now() - self._known_at[queue] < SETTLE_SECONDS:
            return 0
        return room(queue, self._roll.workers, {**self._senders, self.id: {**self.out, **taken}}, self.id)

    def _warn(self, queue: str) -> None:
        """Say so once in a while when nobody serves a queue."""
        now = _now()
        if self._roll.serves(queue, now):
            self._unserved.pop(queue, None)
        elif now >= self._unserved.setdefault(queue, now):
            self._unserved[queue] = now + SAY_AGAIN_SECONDS
            LOG.warning(
                "no Celery worker serves queue %s: start one with `headrace celery worker MODULE:app`; its jobs stay "
                "ready meanwhile", queue,
            )  # fmt: skip

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self._see()
            except (RedisError, OSError) as error:
                if self._roll.answers_since is not None:
                    LOG.warning("the Celery broker does not answer (%s): nothing is sent", type(error).__name__)
                # What is said and known of this worker may expire meanwhile.
                self._roll.miss()
                self._known_at.clear()
            except Exception:
                LOG.exception("the sight of the Celery farm goes on after an error")
            await asyncio.sleep(LOOK_SECONDS)

    async def _see(self) -> None:
        if _now() - self._said_at >= BEAT_SECONDS:
            said = dict(self.out)
            async with self._link.client.pipeline(transaction=False) as pipe:
                say_sender(pipe, self._link.site, self.id, said)
                await pipe.execute()
            self._said_at = _now()
            self._known_at = {queue: self._known_at.get(queue, self._said_at) for queue in said}
        # Others are seen after this one was said: of two that come at once one at least sees the other.
        seen = await look(self._link.client, self._link.site)
        self._roll.note(seen.workers, _now())
        self._senders = seen.senders

    async def close(self) -> None:
        """Say that this worker sends nothing any more."""
        try:
            async with self._link.client.pipeline(transaction=False) as pipe:
                forget(pipe, self._link.site, "sender", self.id)
                await pipe.execute()
        except (RedisError, OSError):
            return


def _now() -> float:
    return asyncio.get_running_loop().time()
