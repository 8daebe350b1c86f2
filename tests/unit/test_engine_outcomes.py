"""How attempts end: outcomes, errors, and when they run again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import App, Backoff, Cancel, Context, Done, Fail, JobHandle, Retry, Snooze
from headrace.model.errors import (
    ConfigError,
    HeadraceError,
    InvalidInputError,
    JobCancelledError,
    JobFailedError,
    StoreUnavailableError,
)
from headrace.model.job import JobState
from headrace.model.provider_errors import InvalidRequestError, RateLimitedError
from tests.unit.engine_app import QUICK, quick_app, until_final, until_state, view_of

AT_ONCE = Backoff.fixed(0, max_attempts=3)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with a worker: tasks may be added while it runs."""
    app = quick_app()
    app.task(name="seed")(lambda: None)
    async with app.worker():
        yield app


async def start(app: App, function: Callable[..., Any], **options: Any) -> JobHandle[Any]:
    """Register a function that runs again at once, and enqueue one job of it."""
    options.setdefault("retry", AT_ONCE)
    name = options.pop("name", f"t{len(app.registry)}")
    job: JobHandle[Any] = await app.task(name=name, **options)(function).enqueue()
    return job


@pytest.mark.parametrize(
    ("value", "result"), [(5, 5), (None, None), (Done(5), 5), (Done(), None), (Done({"a": [1]}), {"a": [1]})]
)
async def test_a_returned_value_is_the_result(app: App, value: Any, result: Any) -> None:
    """A plain value and `Done` mean the same: the job succeeded with it, on its first attempt."""
    job = await start(app, lambda: value)
    assert await job.result(20) == result
    view = await view_of(app, job)
    assert (view.state, view.attempt, view.failures) == (JobState.SUCCEEDED, 1, 0)


async def test_a_snooze_spends_no_attempt(app: App) -> None:
    """A snoozed job comes back as often as it likes, also beyond its attempts, and has no failure for it."""

    async def wait_a_little(ctx: Context) -> Any:
        return Snooze("5ms") if ctx.attempt < 6 else "ready"

    job = await start(app, wait_a_little)
    assert await job.result(20) == "ready"
    view = await view_of(app, job)
    assert (view.attempt, view.failures, view.crashes) == (6, 0, 0)
    records = await app.runtime.stores.inspect.get_attempts(job.id)
    assert [(record.attempt, record.outcome) for record in records] == [(6, "succeeded")]


async def test_a_retry_spends_an_attempt(app: App) -> None:
    """A handler that asks to be retried is, until its attempts are used up; the reason is kept each time."""
    job = await start(app, lambda: Retry("not yet", delay=0))
    with pytest.raises(JobFailedError, match="retry: not yet"):
        await job.result(20)
    view = await view_of(app, job)
    assert (view.attempt, view.failures) == (3, 3)
    records = await app.runtime.stores.inspect.get_attempts(job.id)
    assert [(record.attempt, record.error.message) for record in records if record.error] == [
        (number, "not yet") for number in (1, 2, 3)
    ]


async def test_a_retry_without_delay_waits_as_the_backoff_says(app: App) -> None:
    """`Retry()` takes its delay from the task's policy."""
    job = await start(app, lambda: Retry(), retry=Backoff.fixed("1h"))
    view = await until_state(app, job, JobState.SCHEDULED)
    assert view.run_at is not None
    assert timedelta(minutes=59) < view.run_at - datetime.now(UTC) <= timedelta(hours=1)


async def test_fail_ends_at_once(app: App) -> None:
    """`Fail` is for good: no further attempt, and its reason is the error."""
    job = await start(app, lambda: Fail("no such page"))
    with pytest.raises(JobFailedError, match="failed: no such page"):
        await job.result(20)
    assert (await view_of(app, job)).attempt == 1


async def test_cancel_ends_as_cancelled(app: App) -> None:
    """`Cancel` ends the job as cancelled, with its reason."""
    job = await start(app, lambda: Cancel("superseded"))
    with pytest.raises(JobCancelledError, match="superseded"):
        await job.result(20)
    assert (await view_of(app, job)).state is JobState.CANCELLED


