"""Fair shares, caps, keys and rates, from the public names to the handlers, on the memory store."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Backoff, Batch, ConfigError, ConflictError, Limit, Rate
from headrace.model.admission import LimitsView
from headrace.model.errors import InvalidInputError, LimitTimeoutError, NotFoundError
from headrace.model.fairness import jain_index
from headrace.model.limits import Declared, Gate
from headrace.queue_settings import LimitsSettings, QueueTable
from headrace.settings import Settings
from tests.unit.engine_app import QUICK, quick_app, run_one, until_final
from tests.waiting import wait_until

SLOW_POLL = timedelta(minutes=1)


def recording(app: App, started: list[Any], **options: Any) -> Any:
    """Return a task that notes its argument."""

    @app.task(name="note", queue="llm", **options)
    async def note(value: Any) -> None:
        started.append(value)
        await asyncio.sleep(0)

    return note


async def all_done(*batches: Batch) -> None:
    """Wait until batches are closed."""
    for batch in batches:
        await batch.wait(timeout=30)


async def test_equal_batches_have_equal_shares() -> None:
    """Of eight batches of 100 submitted one after another, each has its eighth of the first 400 starts."""
    app = quick_app()
    app.queue("llm", fair="batch")
    started: list[int] = []
    note = recording(app, started)
    async with app:
        batches = [await app.submit(note, [number] * 100) for number in range(8)]
        async with app.worker(concurrency=10):
            await all_done(*batches)
    counts = Counter(started[:400])
    assert jain_index([float(counts[number]) for number in range(8)]) >= 0.95


async def test_a_small_batch_beside_large_ones_is_done_early() -> None:
    """Ten items come after two batches of 2,000: they are done when about thirty have started since."""
    app = quick_app()
    app.queue("llm", fair="batch")
    started: list[str] = []
    note = recording(app, started)
    async with app:
        large = [await app.submit(note, [name] * 2_000) for name in "ab"]
        async with app.worker(concurrency=5):
            await wait_until(lambda: len(started) > 200)
            before = len(started)
            small = await app.submit(note, ["small"] * 10)
            await all_done(small)
            last = max(index for index, name in enumerate(started) if name == "small")
            for batch in large:
                await batch.cancel()
    # The slots that were taken when it came, and its third of the starts.
    assert last - before < 5 + 3 * 10 + 10


async def test_a_fair_key_of_a_submit_wins_over_the_batch() -> None:
    """Batches of one tenant share that tenant's part."""
    app = quick_app()
    app.queue("llm", fair="batch")
    started: list[str] = []
    note = recording(app, started)
    async with app:
        batches = [await app.submit(note, ["a"] * 100, fair_key="a") for _ in range(3)]
        batches.append(await app.submit(note, ["b"] * 100, fair_key="b"))
        async with app.worker(concurrency=2):
            await all_done(*batches)
    assert 90 <= Counter(started[:200])["b"] <= 101


async def test_a_weight_acts_while_workers_run() -> None:
    """Three times the weight is three times the share, from the next start on."""
    app = quick_app(poll_interval=SLOW_POLL)
    started: list[str] = []
    note = recording(app, started)
    async with app:
        batches = [await app.submit(note, [key] * 400, fair_key=key) for key in "ab"]
        async with app.worker(concurrency=2):
            await wait_until(lambda: len(started) >= 100)
            await app.limits.set_weight("llm", "a", 3.0)
            since = len(started)
            await all_done(*batches)
    then = Counter(started[since + 10 : since + 210])
    assert 140 <= then["a"] <= 160
    assert 45 <= Counter(started[:100])["a"] <= 55


async def test_a_cost_uses_more_of_a_share() -> None:
    """Jobs of cost 4 of one key start a quarter as often as those of cost 1 of another."""
    app = quick_app()
    started: list[str] = []
    note = recording(app, started)
    async with app:
        batches = [
            await app.submit(note, ["dear"] * 100, fair_key="a", cost=4.0),
            await app.submit(note, ["cheap"] * 200, fair_key="b"),
        ]
        async with app.worker(concurrency=1):
            await all_done(*batches)
    assert 35 <= Counter(started[:200])["dear"] <= 45


