"""The scale signal of queues, from what a store knows: what command line, HTTP service and metrics tell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.engine import levels
from headrace.engine.operations import find_queue
from headrace.engine.queries import to_json
from headrace.engine.scale_binding import Callers
from headrace.engine.slot_exposition import slots_of
from headrace.model.elastic import Eligible
from headrace.model.job import JobState
from headrace.model.scale_values import Load, ScaleSignal, ScalingRule
from headrace.model.scaling import scale
from headrace.model.session import SessionView
from headrace.model.stats import QueueStats
from headrace.ports.inspect import Inspect
from headrace.ports.limiter import Limiter
from headrace.ports.stores import Stores

#: Eligible jobs are counted to here, over all workers; more are taken from the figures of the queue.
COUNTED = 10_000
#: Of the jobs that ended, so many of those made last: their run times are looked at.
TIMED = 20


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    """What settings and code say of queues."""

    rule: Callable[[str], ScalingRule]
    #: slots of a worker of a queue that has none yet
    slots: Callable[[str], int]
    #: whether the handlers of a queue run on a farm
    farmed: Callable[[str], bool]
    #: queues that are told of although the store has nothing of them yet
    known: Collection[str] = ()


async def scale_signals(
    stores: Stores, limiter: Limiter, options: ScaleOptions, *, queue: str | None = None,
    stats: Sequence[QueueStats] | None = None,
) -> list[ScaleSignal]:  # fmt: skip
    """Return how many workers each queue wants, by name, or one. Raises NotFoundError, StoreUnavailableError.

    Costs the figures of queues, unless `stats` has them, and for each queue a count of at most `COUNTED` jobs and a
    look at `TIMED` jobs.
    """
    found = {one.name: one for one in (await stores.inspect.queue_stats() if stats is None else stats)}
    names = sorted({*found, *options.known}) if queue is None else [queue]
    if queue is not None and queue not in {*found, *options.known}:
        await find_queue(stores.inspect, queue)
    sessions = await stores.inspect.list_sessions()
    look = _Look(stores, limiter, options, sessions, Callers(sessions, await stores.budgets.list_budgets()))
    return [await look.signal(name, found.get(name)) for name in names]


@dataclass(frozen=True, slots=True)
class _Look:
    """What is read once for all queues."""

    stores: Stores
    limiter: Limiter
    options: ScaleOptions
    sessions: list[SessionView]
    callers: Callers

    async def signal(self, name: str, stats: QueueStats | None) -> ScaleSignal:
        serving = [session for session in self.sessions if session.alive and name in session.queues]
        most = -(-COUNTED // max(1, len(serving)))
        eligible = await levels.eligible_jobs(self.stores, self.limiter, name, most)
        load = Load(
            eligible=_eligible(eligible, stats),
            running=0 if stats is None else stats.running,
            waiting=0 if stats is None else stats.ready + stats.scheduled + stats.parked,
            live_workers=len(serving),
            slots=self._slots(name, serving),
            seconds_per_job=await seconds_per_job(self.stores.inspect, name),
            room=_least(eligible.room, eligible.units),
            held_by=eligible.held_by,
            binding=self.callers.binding(name, eligible, farmed=self.options.farmed(name)),
            paused=stats is not None and stats.paused,
        )
        return scale(name, self.options.rule(name), load)

    def _slots(self, name: str, serving: list[SessionView]) -> float:
        """Return the slots of one worker: on average what they may grow to, before another one is wanted."""
        if not serving:
            return self.options.slots(name)
        slots = sum(int(slots_of(session)[name]["max"]) for session in serving)
        return max(1.0, slots / len(serving))


def _eligible(eligible: Eligible, stats: QueueStats | None) -> int:
    """Return the eligible backlog; where counting ended before it did, all that is ready if nothing holds any."""
    if eligible.jobs < COUNTED or stats is None or eligible.held_by is not None:
        return eligible.jobs
    return max(eligible.jobs, stats.ready)


def _least(*rooms: int | None) -> int | None:
    return min((room for room in rooms if room is not None), default=None)


async def seconds_per_job(inspect: Inspect, queue: str) -> float | None:
    """Return how long jobs of a queue ran, on average: of those that ended, the ones made last; None: none ended.

    Of jobs that succeeded; where none has, of those that failed. Finding them costs no sort, but where jobs of a queue
    take very different times the short ones are among them first: a backlog of long ones then wants more than is told.
    """
    for state in (JobState.SUCCEEDED, JobState.FAILED):
        jobs = await inspect.list_jobs(state=state, queue=queue, limit=TIMED, brief=True)
        times = [
            (job.finished_at - job.started_at).total_seconds() for job in jobs if job.started_at and job.finished_at
        ]
        if times:
            return max(0.0, sum(times) / len(times))
    return None


def scale_document(signal: ScaleSignal) -> dict[str, Any]:
    """Return a signal as one document."""
    load, rule = signal.load, signal.rule
    return {
        "queue": signal.queue,
        "wanted_workers": signal.wanted_workers,
        "reason": signal.reason.value,
        "sentence": signal.sentence,
        "eligible": load.eligible,
        "running": load.running,
        "waiting": load.waiting,
        "live_workers": load.live_workers,
        "slots_per_worker": round(load.slots, 3),
        "needed_slots": signal.needed_slots,
        "seconds_per_job": None if load.seconds_per_job is None else round(load.seconds_per_job, 6),
        "room": load.room,
        "held_by": load.held_by,
        "binding": to_json(load.binding),
        "paused": load.paused,
        "min_workers": rule.min_workers,
        "max_workers": rule.max_workers,
        "drain_within": to_json(rule.drain_within),
    }
