"""ScheduleStore: each fire time makes one job, whoever fires, and only while its schedule is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from headrace.model.errors import NotFoundError
from headrace.model.job import JobSpec, JobState, NewJob
from headrace.model.limits import Gate
from headrace.model.schedule import (
    DECLARED_FOR,
    KEPT_FIRES,
    CatchUp,
    CronRule,
    Declaration,
    Fire,
    FireRecord,
    Firing,
    Schedule,
    ScheduleView,
)
from headrace.model.session import LeaderTerm
from headrace.ports.schedule_store import ScheduleStore
from tests.conformance.scenario import ARGS, DAY, MINUTE, SECOND, SPEC, Scenario

HOUR = timedelta(hours=1)
HOURLY = Declaration("hourly", CronRule("0 * * * *"), SPEC, ARGS)


class Schedules:
    """A store of schedules, and short words for what tests do with it."""

    def __init__(self, on: Scenario, store: ScheduleStore) -> None:
        self.on, self.store = on, store

    @property
    def now(self) -> datetime:
        """The store's time."""
        return self.on.clock.now()

    async def declare(self, *declarations: Declaration) -> None:
        """Do what a worker does at its start."""
        await self.store.declare_schedules(declarations or [HOURLY])

    async def later(self, duration: timedelta) -> None:
        """Let time pass while workers declare their schedules again and again."""
        self.on.clock.advance(duration)
        await self.renew()

    async def renew(self) -> None:
        """Do what a worker does each minute."""
        known = [view.declaration for view in await self.store.list_schedules()]
        await self.store.declare_schedules(known, renew=True)

    async def due(self) -> list[str]:
        """Return the names of the schedules with work to do."""
        return [schedule.name for schedule in (await self.store.due_schedules(limit=10)).schedules]

    async def seen(self, name: str = "hourly") -> Schedule:
        """Return a schedule as a scheduler sees it now."""
        view = await self.view(name)
        return Schedule(view.declaration, view.after_at)

    async def view(self, name: str = "hourly") -> ScheduleView:
        """Return a schedule that must exist."""
        [view] = [view for view in await self.store.list_schedules() if view.name == name]
        return view

    async def planned(self, ahead: timedelta = HOUR) -> Schedule:
        """Declare a schedule, plan its first fire, and return it."""
        await self.declare()
        await self.fire(await self.term(), [], next_at=self.now + ahead)
        return await self.seen()

    async def term(self) -> LeaderTerm:
        """Lead."""
        term = await self.on.stores.sessions.lead(LEADER, lease=365 * DAY)
        assert term is not None
        return term

    async def fire(
        self, term: LeaderTerm, times: Sequence[datetime], *, seen: Schedule | None = None,
        next_at: datetime | None = None,
    ) -> list[UUID]:  # fmt: skip
        """Fire for some times, as a scheduler that saw the schedule just now, or as it was `seen`."""
        return await self.store.fire_schedule(await self.firing(times, seen=seen, next_at=next_at), term=term)

    async def firing(
        self, times: Sequence[datetime], *, seen: Schedule | None = None, next_at: datetime | None = None
    ) -> Firing:
        """Return a move of the schedule."""
        seen = seen or await self.seen()
        fires = tuple(Fire(at, NewJob(seen.declaration.spec, seen.declaration.args)) for at in times)
        return Firing(seen, fires, max([seen.after_at, *times]), next_at or self.now + HOUR)


LEADER = uuid4()


@pytest.fixture
def schedules(on: Scenario) -> Schedules:
    """Return the schedules of the stores, where they keep some."""
    if on.stores.schedules is None:
        pytest.skip("keeps no schedules")
    return Schedules(on, on.stores.schedules)


