"""Acks: one statement for all completions that ended together, which takes a claim along where one is wanted.

Nothing waits for a clock: a lone completion is sent at once, and while one statement is under way the next ones gather,
so that statements grow with the load by themselves.

Not guaranteed: that an ack arrives. A completion whose statement failed is sent again until the session ends; then it
is dropped, the job is rescued, and the handler runs again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from headrace.engine.attempt import describe
from headrace.engine.closing import close_batches
from headrace.engine.outage import Outage
from headrace.engine.telemetry import Telemetry
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, ClaimedJob, Completion, JobState
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.acks")

MAX_STATEMENT = 500
RETRY_SECONDS = 0.2


class ClaimsAlong(Protocol):
    """Claims that go along with acks."""

    def offer(self) -> Claim | None:
        """Return a claim to take along, whose answer `settle` is given; None where none is wanted."""
        ...

    def settle(self, claim: Claim, jobs: list[ClaimedJob] | None) -> None:
        """Take what the claim brought; None says that it was not answered."""
        ...


class Acks:
    """Sends completions of one session in order of their ending."""

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self,
        stores: Stores,
        session: UUID,
        telemetry: Telemetry,
        *,
        claims: ClaimsAlong,
        running_batches: Callable[[], set[UUID | None]],
        on_sent: Callable[[list[Completion], list[Completion]], None],
    ) -> None:
        """`on_sent` is given what was sent, and what of it the store is known to have accepted."""
        self._stores = stores
        self._session = session
        self._telemetry = telemetry
        self._claims = claims
        self._running_batches = running_batches
        self._on_sent = on_sent
        self._pending: list[Completion] = []
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self._to_close: set[UUID] = set()
        self._closer: asyncio.Task[None] | None = None
        self._outage = Outage(LOG, "finished jobs cannot be recorded")
        self._claim_trouble = Outage(LOG, "finished jobs are recorded without the claim that went along")
        self._close_outage = Outage(LOG, "batches cannot be closed")

    def start(self) -> None:
        """Begin sending."""
        self._task = asyncio.create_task(self._loop(), name="headrace-acks")

    def put(self, completion: Completion) -> None:
        """Send `completion` soon."""
        self._pending.append(completion)
        self._idle.clear()
        self._arrived.set()

    @property
    def unsent(self) -> int:
        """Attempts that ended and are not recorded yet: what a crash now would run again."""
        return len(self._pending)

    @property
    def pending(self) -> set[tuple[UUID, int]]:
        """Job id and attempt of what is not recorded yet."""
        return {(completion.job_id, completion.attempt) for completion in self._pending}

    async def drain(self) -> None:
        """Wait until everything put so far is recorded or refused, and batches it finished are closed."""
        await self._idle.wait()
        if self._closer is not None:
            # Not awaited itself: one that `stop` has cancelled must not cancel who waits here.
            await asyncio.wait([self._closer])

    async def stop(self) -> None:
        """Stop sending; what is pending is dropped (call `drain` first to keep it)."""
        tasks = [task for task in (self._task, self._closer) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _loop(self) -> None:
        while True:
            await self._arrived.wait()
            await self._send(self._pending[:MAX_STATEMENT])
            if not self._pending:
                self._arrived.clear()
                self._idle.set()

    async def _send(self, part: list[Completion]) -> None:
        try:
            accepted = await self._complete(part)
        except Exception as error:
            await self._send_apart(part, error)
            return
        self._telemetry.count("headrace.jobs.complete", len(accepted))
        self._telemetry.count("headrace.jobs.complete.statements")
        await self._sent(part, accepted)

    async def _complete(self, part: list[Completion]) -> list[Completion]:
        """Return the completions that were accepted, however long the store is away.

        After a lost answer the repeat is refused what the first one did: only a first answer tells of late writes.
        """
        answered_first = True
        while True:
            try:
                accepted = _taken(part, await self._exchange(part))
            except StoreUnavailableError as error:
                self._outage.note(error)
                answered_first = False
                await asyncio.sleep(RETRY_SECONDS)
            else:
                refused = len(part) - len(accepted)
                if answered_first and refused:
                    self._telemetry.count("headrace.jobs.refused", refused)
                    LOG.warning("%d late completions were refused: their jobs run elsewhere", refused)
                return accepted

    async def _exchange(self, part: list[Completion]) -> list[UUID]:
        claim = self._claims.offer()
        if claim is None:
            return await self._stores.jobs.complete_jobs(self._session, part)
        claimed = None
        try:
            accepted, claimed = await self._stores.jobs.exchange_jobs(self._session, part, claim)
        except StoreUnavailableError:
            raise
        except Exception as error:
            # Perhaps what cannot be carried out, or read, is the claim: no ending must pay for that.
            self._claim_trouble.note(error)
            return await self._stores.jobs.complete_jobs(self._session, part)
        finally:
            self._claims.settle(claim, claimed)
        return accepted

    async def _send_apart(self, part: list[Completion], error: Exception) -> None:
        """The store refuses something in a statement: only the one job it is fails, with that as its error."""
        if len(part) > 1:
            for completion in part:
                await self._send([completion])
            return
        [refused] = part
        LOG.error("the store does not take the ending of job %s", refused.job_id, exc_info=error)
        failed = Completion(
            refused.job_id, refused.attempt, JobState.FAILED, error=describe(error, with_trace=True), charged=True,
            batch_id=refused.batch_id,
        )  # fmt: skip
        accepted: list[Completion] = []
        try:
            accepted = await self._complete([failed])
        except Exception:
            LOG.exception("nor that it failed: the job stays with this session until the sweeps end it")
        await self._sent([failed], accepted)

    async def _sent(self, part: list[Completion], accepted: list[Completion]) -> None:
        del self._pending[: len(part)]
        self._on_sent(part, accepted)
        await self._after_commit(part)

    async def _after_commit(self, part: list[Completion]) -> None:
        """Send hints, and try to close batches that this statement may have finished.

        Closing is tried after the commit: inside it, two last completions would not see each other. A batch with
        completions still waiting here is left to their statement, and one of which attempts run here to theirs, unless
        something of it did not succeed: that may be more than its policy allows. Every ending counts: the store makes
        a final one of a retry when its job or batch was cancelled meanwhile, or when it was the last crash allowed.
        """
        self._stores.notifier.hint("done")
        ended = {completion.batch_id for completion in part if completion.batch_id is not None}
        if ended:
            others = {completion.batch_id for completion in part if completion.state is not JobState.SUCCEEDED}
            waiting = {completion.batch_id for completion in self._pending}
            self._to_close |= ended - waiting - (self._running_batches() - others)
        if self._to_close and (self._closer is None or self._closer.done()):
            # Beside the acks, which must not wait for it: a batch that broke its policy is settled in the same call.
            self._closer = asyncio.create_task(self._close_all(), name="headrace-close")

    async def _close_all(self) -> None:
        while self._to_close:
            ended, self._to_close = self._to_close, set()
            try:
                closed = await close_batches(self._stores, ended)
            except StoreUnavailableError as error:
                self._close_outage.note(error)
                self._to_close |= ended
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                LOG.exception("could not try to close batches; the aggregator will")
            else:
                self._telemetry.count("headrace.batches.close", len(closed))


def _taken(part: list[Completion], job_ids: list[UUID]) -> list[Completion]:
    """Return the completions of the jobs that the store named; of one that ended here twice, the later attempt's."""
    named = frozenset(job_ids)
    latest = {one.job_id: one for one in sorted(part, key=lambda one: one.attempt)}
    return [one for one in latest.values() if one.job_id in named]