class Crowd:
    """Counts who is inside at once."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def enter(self, *names: str) -> None:
        """Be inside for a moment."""
        self.inside.update(names)
        for name in names:
            self.most[name] = max(self.most[name], self.inside[name])
        await asyncio.sleep(0.002)
        self.inside.subtract(names)


async def test_caps_hold_over_all_workers() -> None:
    """Three workers of ten slots each run at most three of a task, five of the queue, two of a key."""
    app = quick_app()
    app.queue("q", concurrency=5)
    crowd = Crowd()

    @app.task(queue="q", concurrency=3)
    async def narrow(_number: int) -> None:
        await crowd.enter("narrow", "queue")

    @app.task(queue="q")
    async def wide(key: str) -> None:
        await crowd.enter(key, "queue")

    async with app, app.worker(), app.worker(), app.worker():
        batches = [await app.submit(narrow, range(60))]
        batches += [await app.submit(wide, [key] * 60, concurrency_key=key, key_limit=2) for key in "ab"]
        await all_done(*batches)
    assert crowd.most == {"narrow": 3, "queue": 5, "a": 2, "b": 2}


async def test_a_cap_is_changed_while_workers_run() -> None:
    """An operator lowers a cap, stops a queue with 0, and returns to what is declared."""
    app = quick_app(poll_interval=SLOW_POLL)
    running: list[int] = []
    release = asyncio.Event()

    @app.task(queue="q", concurrency=4)
    async def wait(number: int) -> None:
        running.append(number)
        await release.wait()

    async with app.worker():
        await app.limits.set_cap("task:wait", 2)
        batch = await app.submit(wait, range(8))
        await wait_until(lambda: len(running) == 2)
        await app.limits.set_cap("task:wait", None)
        await wait_until(lambda: len(running) == 4)
        await app.limits.set_cap("queue:q", 0)
        release.set()
        await wait_until(lambda: _done(batch, 4))
        assert len(running) == 4
        [queue, task] = (await app.limits.show()).caps
        assert (queue.key, queue.declared, queue.cap) == ("queue:q", None, 0)
        assert (task.key, task.declared, task.cap, task.running) == ("task:wait", 4, 4, 0)
        await app.limits.set_cap("queue:q", None)
        await batch.wait(timeout=10)


async def test_the_cap_of_a_key_changes_while_its_jobs_wait() -> None:
    """Jobs one at a time run three at a time as soon as an operator says so, and not at all with 0."""
    app = quick_app(poll_interval=SLOW_POLL)
    running: list[int] = []
    release = asyncio.Event()

    @app.task(queue="q")
    async def wait(number: int) -> None:
        running.append(number)
        await release.wait()

    async with app.worker():
        jobs = [await wait.options(concurrency_key="ann:1").enqueue(number) for number in range(6)]
        await wait_until(lambda: running == [0])
        await app.limits.set_cap("key:q:ann:1", 3)
        await wait_until(lambda: len(running) == 3)
        await app.limits.set_cap("key:q:ann:1", 0)
        release.set()
        await asyncio.gather(*(job.result(timeout=10) for job in jobs[:3]))
        why = await jobs[3].explain()
        assert "`headrace limits set-cap key:q:ann:1`" in str(why)
        assert running == [0, 1, 2]
        await app.limits.set_cap("key:q:ann:1", None)
        await asyncio.gather(*(job.result(timeout=10) for job in jobs))


async def test_a_limit_that_no_job_names_is_no_success() -> None:
    """A task that declares no cap and no rate cannot be given one from outside: the error says what to declare."""
    app = quick_app()

    @app.task(concurrency=2)
    async def capped() -> None: ...

    @app.task(rate_limit="1/s")
    async def rated() -> None: ...

    async with app:
        limits = app.limits
        with pytest.raises(NotFoundError, match=r"task 'rated' declares no concurrency=.*force=True"):
            await limits.set_cap("task:rated", 1)
        with pytest.raises(NotFoundError, match=r"task 'capped' declares no rate_limit=.*@app.task\(rate_limit="):
            await limits.set_rate("task:capped", "1/s")
        with pytest.raises(NotFoundError):
            await limits.set_cap("task:unknown", 1)
        assert await limits.show() == LimitsView()
        await limits.set_cap("task:capped", 1)
        await limits.set_rate("task:rated", "2/s")
        await limits.set_cap("task:unknown", 1, force=True)
        await limits.set_rate("task:unknown", "1/h", force=True)
        with pytest.raises(NotFoundError):
            await limits.set_cap("task:unknown", 2)
        await limits.set_cap("task:unknown", None)
        await limits.set_rate("task:unknown", None)


async def test_a_limit_that_another_process_declared_can_be_set() -> None:
    """Code that knows no tasks, as an operator's, changes what workers have declared."""
    app = quick_app()
    async with app:
        await app.runtime.stores.admission.declare_limits(
            Declared(caps={"task:far": 3}, rates={"task:far": Rate.parse("1/s")})
        )
        await app.limits.set_cap("task:far", 1)
        await app.limits.set_rate("task:far", "5/s")
        view = await app.limits.show()
    assert ([cap.cap for cap in view.caps], [rate.rate for rate in view.rates]) == ([1], [Rate.parse("5/s")])


