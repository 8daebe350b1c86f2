"""The claimer: fills the free slots of one queue.

The poll (± jitter) is the truth and has its own timer; a hint only makes the next claim come sooner.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from headrace.engine.telemetry import Telemetry
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, ClaimedJob
from headrace.ports.job_store import JobStore

LOG = logging.getLogger("headrace.claimer")

#: With a backlog, claims wait this long for more slots, so that each claims many jobs.
REFILL_SECONDS = 0.002
#: When jobs are looked for whose claim was not answered: at once, and again. A claim that waited for a lock, or on its
#: way, may be carried out long after its connection broke.
LOOK_AFTER_SECONDS = (0.0, 1.0, 6.0, 30.0)


class Claimer:
    """Claims jobs of one queue for one session while slots are free."""

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self,
        jobs: JobStore,
        claim: Claim,
        *,
        batch_size: int,
        poll_interval: timedelta,
        telemetry: Telemetry,
        on_claimed: Callable[[ClaimedJob], None],
        known: Callable[[], set[tuple[UUID, int]]],
    ) -> None:
        """`claim` names session, queue and caps; its limit is the number of slots.

        `known` returns id and attempt of what runs here or waits for its ack.
        """
        self._jobs = jobs
        self._whole_claim = claim
        self._free = claim.limit
        self._batch_size = min(batch_size, claim.limit)
        self._poll_interval = poll_interval.total_seconds()
        self._telemetry = telemetry
        self._on_claimed = on_claimed
        self._known = known
        #: A claim failed without an answer; it may take jobs, now or later: when to look for them.
        self._looks: list[float] = []
        self._hinted = asyncio.Event()
        self._freed = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def queue(self) -> str:
        """The queue it claims from."""
        return self._whole_claim.queue

    def start(self) -> None:
        """Begin claiming."""
        self._task = asyncio.create_task(self._loop(), name=f"headrace-claimer-{self.queue}")

    async def stop(self) -> None:
        """Claim no more; a claim under way is finished first, so that no claimed job is forgotten."""
        self._stopping = True
        self._hinted.set()
        self._freed.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def hint(self) -> None:
        """Look for jobs now."""
        self._hinted.set()

    def release(self) -> None:
        """One slot is free again."""
        self._free += 1
        self._freed.set()

    async def _loop(self) -> None:
        backlog, woken_by = False, "poll"
        while not self._stopping:
            free = await self._free_slots(backlog)
            if self._stopping or not free:
                continue
            self._hinted.clear()
            claimed = await self._claim(free)
            if claimed and not backlog:
                self._telemetry.count(f"headrace.wakeups.{woken_by}")
            backlog = claimed == free
            if not backlog:
                woken_by = "hint" if await self._wait(self._hinted, self._poll_interval) else "poll"

    async def _free_slots(self, backlog: bool) -> int:
        """Wait for a free slot; with a backlog a moment more, for a quarter of them."""
        if self._free < 1:
            self._freed.clear()
            await self._wait(self._freed, self._poll_interval)
        if backlog and 0 < self._free < self._batch_size // 4:
            await asyncio.sleep(REFILL_SECONDS)
        return max(0, min(self._free, self._batch_size))

    async def _claim(self, limit: int) -> int:
        try:
            if self._looks and self._looks[0] <= asyncio.get_running_loop().time():
                await self._recover()
                limit = min(limit, self._free)
                if limit < 1:
                    return 0
            jobs = await self._jobs.claim_jobs(replace(self._whole_claim, limit=limit))
        except StoreUnavailableError as error:
            LOG.warning("cannot claim from %s, trying again: %s", self.queue, error)
            self._doubt()
            return 0
        except Exception:
            LOG.exception("cannot claim from %s, trying again", self.queue)
            self._doubt()
            return 0
        self._begin(jobs)
        return len(jobs)

    def _doubt(self) -> None:
        now = asyncio.get_running_loop().time()
        self._looks = [now + seconds for seconds in LOOK_AFTER_SECONDS]

    async def _recover(self) -> None:
        """Begin what a claim took whose answer was lost: no sweep would find jobs of a session that lives.

        What ran here before the read or after it is known, even if it ends meanwhile.
        """
        asked_at, before = asyncio.get_running_loop().time(), self._known()
        held = await self._jobs.claimed_jobs(self._whole_claim.session, queue=self.queue)
        known = before | self._known()
        self._looks = [look for look in self._looks if look > asked_at]
        lost = [job for job in held if (job.id, job.attempt) not in known]
        if lost:
            LOG.warning("found %d jobs of %s whose claim was not answered", len(lost), self.queue)
            self._begin(lost)

    def _begin(self, jobs: list[ClaimedJob]) -> None:
        self._free -= len(jobs)
        self._telemetry.count("headrace.jobs.claim", len(jobs))
        for job in jobs:
            self._on_claimed(job)

    async def _wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for `event`, at most `seconds` ± 10 %; return whether it came."""
        try:
            async with asyncio.timeout(seconds * random.uniform(0.9, 1.1)):  # noqa: S311 - jitter
                await event.wait()
        except TimeoutError:
            return False
        return True
