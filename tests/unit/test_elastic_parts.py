"""The parts of elastic slots: use of slots, resizing a worker, the loop that does it, and what is told of it."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from headrace import App, ConfigError, InvalidInputError
from headrace.engine.levels import eligible_jobs
from headrace.engine.loops.resizer import QUOTA, ElasticOptions, Resizer
from headrace.engine.slot_exposition import expose_slots, slots_of
from headrace.engine.slot_use import SlotUse
from headrace.engine.telemetry import SLOTS, Telemetry
from headrace.model.elastic import ElasticSlots, Eligible
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import JobSpec, NewJob
from headrace.model.limits import Declared, Gate, Rate
from headrace.model.parking import current_slot, waits_for_limit
from headrace.model.session import ProcessId, SessionView
from headrace.settings import load_settings
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.conformance.scenario import ARGS
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

SECOND = timedelta(seconds=1)
RULE = ElasticSlots(4, 40, 8)


# How slots are used


@pytest.fixture
def clock() -> FakeClock:
    """Return a clock that the test moves."""
    return FakeClock()


def test_the_peak_is_that_since_the_last_look(clock: FakeClock) -> None:
    """Three at once, of which one goes on: then it is one."""
    use = SlotUse(clock)
    attempts = [use.begin() for _ in range(3)]
    for attempt in attempts[1:]:
        use.end(attempt, limited=False)
    assert use.look() == (3, False)
    assert use.look() == (1, False)
    use.end(attempts[0], limited=False)
    assert [use.look()[0] for _ in range(2)] == [1, 0]


@pytest.mark.parametrize(("waited", "limited"), [(4, False), (5, True), (10, True)])
def test_slots_that_mostly_wait_are_limited(clock: FakeClock, waited: int, limited: bool) -> None:
    """Half of the time of all slots is the least: of one of two all the time, or of one alone half of it."""
    use = SlotUse(clock)
    alone, idle = use.begin(), use.begin()
    alone.begin()
    clock.advance(10 * SECOND)
    assert use.look() == (2, True)
    alone.end()
    use.end(idle, limited=False)
    use.end(alone, limited=False)
    use.look()

    alone = use.begin()
    alone.begin()
    alone.begin()  # two calls of one attempt are one wait
    clock.advance(waited * SECOND)
    alone.end()
    alone.end()
    clock.advance((10 - waited) * SECOND)
    assert use.look() == (1, limited)
    assert use.look() == (1, False)


def test_a_wait_that_outlasts_its_attempt_is_over_with_it(clock: FakeClock) -> None:
    """A call may go on that others ask for as well: the slot is free."""
    use = SlotUse(clock)
    gone = use.begin()
    gone.begin()
    use.end(gone, limited=False)
    use.look()
    next_one = use.begin()
    clock.advance(SECOND)
    gone.end()
    clock.advance(SECOND)
    assert use.look() == (1, False)
    use.end(next_one, limited=False)


@pytest.mark.parametrize(("left", "stayed", "limited"), [(1, 1, True), (1, 2, False), (0, 2, False), (3, 0, True)])
def test_attempts_that_mostly_leave_for_a_limit_are_limited(
    clock: FakeClock, left: int, stayed: int, limited: bool
) -> None:
    """They leave so soon that the slots hardly wait."""
    use = SlotUse(clock)
    for number in range(left + stayed):
        use.end(use.begin(), limited=number < left)
    assert use.look()[1] is limited
    assert use.look()[1] is False


def test_a_wait_outside_of_a_slot_is_nobodys() -> None:
    """Nothing to tell, and no error."""
    assert current_slot.get() is None
    with waits_for_limit():
        pass


# A worker that is resized


async def test_a_shrink_stops_nothing_and_claims_nothing_until_enough_ended() -> None:
    """Six run when the slots become two: all end, once each, and the next begins when one of two is free."""
    app = quick_app()
    go, running, begun = asyncio.Event(), set[int](), list[int]()
    doors = {number: asyncio.Event() for number in range(10)}

    @app.task
    async def hold(number: int) -> int:
        begun.append(number)
        running.add(number)
        await go.wait()
        await doors[number].wait()
        running.remove(number)
        return number

    async with app.worker(queues={"default": 6}) as worker:
        handles = [await hold.enqueue(number) for number in range(10)]
        await wait_until(lambda: len(running) == 6, message="six to run")
        shift = worker.session
        assert shift is not None
        shift.resize("default", 2)
        assert shift.queues == {"default": 2}
        go.set()
        for number in sorted(running)[:4]:
            doors[number].set()
        await wait_until(lambda: len(running) == 2, message="four to end")
        assert len(begun) == 6
        for door in doors.values():
            door.set()
        assert [await handle.result("10s") for handle in handles] == list(range(10))
    assert sorted(begun) == list(range(10))


async def test_slots_that_come_are_used_at_once() -> None:
    """Without waiting for a poll or for a job that ends."""
    app = quick_app(poll_interval=timedelta(seconds=30))
    running, end = set[int](), asyncio.Event()

    @app.task
    async def hold(number: int) -> None:
        running.add(number)
        await end.wait()

    async with app.worker(queues={"default": 1}) as worker:
        await app.submit(hold, range(5))
        await wait_until(lambda: len(running) == 1, message="one to run")
        assert worker.session is not None
        worker.session.resize("default", 4)
        await wait_until(lambda: len(running) == 4, message="four to run")
        end.set()


async def test_a_new_shift_goes_on_with_the_sizes() -> None:
    """The lease is lost after the slots have grown: the next session is registered with as many."""
    app = quick_app(resize_interval=timedelta(milliseconds=10))
    app.queue("default", max_slots=32, start_slots=4, grow_above=10, shrink_below=0)
    end = asyncio.Event()

    @app.task
    async def hold(number: int) -> None:
        await end.wait()

    async with app.worker() as worker:
        await app.submit(hold, range(200))
        first = worker.session
        await wait_until(lambda: first is not None and first.queues == {"default": 32}, message="it to grow")
        assert first is not None
        first._lose()
        await wait_until(lambda: worker.session not in (None, first), message="another shift")
        assert worker.session is not None
        assert worker.session.queues == {"default": 32}
        end.set()


@pytest.mark.parametrize(("given", "begun"), [(2, 5), (8, 8), (50, 20)])
async def test_a_worker_begins_with_its_slots_within_the_bounds(given: int, begun: int) -> None:
    """As many as it was told, unless the queue says where to start; a fixed queue has just as many."""
    app = quick_app()
    app.queue("llm", min_slots=5, max_slots=20)
    app.queue("told", max_slots=20, start_slots=7)

    async with app.worker(queues={"llm": given, "told": given, "fixed": given}) as worker:
        assert worker.session is not None
        assert worker.session.queues == {"llm": begun, "told": 7, "fixed": given}


# The loop


class Slots:
    """A shift as the loop sees it."""

    def __init__(self) -> None:
        self.sizes: list[tuple[str, int]] = []
        self.seen = (8, False)

    def resize(self, queue: str, slots: int) -> None:
        """Note it."""
        self.sizes.append((queue, slots))

    def look_at_slots(self, queue: str) -> tuple[int, bool]:
        """Say what the test says."""
        return self.seen


class Watched:
    """A loop, and everything that it did."""

    def __init__(self) -> None:
        self.shift: Any = Slots()
        self.wanted: list[tuple[str, int]] = []
        self.asked: list[tuple[str, int]] = []
        self.eligible = Eligible(jobs=5_000, workers=1)
        self.telemetry = Telemetry()
        options = ElasticOptions({"llm": RULE, "elsewhere": RULE})
        self.loop = Resizer(
            options, {"llm": 8, "fixed": 3}, count=self.count, shift=lambda: self.shift,
            want=lambda *said: self.wanted.append(said), telemetry=self.telemetry,
        )  # fmt: skip

    async def count(self, queue: str, at_most: int) -> Eligible:
        """Say what the test says."""
        self.asked.append((queue, at_most))
        return self.eligible

    async def look(self, times: int = 1) -> None:
        """Look so often."""
        for _ in range(times):
            await self.loop.step()


async def test_it_resizes_tells_the_farm_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    """A queue that this worker does not serve is left alone; counting goes one beyond the mark."""
    caplog.set_level(logging.INFO, "headrace.slots")
    watched = Watched()
    await watched.look(3)
    assert watched.shift.sizes == [("llm", 12), ("llm", 18)] == watched.wanted
    assert watched.asked == [("llm", 1_001)] * 3
    assert watched.loop.slots == {"llm": 18, "fixed": 3}
    assert watched.telemetry.value("headrace.slots.grown") == 2
    assert watched.telemetry.snapshot()[SLOTS] == {
        "llm": {"size": 18, "min": 4, "max": 40, "eligible": 5_000, "used": 8, "held_by": None}
    }
    assert caplog.messages == [
        "queue llm: slots grown from 8 to 12 (5000 jobs could start)",
        "queue llm: slots grown from 12 to 18 (5000 jobs could start)",
    ]


async def test_it_says_once_what_holds_it(caplog: pytest.LogCaptureFixture) -> None:
    """A quota for three looks, then a cap, then nothing."""
    caplog.set_level(logging.INFO, "headrace.slots")
    watched = Watched()
    watched.shift.seen = (8, True)
    await watched.look(3)
    watched.shift.seen, watched.eligible = (8, False), Eligible(5_000, 0, "cap queue:llm", 1)
    await watched.look(2)
    assert watched.shift.sizes == []
    assert caplog.messages == [
        f"queue llm: slots held at 8 by {QUOTA} (5000 jobs wait)",
        "queue llm: slots held at 8 by cap queue:llm (5000 jobs wait)",
    ]


async def test_between_two_shifts_nothing_is_judged() -> None:
    """And the figures go with the shift."""
    watched = Watched()
    await watched.look()
    watched.shift = None
    await watched.look(5)
    assert watched.asked == [("llm", 1_001)]
    assert SLOTS not in watched.telemetry.snapshot()


async def test_a_shift_that_begins_during_the_count_is_the_one_that_is_resized() -> None:
    """The one before is over: its slots are nobody's."""
    watched = Watched()
    before, after = watched.shift, Slots()
    await watched.look()

    async def count(queue: str, at_most: int) -> Eligible:
        watched.shift = after
        return watched.eligible

    watched.loop._count = count
    await watched.look()
    assert (before.sizes, after.sizes) == ([], [("llm", 12)])