async def _done(batch: Batch, count: int) -> bool:
    return (await batch.progress()).done == count


async def test_one_at_a_time_keeps_its_order_through_failures() -> None:
    """With `key_limit=1` a job that fails is tried again before the next one of its key starts; other keys go on."""
    app = quick_app()
    attempts: list[tuple[str, int]] = []

    @app.task(retry=Backoff.fixed(0.03, max_attempts=3))
    async def step(key: str, number: int) -> None:
        attempts.append((key, number))
        if number % 2 and attempts.count((key, number)) < 3:
            raise ValueError

    async with app.worker():
        calls = {key: step.options(concurrency_key=key) for key in "ab"}
        handles = [await calls[key].enqueue(key, number) for number in range(6) for key in "ab"]
        for handle in handles:
            await until_final(app, handle)
    for key in "ab":
        mine = [number for name, number in attempts if name == key]
        assert mine == [0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 5]


async def test_a_rate_is_reached_and_holds_no_slot() -> None:
    """20/s with a burst of 1 starts one job every 50 ms; the one slot is free for another task all the while."""
    app = quick_app(poll_interval=SLOW_POLL)
    limited_at: list[float] = []

    @app.task(queue="q", limits=[Limit("api", "20/s", burst=1)])
    async def limited(_number: int) -> None:
        limited_at.append(time.monotonic())

    @app.task(queue="q")
    async def free() -> str:
        return "free"

    async with app.worker(concurrency=1):
        batch = await app.submit(limited, range(20))
        await wait_until(lambda: len(limited_at) == 2)
        handle = await free.enqueue()
        assert await handle.result(timeout=5) == "free"
        assert len(limited_at) < 19
        await batch.wait(timeout=10)
    rate = 19 / (limited_at[-1] - limited_at[0])
    assert 14 <= rate <= 20.5


async def test_two_tasks_share_a_rate_and_take_what_each_costs() -> None:
    """A bucket of 10 units lets two jobs of 4 units pass, or three of the job's own cost 3."""
    app = quick_app()
    started: list[str] = []

    @app.task(limits=[Limit("tokens", "1/m", burst=10, cost=4)])
    async def four() -> None:
        started.append("four")

    @app.task(limits=[Limit("tokens", cost=None)], cost=3)
    async def own() -> None:
        started.append("own")

    async with app.worker():
        await four.enqueue()
        await own.enqueue()
        await own.enqueue()
        await wait_until(lambda: len(started) == 3)
        await own.options(cost=0.1).enqueue()
        await asyncio.sleep(0.1)
        assert started == ["four", "own", "own"]
        await app.limits.set_rate("tokens", "100/s")
        await wait_until(lambda: len(started) == 4)
        [view] = (await app.limits.show()).rates
        assert (view.declared, view.rate) == (Rate.parse("1/m", burst=10), Rate.parse("100/s"))


async def test_handlers_take_from_a_rate() -> None:
    """`app.limits.take` waits until the units are there, and gives back what was not needed."""
    app = quick_app()

    @app.task(limits=[Limit("tokens", "50/s", burst=10, cost=1)])
    async def ask() -> float:
        began = time.monotonic()
        await app.limits.take("tokens", 9)
        async with app.limits.take("tokens", 10) as taken:
            await taken.give_back(9)
        waited = time.monotonic() - began
        await app.limits.take("tokens", 9)
        return waited

    async with app.worker():
        waited = await (await ask.enqueue()).result(timeout=10)
    assert 0.15 <= waited < 1.0


async def test_taking_ends_with_the_deadline_of_the_attempt() -> None:
    """A handler that cannot have its units before its timeout is told at once, and so is one that would not wait."""
    app = quick_app()

    @app.task(timeout="5s", retry=Backoff.fixed(0, max_attempts=1), limits=[Limit("slow", "1/m", burst=1, cost=1)])
    async def ask() -> None:
        await app.limits.take("slow")

    async with app.worker():
        view = await until_final(app, await ask.enqueue())
        assert view.error is not None
        assert (view.error.kind, view.attempt) == ("limit_timeout", 1)
        with pytest.raises(LimitTimeoutError, match="'slow'"):
            await app.limits.take("slow", timeout="1s")