async def test_a_declared_schedule_is_kept_as_it_was_asked_for(schedules: Schedules) -> None:
    """Everything that makes a job, when, and what becomes of missed times comes back as it was declared."""
    spec = JobSpec(
        "report", queue="slow", priority=9, max_attempts=2, timeout=90 * SECOND, at_most_once=True, cost=2.5,
        gate=Gate(fair_key="é", key="k", key_limit=1, caps=("task:report",), limits=(("api", None), ("b", 2.0))),
    )  # fmt: skip
    rule = CronRule("30 2 * * 1-5", "Europe/Berlin", CatchUp.ALL)
    declared = Declaration("report", rule, spec, '{"args":["ü\\u0000"],"kwargs":{}}')
    await schedules.declare(declared, HOURLY)

    views = await schedules.store.list_schedules()
    assert [view.declaration for view in views] == [HOURLY, declared]
    assert [(view.paused, view.declared, view.next_at, view.last) for view in views] == [(False, True, None, None)] * 2
    assert [(view.after_at, view.declared_at) for view in views] == [(schedules.now, schedules.now)] * 2


async def test_a_rule_that_this_version_does_not_understand_is_read(schedules: Schedules) -> None:
    """A zone that is unknown here, or an expression of a newer version, keeps no other schedule from being read."""
    foreign = replace(HOURLY, name="foreign", rule=CronRule("0 0 1 1 * 2030", "Mars/Olympus"))
    await schedules.declare(HOURLY, foreign)
    assert sorted(await schedules.due()) == ["foreign", "hourly"]
    assert (await schedules.view("foreign")).declaration == foreign


async def test_a_new_schedule_has_to_be_planned(schedules: Schedules) -> None:
    """It has work to do until its first fire time is known, and fires nothing of the time before it was declared."""
    await schedules.declare()
    due = await schedules.store.due_schedules(limit=10)
    assert due.schedules == (Schedule(HOURLY, schedules.now),)
    assert (due.now, due.next_at) == (schedules.now, None)

    await schedules.fire(await schedules.term(), [], next_at=schedules.now + HOUR)
    due = await schedules.store.due_schedules(limit=10)
    assert (due.schedules, due.next_at) == ((), schedules.now + HOUR)


async def test_a_schedule_is_due_when_its_time_has_come(schedules: Schedules) -> None:
    """Not a moment before, by the store's clock."""
    await schedules.planned()
    await schedules.later(HOUR - timedelta.resolution)
    assert await schedules.due() == []
    await schedules.later(timedelta.resolution)
    assert await schedules.due() == ["hourly"]


async def test_no_more_schedules_are_found_than_asked_for(schedules: Schedules) -> None:
    """What has to be planned comes first, then what waited longest."""
    await schedules.planned()
    await schedules.declare(*(replace(HOURLY, name=name) for name in ("b", "a")))
    await schedules.later(HOUR)
    assert await schedules.due() == ["a", "b", "hourly"]
    assert [item.name for item in (await schedules.store.due_schedules(limit=2)).schedules] == ["a", "b"]


async def test_firing_inserts_the_job_and_moves_the_schedule(schedules: Schedules) -> None:
    """The job is ready, the fire is in the history, and the schedule goes on at its next time."""
    on = schedules.on
    await schedules.planned()
    on.clock.advance(HOUR + 7 * SECOND)
    at = on.clock.now() - 7 * SECOND

    [job_id] = await schedules.fire(await schedules.term(), [at], next_at=at + HOUR)
    job = await on.job(job_id)
    assert (job.state, job.task, job.queue) == (JobState.READY, SPEC.task, SPEC.queue)
    view = await schedules.view()
    assert (view.after_at, view.next_at) == (at, at + HOUR)
    [record] = await schedules.store.list_fires("hourly", limit=10)
    assert view.last == record
    assert (record.fire_at, record.job_id, record.fired_at, record.manual) == (at, job_id, on.clock.now(), False)
    assert await schedules.due() == []


async def test_several_missed_times_are_fired_at_once(schedules: Schedules) -> None:
    """One move makes a job for each time, and the history has them with the newest first."""
    await schedules.planned()
    schedules.on.clock.advance(3 * HOUR)
    times = [schedules.now - number * HOUR for number in (2, 1, 0)]

    ids = await schedules.fire(await schedules.term(), times)
    assert len(set(ids)) == 3
    fires = await schedules.store.list_fires("hourly", limit=2)
    assert [(fire.fire_at, fire.job_id) for fire in fires] == [(times[2], ids[2]), (times[1], ids[1])]
    assert len(await schedules.on.stores.inspect.list_jobs(limit=10)) == 3


