"""Circuit breakers: what counts as a failure, one probe, and reports that are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Backoff, Breaker, Cancel, Fail, Retry, Snooze
from headrace.engine.breaker_reports import BreakerReports
from headrace.engine.middleware.breaker import judge_ending, judge_error
from headrace.model.breaker import BreakerReport, BreakerRule, BreakerState
from headrace.model.errors import ConfigError, InvalidInputError, StoreUnavailableError, TaskTimeoutError
from headrace.model.ids import uuid7
from headrace.model.job import Completion, JobState
from headrace.model.provider_errors import (
    BadOutputError,
    ContextTooLongError,
    ProviderAuthError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    RateLimitedError,
    RefusedError,
)
from tests.unit.engine_app import quick_app, until_final
from tests.waiting import wait_until

SLOW_POLL = timedelta(minutes=1)


class WithStatus(Exception):
    """An error of a client library."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


class WithResponse(Exception):
    """An error of a client library that carries the response."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.response = WithStatus(status)


ERRORS: dict[str, tuple[BaseException, bool | None]] = {
    "a surprise": (ValueError("no"), False),
    "an exit": (SystemExit(1), False),
    "our own time limit": (TaskTimeoutError(), False),
    "the provider is away": (ProviderUnavailableError(), False),
    "the provider is slow": (ProviderTimeoutError(), False),
    "the provider refuses the key": (ProviderAuthError(), False),
    "a server error of a client library": (WithStatus(503), False),
    "a 429": (RateLimitedError(), None),
    "a 429 of a client library": (WithStatus(429), None),
    "a 429 in a response": (WithResponse(429), None),
    "a wrong request": (ContextTooLongError(), True),
    "a refusal": (RefusedError(), True),
    "a bad answer": (BadOutputError(), True),
    "wrong arguments": (InvalidInputError("x", "is wrong"), None),
    "our store is away": (StoreUnavailableError(), None),
    "our configuration": (ConfigError(), None),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_an_error_says(case: str) -> None:
    """What is called fails, or answers, if badly; a 429 and faults of our own say nothing of it."""
    error, works = ERRORS[case]
    assert judge_error(error) is works


def test_what_an_ending_says() -> None:
    """A value is a success; outcomes that a handler chooses say nothing; a child has judged by itself."""
    assert judge_ending(None) is True
    assert [judge_ending(ending) for ending in (Snooze(1), Retry(), Fail("no"), Cancel())] == [None] * 4
    completion = Completion(uuid7(), 1, JobState.SCHEDULED)
    assert [judge_ending(replace(completion, works=works)) for works in (True, False, None)] == [True, False, None]


def test_a_breaker_is_checked_where_it_is_made() -> None:
    """Wrong options are named; the rule holds what was given."""
    rule = Breaker("api", failures=3, error_rate=0.5, min_calls=20, window="2m", cooldown=5, on_open="fail").rule
    assert (rule.failures, rule.error_rate, rule.min_calls) == (3, 0.5, 20)
    assert (rule.window, rule.cooldown) == (timedelta(minutes=2), timedelta(seconds=5))
    assert Breaker("api", error_rate=0.2).rule == BreakerRule(error_rate=0.2)
    assert Breaker("api", cooldown="7d").rule.cooldown == timedelta(days=7)
    for options, message in (
        ({"failures": 0}, "breaker.failures must be a whole number"),
        ({"error_rate": 0.5, "min_calls": 10**12}, "breaker.min_calls must be a whole number from 1 to 1,000,000"),
        ({"error_rate": 1.5}, "breaker.error_rate must be between 0 and 1"),
        ({"cooldown": "0s"}, "breaker.cooldown must be a timedelta longer than zero"),
        ({"cooldown": "900d"}, "breaker.cooldown must be at most 7d, got '900d'"),
        ({"cooldown": timedelta(days=7, seconds=1)}, "breaker.cooldown must be at most 7d"),
        ({"error_rate": 0.5, "window": "soon"}, "breaker.window must be a duration"),
        ({"min_calls": 10}, "breaker.min_calls goes with error_rate=, such as error_rate=0.5, got 10"),
        ({"window": "1m"}, "breaker.window goes with error_rate=, such as error_rate=0.5, got '1m'"),
        ({"on_open": "skip"}, 'breaker.on_open must be "wait" or "fail"'),
    ):
        with pytest.raises(InvalidInputError, match=message):
            Breaker("api", **options)  # type: ignore[arg-type]


class Target:
    """What handlers call: it fails until it is repaired, and counts who calls."""

    def __init__(self) -> None:
        self.works = True
        self.calls = self.inside = self.most = 0
        self.hold = asyncio.Event()
        self.hold.set()

    async def call(self) -> str:
        """Answer, or fail."""
        self.calls += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.hold.wait()
            await asyncio.sleep(0.001)
            if not self.works:
                raise OSError("down")
            return "up"
        finally:
            self.inside -= 1


def calling(app: App, target: Target, **options: Any) -> Any:
    """Return a task that calls the target behind a breaker."""

    @app.task(
        name="call", queue="q", retry=Backoff.fixed(0.01, max_attempts=20),
        breaker=Breaker("api", **{"failures": 3, "cooldown": "300ms", **options}),
    )  # fmt: skip
    async def call(number: int) -> str:
        return await target.call()

    return call


async def state_of(app: App, name: str = "api") -> BreakerState:
    """Return where a breaker stands."""
    [view] = [view for view in (await app.limits.show()).breakers if view.key == name]
    return view.record.state


async def test_a_breaker_opens_lets_one_probe_pass_and_closes() -> None:
    """After three failures nothing is called for the cooldown; then exactly one job tries, and its success lets all
    others through at once."""
    app, target = quick_app(poll_interval=SLOW_POLL), Target()
    call = calling(app, target)

    async def is_open() -> bool:
        return await state_of(app) is BreakerState.OPEN

    async with app.worker(concurrency=1):
        target.works = False
        batch = await app.submit(call, range(20))
        await wait_until(is_open)
        assert target.calls == 3
        async with app.worker(concurrency=10):
            target.hold.clear()
            await wait_until(lambda: target.inside)
            assert await state_of(app) is BreakerState.HALF_OPEN
            await asyncio.sleep(0.1)
            assert (target.calls, target.inside) == (4, 1)
            target.works = True
            target.most = 0
            target.hold.set()
            await batch.wait(timeout=10)
            assert await state_of(app) is BreakerState.CLOSED
    assert target.most > 1


async def test_a_probe_that_fails_opens_again() -> None:
    """While the target is down there is one call per cooldown, however many jobs and slots there are."""
    app, target = quick_app(), Target()
    call = calling(app, target, cooldown="100ms", failures=1)
    target.works = False
    async with app.worker(concurrency=10):
        await app.submit(call, range(50))
        await wait_until(lambda: target.calls >= 1)
        first = target.calls  # those that started before the breaker opened
        await wait_until(lambda: target.calls >= first + 3)
        assert target.most <= first
        target.works = True


async def test_a_429_never_opens_a_breaker() -> None:
    """A hundred rate-limited attempts leave it closed."""
    app = quick_app()
    calls = []

    @app.task(breaker=Breaker("api", failures=1), retry=Backoff.fixed(0, max_attempts=3))
    async def call(number: int) -> str:
        calls.append(number)
        raise RateLimitedError

    async with app.worker():
        batch = await app.submit(call, range(30))
        await batch.wait(timeout=10)
        assert await state_of(app) is BreakerState.CLOSED
    assert len(calls) == 90


async def test_a_probe_that_says_nothing_gives_its_place_to_the_next() -> None:
    """The probe is snoozed: another job tries at once, and closes the breaker."""
    app, target = quick_app(poll_interval=SLOW_POLL), Target()
    call = calling(app, target, cooldown="200ms")
    snoozed = []

    @app.task(queue="q", breaker="api", priority="interactive")
    async def nap() -> Any:
        snoozed.append(target.calls)
        return Snooze("1h")

    async with app.worker():
        await app.limits.set_breaker("api", "open")
        await nap.enqueue()
        handle = await call.enqueue(1)
        await until_final(app, handle)
        assert await state_of(app) is BreakerState.CLOSED
    assert (snoozed, target.calls) == ([0], 1)


async def test_tasks_share_a_breaker_by_its_name() -> None:
    """Failures of one task hold back the jobs of another that names the same breaker."""
    app, target = quick_app(), Target()
    call = calling(app, target, cooldown="1h", failures=2)

    @app.task(breaker="api")
    async def other() -> str:
        return await target.call()

    target.works = False
    async with app.worker():
        await app.submit(call, [1, 2])
        await wait_until(lambda: target.calls >= 2)
        handle = await other.enqueue()
        await asyncio.sleep(0.1)
        assert await handle.status() is JobState.READY
        target.works = True
        await app.limits.set_breaker("api", "closed")
        assert (await until_final(app, handle)).result == "up"


async def test_a_breaker_that_is_only_named_has_the_usual_rule() -> None:
    """A name that no task declares is a breaker with the defaults."""
    app = quick_app()

    @app.task(breaker=["one", Breaker("two", failures=1)])
    async def call() -> None: ...

    assert app.registry.declared().breakers == {"one": BreakerRule(), "two": BreakerRule(failures=1)}
    assert call.definition.spec.gate is not None
    assert call.definition.spec.gate.breakers == ("one", "two")


def test_a_breaker_is_named_once() -> None:
    """Twice the same breaker would count each call twice, or have two rules: it is refused."""
    cases: list[list[Breaker | str]] = [
        ["api", Breaker("api")],
        [Breaker("api", failures=2), Breaker("api", failures=9)],
        ["api", "api"],
    ]
    for twice in cases:
        with pytest.raises(InvalidInputError, match=r"breaker must name each breaker once, got \['api', 'api'\]"):
            quick_app().task(name="call", breaker=twice)(lambda: None)


def gathering(app: App, entries: Any, **options: Any) -> Any:
    """Return a task that is called for four jobs at once, behind a breaker; `entries()` is what it returns."""

    @app.task(
        name="work", batch_size=4, max_wait="1s", retry=Backoff.none(),
        breaker=Breaker("api", **{"failures": 2, "cooldown": "1h", **options}),
    )  # fmt: skip
    async def work(numbers: list[int]) -> list[Any]:
        answer: list[Any] = entries(numbers)
        return answer

    return work


def raising(error: Exception) -> Any:
    """Return a function that raises."""

    def give(_: object) -> Any:
        raise error

    return give


OFF, BUSY = OSError("down"), RateLimitedError()
#: What a call for four jobs does, and calls and errors that the breaker counted then.
CALLS: dict[str, tuple[Any, tuple[int, int]]] = {
    "it raises": (raising(OFF), (1, 1)),
    "it raises a 429": (raising(BUSY), (0, 0)),
    "an answer for each": (lambda numbers: numbers, (1, 0)),
    "an error for each": (lambda _: [OFF] * 4, (1, 1)),
    "an error for some": (lambda _: [OFF, BUSY, OFF, 1], (1, 0)),
    "errors, and outcomes that say nothing": (lambda _: [Snooze("1h"), OFF, BUSY, Fail("no")], (1, 1)),
    "only what says nothing": (lambda _: [BUSY, Snooze("1h"), Cancel(), Fail("no")], (0, 0)),
    "no list": (lambda _: "wrong", (0, 0)),
}


@pytest.mark.parametrize("case", CALLS)
async def test_a_call_for_several_jobs_is_one_call(case: str) -> None:
    """A gathering handler that failed once failed once, however many jobs were in the call; it worked if it worked for
    one of them."""
    entries, expected = CALLS[case]
    app = quick_app()
    work = gathering(app, entries)
    async with app.worker(concurrency=4):
        handles = await work.enqueue_many(range(4))

        async def over() -> bool:
            states = [await handle.status() for handle in handles]
            return not {JobState.READY, JobState.RUNNING} & set(states)

        await wait_until(over)
        [view] = (await app.limits.show()).breakers
    assert (view.record.state, view.record.calls, view.record.errors) == ("closed", *expected)


async def test_a_call_that_stalls_is_one_failure() -> None:
    """Each attempt of the call has a timer of its own for stalls; together they are one call that failed."""
    app = quick_app()

    @app.task(
        batch_size=4, max_wait="10ms", stall_timeout="200ms", retry=Backoff.none(), breaker=Breaker("api", failures=2)
    )
    async def work(numbers: list[int]) -> list[int]:
        await asyncio.Event().wait()
        return numbers

    async with app.worker(concurrency=4):
        for handle in await work.enqueue_many(range(4)):
            await until_final(app, handle)
        [view] = (await app.limits.show()).breakers
    assert (view.record.calls, view.record.errors) == (1, 1)


async def test_a_probe_may_share_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe joins a job that passed before the breaker opened: their one call closes it."""
    monkeypatch.setattr("headrace.model.gathering.LEAST_PATIENCE", 5.0)
    app, seen = quick_app(), list[list[int]]()

    def note(numbers: list[int]) -> list[int]:
        seen.append(numbers)
        return numbers

    work = gathering(app, note, cooldown="20ms")
    async with app.worker(concurrency=20):
        await until_final(app, await work.enqueue(0))
        earlier = [await work.enqueue(number) for number in (1, 2, 3)]

        async def all_run() -> bool:
            return {await handle.status() for handle in earlier} == {JobState.RUNNING}

        await wait_until(all_run)
        await app.limits.set_breaker("api", "open")
        await until_final(app, await work.enqueue(4))
        assert await state_of(app) is BreakerState.CLOSED
    assert seen == [[0], [1, 2, 3, 4]]