@pytest.mark.parametrize(
    ("outcome", "named"),
    [
        (Snooze("soon"), r"Snooze\.delay"),
        (Snooze(-1), r"Snooze\.delay"),
        (Retry(delay="later"), r"Retry\.delay"),
        (Fail(None), "reason"),  # type: ignore[arg-type]
        (Cancel(5), "reason"),  # type: ignore[arg-type]
        (Retry(7, delay=0), "reason"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
async def test_a_wrong_outcome_fails_the_job(app: App, outcome: Any, named: str) -> None:
    """An outcome with a wrong value ends the job with an error that names it; the job is never left running."""
    job = await start(app, lambda: outcome)
    with pytest.raises(JobFailedError, match=f"invalid_input: .*{named}"):
        await job.result(20)


async def test_an_exception_is_retried_and_every_attempt_is_kept(app: App) -> None:
    """A failed attempt runs again; each one's error is kept with class, message and trace."""

    async def stumble(ctx: Context) -> str:
        if ctx.attempt < 3:
            raise ValueError(f"stumble {ctx.attempt}")
        return "through"

    job = await start(app, stumble)
    assert await job.result(20) == "through"
    records = await app.runtime.stores.inspect.get_attempts(job.id)
    assert [(record.attempt, record.outcome) for record in records] == [(1, "failed"), (2, "failed"), (3, "succeeded")]
    errors = [record.error for record in records if record.error]
    assert [(error.kind, error.message) for error in errors] == [
        ("ValueError", "stumble 1"),
        ("ValueError", "stumble 2"),
    ]
    assert all("in stumble" in error.trace for error in errors)


@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_attempts_are_bounded(app: App, attempts: int) -> None:
    """`max_attempts` counts every run that may fail, the first included."""
    runs: list[int] = []

    async def fail(ctx: Context) -> None:
        runs.append(ctx.attempt)
        raise RuntimeError("again")

    view = await until_final(app, await start(app, fail, retry=Backoff.fixed(0, max_attempts=attempts)))
    assert (view.state, view.failures, runs) == (JobState.FAILED, attempts, list(range(1, attempts + 1)))


@pytest.mark.parametrize("attempts", [1, 2, 5])
async def test_a_call_may_have_other_attempts_than_its_task(app: App, attempts: int) -> None:
    """`options(max_attempts=)` counts instead of the task's own, whether lower or higher."""

    @app.task(retry=AT_ONCE)
    async def fail() -> None:
        raise RuntimeError("again")

    job = await fail.options(max_attempts=attempts).enqueue()
    assert (await until_final(app, job)).failures == attempts


async def test_without_a_policy_the_settings_bound_the_attempts() -> None:
    """A task without `retry=` has `[queue] max_retries` attempts after its first."""
    app = quick_app(settings=replace(QUICK, queue=replace(QUICK.queue, max_retries=1)))

    @app.task
    async def fail() -> Retry:
        return Retry(delay=0)

    async with app.worker():
        assert (await until_final(app, await fail.enqueue())).failures == 2


async def test_a_class_of_errors_has_its_own_policy(app: App) -> None:
    """`Backoff.on` gives an error class, and its subclasses, another wait or another number of attempts."""
    policy = AT_ONCE.on(OSError, Backoff.fixed("1h", max_attempts=2)).on(FileNotFoundError, None)

    async def fail_with(error: type[Exception], ctx: Context) -> None:
        raise error(f"attempt {ctx.attempt}")

    async def run(error: type[Exception]) -> JobHandle[Any]:
        return await start(app, lambda: (_ for _ in ()).throw(error("x")), retry=policy)

    broken, missing, other = await run(ConnectionError), await run(FileNotFoundError), await run(KeyError)
    assert (await until_state(app, broken, JobState.SCHEDULED)).failures == 1
    assert (await until_final(app, missing)).failures == 1
    assert (await until_final(app, other)).failures == 3


async def test_the_attempts_of_the_task_bound_every_policy(app: App) -> None:
    """The policy of an error class may ask for more attempts than its task has: the task's number counts."""

    async def fail() -> None:
        raise ConnectionError("busy")

    policy = Backoff.fixed(0, max_attempts=2).on(ConnectionError, Backoff.fixed(0, max_attempts=9))
    assert (await until_final(app, await start(app, fail, retry=policy))).failures == 2


async def test_never_ends_at_once(app: App) -> None:
    """An error class in `never` fails the job on its first attempt."""

    async def fail() -> None:
        raise PermissionError("no")

    view = await until_final(app, await start(app, fail, retry=replace(AT_ONCE, never=(PermissionError,))))
    assert (view.state, view.attempt) == (JobState.FAILED, 1)


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (InvalidInputError("a", "must be b"), 1),
        (ConfigError("wrong"), 1),
        (InvalidRequestError("wrong model"), 1),
        (StoreUnavailableError("gone"), 3),
        (RateLimitedError("slow down"), 3),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_our_errors_say_whether_trying_again_helps(app: App, error: HeadraceError, attempts: int) -> None:
    """Permanent errors of Headrace end the job at once, transient ones are retried; the kind is their code."""

    async def fail() -> None:
        raise error

    view = await until_final(app, await start(app, fail))
    assert view.attempt == attempts
    assert view.error is not None
    assert view.error.kind == error.code


async def test_a_policy_for_a_permanent_error_overrides_it(app: App) -> None:
    """What the task says of an error class goes before what the class says of itself."""

    async def fail() -> None:
        raise InvalidRequestError("flaky gateway")

    view = await until_final(app, await start(app, fail, retry=AT_ONCE.on(InvalidRequestError, AT_ONCE)))
    assert view.attempt == 3


async def test_retry_after_is_a_floor_under_the_wait(app: App) -> None:
    """A provider that asked to be left alone for an hour is, even when the policy would wait nothing."""

    async def fail() -> None:
        raise RateLimitedError("slow down", retry_after=timedelta(hours=1))

    view = await until_state(app, await start(app, fail), JobState.SCHEDULED)
    assert view.run_at is not None
    assert view.run_at - datetime.now(UTC) > timedelta(minutes=59)


def test_full_jitter_spreads_below_a_growing_ceiling() -> None:
    """The exponential wait is any time up to base·factor^(failures−1), never above the cap."""
    policy = Backoff.exponential(base="1s", cap="10s", factor=3)
    ceilings = [policy.delay(failures=failures, random=0.999999).total_seconds() for failures in range(1, 6)]
    assert ceilings == pytest.approx([1, 3, 9, 10, 10], rel=1e-3)
    assert policy.delay(failures=3, random=0.0) == timedelta()
    assert policy.delay(failures=500, random=0.5) == timedelta(seconds=5)


async def exit_in_loop() -> None:
    """Call sys.exit, as a command line tool in a library does."""
    sys.exit(3)


def exit_in_thread() -> None:
    """Call sys.exit in a thread."""
    sys.exit("bad usage")


def exhausted() -> Any:
    """Let StopIteration out, which futures cannot carry."""
    return next(iter([]))


async def inner_cancel() -> None:
    """Await something that somebody else cancelled."""
    inner = asyncio.ensure_future(asyncio.Event().wait())
    inner.cancel()
    await inner


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (exit_in_loop, "SystemExit"),
        (exit_in_thread, "SystemExit"),
        (exhausted, "StopIteration|RuntimeError"),
        (inner_cancel, "CancelledError"),
    ],
)
async def test_exceptions_that_mean_something_to_python_are_failures(
    app: App, handler: Callable[..., Any], kind: str
) -> None:
    """A handler that exits, or lets StopIteration or a foreign CancelledError out, just fails; its worker lives."""
    job = await start(app, handler)
    with pytest.raises(JobFailedError, match=kind):
        await job.result(20)
    assert (await view_of(app, job)).failures == 3
    assert await (await start(app, lambda: "alive")).result(20) == "alive"


async def test_any_error_text_can_be_stored(app: App) -> None:
    """Messages with NUL, lone surrogates or megabytes are kept in a form every store takes."""

    async def fail() -> None:
        raise RuntimeError("nul \x00 half \ud800 " + "x" * 1_000_000)

    view = await until_final(app, await start(app, fail, retry=Backoff.none()))
    assert view.error is not None
    assert view.error.message.startswith("nul \\0 half \\ud800 x")
    assert len(view.error.message) <= 2_000
    assert len(view.error.trace) <= 20_000
    view.error.trace.encode()


class UnreadableError(Exception):
    """An error that fails when it is shown."""

    def __str__(self) -> str:
        raise ValueError("not even this works")


async def test_an_error_that_cannot_be_shown_is_still_an_error(app: App) -> None:
    """An exception whose text cannot be made fails the job like any other."""

    async def fail() -> None:
        raise UnreadableError

    view = await until_final(app, await start(app, fail))
    assert view.error is not None
    assert (view.error.kind, view.failures) == ("UnreadableError", 3)


async def test_a_task_that_is_delivered_at_most_once_has_one_attempt(app: App) -> None:
    """Without a policy of its own an at-most-once task is not retried: its handler may have begun its effect."""

    @app.task(delivery="at_most_once")
    async def pay() -> None:
        raise RuntimeError("half done")

    view = await until_final(app, await pay.enqueue())
    assert (view.state, view.attempt) == (JobState.FAILED, 1)


async def test_an_unknown_task_is_left_to_others() -> None:
    """A job whose task this worker does not know is released without a failure, and waits for a worker that does."""
    new, old = quick_app(), quick_app()

    @new.task
    async def added_later() -> str:
        return "done"

    old.task(name="known")(lambda: None)
    async with new, old:
        old.runtime.stores = new.runtime.stores
        job = await added_later.enqueue()
        async with old.worker():
            view = await until_state(new, job, JobState.SCHEDULED)
        assert (view.failures, view.error) == (0, None)
        assert view.run_at is not None
        assert view.run_at > datetime.now(UTC) + timedelta(seconds=1)