async def test_the_same_move_twice_makes_one_job(schedules: Schedules) -> None:
    """A replay, and a scheduler that saw the schedule before another one fired it, change nothing."""
    await schedules.planned()
    schedules.on.clock.advance(HOUR)
    firing = await schedules.firing([schedules.now])
    late = replace(firing, fires=(Fire(schedules.now, NewJob(SPEC, ARGS)),))
    term = await schedules.term()

    assert len(await schedules.store.fire_schedule(firing, term=term)) == 1
    assert await schedules.store.fire_schedule(firing, term=term) == []
    assert await schedules.store.fire_schedule(late, term=term) == []
    assert len(await schedules.on.stores.inspect.list_jobs(limit=10)) == 1


async def test_schedulers_that_fire_at_the_same_moment_make_one_job(schedules: Schedules) -> None:
    """Of eight that saw the same time come, one fires."""
    await schedules.planned()
    term = await schedules.term()
    for _ in range(5):
        schedules.on.clock.advance(HOUR)
        firings = [await schedules.firing([schedules.now]) for _ in range(8)]
        ids = await asyncio.gather(*(schedules.store.fire_schedule(firing, term=term) for firing in firings))
        assert sorted(len(made) for made in ids) == [0] * 7 + [1]
    assert len(await schedules.on.stores.inspect.list_jobs(limit=100)) == 5


async def test_a_time_that_was_fired_makes_no_second_job_though_the_clock_went_back(schedules: Schedules) -> None:
    """The unique fire time is what counts: a schedule that is moved back to it goes on without a job."""
    on = schedules.on
    await schedules.planned()
    await schedules.later(HOUR)
    at, term = schedules.now, await schedules.term()
    [first] = await schedules.fire(term, [at])
    on.clock.set_now(at - timedelta(minutes=30))
    assert await schedules.due() == ["hourly"]

    seen = await schedules.seen()
    back = Firing(seen, (), schedules.now, at)
    assert await schedules.store.fire_schedule(back, term=term) == []
    assert (await schedules.view()).after_at == schedules.now
    on.clock.advance(timedelta(minutes=30))
    other = at + timedelta.resolution
    on.clock.advance(timedelta.resolution)
    made = await schedules.fire(term, [at, other])
    assert len(made) == 1
    fires = await schedules.store.list_fires("hourly", limit=10)
    assert {(fire.fire_at, fire.job_id) for fire in fires} == {(at, first), (other, made[0])}
    assert (await schedules.view()).after_at == other


async def test_nothing_fires_before_its_time(schedules: Schedules) -> None:
    """A scheduler whose clock is ahead of the store's changes nothing."""
    seen = await schedules.planned()
    early = await schedules.firing([schedules.now + timedelta.resolution])
    assert await schedules.store.fire_schedule(early, term=await schedules.term()) == []
    assert await schedules.seen() == seen
    assert await schedules.on.stores.inspect.list_jobs(limit=10) == []


@pytest.mark.parametrize("followed", [True, False])
async def test_a_term_that_is_over_fires_nothing(schedules: Schedules, followed: bool) -> None:
    """A leader that was replaced, or whose lease has ended, neither inserts nor moves."""
    on = schedules.on
    seen = await schedules.planned()
    await on.stores.sessions.resign(await schedules.term())
    stale = await on.stores.sessions.lead(uuid4(), lease=SECOND)
    assert stale is not None
    on.clock.advance(HOUR)
    if followed:
        await schedules.term()

    assert await schedules.fire(stale, [schedules.now]) == []
    assert await schedules.seen() == seen
    assert await on.stores.inspect.list_jobs(limit=10) == []
    assert await schedules.store.list_fires("hourly", limit=10) == []


async def test_a_changed_expression_is_planned_anew(schedules: Schedules) -> None:
    """What the old one had planned does not fire, not even by a scheduler that saw it."""
    seen = await schedules.planned()
    schedules.on.clock.advance(HOUR)
    old = await schedules.firing([schedules.now], seen=seen)
    changed = replace(HOURLY, rule=CronRule("30 * * * *"))
    await schedules.declare(changed)

    assert await schedules.store.fire_schedule(old, term=await schedules.term()) == []
    due = await schedules.store.due_schedules(limit=10)
    assert due.schedules == (Schedule(changed, schedules.now),)
    assert (await schedules.view()).next_at is None


