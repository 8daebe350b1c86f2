"""The worker: shifts, one after another, and the duties that keep the whole system moving."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from headrace.engine.attempts import AttemptFactory
from headrace.engine.declaring import Declaring
from headrace.engine.loops.aggregator import Aggregator
from headrace.engine.loops.backlog_alarm import BacklogAlarm
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.loops.pruner import Pruner
from headrace.engine.loops.rescuer import Rescuer
from headrace.engine.loops.resizer import CountEligible, ElasticOptions, Resizer
from headrace.engine.loops.scheduler import make_scheduler
from headrace.engine.loops.stager import Stager
from headrace.engine.outage import Outage
from headrace.engine.shift import Shift, ShiftOptions
from headrace.engine.supply import Admit
from headrace.engine.telemetry import Telemetry
from headrace.model.errors import StorageResetError, StoreUnavailableError
from headrace.model.ids import uuid7
from headrace.model.schedule import Declaration
from headrace.model.stats import Retention
from headrace.ports.clock import Clock
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.worker")

RESTART_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class DutyOptions:
    """How often the duties run; see `[recovery]` in the settings."""

    check_interval: timedelta = timedelta(seconds=2)
    aggregate_interval: timedelta = timedelta(seconds=10)
    seal_timeout: timedelta = timedelta(hours=1)
    prune_interval: timedelta = timedelta(seconds=60)
    retention: Retention = field(default_factory=Retention)


class Worker:
    """Claims and runs jobs until it is stopped.

    Starting twice and stopping twice are allowed, also stopping without a start, and starting again after a stop.
    """

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self, stores: Stores, factory: AttemptFactory, *, shift: ShiftOptions, duties: DutyOptions, clock: Clock,
        admit: Admit | None = None, end_admitting: Callable[[], Awaitable[None]] | None = None,
        declarations: Sequence[Declaration] = (), loops: Callable[[Leadership], Sequence[Loop]] = lambda _: (),
        elastic: ElasticOptions | None = None, count_eligible: CountEligible | None = None,
    ) -> None:  # fmt: skip
        """`admit` admits jobs with units of a limiter beside the store, and `end_admitting` ends what goes on behind
        that; `count_eligible` counts by it what could start; None: the store counts its own. `loops`: duties beside
        those that any worker has. `elastic`: queues whose slots grow and shrink."""
        self._stores = stores
        self._admit = admit or stores.admission.admit_jobs
        self._end_admitting = end_admitting
        self._factory = factory
        self._shift_options = shift
        self._clock = clock
        self.telemetry = Telemetry()
        self._started = False
        self._shift: Shift | None = None
        #: A shift whose lease is lost, until it has ended.
        self._lost: Shift | None = None
        self._changing: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._outage = Outage(LOG, "cannot begin a new session")
        self._leadership = Leadership(stores, uuid7())
        self._stager = Stager(stores)
        self._loops: list[Loop] = [
            self._leadership,
            self._stager,
            Rescuer(stores, self.telemetry, duties.check_interval),
            Aggregator(
                stores,
                self._leadership,
                interval=duties.aggregate_interval,
                seal_timeout=duties.seal_timeout,
                has_farm=factory.farm is not None,
            ),
            Pruner(stores, self._leadership, duties.retention, duties.prune_interval),
            BacklogAlarm(stores, self._leadership, self.telemetry, hooks=factory.registry.backlog_hooks),
            *loops(self._leadership),
        ]
        self._resizer = Resizer(
            elastic or ElasticOptions(),
            shift.queues,
            count=count_eligible or (lambda queue, most: stores.admission.eligible_jobs(queue, at_most=most)),
            shift=lambda: self._shift,
            want=self._want,
            telemetry=self.telemetry,
        )
        if self._resizer.queues:
            self._loops.append(self._resizer)
        scheduler = make_scheduler(stores, self._leadership, declarations, telemetry=self.telemetry, clock=clock)
        if scheduler is not None:
            self._loops.append(scheduler)
        self._declaring = Declaring(stores, factory.registry, scheduler)

    @property
    def session(self) -> Shift | None:
        """The current shift, or None between two."""
        return self._shift

    async def start(self) -> None:
        """Declare alarms, limits and schedules, listen for hints, and begin the first shift."""
        if self._started:
            return
        self._started = True
        await self._declaring.declare()
        self._unsubscribe = await self._stores.notifier.subscribe(self._on_hint)
        try:
            if self._factory.farm is not None:
                await self._factory.farm.begin()
            await self._begin_shift()
        except BaseException:
            if self._factory.farm is not None:
                await self._factory.farm.close()
            raise
        for loop in self._loops:
            loop.start()

    async def _begin_shift(self) -> None:
        options = replace(self._shift_options, queues=self._resizer.slots)
        shift = Shift(
            self._stores, self._factory, options, admit=self._admit, clock=self._clock,
            telemetry=self.telemetry, on_lost=self._on_lost, on_scheduled=self._stager.wake_in,
        )  # fmt: skip
        await shift.start()
        self._shift = shift

    def _want(self, queue: str, slots: int) -> None:
        """Tell the farm how many jobs of a queue this worker would run there."""
        if self._factory.farm is not None and self._factory.farms_out(queue):
            self._factory.farm.want(queue, slots)

    def _on_hint(self, topic: str) -> None:
        kind, _, queue = topic.partition(":")
        if kind == "queue" and self._shift is not None:
            self._shift.hint(queue)

    def _on_lost(self) -> None:
        # While stopping there is no next shift: the one that stops ends by itself.
        if self._started:
            self._changing = asyncio.create_task(self._change_shift(), name="headrace-change-shift")

    async def _change_shift(self) -> None:
        """End the lost shift and begin another, however long the store is away."""
        self._lost, self._shift = self._shift, None
        if self._lost is not None:
            await self._lost.abandon()
            self._lost = None
        reset = False
        while self._shift is None:
            try:
                # Once more: the store may be an empty one that an operator put in force.
                await self._declaring.declare(again=True)
                await self._begin_shift()
            except Exception as error:
                if isinstance(error, StorageResetError) and not reset:
                    reset = True
                    self.telemetry.count("headrace.store.resets")
                if isinstance(error, StoreUnavailableError):
                    self._outage.note(error)
                else:
                    LOG.warning("cannot begin a new session, trying again: %s", error, exc_info=True)
                await asyncio.sleep(RESTART_SECONDS)

    async def stop(self, grace: timedelta, *, beside: Awaitable[None] | None = None) -> None:
        """Stop claiming; let handlers end within `grace` and release the rest, uncharged.

        `beside`: what ends at the same time, and may use the executors until it has. Raises what either raised, once
        both have ended.
        """
        both = [self._stop(grace), *([] if beside is None else [beside])]
        try:
            ended = await asyncio.gather(*both, return_exceptions=True)
        finally:
            await self._close_executors()
        failed = [error for error in ended if error is not None]
        for error in failed[1:]:
            LOG.warning("more went wrong while the worker stopped: %s", error, exc_info=error)
        if failed:
            raise failed[0]

    async def _stop(self, grace: timedelta) -> None:
        self._started = False
        # At once: ending the loops may take a while.
        if self._shift is not None:
            self._shift.end_claiming()
        for loop in self._loops:
            await loop.stop()
        if self._changing is not None:
            self._changing.cancel()
            await asyncio.gather(self._changing, return_exceptions=True)
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        # First, so that another process leads while this one waits for its handlers.
        with contextlib.suppress(StoreUnavailableError):
            await self._leadership.resign()
        await self._end_shifts(grace)
        if self._end_admitting is not None:
            await self._end_admitting()

    async def _close_executors(self) -> None:
        executors = [*self._factory.executors.values(), self._factory.alone]
        if self._factory.farm is not None:
            executors.append(self._factory.farm)
        await asyncio.gather(*(executor.close() for executor in executors))

    async def _end_shifts(self, grace: timedelta) -> None:
        lost, self._lost = self._lost, None
        shift, self._shift = self._shift, None
        with contextlib.suppress(StoreUnavailableError):
            if lost is not None:
                await lost.abandon()
            if shift is not None:
                await shift.stop(grace)

    @property
    def quiet(self) -> bool:
        """Whether nothing runs and nothing waits to be recorded."""
        return self._shift is not None and self._shift.quiet