async def test_a_rate_that_a_provider_closed_lets_nothing_pass() -> None:
    """After a 429 the bucket is closed for as long as the provider said, for jobs and handlers alike."""
    app = quick_app()

    @app.task(limits=[Limit("api", "1000/s")])
    async def call() -> float:
        return time.monotonic()

    async with app.worker():
        await app.limits.close("api", 0.3)
        closed_at = time.monotonic()
        assert await (await call.enqueue()).result(timeout=10) - closed_at >= 0.25
        await app.limits.close("api", "1h")
        with pytest.raises(LimitTimeoutError):
            await app.limits.take("api", timeout=1)


async def test_a_rate_that_was_closed_by_mistake_is_opened() -> None:
    """By returning to what is declared; for longer than a provider ever says nothing is closed at all."""
    app = quick_app()

    @app.task(limits=[Limit("api", "1000/s")])
    async def call() -> str:
        return "called"

    async with app.worker():
        await app.limits.close("api", "7d")
        with pytest.raises(LimitTimeoutError):
            await app.limits.take("api", timeout=1)
        await app.limits.set_rate("api", None)
        assert await (await call.enqueue()).result(timeout=10) == "called"
        with pytest.raises(InvalidInputError, match=r"^wait must be at most 7d"):
            await app.limits.close("api", "8d")
        assert await (await call.enqueue()).result(timeout=10) == "called"


async def test_what_nobody_declared_is_named() -> None:
    """Taking from an unknown rate, closing it, or opening an unknown breaker, says how it would be known."""
    app = quick_app()
    async with app:
        for asked in (app.limits.take("api"), app.limits.close("api", "1h")):
            with pytest.raises(NotFoundError, match=r"no rate limit 'api'; declare it"):
                await asked
        assert (await app.limits.show()).rates == ()
        with pytest.raises(NotFoundError, match="'api'"):
            await app.limits.set_breaker("api", "open")


async def test_settings_win_over_the_code() -> None:
    """`[queues.NAME]` replaces single options of `app.queue`, and declares queues that the code does not."""
    table = QueueTable(concurrency=2)
    app = App(settings=Settings(**{**_facts(QUICK), "queues": {"q": table, "other": QueueTable(rate_limit="5/s")}}))
    app.queue("q", concurrency=5, rate_limit="30/s")

    @app.task(queue="q")
    async def work() -> None: ...

    async with app.worker():
        view = await app.limits.show()
        assert [(cap.key, cap.cap) for cap in view.caps] == [("queue:q", 2)]
        assert {rate.name: rate.rate for rate in view.rates} == {
            "queue:q": Rate.parse("30/s"),
            "queue:other": Rate.parse("5/s"),
        }


def _facts(settings: Settings) -> dict[str, Any]:
    return {"queue": settings.queue, "worker": settings.worker, "recovery": settings.recovery}


async def test_settings_that_do_not_fit_the_code_are_refused() -> None:
    """A burst in the file without a rate in file or code is named when the app is opened."""
    app = App(settings=Settings(**{**_facts(QUICK), "queues": {"q": QueueTable(burst=2.0)}}))
    with pytest.raises(ConfigError, match=r"\[queues.q\] rate_limit must be given where burst is"):
        async with app:
            pass


async def test_the_same_key_with_another_share_is_a_conflict() -> None:
    """The hash of a batch covers its fair key, concurrency key and cost."""
    app = quick_app()
    note = recording(app, [])
    async with app:
        first = await app.submit(note, [1], key="k", fair_key="a")
        assert (await app.submit(note, [1], key="k", fair_key="a")).id == first.id
        for other in ({"fair_key": "b"}, {}, {"fair_key": "a", "cost": 2.0}, {"fair_key": "a", "concurrency_key": "u"}):
            with pytest.raises(ConflictError):
                await app.submit(note, [1], key="k", **other)


async def test_the_same_key_gives_the_same_batch_in_a_queue_that_is_fair_by_batch() -> None:
    """The share that a batch gets for itself is no part of what was asked."""
    app = quick_app()
    app.queue("llm", fair="batch")
    note = recording(app, [])
    async with app:
        first, second = [await app.submit(note, [1], key="k") for _ in range(2)]
        assert first.id == second.id


