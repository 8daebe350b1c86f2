"""The scale signal over a real store: a burst raises it, what binds holds it, and letting go lets it grow again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace.engine.scaling import ScaleOptions, scale_signals
from headrace.engine.telemetry import SLOTS
from headrace.llm.counting import Tally, snapshot
from headrace.llm.quota.values import PoolStats
from headrace.model.breaker import BreakerRule, BreakerState
from headrace.model.budget import Budget
from headrace.model.errors import NotFoundError
from headrace.model.job import JobState
from headrace.model.limits import Declared, Gate, Rate
from headrace.model.scale_values import Binding, ScaleReason, ScaleSignal, ScalingRule
from headrace.model.session import NewSession, ProcessId
from tests.conformance.scenario import LEASE, MINUTE, SECOND, Scenario

POOL = PoolStats(name="fake:main:small")
CLOSED = PoolStats(name="fake:main:small", closed=30 * SECOND)
REFUSED = {"headrace.llm.over_budget": {"tenant:acme": {"tokens": 40, "cost_nano": None}}}


async def look(on: Scenario, queue: str = "default", *, farmed: bool = False, rule: ScalingRule | None = None) -> Any:
    """Return the signal of a queue."""
    options = ScaleOptions(lambda _: rule or ScalingRule(), lambda _: 10, lambda _: farmed, {"declared"})
    [signal] = await scale_signals(on.stores, on.limiter, options, queue=queue)
    return signal


async def says(on: Scenario, wanted: int, reason: ScaleReason, **how: Any) -> ScaleSignal:
    """Check what is wanted and why, and return the signal."""
    signal: ScaleSignal = await look(on, **how)
    assert (signal.wanted_workers, signal.reason) == (wanted, reason), signal
    return signal


async def caller(on: Scenario, *pools: PoolStats, pid: int = 1, **more: Any) -> None:
    """Let a process that calls models tell of its pools with a heartbeat; by default the one of `Scenario.worker`."""
    session = NewSession(ProcessId("host", pid, 1), "host.example", {}, LEASE)
    await on.stores.sessions.register_session(session)
    stats = snapshot(Tally(), pools) | more
    await on.stores.sessions.renew_session(session.id, lease=LEASE, stats=stats)


async def test_a_burst_raises_it_and_its_end_lowers_it(on: Scenario) -> None:
    """By the measured time of jobs, once there is one."""
    session = await on.worker(lease=MINUTE)
    await says(on, 1, ScaleReason.MIN)

    await on.enqueue(34)
    assert (await says(on, 4, ScaleReason.BACKLOG)).load.seconds_per_job is None

    first = await on.claim(session, 10)
    on.clock.advance(6 * SECOND)
    await on.end(session, *first[:5])
    # 5 run, and 24 of 6 s each are 2.4 slots for a minute.
    signal = await says(on, 1, ScaleReason.ENOUGH)
    assert signal.load.seconds_per_job == pytest.approx(6.0)
    assert (signal.load.eligible, signal.load.running, signal.needed_slots) == (24, 5, pytest.approx(7.4))
    await on.enqueue(300)
    await says(on, 4, ScaleReason.BACKLOG)

    on.clock.advance(6 * SECOND)
    for pid in (2, 3, 4):
        await on.worker(pid=pid)
    await on.end(session, *first[5:], *await on.claim(session))
    await says(on, 1, ScaleReason.MIN)


async def test_a_breaker_holds_it(on: Scenario) -> None:
    """While it is open; the probe asks for nothing more, and once it is closed it grows."""
    await on.worker()
    await on.worker(pid=2)
    await on.gate.declare_limits(Declared(breakers={"api": BreakerRule(cooldown=5 * SECOND)}))
    await on.enqueue(50, gate=Gate(breakers=("api",)))
    await says(on, 5, ScaleReason.BACKLOG)

    await on.gate.set_breaker("api", BreakerState.OPEN)
    signal = await says(on, 2, ScaleReason.BREAKER)
    assert signal.load.binding == Binding(ScaleReason.BREAKER, "api")
    await on.enqueue(50)  # that nothing holds
    await says(on, 2, ScaleReason.BREAKER)

    await on.gate.set_breaker("api", BreakerState.CLOSED)
    await says(on, 10, ScaleReason.BACKLOG)


async def test_a_closed_pool_that_tasks_declare_holds_it(on: Scenario) -> None:
    """The gate tells of it, no process has to."""
    await on.worker()
    await on.gate.declare_limits(Declared(rates={"jobs:fake:main:small": Rate(1e9, 1e9)}))
    await on.enqueue(50, gate=Gate(limits=(("jobs:fake:main:small", 1.0),)))
    await says(on, 5, ScaleReason.BACKLOG)

    await on.limiter.close_bucket("jobs:fake:main:small", 5 * SECOND)
    signal = await says(on, 1, ScaleReason.QUOTA)
    assert signal.load.binding == Binding(ScaleReason.QUOTA, "fake:main:small")

    await on.limiter.open_bucket("jobs:fake:main:small")
    await says(on, 5, ScaleReason.BACKLOG)


@pytest.mark.parametrize("pool", [CLOSED, PoolStats(name="fake:main:small", waiting=1)])
async def test_calls_that_wait_for_a_quota_hold_the_queues_of_their_worker(on: Scenario, pool: PoolStats) -> None:
    """And none of another worker's, nor of a process that is none; of a farm's processes those that run there."""
    await on.worker()
    await on.worker(pid=2, queues={"other": 10})
    for queue in ("default", "other"):
        await on.enqueue(50, queue=queue)
    await caller(on, pool, pid=3)
    await says(on, 5, ScaleReason.BACKLOG)
    await says(on, 1, ScaleReason.QUOTA, farmed=True)

    await caller(on, pool)
    await says(on, 1, ScaleReason.QUOTA)
    await says(on, 5, ScaleReason.BACKLOG, queue="other")


async def test_a_used_up_budget_of_the_day_holds_whoever_calls_models(on: Scenario) -> None:
    """And lets go as soon as it is raised."""
    await on.worker()
    await on.worker(pid=2, queues={"other": 10})
    for queue in ("default", "other"):
        await on.enqueue(50, queue=queue)
    await caller(on, POOL)
    await says(on, 5, ScaleReason.BACKLOG)

    await on.stores.budgets.set_budget("day", Budget(tokens=0))
    assert "budget day" in (await says(on, 1, ScaleReason.BUDGET)).sentence
    await says(on, 5, ScaleReason.BACKLOG, queue="other")

    await on.stores.budgets.set_budget("day", Budget(tokens=1_000))
    await says(on, 5, ScaleReason.BACKLOG)


async def test_a_budget_that_refused_a_call_lately_holds_it(on: Scenario) -> None:
    """Until it has room for that call."""
    await on.worker()
    await on.enqueue(50)
    await caller(on, POOL, **REFUSED)
    await says(on, 5, ScaleReason.BACKLOG)  # by now it has no limit
    await on.stores.budgets.set_budget("tenant:acme", Budget(tokens=30))
    assert (await says(on, 1, ScaleReason.BUDGET)).load.binding == Binding(ScaleReason.BUDGET, "tenant:acme")
    await on.stores.budgets.set_budget("tenant:acme", Budget(tokens=40))
    await says(on, 5, ScaleReason.BACKLOG)


async def test_what_elastic_slots_saw_holds_it(on: Scenario) -> None:
    """A worker tells that its slots wait for a model; of slots that grow, those that they may grow to count."""
    session = await on.worker()
    row = {"size": 10, "min": 5, "max": 25, "eligible": 50, "used": 10, "held_by": None}
    await on.enqueue(50)
    for held_by, expected in (
        (None, (2, ScaleReason.BACKLOG)), ("quota or budget of a model", (1, ScaleReason.QUOTA)),
    ):  # fmt: skip
        stats = {SLOTS: {"default": {**row, "held_by": held_by}}}
        await on.stores.sessions.renew_session(session, lease=LEASE, stats=stats)
        await says(on, *expected)


async def test_a_paused_queue_wants_what_runs(on: Scenario) -> None:
    """And grows again when it is resumed."""
    for pid in range(4):
        session = await on.worker(pid=pid)
    await on.enqueue(62)
    await on.claim(session, 12)
    await says(on, 7, ScaleReason.BACKLOG)
    await on.stores.control.set_queue_paused("default", paused=True)
    await says(on, 2, ScaleReason.PAUSED)
    await on.stores.control.set_queue_paused("default", paused=False)
    await says(on, 7, ScaleReason.BACKLOG)


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        (lambda: Declared(caps={"queue:default": 12}), "cap queue:default"),
        (lambda: Declared(rates={"queue:default": Rate(0.5, 12.0)}), "rate queue:default"),
    ],
)
async def test_caps_and_rates_leave_room_for_some(on: Scenario, declared: Callable[[], Declared], reason: str) -> None:
    """No slots beyond them: neither while they have room, nor for a unit that has just flowed in."""
    session = await on.worker()
    await on.gate.declare_limits(declared())
    await on.enqueue(500)
    await says(on, 2, ScaleReason.ROOM)
    assert len(await on.admit(session, 20)) in (10, 12)
    await on.admit(session, 2)
    assert (await look(on)).load.held_by == reason
    await says(on, 2, ScaleReason.ROOM)
    on.clock.advance(2 * SECOND)
    await says(on, 2, ScaleReason.ROOM)


async def test_to_nobody_only_when_nothing_is_left(on: Scenario) -> None:
    """A retry that is to come keeps a worker: it is what makes the job ready."""
    rule = ScalingRule(0, 10)
    session = await on.worker()
    await says(on, 0, ScaleReason.IDLE, rule=rule)
    _, job = await on.start(session)
    await on.end(session, job, state=JobState.SCHEDULED, delay=timedelta(hours=1))
    await says(on, 1, ScaleReason.ENOUGH, rule=rule)


async def test_of_a_queue_that_nobody_knows_nothing_is_said(on: Scenario) -> None:
    """One that is declared is no such one."""
    signal = await says(on, 1, ScaleReason.MIN, queue="declared")
    assert signal.load.live_workers == 0
    with pytest.raises(NotFoundError, match="no queue 'nope'"):
        await look(on, "nope")
