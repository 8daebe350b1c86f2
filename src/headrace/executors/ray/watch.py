"""The watch: one loop per worker over its calls that take long to begin, to end, or to heed their cancelling."""

from __future__ import annotations

import asyncio
import logging

from headrace.executors.ray.book import Book, Out
from headrace.executors.ray.cluster import Cluster
from headrace.executors.ray.signing import Signer
from headrace.model.errors import StoreUnavailableError
from headrace.model.farm import OVERDUE_SECONDS

LOG = logging.getLogger("headrace.ray")

LOOK_SECONDS = 0.5
#: From then on it is read whether a call has begun: nothing more is claimed while one has not.
SLOW_SECONDS = 1.0
#: A call that nobody has begun for so long is given up.
LOST_SECONDS = 30.0
#: A process that does not heed its interruption for so long is ended; it ends itself a little sooner.
FORCE_SECONDS = 5.0


class Watch:
    """Watches the calls that are out."""

    def __init__(self, cluster: Cluster, book: Book, signer: Signer) -> None:
        self._cluster, self._book, self._signer = cluster, book, signer
        #: Whether a call has been waiting for its beginning for longer than it should.
        self.waits = False

    def stop(self, out: Out) -> None:
        """Interrupt a call that nobody waits for any more."""
        if out.ref is not None and out.cancelled_at is None:
            out.cancelled_at = _now()
            self._cancel(out, force=False)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except StoreUnavailableError:
                continue
            except Exception:
                LOG.exception("the watch of the Ray cluster goes on after an error")

    async def _look(self) -> None:
        now = _now()
        for out in self._book:
            if out.cancelled_at is not None and not out.forced and now - out.cancelled_at >= FORCE_SECONDS:
                out.forced = True
                self._cancel(out, force=True)
        slow = {
            out.fence: out for out in self._book
            if out.begun_at is None and out.cancelled_at is None and now - out.sent_at >= SLOW_SECONDS
        }  # fmt: skip
        for fence in await self._signer.seen(slow):
            slow.pop(fence).begun_at = now
        self.waits = bool(slow)
        for out in self._book:
            await self._judge(out, now)

    async def _judge(self, out: Out, now: float) -> None:
        if out.ended.done() or out.cancelled_at is not None:
            return
        if out.begun_at is None:
            late, why = now - out.sent_at >= LOST_SECONDS, "no Ray process began the job"
        else:
            late = now - out.begun_at >= out.timeout + OVERDUE_SECONDS
            why = "the Ray process that ran the job has not ended it long after its timeout"
        if not late:
            return
        error = await self._signer.lost(out.fence, why)
        if error.begun and out.begun_at is None:
            # It began just now.
            out.begun_at = now
            return
        self.stop(out)
        out.settle(error)

    def _cancel(self, out: Out, *, force: bool) -> None:
        try:
            self._cluster.cancel(out.ref, force=force)
        except Exception as error:
            LOG.info("Ray does not cancel job %s: %r", out.fence.job, error)


def _now() -> float:
    return asyncio.get_running_loop().time()