async def test_what_else_changes_leaves_the_plan_alone(schedules: Schedules) -> None:
    """A schedule that is declared again, with other job options or catch-up policy, keeps its place and fires so."""
    await schedules.planned()
    before = await schedules.view()
    schedules.on.clock.advance(30 * MINUTE)
    changed = replace(
        HOURLY, rule=replace(HOURLY.rule, catch_up=CatchUp.ONE), spec=replace(SPEC, queue="other"), args='{"args":[1]}'
    )
    await schedules.declare(changed)

    view = await schedules.view()
    assert (view.after_at, view.next_at, view.declaration) == (before.after_at, before.next_at, changed)


async def test_a_schedule_that_no_worker_declares_comes_to_rest(schedules: Schedules) -> None:
    """Ten minutes after the last word of it nothing is due; once it is declared again what was missed is."""
    await schedules.planned(ahead=DECLARED_FOR)
    schedules.on.clock.advance(DECLARED_FOR)
    assert await schedules.due() == []
    assert (await schedules.store.due_schedules(limit=10)).next_at is None
    assert not (await schedules.view()).declared

    await schedules.store.declare_schedules([HOURLY], renew=True)
    assert await schedules.due() == ["hourly"]
    assert (await schedules.view()).declared


async def test_a_renewal_changes_and_makes_nothing(schedules: Schedules) -> None:
    """An older version of an app keeps a schedule alive, and undoes neither a newer definition nor its removal."""
    await schedules.planned()
    older = replace(HOURLY, rule=CronRule("5 * * * *"), args="{}")
    gone = replace(HOURLY, name="gone")
    before = await schedules.view()
    schedules.on.clock.advance(MINUTE)
    await schedules.store.declare_schedules([older, gone], renew=True)
    await schedules.store.declare_schedules([], renew=True)

    [view] = await schedules.store.list_schedules()
    assert view == replace(before, declared_at=schedules.now)


async def test_a_paused_schedule_fires_nothing_and_goes_on_from_now(schedules: Schedules) -> None:
    """Nothing is due meanwhile, nobody who saw it earlier fires it, and its times meanwhile are left out."""
    seen = await schedules.planned()
    await schedules.store.set_schedule_paused("hourly", paused=True)
    await schedules.later(HOUR)
    assert await schedules.due() == []
    assert (await schedules.store.due_schedules(limit=10)).next_at is None
    assert await schedules.fire(await schedules.term(), [schedules.now], seen=seen) == []
    assert (await schedules.view()).paused

    await schedules.store.set_schedule_paused("hourly", paused=False)
    assert (await schedules.store.due_schedules(limit=10)).schedules == (Schedule(HOURLY, schedules.now),)


async def test_resuming_what_is_not_paused_leaves_it_alone(schedules: Schedules) -> None:
    """A time that has come stays due; pausing twice is pausing once, and a declaration lifts no pause."""
    await schedules.planned()
    schedules.on.clock.advance(HOUR)
    before = await schedules.view()
    await schedules.store.set_schedule_paused("hourly", paused=False)
    assert await schedules.view() == before

    await schedules.store.set_schedule_paused("hourly", paused=True)
    await schedules.store.set_schedule_paused("hourly", paused=True)
    await schedules.declare()
    assert (await schedules.view()).paused


async def test_a_manual_run_is_beside_the_plan(schedules: Schedules) -> None:
    """It makes a job now, paused or not, and is no fire time: the planned fire of the same moment still comes."""
    await schedules.planned()
    schedules.on.clock.advance(HOUR)
    await schedules.store.set_schedule_paused("hourly", paused=True)
    run = Fire(schedules.now, NewJob(SPEC, ARGS))
    schedules.on.clock.advance(SECOND)
    await schedules.store.run_schedule("hourly", run)
    await schedules.store.run_schedule("hourly", run)  # its answer was lost
    assert (await schedules.on.job(run.job.id)).state is JobState.READY
    [record] = await schedules.store.list_fires("hourly", limit=10)
    assert record == FireRecord(run.fire_at, run.job.id, schedules.now, manual=True)

    await schedules.store.set_schedule_paused("hourly", paused=False)
    assert len(await schedules.fire(await schedules.term(), [run.fire_at])) == 1
    assert len(await schedules.on.stores.inspect.list_jobs(limit=10)) == 2