class Admission:
    """Takes reports, slowly or never."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.gone = False
        self.answering = asyncio.Event()
        self.answering.set()

    async def report_calls(self, reports: Sequence[BreakerReport]) -> None:
        """Take reports."""
        self.calls.append(len(reports))
        await self.answering.wait()
        if self.gone:
            raise StoreUnavailableError


def report() -> BreakerReport:
    """Return a report."""
    return BreakerReport("api", uuid7(), 1, succeeded=True)


async def test_reports_gather_while_one_is_on_its_way() -> None:
    """Fifty attempts that end while a call is under way share the next one."""
    admission = Admission()
    reports = BreakerReports(admission)  # type: ignore[arg-type]
    admission.answering.clear()
    first = asyncio.create_task(reports.send([report()]))
    await wait_until(lambda: admission.calls)
    others = [asyncio.create_task(reports.send([report()])) for _ in range(50)]
    await asyncio.sleep(0)
    admission.answering.set()
    await asyncio.gather(first, *others)
    assert admission.calls == [1, 50]


async def test_reports_that_are_lost_harm_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """The store is away: attempts go on, and a line in the log says what was lost."""
    admission = Admission()
    admission.gone = True
    reports = BreakerReports(admission)  # type: ignore[arg-type]
    await reports.send([report()])
    assert "lost 1 reports" in caplog.text
    admission.gone = False
    await reports.send([report()])
    assert admission.calls == [1, 1]


async def test_an_attempt_does_not_wait_long_for_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not answer delays no ending for longer than the wait."""
    monkeypatch.setattr("headrace.engine.breaker_reports.WAIT_SECONDS", 0.05)
    admission = Admission()
    reports = BreakerReports(admission)  # type: ignore[arg-type]
    admission.answering.clear()
    async with asyncio.timeout(5):
        await reports.send([report()])
    admission.answering.set()
