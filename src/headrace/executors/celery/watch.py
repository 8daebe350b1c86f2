"""The watch: one loop per worker that waits for all its calls on the farm, and sees who is alive there.

A hint says that a call has ended; the poll finds the same without it. Each look is one read of the broker and one of
the store, however many calls are out.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from redis.exceptions import RedisError

from headrace.executors.celery.judging import Roll, Verdict, Waiting
from headrace.executors.celery.link import Link
from headrace.executors.celery.presence import BEAT_SECONDS, forget, look, say_sender
from headrace.model.errors import ExecutorCrashedError, ExecutorLostError, StoreUnavailableError
from headrace.model.farm import Begun, Fence, begun_step, ended_step, room
from headrace.ports.job_store import JobStore
from headrace.ports.wire import decode_completion

LOG = logging.getLogger("headrace.celery")

#: Time between looks while calls are out, and while none is.
BUSY_SECONDS, IDLE_SECONDS = 0.5, 1.0
#: Hints that come one after another lead to one read, where more calls than a few are out.
GATHER_SECONDS, FEW = 0.002, 8
#: A queue that nobody serves is worth a word after so long, and again after so long.
UNSERVED_SECONDS, SAY_AGAIN_SECONDS = 5.0, 60.0


@dataclass(slots=True, eq=False)
class Out:
    """A call that is out."""

    fence: Fence
    waiting: Waiting
    ended: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self, ending: Any) -> None:
        """End it, with a value or an error; the first counts."""
        if self.ended.done():
            return
        if isinstance(ending, BaseException):
            self.ended.set_exception(ending)
        else:
            self.ended.set_result(ending)


class Watch:
    """Waits for calls, and knows the workers of the farm."""

    def __init__(self, link: Link, jobs: JobStore, send: Callable[[Fence, str], None]) -> None:
        self._link, self._jobs, self._send = link, jobs, send
        self._id = uuid4().hex
        self._out: dict[Fence, Out] = {}
        self._hinted: set[Fence] = set()
        self._woken = asyncio.Event()
        self.roll = Roll()
        #: Who else sends jobs of which queues, and itself.
        self._senders: Mapping[str, Collection[str]] = {}
        #: Queues that this worker sends jobs of.
        self._queues: set[str] = set()
        self._said_at = -BEAT_SECONDS
        self._unserved: dict[str, float] = {}

    # What the executor asks

    def add(self, fence: Fence, queue: str, patience: float) -> Out:
        """Wait for a call that has just been sent, for so many seconds at most."""
        out = self._out[fence] = Out(fence, Waiting(queue, _now(), patience))
        return out

    def remove(self, fence: Fence) -> None:
        """Wait for it no more."""
        self._out.pop(fence, None)

    def room(self, queue: str, taken: Mapping[str, int]) -> int:
        """Return how many more jobs of a queue may be claimed, by what was seen last."""
        if queue not in self._queues:
            self._queues.add(queue)
            self._said_at = -BEAT_SECONDS
        self._warn(queue)
        rivals = sorted(one for one, queues in self._senders.items() if queue in queues)
        if self._id not in rivals:
            return 0
        return room(queue, self.roll.workers, taken, place=rivals.index(self._id), of=len(rivals))

    def _warn(self, queue: str) -> None:
        """Say so once in a while when nobody serves a queue."""
        now = _now()
        if self.roll.serves(queue, now):
            self._unserved.pop(queue, None)
        elif now >= self._unserved.setdefault(queue, now):
            self._unserved[queue] = now + SAY_AGAIN_SECONDS
            LOG.warning(
                "no Celery worker serves queue %s: start one with `headrace celery worker MODULE:app`; its jobs stay "
                "ready meanwhile", queue,
            )  # fmt: skip

    # The loop

    async def listen(self) -> None:
        """Hear hints until cancelled."""
        await self._link.hear_ends(self._on_hint)

    def _on_hint(self, fence: Fence) -> None:
        if fence in self._out:
            self._hinted.add(fence)
            self._woken.set()

    async def run(self) -> None:
        """Look, and look sooner when a hint comes, until cancelled."""
        look_at = 0.0
        while True:
            try:
                if _now() >= look_at:
                    await self._look()
                    look_at = _now() + (BUSY_SECONDS if self._out else IDLE_SECONDS)
                await self._wait(look_at)
                await self._collect()
            except StoreUnavailableError:
                look_at = _now() + BUSY_SECONDS  # whose lease keeps the time of all this
                await asyncio.sleep(BUSY_SECONDS)
            except Exception:
                LOG.exception("the watch of the Celery farm goes on after an error")
                await asyncio.sleep(BUSY_SECONDS)

    async def _wait(self, until: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, until - _now())):
                await self._woken.wait()
        except TimeoutError:
            return
        if len(self._out) > FEW:
            await asyncio.sleep(GATHER_SECONDS)

    async def _collect(self) -> None:
        """Read the ends that were hinted."""
        self._woken.clear()
        hinted, self._hinted = self._hinted, set()
        await self._read([self._out[fence] for fence in hinted if fence in self._out])

    async def _look(self) -> None:
        """See who is alive, then read what has begun and ended, then judge the rest."""
        await self._see()
        out = list(self._out.values())
        begun = await self._read(out)
        now = _now()
        for one in out:
            if not one.ended.done():
                await self._act(one, one.waiting.judge(begun.get(one.fence), self.roll, now))

    async def _see(self) -> None:
        try:
            if _now() - self._said_at >= BEAT_SECONDS:
                async with self._link.client.pipeline(transaction=False) as pipe:
                    say_sender(pipe, self._link.site, self._id, self._queues)
                    await pipe.execute()
                self._said_at = _now()
            seen = await look(self._link.client, self._link.site)
        except (RedisError, OSError) as error:
            if self.roll.answers_since is not None:
                LOG.warning("the Celery broker does not answer (%s): nothing is sent", type(error).__name__)
            self.roll.miss()
            self._senders = {}
            return
        self.roll.note(dict(seen.workers), _now())
        self._senders = seen.senders

    async def _read(self, out: Collection[Out]) -> dict[Fence, Begun]:
        """End the calls whose end is stored; return who has begun the others."""
        names = {one.fence: (begun_step(one.fence.attempt), ended_step(one.fence.attempt)) for one in out}
        wanted = [(fence.job, name) for fence, both in names.items() for name in both]
        stored = await self._jobs.read_steps(wanted) if wanted else {}
        begun: dict[Fence, Begun] = {}
        for one in out:
            begins, ends = names[one.fence]
            if (text := stored.get((one.fence.job, ends))) is not None:
                one.settle(decode_completion(json.loads(text)["completion"]))
            elif (text := stored.get((one.fence.job, begins))) is not None:
                begun[one.fence] = Begun.parse(text)
        return begun

    async def _act(self, one: Out, verdict: Verdict) -> None:
        match verdict:
            case Verdict.SEND_AGAIN:
                LOG.info("job %s was not begun on the Celery farm: its message is sent again", one.fence.job)
                self._send(one.fence, one.waiting.queue)
            case Verdict.NEVER_BEGUN:
                one.settle(ExecutorLostError("no Celery worker began the job"))
            case Verdict.WORKER_GONE:
                one.settle(ExecutorLostError("the Celery worker that ran the job is gone", begun=True))
            case Verdict.CRASHED:
                progressed = await self._link.progressed(one.fence)
                message = "the Celery child process that ran the attempt died; it may have run out of memory"
                one.settle(ExecutorCrashedError(message, progressed=progressed))
            case Verdict.WAIT:
                pass

    async def close(self) -> None:
        """Say that this worker sends nothing any more."""
        try:
            async with self._link.client.pipeline(transaction=False) as pipe:
                forget(pipe, self._link.site, "sender", self._id)
                await pipe.execute()
        except (RedisError, OSError):
            return


def _now() -> float:
    return asyncio.get_running_loop().time()