def test_options_become_the_gate() -> None:
    """A task's limits and a call's keys together are the gate of a job."""
    app = quick_app()

    @app.task(
        concurrency=2, rate_limit="30/m", limits=[Limit("api", "60/m"), Limit("tokens", cost=None)], breaker="b", cost=7
    )
    async def call() -> None: ...

    spec = call.options(fair_key="acme", concurrency_key="u1", key_limit=3, cost=9).spec()
    assert spec.gate == Gate(
        fair_key="acme", key="u1", key_limit=3, caps=("task:call",),
        limits=(("api", 1.0), ("tokens", None), ("task:call", 1.0)), breakers=("b",),
    )  # fmt: skip
    assert spec.cost == 9.0
    declared = app.registry.declared()
    assert declared.rates == {"api": Rate.parse("60/m"), "task:call": Rate.parse("30/m")}
    assert (declared.caps, set(declared.breakers)) == ({"task:call": 2}, {"b"})


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a cap of nothing": ({"concurrency": 0}, "concurrency must be a whole number from 1"),
    "a cap of truth": ({"concurrency": True}, "concurrency must be a whole number"),
    "a rate without a period": ({"rate_limit": "30"}, 'rate_limit must be a number of units per s, m, h or d, such as'),
    "a rate larger than a number": ({"rate_limit": f"{'9' * 400}/s"}, "rate_limit must be .* to 1000000000/s"),
    "a rate too small to wait for": ({"rate_limit": "0.0000001/d"}, "rate_limit must be .* from 0.001/d"),
    "a rate that runs backwards": ({"rate_limit": Rate(-1.0, 1.0)}, "rate_limit must be .* from 0.001/d"),
    "a limit that is text": ({"limits": ["api"]}, "limits must be a list of Limit"),
    "one limit without a list of text": ({"limits": "api"}, "limits must be a list of Limit"),
    "a bucket named twice": ({"limits": [Limit("a"), Limit("a")]}, "limits must name each bucket once"),
    "a breaker with a wrong name": ({"breaker": "A b"}, "breaker must match"),
    "a cost of nothing": ({"cost": 0}, "cost must be a number above 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_of_a_task_are_named(case: str) -> None:
    """The error names option, rule and value."""
    options, message = WRONG[case]
    with pytest.raises(InvalidInputError, match=message):

        @quick_app().task(**options)
        async def work() -> None: ...


WRONG_CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "an empty fair key": ({"fair_key": ""}, "fair_key must be 1 to 128 printable characters"),
    "a fair key that is a number": ({"fair_key": 7}, "fair_key must be"),
    "a long concurrency key": ({"concurrency_key": "x" * 129}, "concurrency_key must be"),
    "a limit of no key": ({"key_limit": 2}, "key_limit needs a concurrency_key="),
    "a limit of nothing": ({"concurrency_key": "u", "key_limit": 0}, "key_limit must be a whole number from 1"),
    "a cost that is text": ({"cost": "3"}, "cost must be a number"),
    "an unknown option": ({"fairkey": "a"}, "options must be among .*fair_key"),
}


async def test_a_burst_needs_a_rate() -> None:
    """A burst that would be left out silently is refused, also beside a Rate, which has one."""
    with pytest.raises(InvalidInputError, match=r"Limit.rate must be given where burst is"):
        Limit("api", burst=5)
    with pytest.raises(InvalidInputError, match="burst must be that of the Rate"):
        Limit("api", Rate(1, 1), burst=50)
    async with quick_app() as app:
        with pytest.raises(InvalidInputError, match="burst must be that of the Rate"):
            await app.limits.set_rate("api", Rate(1, 1), burst=500)
        with pytest.raises(InvalidInputError, match="rate must be given where burst is"):
            await app.limits.set_rate("api", None, burst=5)


def test_a_debt_at_the_smallest_rate_can_be_told() -> None:
    """The wait for the largest cost at the smallest rate is bounded, rather than too long for a timedelta."""
    assert Rate.parse("0.001/d").missing(-1e9, 1.0) == timedelta(seconds=1e9)


@pytest.mark.parametrize("case", WRONG_CALLS)
async def test_wrong_options_of_a_call_are_named(case: str) -> None:
    """The same rules hold for `options(…)` and for `submit`."""
    options, message = WRONG_CALLS[case]
    app = quick_app()
    note = recording(app, [])
    with pytest.raises(InvalidInputError, match=message):
        note.options(**options).spec()
    async with app:
        with pytest.raises(InvalidInputError, match=message):
            await app.submit(note, [1], **options)