async def test_the_farm_hears_of_the_sizes_at_the_start() -> None:
    """Before anything has changed."""
    watched = Watched()
    watched.loop.start()
    assert watched.wanted == [("llm", 8)]
    await watched.loop.stop()


# Rates that are counted beside the store


async def test_what_could_start_is_counted_by_the_limiter_beside() -> None:
    """Its buckets decide, and while it is away nothing with a rate could start."""
    stores, beside = open_memory_stores(), open_memory_stores()
    rate = Rate(1_000.0, 1_000.0)
    await stores.admission.declare_limits(Declared(rates={"api": rate}))
    await beside.limiter.declare({"api": rate})
    await stores.jobs.insert_jobs([NewJob(JobSpec("work", gate=Gate(limits=(("api", 1.0),))), ARGS)])

    async def could_start() -> bool:
        return (await eligible_jobs(stores, beside.limiter, "default", 9)).jobs == 1

    # Declared there it begins empty, and has its first unit after a millisecond.
    await wait_until(could_start, message="the bucket to fill")
    await beside.limiter.close_bucket("api", 60 * SECOND)
    assert (await eligible_jobs(stores, beside.limiter, "default", 9)).held_by == "rate api"
    assert (await eligible_jobs(stores, stores.limiter, "default", 9)).jobs == 1

    class Away:
        async def levels(self, names: object) -> object:
            raise StoreUnavailableError("nobody listens there")

    away: Any = Away()
    assert await eligible_jobs(stores, away, "default", 9) == Eligible(held_by="rate api")


