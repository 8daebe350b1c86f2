"""The claimer: fills the free slots of one queue.

The poll (± jitter) is the truth and has its own timer; a hint only makes the next claim come sooner. While there is a
backlog, acks that are sent anyway take a claim along (`offer`, `settle`), which spares a round trip and a commit.
Jobs of a queue with a gate come through it, one call at a time: the gate says when to look again (`engine/supply.py`).
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from headrace.engine.outage import Outage
from headrace.engine.supply import Admit, Supplied, Supply
from headrace.engine.telemetry import Telemetry
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, ClaimedJob, Place
from headrace.ports.job_store import JobStore

LOG = logging.getLogger("headrace.claimer")

#: With a backlog, claims wait this long for more slots, so that each claims many jobs.
REFILL_SECONDS = 0.002
#: With a backlog and an ack about to leave, a claim waits this long to go along with it.
ALONG_SECONDS = 0.01
#: With a backlog, claims start where the last one ended for so long; then one looks from the beginning again.
ONWARD_SECONDS = 0.02
#: After looks through a gate that brought nothing, hints lead to one at most so often: a flood of enqueues behind a
#: full cap must not become a flood of looks.
VAIN_SECONDS, VAIN_LOOKS = 0.01, 2
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
        acks_waiting: Callable[[], int],
        admit: Admit,
        gate_expected: bool = False,
        on_more: Callable[[], None] = lambda: None,
        room: Callable[[], int] | None = None,
    ) -> None:
        """`claim` names session and queue; its limit is the number of slots to begin with.

        `known` returns id and attempt of what runs here or waits for its ack, `acks_waiting` how many wait. `admit`
        is the store's gate, `gate_expected` says that the code declares one for the queue; `on_more` is called
        when others could start what there is no slot for here. `room`: how many more jobs can start where they run,
        if that is elsewhere.
        """
        self._jobs = jobs
        self._poll_interval = poll_interval.total_seconds()
        self._supply = Supply(jobs, admit, poll_seconds=self._poll_interval, gate_expected=gate_expected)
        self._on_more = on_more
        self._whole_claim = claim
        self._free = claim.limit
        self._room = room
        self._most_at_once = batch_size
        self._telemetry = telemetry
        self._on_claimed = on_claimed
        self._known = known
        #: A claim failed without an answer; it may take jobs, now or later: when to look for them.
        self._looks: list[float] = []
        self._acks_waiting = acks_waiting
        #: The last claim got all it asked for: there is surely more.
        self._backlog = False
        #: When the gate will let more through, by the event loop's clock.
        self._opens_at = math.inf
        #: How many looks through the gate brought nothing, one after another, and when the last one was answered.
        self._vain, self._answered_at = 0, -math.inf
        #: Jobs ended that had come through the gate, since the last look.
        self._room_came = False
        #: Whether a claim is on its way alone; it has reserved its slots.
        self._claiming = False
        #: Where the last claim ended, while it may be gone on from, and when one looked from the beginning.
        self._place: Place | None = None
        self._looked_at = -math.inf
        #: Whether a claim is on its way with an ack.
        self._along = False
        #: What such a claim brought, until the event loop has sent the next ack.
        self._unbegun: deque[ClaimedJob] = deque()
        self._came_back = asyncio.Event()
        self._hinted = asyncio.Event()
        self._freed = asyncio.Event()
        self._stopping = False
        self._outage = Outage(LOG, f"cannot claim from {self.queue}")
        self._task: asyncio.Task[None] | None = None

    @property
    def queue(self) -> str:
        """The queue it claims from."""
        return self._whole_claim.queue

    @property
    def slots(self) -> int:
        """How many of its jobs may run at once."""
        return self._whole_claim.limit

    @property
    def _batch_size(self) -> int:
        return min(self._most_at_once, self.slots)

    def resize(self, slots: int) -> None:
        """Have so many slots. Where more are taken nothing is claimed until enough of them are released."""
        self._free += slots - self.slots
        self._whole_claim = replace(self._whole_claim, limit=slots)
        self._freed.set()

    @property
    def taken(self) -> int:
        """Slots in use, with those that a claim on its way has reserved."""
        return self.slots - self._free

    @property
    def _open(self) -> int:
        """Slots that may be claimed for: they are free, and so is as much room where the jobs run."""
        return self._free if self._room is None or self._free < 1 else min(self._free, self._room())

    def start(self) -> None:
        """Begin claiming."""
        self._task = asyncio.create_task(self._loop(), name=f"headrace-claimer-{self.queue}")

    def end(self) -> None:
        """Begin no claim any more."""
        self._stopping = True
        for event in (self._hinted, self._freed):
            event.set()

    async def stop(self) -> None:
        """Claim no more; a claim under way is finished first, so that no claimed job is forgotten."""
        self.end()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        while self._along:
            await self._wait(self._came_back, self._poll_interval)
        self._begin_all()

    @property
    def unbegun(self) -> Collection[ClaimedJob]:
        """Jobs that have come and begin in the next turn of the event loop."""
        return self._unbegun

    def hint(self) -> None:
        """Look for jobs now, wherever in the order."""
        # Not by the place: a claim on its way will bring another one.
        self._looked_at = -math.inf
        self._hinted.set()

    def make_room(self) -> None:
        """A job that came through the gate has ended: look now, and tell others of what there is no slot for."""
        if self._stopping or (self._free < 1 and not self._claiming):
            self._on_more()
        else:
            self._room_came = True
            self.hint()

    def release(self) -> None:
        """One slot is free again."""
        self._free += 1
        self._freed.set()

    def look(self) -> None:
        """There may be room again where the jobs run."""
        self._freed.set()

    def offer(self) -> Claim | None:
        """Return a claim for an ack to take along, whose answer `settle` must be given; None where none is wanted."""
        if self._along or self._stopping or self._open < 1 or not self._goes_along:
            return None
        self._along = True
        self._came_back.clear()
        return replace(self._reserve(min(self._open, self._batch_size)), after=self._onward())

    def _onward(self) -> Place | None:
        """Return where to go on: in a deep backlog a store walks past all that has gone to find the first job."""
        now = asyncio.get_running_loop().time()
        if self._place is None or now - self._looked_at >= ONWARD_SECONDS:
            self._looked_at = now
            return None
        return self._place

    @property
    def _goes_along(self) -> bool:
        """Whether claims should go along with acks: a gate needs a call of its own, doubts a look at the store."""
        return self._backlog and not (self._supply.gated or self._must_look)

    def settle(self, claim: Claim, jobs: list[ClaimedJob] | None) -> None:
        """Take what an offered claim brought; None says that it was not answered."""
        self._along = False
        self._came_back.set()
        if jobs is None:
            self._doubt()
            self._free += claim.limit
        else:
            self._count(claim, Supplied(jobs, backlog=len(jobs) == claim.limit > 0))
            # Behind the next ack: the store then works while these jobs begin.
            self._unbegun.extend(jobs)
            asyncio.get_running_loop().call_soon(self._begin_all)
        # For slots that it had reserved and did not fill.
        self._freed.set()

    async def _loop(self) -> None:
        woken_by = "poll"
        while not self._stopping:
            free = await self._free_slots()
            if self._stopping or not free:
                continue
            self._hinted.clear()
            had_backlog = self._backlog
            if await self._claim(free, hinted=woken_by == "hint") and not had_backlog:
                self._telemetry.count(f"headrace.wakeups.{woken_by}")
            if not self._backlog:
                woken_by = "hint" if await self._wait_for_more() else "poll"
                await self._gather_hints()

    async def _wait_for_more(self) -> bool:
        """Wait for a hint, until the gate opens, or for a poll ± 10 %; return whether it was a hint."""
        until_open = self._opens_at - asyncio.get_running_loop().time()
        poll = self._poll_interval * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
        return await self._wait(self._hinted, max(0.0, min(poll, until_open)))

    async def _gather_hints(self) -> None:
        """Let hints that come one after another lead to one look, where the last looks through a gate were in vain."""
        if self._vain >= VAIN_LOOKS and not self._room_came:
            await asyncio.sleep(max(0.0, self._answered_at + VAIN_SECONDS - asyncio.get_running_loop().time()))

    async def _free_slots(self) -> int:
        """Wait for a free slot; with a backlog a moment more, for an ack to take the claim along or for more slots."""
        if self._open < 1:
            self._freed.clear()
            await self._wait(self._freed, self._poll_interval)
        if self._backlog and 0 < self._free < self._batch_size // 4:
            await asyncio.sleep(REFILL_SECONDS)
        if self._along or (self._goes_along and self._acks_waiting()):
            self._came_back.clear()
            # What an ack on its way takes is known only with its answer: a look before would begin it a second time.
            if await self._wait(self._came_back, ALONG_SECONDS) or self._along:
                return 0
        return max(0, min(self._open, self._batch_size))

    def _reserve(self, limit: int) -> Claim:
        self._free -= limit
        return replace(self._whole_claim, limit=limit)

    async def _claim(self, limit: int, *, hinted: bool) -> bool:
        """Claim up to `limit` jobs and return whether there were any."""
        claim = self._reserve(0)
        room_came, self._room_came = self._room_came, False
        self._claiming = True
        try:
            if self._must_look:
                await self._recover()
            claim = self._reserve(max(0, min(limit, self._open)))
            supplied = await self._supply.take(claim, hinted=hinted) if claim.limit else Supplied([])
        except Exception as error:
            if isinstance(error, StoreUnavailableError):
                self._outage.note(error)
            else:
                LOG.warning("cannot claim from %s, trying again: %s", self.queue, error, exc_info=True)
            self._doubt()
            self._free += claim.limit
            return False
        finally:
            self._claiming = False
        self._begin(claim, supplied)
        if self._backlog and self._free < 1 and (room_came or self._room_came):
            self._on_more()
        return bool(supplied.jobs)

    @property
    def _must_look(self) -> bool:
        """Whether it is time to look for jobs whose claim was not answered; none goes along until that is done."""
        return bool(self._looks) and self._looks[0] <= asyncio.get_running_loop().time()

    def _doubt(self) -> None:
        self._backlog = False
        now = asyncio.get_running_loop().time()
        self._looks = [now + seconds for seconds in LOOK_AFTER_SECONDS]

    async def _recover(self) -> None:
        """Begin what a claim took whose answer was lost: no sweep would find jobs of a session that lives.

        What ran here before the read or after it is known, even if it ends meanwhile.
        """
        asked_at, before = asyncio.get_running_loop().time(), self._here()
        held = await self._jobs.claimed_jobs(self._whole_claim.session, queue=self.queue)
        known = before | self._here()
        self._looks = [look for look in self._looks if look > asked_at]
        lost = [job for job in held if (job.id, job.attempt) not in known]
        if lost:
            LOG.warning("found %d jobs of %s whose claim was not answered", len(lost), self.queue)
            self._begin(self._reserve(len(lost)), Supplied(lost))

    def _here(self) -> set[tuple[UUID, int]]:
        return self._known() | {(job.id, job.attempt) for job in self._unbegun}

    def _begin(self, claim: Claim, supplied: Supplied) -> None:
        """Start what a claim brought."""
        self._count(claim, supplied)
        for job in supplied.jobs:
            self._on_claimed(job)

    def _begin_all(self) -> None:
        while self._unbegun:
            self._on_claimed(self._unbegun.popleft())

    def _count(self, claim: Claim, supplied: Supplied) -> None:
        """Take note of what a claim brought; it had reserved its slots."""
        jobs = supplied.jobs
        self._free += claim.limit - len(jobs)
        self._backlog = supplied.backlog
        self._answered_at = asyncio.get_running_loop().time()
        self._vain = 0 if jobs or not self._supply.gated else self._vain + 1
        self._opens_at = math.inf if supplied.look_in is None else self._answered_at + supplied.look_in
        self._place = jobs[-1].place if self._backlog else None
        self._telemetry.count("headrace.jobs.claim", len(jobs))

    async def _wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for `event`, at most `seconds`; return whether it came."""
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True
