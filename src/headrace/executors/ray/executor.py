"""The executor: sends calls to the cluster as its driver, and waits for what they answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from headrace.daemon_threads import DaemonThreads
from headrace.executors.ray.book import Book, Out
from headrace.executors.ray.cluster import Cluster
from headrace.executors.ray.errors import Fate, fate_of
from headrace.executors.ray.fitting import Amounts
from headrace.executors.ray.sight import Sight, first_line
from headrace.executors.ray.signing import Signer
from headrace.executors.ray.site import RaySite
from headrace.executors.ray.wanting import Wants
from headrace.executors.ray.watch import Watch
from headrace.model.errors import ExecutorLostError, HeadraceError, StoreUnavailableError
from headrace.model.farm import Fence
from headrace.model.job import Completion
from headrace.ports.executor import Call
from headrace.ports.job_store import JobStore
from headrace.ports.wire import decode_completion

T = TypeVar("T")

LOG = logging.getLogger("headrace.ray")

#: A call that was stopped there, since its attempt does not own its job or is to be cancelled, is so long no matter
#: of this worker's: it hears of that by itself.
STOPPED_SECONDS = 15.0
#: A store that is away is asked again after so long what is kept of a call, until the lease of its job ends.
STORE_SECONDS = 0.5
#: What connects for longer than this does not keep a worker from its beginning.
BEGIN_SECONDS = 15.0
#: A cluster that is away must not keep a worker from its end.
LEAVE_SECONDS = 10.0


@dataclass(slots=True)
class _Parts:
    """What works while the executor is open."""

    cluster: Cluster
    sight: Sight
    watch: Watch
    wants: Wants
    tasks: list[asyncio.Task[None]]


class RayExecutor:
    """Runs the jobs of some queues on a Ray cluster. It begins at the latest with the first question about its room."""

    def __init__(
        self, site: RaySite, jobs: JobStore, serves: Callable[[str], bool], amounts: Callable[[str], Amounts]
    ) -> None:
        """`amounts`: what a job of a queue takes, by Ray's names of resources."""
        self._site, self._serves, self._amounts = site, serves, amounts
        self._signer = Signer(jobs)
        self._threads = DaemonThreads()
        self._book = Book()
        self._parts: _Parts | None = None

    def serves(self, queue: str) -> bool:
        """Whether the jobs of a queue run there."""
        return self._serves(queue)

    async def begin(self) -> None:
        """Connect, or find the cluster away: Ray lets nothing of a process run meanwhile, not even a heartbeat."""
        tried = self._open().sight.tried
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEGIN_SECONDS):
                await tried.wait()

    def room(self, queue: str, taken: Mapping[str, int]) -> int:
        """Return how many more jobs of a queue the cluster can start for this worker."""
        parts = self._open()
        if parts.watch.waits:
            # What was sent has found no place: what was seen is not so.
            return 0
        return parts.sight.room(queue, taken)

    def want(self, queue: str, slots: int) -> None:
        """Ask the cluster's autoscaler for room for so many jobs of a queue at once; 0 asks for none."""
        self._open().wants.set(queue, slots)

    async def run(self, call: Call) -> Any:
        """Send a call and return its Completion.

        Raises ExecutorCrashedError when the process that ran it died, ExecutorLostError when its node is gone, nobody
        began it, or nobody ended it long after its time.
        """
        parts, fence = self._open(), Fence(call.job.id, call.job.attempt, call.session)
        out = Out(fence, call.job.queue, call.timeout, asyncio.get_running_loop().time())
        self._send(parts, out)
        try:
            ending = await out.ended
            if isinstance(ending, BaseException):
                return await self._explained(parts, out, ending)
            return await self._answer(parts, out, ending)
        except asyncio.CancelledError:
            parts.watch.stop(out)
            raise

    def _send(self, parts: _Parts, out: Out) -> None:
        loop = asyncio.get_running_loop()
        try:
            out.ref, future = parts.cluster.send(parts.sight.need(out.queue), out.fence.word)
        except Exception as error:
            if isinstance(error, ValueError | TypeError):
                parts.sight.rest()  # of what it takes; others are not to lose theirs for it
            else:
                parts.sight.lose(first_line(error))
            out.settle(ExecutorLostError(f"Ray does not take the job: {first_line(error)}"))
            return
        self._book.add(out)

        def over(ended: Future[bytes]) -> None:
            self._book.remove(out)
            out.settle(ended.exception() or ended.result())

        def tell(ended: Future[bytes]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(over, ended)

        future.add_done_callback(tell)

    async def _answer(self, parts: _Parts, out: Out, answer: bytes) -> Any:
        """Return the completion that a process has answered with. Raises ExecutorLostError."""
        message = json.loads(answer)
        if "completion" in message:
            return decode_completion(message)
        if why := message.get("not_begun"):
            parts.sight.rest()
            raise ExecutorLostError(f"no Ray process began the job: {why}")
        await asyncio.sleep(STOPPED_SECONDS)
        raise await _kept(lambda: self._signer.lost(out.fence, "the attempt does not own its job any more"))

    async def _explained(self, parts: _Parts, out: Out, error: BaseException) -> Completion:
        """Return how a call ended that gave no answer, where that was kept. Raises what is to be said of it if not."""
        if isinstance(error, HeadraceError):
            raise error
        fate, why = fate_of(error)
        if fate is Fate.CRASHED:
            if (completion := await _kept(lambda: self._signer.end(out.fence))) is not None:
                return completion
            died = await _kept(lambda: self._signer.crashed(out.fence, why))
            if isinstance(died, ExecutorLostError):
                parts.sight.rest()  # it died of the app that it opened
            raise died
        if fate is Fate.UNFIT:
            parts.sight.rest()
        elif parts.sight.here and parts.sight.here in str(error):
            parts.sight.lose("the node of this worker is gone")
        raise await _kept(lambda: self._signer.lost(out.fence, why))

    def _open(self) -> _Parts:
        if self._parts is None:
            cluster = Cluster(self._site)
            sight = Sight(cluster, self._book, self._amounts, self._threads)
            watch = Watch(cluster, self._book, self._signer)
            wants = Wants(cluster, sight, self._threads)
            work = {"see": sight.run, "watch": watch.run, "want": wants.run}
            tasks = [asyncio.create_task(run(), name=f"headrace-ray-{name}") for name, run in work.items()]
            self._parts = _Parts(cluster, sight, watch, wants, tasks)
        return self._parts

    async def close(self) -> None:
        """Leave the cluster; a later call begins anew."""
        parts, self._parts = self._parts, None
        if parts is None:
            return
        for task in parts.tasks:
            task.cancel()
        await asyncio.gather(*parts.tasks, return_exceptions=True)
        await parts.wants.end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._threads.run(parts.cluster.disconnect)
        self._threads.end()


async def _kept(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask the store until it answers; whose job is lost meanwhile is cancelled here."""
    told = False
    while True:
        try:
            return await ask()
        except StoreUnavailableError as error:
            if not told:
                LOG.warning("how a call ended is not known until the store answers: %s", first_line(error))
            told = True
            await asyncio.sleep(STORE_SECONDS)