async def test_a_forgotten_schedule_is_gone_with_its_fires(schedules: Schedules) -> None:
    """Its jobs stay, a scheduler that saw it fires nothing, and the next declaration makes a new one."""
    await schedules.planned()
    schedules.on.clock.advance(HOUR)
    term = await schedules.term()
    [job_id] = await schedules.fire(term, [schedules.now])
    seen = await schedules.seen()
    schedules.on.clock.advance(HOUR)
    await schedules.store.forget_schedule("hourly")

    assert await schedules.store.list_schedules() == []
    assert await schedules.store.list_fires("hourly", limit=10) == []
    assert await schedules.fire(term, [schedules.now], seen=seen) == []
    assert [job.id for job in await schedules.on.stores.inspect.list_jobs(limit=10)] == [job_id]
    await schedules.declare()
    assert (await schedules.view()).after_at == schedules.now


async def test_commands_on_an_unknown_schedule_say_so(schedules: Schedules) -> None:
    """Pause, resume, run and forget name what is not there; its history is empty."""
    store = schedules.store
    for command in (
        store.set_schedule_paused("none", paused=True),
        store.set_schedule_paused("none", paused=False),
        store.run_schedule("none", Fire(schedules.now, NewJob(SPEC, ARGS))),
        store.forget_schedule("none"),
    ):
        with pytest.raises(NotFoundError, match="no schedule 'none'"):
            await command
    assert await store.list_fires("none", limit=10) == []
    assert await schedules.on.stores.inspect.list_jobs(limit=10) == []


async def test_the_history_is_bounded(schedules: Schedules) -> None:
    """The oldest fires of a schedule are forgotten, those of others are not."""
    other = replace(HOURLY, name="other")
    await schedules.declare(HOURLY, other)
    term, start = await schedules.term(), schedules.now
    schedules.on.clock.advance(DAY)
    await schedules.fire(term, [start + SECOND], seen=await schedules.seen("other"))
    first = [start + number * SECOND for number in range(KEPT_FIRES)]
    await schedules.fire(term, first)
    schedules.on.clock.advance(DAY)
    await schedules.fire(term, [schedules.now - SECOND, schedules.now])

    fires = await schedules.store.list_fires("hourly", limit=KEPT_FIRES + 10)
    assert len(fires) == KEPT_FIRES
    assert (fires[0].fire_at, fires[-1].fire_at) == (schedules.now, first[2])
    assert len(await schedules.store.list_fires("other", limit=10)) == 1


async def test_schedules_are_listed_by_name(schedules: Schedules) -> None:
    """In the same order on every store."""
    names = ["b", "a.b", "a-b", "a_b", "a", "z9", "0"]
    await schedules.declare(*(replace(HOURLY, name=name) for name in names))
    assert [view.name for view in await schedules.store.list_schedules()] == sorted(names)


async def test_a_schedule_that_another_one_moved_is_not_moved_back(schedules: Schedules) -> None:
    """A scheduler that read it long ago cannot set it back to its own plan."""
    old = await schedules.planned()
    schedules.on.clock.advance(HOUR)
    term = await schedules.term()
    await schedules.fire(term, [schedules.now], next_at=schedules.now + HOUR)
    now = await schedules.seen()

    await schedules.fire(term, [], seen=old, next_at=schedules.now + MINUTE)
    assert await schedules.seen() == now
    assert (await schedules.view()).next_at == schedules.now + HOUR


async def test_a_rule_that_changed_in_the_same_moment_is_not_fired(schedules: Schedules) -> None:
    """A scheduler that saw the old expression changes nothing, though the schedule is dealt with just as far."""
    await schedules.declare()
    seen = await schedules.seen()
    await schedules.declare(replace(HOURLY, rule=CronRule("30 * * * *")))
    assert (await schedules.seen()).after_at == seen.after_at

    assert await schedules.fire(await schedules.term(), [schedules.now], seen=seen) == []
    assert (await schedules.view()).next_at is None
