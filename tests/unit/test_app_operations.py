"""What operators do by the command line, done from code: pausing a queue, asking why a job waits."""

from __future__ import annotations

import asyncio
from datetime import datetime
from uuid import UUID, uuid4

import pytest

from headrace import Backoff, InvalidInputError, Limit, NotFoundError
from headrace.engine import operations
from headrace.model.admission import WaitReason
from headrace.model.job import JobState
from tests.unit.engine_app import quick_app, until_final


async def test_a_paused_queue_waits_until_it_is_resumed() -> None:
    """Nothing of it is claimed, what is enqueued is stored, the reason is shown; resumed, it goes on."""
    app = quick_app()

    @app.task(queue="sums")
    async def double(number: int) -> int:
        return 2 * number

    @app.task
    async def other() -> int:
        return 1

    async with app.worker():
        await app.pause("sums", reason="quota used up")
        handle = await double.enqueue(4)
        assert await (await other.enqueue()).result(10) == 1
        assert await handle.status() is JobState.READY
        why = await handle.explain()
        assert (why.explanation.reason, why.explanation.subject) == (WaitReason.PAUSED, "sums")
        assert "quota used up" in why.sentence
        assert str(why) == why.sentence
        await app.resume("sums")
        assert await handle.result(10) == 8


async def test_retrying_a_queue_ends_though_its_jobs_fail_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what had failed when it began runs again, once."""
    monkeypatch.setattr(operations, "SLICE", 1)
    app = quick_app()

    @app.task(retry=Backoff.none())
    async def fail(number: int) -> None:
        raise ValueError(f"cannot take {number}")

    async with app.worker():
        stores, jobs = app.runtime.stores, [await fail.enqueue(number) for number in range(3)]
        for job in jobs:
            await until_final(app, job)
        retry = stores.control.retry_queue

        async def retried(queue: str, *, limit: int, until: datetime | None = None) -> list[UUID]:
            made = await retry(queue, limit=limit, until=until)
            for job_id in made:
                await app.runtime.waiters.final(job_id)
            return made

        monkeypatch.setattr(stores.control, "retry_queue", retried)
        async with asyncio.timeout(10):
            assert await operations.retry_queue(stores, "default") == 3


async def test_pausing_a_queue_that_nobody_knows_is_a_mistake() -> None:
    """A name that no task, rule, job, worker or setting has is refused with those there are, unless it is forced."""
    app = quick_app()
    app.queue("declared")

    @app.task(queue="sums")
    async def double(number: int) -> int:
        return 2 * number

    async with app:
        for known in ("declared", "sums"):
            await app.pause(known)
        with pytest.raises(NotFoundError, match="no queue 'sumz'"):
            await app.pause("sumz")
        await app.pause("sumz", force=True)
        await app.pause("sumz", reason="again")
        for queue, reason in (("Sums!", None), ("sums", "x" * 501)):
            with pytest.raises(InvalidInputError):
                await app.pause(queue, reason=reason)
        states = await app.runtime.stores.control.queue_states()
        assert {name: state.paused_reason for name, state in states.items() if state.paused} == {
            "declared": None, "sums": None, "sumz": "again",
        }  # fmt: skip


async def test_a_handle_says_why_its_job_waits_and_what_became_of_it() -> None:
    """Before, during and after: the same answer as that of the command line; an unknown job is an error."""
    app = quick_app()

    @app.task(limits=[Limit("api", "1/h", burst=1)])
    async def call(number: int) -> int:
        return number

    async with app:
        first, second = await call.enqueue(1), await call.enqueue(2)
        assert (await first.explain()).explanation.reason is WaitReason.NO_WORKER
        async with app.worker():
            await until_final(app, first)
            why = await second.explain()
            assert (why.explanation.reason, why.explanation.subject) == (WaitReason.RATE, "api")
            assert why.explanation.until is not None
        assert (await first.explain()).sentence.startswith("it succeeded")
        with pytest.raises(NotFoundError, match="no job"):
            await app.job(uuid4()).explain()