# What is told


def session(queues: dict[str, int], *, alive: bool = True, **stats: Any) -> SessionView:
    """Return a session."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return SessionView(uuid4(), "box", ProcessId("h", 1, 1), queues, now, now, alive, 0, stats)


def test_figures_of_live_workers_are_added_up() -> None:
    """A fixed queue is its own bounds; an elastic one is what the last heartbeat told."""
    row = {"size": 12, "min": 4, "max": 40, "eligible": 300, "used": 12, "held_by": QUOTA}
    workers = [
        session({"llm": 8, "plain": 3}, **{SLOTS: {"llm": row}}),
        session({"llm": 8}),
        session({"llm": 100}, alive=False),
    ]
    assert slots_of(workers[0])["llm"]["size"] == 12
    lines = expose_slots(workers).splitlines()
    for line in (
        'headrace_queue_slots{queue="llm"} 20', 'headrace_queue_slots_min{queue="llm"} 12',
        'headrace_queue_slots_max{queue="llm"} 48', 'headrace_queue_slots_eligible{queue="llm"} 300',
        'headrace_queue_slots_held{queue="llm"} 1', 'headrace_queue_slots{queue="plain"} 3',
        'headrace_queue_slots_max{queue="plain"} 3',
    ):  # fmt: skip
        assert line in lines
    assert 'queue="plain"' not in expose_slots(workers, queue="llm")


# What may be written


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"min_slots": 3}, "max_slots"),
        ({"grow_above": 3}, "max_slots"),
        ({"max_slots": 3, "min_slots": 4}, "min_slots"),
        ({"max_slots": True}, "max_slots"),
    ],
)
def test_a_queue_that_does_not_fit_is_refused(options: dict[str, Any], field: str) -> None:
    """The error names the field."""
    with pytest.raises(InvalidInputError) as refused:
        App("memory://").queue("llm", **options)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[queues.llm]\nmax_slots = 0", "[queues.llm] max_slots must be a whole number from 1"),
        ("[queues.llm]\nmin_slots = 0\nmax_slots = 3", "[queues.llm] min_slots must be a whole number from 1"),
        ("[queues.llm]\nmax_slot = 3", "did you mean 'max_slots'?"),
        ('[worker]\nresize_interval = "0s"', "worker.resize_interval must be longer than zero"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Any, text: str, told: str) -> None:
    """With the key, the rule and the value."""
    file = tmp_path / "headrace.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_settings(environ={}, file=file)
    assert told in str(refused.value)
