"""The watch: one loop per worker that waits for all its calls on the farm.

A hint says that a call has ended; the poll finds the same without it. Each look is one read of the store, however many
calls are out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from headrace.executors.celery.judging import Verdict, Waiting
from headrace.executors.celery.link import Link
from headrace.executors.celery.sight import Sight
from headrace.model.errors import ExecutorCrashedError, ExecutorLostError, FenceLostError, StoreUnavailableError
from headrace.model.farm import BEGUN, ENDED, Begun, Fence, of_attempt, stored_sign
from headrace.ports.job_store import JobStore
from headrace.ports.wire import decode_completion

LOG = logging.getLogger("headrace.celery")

#: Time between looks while calls are out, and while none is.
BUSY_SECONDS, IDLE_SECONDS = 0.5, 1.0
#: Hints that come one after another lead to one read, where more calls than a few are out.
GATHER_SECONDS, FEW = 0.002, 8


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
    """Waits for calls."""

    def __init__(self, link: Link, jobs: JobStore, sight: Sight, send: Callable[[Fence, str], None]) -> None:
        self._link, self._jobs, self._sight, self._send = link, jobs, sight, send
        self._out: dict[Fence, Out] = {}
        self._hinted: set[Fence] = set()
        self._woken = asyncio.Event()

    # What the executor asks

    def add(self, fence: Fence, queue: str, timeout: float) -> Out:
        """Wait for a call that has just been sent, and may take so many seconds once it was begun."""
        out = self._out[fence] = Out(fence, Waiting(queue, _now(), timeout))
        self._sight.out[queue] += 1
        return out

    def remove(self, fence: Fence) -> None:
        """Wait for it no more."""
        out = self._out.pop(fence)
        self._sight.out[out.waiting.queue] -= 1

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
        """Read what has begun and ended, then judge the rest by who was alive before that."""
        roll, out = self._sight.roll, list(self._out.values())
        begun = await self._read(out)
        now = _now()
        for one in out:
            if not one.ended.done():
                await self._act(one, one.waiting.judge(begun.get(one.fence), roll, now), begun.get(one.fence))

    async def _read(self, out: Collection[Out]) -> dict[Fence, Begun]:
        """End the calls whose end is stored; return who has begun the others."""
        wanted = [(one.fence.job, name) for one in out for name in (BEGUN, ENDED)]
        stored = await self._jobs.read_steps(wanted) if wanted else {}
        begun: dict[Fence, Begun] = {}
        for one in out:
            job = one.fence.job
            try:
                if (began := self._take(one, stored.get((job, BEGUN)), stored.get((job, ENDED)))) is not None:
                    begun[one.fence] = began
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                LOG.exception("what the Celery farm kept of job %s cannot be read", job)
                # The trouble of this call alone. It counts as a crash, which does not run again for ever.
                one.settle(ExecutorCrashedError(f"what the Celery worker stored of it cannot be read: {error!r}"))
        return begun

    def _take(self, one: Out, begun: str | None, ended: str | None) -> Begun | None:
        """End a call whose end is stored, or which this worker gave up; return who has begun it otherwise."""
        if (end := of_attempt(ended, one.fence.attempt)) is not None:
            one.settle(decode_completion(end))
            return None
        if (kept := of_attempt(begun, one.fence.attempt)) is None:
            return None
        if (found := Begun.of(kept)).sign != self._sight.id:
            return found
        one.settle(ExecutorLostError("no Celery worker began the job"))
        return None

    async def _act(self, one: Out, verdict: Verdict, begun: Begun | None) -> None:
        match verdict:
            case Verdict.SEND_AGAIN:
                LOG.info("job %s was not begun on the Celery farm: its message is sent again", one.fence.job)
                self._send(one.fence, one.waiting.queue)
            case Verdict.GIVE_UP:
                await self._give_up(one)
            case Verdict.WORKER_GONE:
                one.settle(ExecutorLostError("the Celery worker that ran the job is gone", begun=True))
            case Verdict.OVERDUE:
                message = "the Celery worker that ran the job has not ended it long after its timeout"
                one.settle(ExecutorLostError(message, begun=True))
            case Verdict.CRASHED:
                assert begun is not None
                progressed = begun.progressed(await self._jobs.load_steps(one.fence.job))
                message = "the Celery child process that ran the attempt died; it may have run out of memory"
                one.settle(ExecutorCrashedError(message, progressed=progressed))
            case Verdict.WAIT:
                pass

    async def _give_up(self, one: Out) -> None:
        """Sign for a call that nobody began, so that nobody can any more; who came first is found by the next look.

        The sign is the same however often it is written: one whose answer was lost is found as ours.
        """
        fence = one.fence
        sign = Begun("", 0, 0.0, self._sight.id, fence.attempt)
        try:
            stored = await self._jobs.save_step(
                fence.job, attempt=fence.attempt, session=fence.session, name=BEGUN, value=sign.text
            )
        except FenceLostError:
            one.settle(ExecutorLostError("the attempt does not own its job any more", begun=True))
            return
        if stored_sign(stored) == sign.sign:
            one.settle(ExecutorLostError("no Celery worker began the job"))


def _now() -> float:
    return asyncio.get_running_loop().time()
