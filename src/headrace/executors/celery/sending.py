"""Sending messages: Celery's producer blocks, so a thread has it, and takes all that wait at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from celery import Celery

from headrace.daemon_threads import DaemonThreads
from headrace.executors.celery.site import CALL, PATIENCE, CelerySite
from headrace.model.farm import Fence

LOG = logging.getLogger("headrace.celery")

Message = tuple[Fence, str]


class Sender:
    """Sends messages in the order in which they come. One that cannot be sent is dropped: the watch sends it again."""

    def __init__(self, site: CelerySite, celery: Celery) -> None:
        self._site, self._celery = site, celery
        self._threads = DaemonThreads()
        self._waiting: list[Message] = []
        self._woken = asyncio.Event()
        self._connection: Any = None
        self._away = False

    def send(self, fence: Fence, queue: str) -> None:
        """Send a message soon."""
        self._waiting.append((fence, queue))
        self._woken.set()

    async def run(self) -> None:
        """Send what comes until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            messages, self._waiting = self._waiting, []
            try:
                await self._threads.run(partial(self._publish, messages))
                self._away = False
            except Exception as error:
                if not self._away:
                    # Without its text: an address with its password may stand in it.
                    LOG.warning("messages cannot be sent to the Celery broker: %s", type(error).__name__)
                self._away = True

    def _publish(self, messages: Sequence[Message]) -> None:
        try:
            if self._connection is None:
                # A broker that accepts and never answers must not keep the thread for ever.
                options = {"socket_timeout": PATIENCE}
                self._connection = self._celery.connection_for_write(self._site.url, transport_options=options)
            producer = self._celery.amqp.Producer(self._connection, auto_declare=False)
            for fence, queue in messages:
                self._celery.send_task(
                    CALL,
                    args=[str(fence.job), fence.attempt, str(fence.session)],
                    task_id=f"{fence.job}.{fence.attempt}",
                    queue=self._site.celery_queue(queue),
                    declare=[],
                    producer=producer,
                )
        except BaseException:
            self._hang_up()
            raise

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.release()

    async def close(self) -> None:
        """Hang up. What was not sent is not sent any more."""
        await self._threads.run(self._hang_up)
        self._threads.end()
