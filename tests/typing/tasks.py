"""The public types, for the type checker only: mypy reads this file, nothing runs it.

Every `assert_type` pins what a user sees; every ignored error is one that a user must see (mypy runs with
`warn_unused_ignores`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, assert_type

from headrace import (
    App,
    Backoff,
    Batch,
    BatchItem,
    Breaker,
    ClosePolicy,
    Context,
    Fail,
    GatherContext,
    JobHandle,
    Limit,
    Progress,
    Task,
)
from headrace.model.admission import LimitsView
from headrace.model.batch import BatchView
from headrace.model.job import CancelAnswer, JobState

app = App("memory://")


class Summary:
    """What a user's model may be."""


@app.task
async def summarise(text: str, *, words: int = 10) -> Summary:
    """Be an async task."""
    raise NotImplementedError


@app.task(queue="cpu", cpu=True, retry=Backoff.exponential(max_attempts=3, cap="2m"), timeout="90s", priority="high")
def count(text: str) -> int:
    """Be a sync task with options."""
    raise NotImplementedError


@app.task
async def with_context(ctx: Context, text: str) -> int | Fail:
    """Take the context first: it is no argument of the task."""
    assert_type(ctx.attempt, int)
    assert_type(ctx.deadline, datetime)
    assert_type(ctx.cancelled, bool)
    assert_type(ctx.idempotency_key, str)
    ctx.progress("half way")
    await ctx.step("read", lambda: 1)
    return Fail("no")


@app.task(stall_timeout=5, delivery="at_most_once", concurrency=2)
async def report(ctx: Context, batch_id: str) -> None:
    """Be a callback with options and a context."""


@app.task(batch_size=50, max_wait="100ms", queue="embed")
async def embed(texts: list[str]) -> list[Summary]:
    """Take a list: a job is one entry of it."""
    raise NotImplementedError


@app.task(batch_size=50)
def lengths(texts: list[str], ctx: GatherContext) -> list[int]:
    """Take a list and the context of the call."""
    assert_type(ctx.cancelled, bool)
    return [len(text) for text in texts]


@app.cron("0 3 * * *", tz="Europe/Berlin", catch_up="one", queue="slow")
async def nightly(ctx: Context, region: str = "all") -> int:
    """Run by a schedule; it can be enqueued, too."""
    assert_type(ctx.scheduled_at, datetime | None)
    return 1


app.schedule(nightly, "0 4 * * *", name="north", args=["north"])
app.schedule(nightly.options(priority="bulk"), "0 5 * * *", name="south", kwargs={"region": "south"})
app.schedule("nightly", "0 4 * * *")  # type: ignore[arg-type]
app.cron("0 3 * * *", zone="UTC")  # type: ignore[call-arg]


async def by_hand() -> None:
    """Enqueue what has a schedule."""
    assert_type(await nightly.enqueue("north"), JobHandle[int])


app.queue("llm", concurrency=20, rate_limit="30/m", fair="batch")
app.queue("llm", fair="tenant")  # type: ignore[arg-type]


@app.task(queue="llm", limits=[Limit("api", "60/m")], breaker=Breaker("api", cooldown="10s"), rate_limit="5/s", cost=2)
async def limited(text: str) -> int:
    """Take from a rate while it runs."""
    await app.limits.take("api", 2)
    async with app.limits.take("api", 10, timeout="5s") as taken:
        await taken.give_back(3)
    return 1


async def limits() -> None:
    """Show and change limits."""
    assert_type(await app.limits.show(), LimitsView)
    await app.limits.set_cap("queue:llm", None)
    await app.limits.set_rate("api", "60/m", burst=3)
    await app.limits.set_weight("llm", "acme", 2)
    assert_type(await app.limits.forget("openai"), frozenset[str])
    await app.submit(limited, ["a"], fair_key="acme", concurrency_key="u", key_limit=2, cost=3)
    await app.submit(limited, ["a"], fair_key=7)  # type: ignore[arg-type]
    await limited.options(fair_key="acme").enqueue(7)  # type: ignore[arg-type]


async def gathered() -> None:
    """Enqueue entries."""
    assert_type(await embed.enqueue("a text"), JobHandle[Summary])
    assert_type(await lengths.enqueue("a text"), JobHandle[int])
    await embed.enqueue(["a text"])  # type: ignore[arg-type]
    app.task(max_wait="1s")  # type: ignore[call-overload]


async def enqueue() -> None:
    """Enqueue jobs."""
    assert_type(await summarise.enqueue("a text", words=3), JobHandle[Summary])
    assert_type(await count.enqueue(text="a text"), JobHandle[int])
    assert_type(await with_context.enqueue("a text"), JobHandle[int | Fail])
    assert_type(await report.enqueue(batch_id="1"), JobHandle[None])
    job = await summarise.options(key="k", priority="bulk", run_at=timedelta(minutes=5)).enqueue("a text")
    assert_type(await job.result(timeout="30s"), Summary)
    assert_type(await job.status(), JobState)
    assert_type(await job.cancel(), CancelAnswer)
    assert_type(app.job("id"), JobHandle[Any])
    assert_type(await summarise.enqueue_many(["a", "b"]), list[JobHandle[Summary]])
    assert_type(await count.options(priority="low").enqueue_many([{"text": "a"}], spread=True), list[JobHandle[int]])
    await summarise.enqueue(5)  # type: ignore[arg-type]
    await summarise.enqueue("a text", letters=3)  # type: ignore[call-arg]
    await count.enqueue()  # type: ignore[call-arg]
    await with_context.enqueue()  # type: ignore[call-arg]


async def submit() -> None:
    """Submit batches."""
    batch = await app.submit(summarise, ["a", "b"], key="k", on_close=report, policy=ClosePolicy.fail_fast())
    assert_type(batch, Batch)
    assert_type(await batch.progress(), Progress)
    assert_type(await batch.wait(30), BatchView)
    assert_type(await batch.retry_failed(), int)
    async for item in batch.results(follow=False):
        assert_type(item, BatchItem)
        assert_type(item.index, int)
    found = await app.find_batch(summarise, "k")
    assert_type(found, Batch | None)
    await app.submit(summarise, ["a"], colour="red")  # type: ignore[call-arg]
    await app.submit(summarise, ["a"], policy="always")  # type: ignore[arg-type]
    await app.submit("summarise", ["a"])  # type: ignore[arg-type]


async def work() -> None:
    """Open the app."""
    async with app as opened:
        assert_type(opened, App)
    async with app.worker(queues={"llm": 5}, grace="10s"):
        pass
    assert_type(app.find_task("summarise"), Task[Any, Any])


def from_a_script() -> None:
    """Use the app from synchronous code."""
    job = app.sync(summarise.enqueue("a text"))
    assert_type(app.sync(job.result()), Summary)
    for item in app.sync.iterate(app.batch("id").results()):
        assert_type(item, BatchItem)


@app.task(colour="red")  # type: ignore[call-overload, untyped-decorator]
def wrong_option() -> None:
    """Name an option that is none."""


@app.task(priority=None)  # type: ignore[call-overload, untyped-decorator]
def wrong_value() -> None:
    """Give an option a wrong value."""
