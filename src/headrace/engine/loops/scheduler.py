"""The scheduler: the fire times of schedules become jobs, each once in the whole cluster.

Guaranteed: no fire time makes two jobs, whoever leads, stalls or replays: the store refuses a second job for it in the
transaction that inserts the first. A fire time makes a job within seconds while a worker leads, within 15 s when the
leader dies; what passed while nobody led is for the catch-up policy. The store's clock decides what has come.
Not guaranteed: that a job starts on time, for which it needs a free slot. See docs/explanation/cron.md.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from headrace.engine.codec import stamp_schedule
from headrace.engine.cron import Plan, plan
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.telemetry import Telemetry
from headrace.model.errors import ConfigError, HeadraceError, StoreUnavailableError
from headrace.model.job import NewJob
from headrace.model.schedule import Declaration, Fire, Firing, Schedule
from headrace.model.session import LeaderTerm
from headrace.ports.clock import Clock
from headrace.ports.notifier import Notifier
from headrace.ports.schedule_store import ScheduleStore
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.scheduler")

#: Schedules that one step looks at.
LIMIT = 1_000
#: Every worker says this often that its schedules are still wanted.
RENEW_SECONDS = 60.0
NO_SCHEDULES = "this store keeps no schedules; use PostgreSQL, or take @app.cron and app.schedule out of the app"


class Scheduler(Loop):
    """Declares the schedules of an app on every worker, and fires all there are on the leader."""

    name = "scheduler"

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self,
        store: ScheduleStore,
        leadership: Leadership,
        declarations: Sequence[Declaration],
        *,
        notifier: Notifier,
        telemetry: Telemetry,
        clock: Clock,
        interval: timedelta = timedelta(seconds=1),
    ) -> None:
        super().__init__(interval)
        self._store = store
        self._leadership = leadership
        self._declarations = declarations
        self._notifier = notifier
        self._telemetry = telemetry
        self._clock = clock
        self._renewed_at = -math.inf
        #: What was said of schedules that cannot fire: once is enough.
        self._complaints: dict[str, str] = {}

    async def declare(self, *, again: bool = False) -> None:
        """Store what the app asks for, at the start of its worker; `again`: only what the store has lost since.

        What the store knows may be newer than this process, whose session ended: it is renewed and not changed.
        """
        if self._declarations:
            known = {view.name for view in await self._store.list_schedules()} if again else set()
            lost = [declaration for declaration in self._declarations if declaration.name not in known]
            if lost:
                await self._store.declare_schedules(lost)
            if len(lost) < len(self._declarations):
                await self._store.declare_schedules(self._declarations, renew=True)
        self._renewed_at = self._clock.monotonic()

    async def step(self) -> None:
        """Renew what is declared; fire what has come, if this process leads; come back when the next time comes."""
        await self._renew()
        term = self._leadership.term
        if term is None:
            return
        due = await self._store.due_schedules(limit=LIMIT)
        for schedule in due.schedules:
            await self._try_to_fire(schedule, due.now, term)
        if due.next_at is not None:
            self.wake_in((due.next_at - due.now).total_seconds())

    async def _renew(self) -> None:
        now = self._clock.monotonic()
        if self._declarations and now - self._renewed_at >= RENEW_SECONDS:
            await self._store.declare_schedules(self._declarations, renew=True)
            self._renewed_at = now

    async def _try_to_fire(self, schedule: Schedule, now: datetime, term: LeaderTerm) -> None:
        """Fire one schedule; one that cannot, such as in a zone that is not known here, holds up no other."""
        try:
            await self._fire(schedule, now, term)
        except StoreUnavailableError:
            raise
        except HeadraceError as error:
            if self._complaints.get(schedule.name) != str(error):
                self._complaints[schedule.name] = str(error)
                LOG.error("schedule %s cannot fire: %s", schedule.name, error)
        else:
            self._complaints.pop(schedule.name, None)

    async def _fire(self, schedule: Schedule, now: datetime, term: LeaderTerm) -> None:
        planned = plan(schedule.declaration.rule, after_at=schedule.after_at, now=now)
        fires = tuple(Fire(at, job_of(schedule.declaration, at)) for at in planned.fires)
        firing = Firing(schedule, fires, planned.after_at, planned.next_at)
        made = await self._store.fire_schedule(firing, term=term)
        if made:
            self._notifier.hint(f"queue:{schedule.declaration.spec.queue}")
            self._telemetry.count("headrace.schedules.fire", len(made))
        _report(schedule, planned, len(made))


def make_scheduler(
    stores: Stores, leadership: Leadership, declarations: Sequence[Declaration], *, telemetry: Telemetry, clock: Clock
) -> Scheduler | None:
    """Return the scheduler of a worker, or None where the store keeps no schedules. Raises ConfigError if it has to."""
    if stores.schedules is None:
        if declarations:
            raise ConfigError(NO_SCHEDULES)
        return None
    return Scheduler(
        stores.schedules, leadership, declarations, notifier=stores.notifier, telemetry=telemetry, clock=clock
    )


def job_of(declaration: Declaration, fire_at: datetime) -> NewJob:
    """Return a job of a schedule; the time it is made for is `ctx.scheduled_at`."""
    return NewJob(declaration.spec, stamp_schedule(declaration.args, fire_at))


def _report(schedule: Schedule, planned: Plan, made: int) -> None:
    if made:
        times = ", ".join(at.isoformat() for at in planned.fires)
        LOG.info("schedule %s fired for %s", schedule.name, times)
    if planned.skipped:
        LOG.warning(
            "schedule %s left out %d fire times that were missed (catch_up=%s)",
            schedule.name, planned.skipped, schedule.declaration.rule.catch_up,
        )  # fmt: skip