WRONG_QUEUES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown option": ({"slots": 2}, "queue option must be among concurrency"),
    "a wrong share": ({"fair": "user"}, 'fair must be "key" or "batch"'),
    "a burst without a rate": ({"burst": 2}, "rate_limit must be given where burst is"),
    "a burst beside that of a rate": ({"rate_limit": Rate(1, 1), "burst": 5}, "burst must be that of the Rate"),
    "a burst of nothing": ({"rate_limit": "1/s", "burst": 0}, "burst must be a number above 0"),
    "a burst that is no number": ({"rate_limit": "1/s", "burst": float("nan")}, "burst must be a number above 0"),
    "a burst without an end": ({"rate_limit": "1/s", "burst": float("inf")}, "burst must be .* at most 1e9"),
    "waiting without a bound": ({"on_full": "wait"}, "max_waiting must be given where on_full is"),
}


@pytest.mark.parametrize("case", WRONG_QUEUES)
def test_wrong_options_of_a_queue_are_named(case: str) -> None:
    """The error names option, rule and value."""
    options, message = WRONG_QUEUES[case]
    with pytest.raises(InvalidInputError, match=message):
        quick_app().queue("q", **options)


WRONG_CHANGES: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "a cap of no kind": ("set_cap", ("note", 1), 'key must be "task:NAME" or "queue:NAME"'),
    "a cap below zero": ("set_cap", ("task:note", -1), "cap must be a whole number from 0"),
    "a rate of a wrong name": ("set_rate", ("user:x", "1/s"), 'name must be "task:NAME" or "queue:NAME"'),
    "a rate that is none": ("set_rate", ("api", "fast"), "rate must be a number of units"),
    "a rate in other digits": ("set_rate", ("api", "٣/s"), "rate must be a number of units"),
    "a rate of text": ("set_rate", ("api", Rate("1", 1)), "rate must be a number of units"),  # type: ignore[arg-type]
    "a burst of text": ("set_rate", ("api", Rate(1, "1")), "burst must be a number above 0"),  # type: ignore[arg-type]
    "a rate of yes": ("set_rate", ("api", Rate(True, 1)), "rate must be a number of units"),
    "forgetting what has no name": ("forget", (7,), "name must"),
    "a weight of nothing": ("set_weight", ("llm", "a", 0), "weight must be a number from 0.001"),
    "a state that is none": ("set_breaker", ("api", "half_open"), 'state must be "open" or "closed"'),
}


@pytest.mark.parametrize("case", WRONG_CHANGES)
async def test_wrong_changes_are_named(case: str) -> None:
    """The error names parameter, rule and value, before the store is asked."""
    verb, arguments, message = WRONG_CHANGES[case]
    app = quick_app()
    async with app:
        with pytest.raises(InvalidInputError, match=message):
            await getattr(app.limits, verb)(*arguments)


def test_limits_declared_twice_have_to_agree() -> None:
    """Two rates under one name are refused before a worker starts; naming a limit without a rate is no second one."""
    app = quick_app()

    @app.task(limits=[Limit("api", "60/m")])
    async def one() -> None: ...

    @app.task(limits=[Limit("api")])
    async def two() -> None: ...

    assert app.registry.declared().rates == {"api": Rate.parse("60/m")}

    @app.task(limits=[Limit("api", "30/m")])
    async def three() -> None: ...

    with pytest.raises(ConfigError) as refused:
        app.registry.declared()
    assert str(refused.value).startswith(
        "rate limit 'api' is declared twice, as 1/s by task one and as 30/m by task three; declare it in one place"
    )
    app.queue("q", concurrency=2)
    app.queue("q", concurrency=2)
    with pytest.raises(ConfigError, match="queue 'q' is declared twice"):
        app.queue("q", concurrency=3)


async def test_a_plain_task_has_no_gate() -> None:
    """Without limits and keys a job costs nothing at the gate, even with a cost of its own."""
    app = quick_app()

    @app.task
    async def plain() -> str:
        return "plain"

    async with app:
        assert plain.options(cost=3).spec().gate is None
        view = await run_one(app, await plain.options(cost=3).enqueue())
    assert view.result == "plain"


def test_a_limiter_beside_the_store_is_a_redis_server() -> None:
    """`[limits] url` is hidden where settings are shown: a password may stand in it."""
    assert "hush" not in repr(LimitsSettings(url="redis://:hush@host"))
