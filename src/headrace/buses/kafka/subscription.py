"""One member of a group, as the event loop sees it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from headrace.buses.kafka.member import Member
from headrace.buses.kafka.stash import Stash
from headrace.buses.kafka.thread import OwnThread
from headrace.event_settings import EventSettings
from headrace.model.message_log import Partition
from headrace.ports.bus import Delivery, SubscriptionOptions

LOG = logging.getLogger("headrace.events.kafka")

#: The thread is asked anew this often, so that a commit does not wait long behind reading.
_STEP_SECONDS = 0.1
#: Leaving a group may take so long beyond what ends the work; then it is left without a word.
_LEAVE_SECONDS = 10.0


class KafkaSubscription:
    """Guaranteed: what `on_revoked` returned is committed before the partition's next member begins."""

    def __init__(self, events: EventSettings, options: SubscriptionOptions) -> None:
        """Nothing is connected before `open`."""
        self._options, self._stash = options, Stash()
        self._member = Member(events, options.group, self._stash, self._end_work, self._tell_lost)
        self._thread = OwnThread(f"headrace-kafka-{options.group}")
        self._loop = asyncio.get_running_loop()
        self._closed = False

    async def open(self) -> None:
        """Join the group, or leave nothing behind, also when this is cancelled. Raises BusUnavailableError."""
        try:
            await self._thread.do(lambda: self._member.open(self._options.topics))
        except BaseException:
            # What its thread still does comes first.
            self._thread.submit(self._member.close)
            self._thread.end()
            raise

    async def receive(self, *, limit: int, timeout: float) -> list[Delivery]:
        """Return what has come, at most `limit`, or nothing after `timeout` seconds. Raises BusUnavailableError."""
        end = self._loop.time() + timeout
        while not (taken := self._stash.take(limit)):
            seconds = min(_STEP_SECONDS, max(end - self._loop.time(), 0))
            await self._thread.do(partial(self._member.read, limit, seconds))
            if self._loop.time() >= end:
                return self._stash.take(limit)
        return taken

    async def commit(self, offsets: dict[Partition, int]) -> None:
        """Note the next offset to be read of partitions that are its own. Raises BusUnavailableError."""
        await self._thread.do(lambda: self._member.commit(offsets))

    def pause(self, places: Sequence[Partition]) -> None:
        """Receive nothing more of partitions."""
        self._stash.pause(places)

    def resume(self, places: Sequence[Partition]) -> None:
        """Receive from paused partitions again, where it was left."""
        self._stash.resume(places)

    async def close(self) -> None:
        """Leave the group at once; `on_revoked` is awaited first."""
        if self._closed:
            return
        self._closed = True
        try:
            async with asyncio.timeout(self._options.revoke_seconds + _LEAVE_SECONDS):
                await self._thread.do(self._member.close)
        except TimeoutError:
            LOG.warning("group %s was left without a word: no broker answers", self._options.group)
        finally:
            self._thread.end()

    def _end_work(self, places: Sequence[Partition]) -> dict[Partition, int]:
        """For the member's thread: let the event loop end what runs of partitions."""
        future = asyncio.run_coroutine_threadsafe(self._revoke(places), self._loop)
        try:
            return future.result(self._options.revoke_seconds + 1)
        except TimeoutError:
            LOG.warning("what runs of group %s does not end, its messages come again", self._options.group)
        except Exception:
            LOG.exception("ending what runs of group %s failed, its messages come again", self._options.group)
        future.cancel()
        return {}

    async def _revoke(self, places: Sequence[Partition]) -> dict[Partition, int]:
        async with asyncio.timeout(self._options.revoke_seconds):
            return await self._options.on_revoked(places)

    def _tell_lost(self, places: Sequence[Partition]) -> None:
        self._loop.call_soon_threadsafe(self._options.on_lost, places)
