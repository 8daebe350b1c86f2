"""Submitters and operators: what people and programs ask of the system, through the engine's own client parts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID, uuid4

from headrace.engine import operations
from headrace.engine.batches import Batches
from headrace.engine.client import Client
from headrace.engine.waiters import Waiters
from headrace.model.batch import BatchState, ClosePolicy, NewBatch
from headrace.model.breaker import BreakerReport, BreakerState
from headrace.model.errors import (
    ConflictError,
    FenceLostError,
    HeadraceError,
    InvalidInputError,
    NotFoundError,
    StoreUnavailableError,
)
from headrace.model.job import Completion, JobState, NewJob
from headrace.model.session import LeaderTerm
from headrace.model.stats import Retention
from headrace.ports.admission import Admission
from headrace.ports.stores import Stores
from headrace.testing.simulation.clocks import StoreClock
from headrace.testing.simulation.handlers import GATED, KINDS, METER, QUEUES, SPECS
from headrace.testing.simulation.loop import Actor
from headrace.testing.simulation.scenario import Errand

#: What a caller has to expect: the store was away, or others changed things first.
EXPECTED = (StoreUnavailableError, ConflictError, NotFoundError, InvalidInputError)


def encode(plan: Any) -> str:
    """Return the argument text of a job with this plan."""
    return json.dumps({"args": [plan], "kwargs": {}})


@dataclass(slots=True)
class Known:
    """What submitters have told each other of: ids that were accepted."""

    jobs: list[UUID] = field(default_factory=list)
    batches: list[UUID] = field(default_factory=list)
    #: Batches whose items somebody began to send.
    begun: list[NewBatch] = field(default_factory=list)
    #: Waits for results that have not ended.
    waiting: set[UUID] = field(default_factory=set)


class Submitter:
    """One client process: it runs errands."""

    def __init__(self, actor: Actor, stores: Stores, *, clock: StoreClock, chance: Random, known: Known) -> None:
        self.actor = actor
        self._stores, self._clock, self._chance, self._known = stores, clock, chance, known
        self._client, self._batches, self._waiters = Client(stores), Batches(stores), Waiters(stores)
        #: Called when this process dies in the middle of an errand.
        self.die: Callable[[], None] = lambda: None

    async def run(self, errand: Errand) -> None:
        """Run one errand; what a caller has to expect is no failure."""
        method = getattr(self, errand.kind)
        with suppress(*EXPECTED):
            await method(**errand.details)

    async def jobs(
        self, tasks: list[str], plans: list[Any], delays: list[float | None], after: str, pause: float
    ) -> None:  # fmt: skip
        """Enqueue jobs at the same time, and then do something with the first."""
        new = [self._job(*job) for job in zip(tasks, plans, delays, strict=True)]
        answers = await asyncio.gather(*map(self._client.enqueue, new), return_exceptions=True)
        ids = [answer for answer in answers if isinstance(answer, UUID)]
        self._known.jobs += ids
        await asyncio.sleep(pause)
        if ids and after:
            await self._follow_up(ids[0], after)

    burst = gated = jobs

    def _job(self, task: str, plan: Any, delay: float | None) -> NewJob:
        run_at = None if delay is None else self._clock.now() + timedelta(seconds=delay)
        return NewJob(KINDS[task], encode(plan), run_at=run_at)

    async def _follow_up(self, job_id: UUID, after: str) -> None:
        match after:
            case "cancel":
                await operations.cancel_job(self._stores, job_id)
            case "retry":
                self._known.jobs.append(await operations.retry_job(self._stores, job_id))
            case "wait":
                await self._wait(job_id)

    async def _wait(self, job_id: UUID) -> None:
        self._known.waiting.add(job_id)
        with suppress(NotFoundError):
            await self._waiters.final(job_id)
        self._known.waiting.discard(job_id)

    async def twins(self, bodies: list[str], key: str, gap: float) -> None:
        """Enqueue the same key several times, perhaps with another body."""

        async def one(number: int, body: str) -> None:
            await asyncio.sleep(gap * number)
            job = NewJob(SPECS["work"], encode(["quick", 0, 0]), key=key, body_hash=body)
            with suppress(*EXPECTED):
                self._known.jobs.append(await self._client.enqueue(job))

        await asyncio.gather(*(one(number, body) for number, body in enumerate(bodies)))

    async def scatter(self, **details: Any) -> None:
        """Submit a batch as a list."""
        texts = [encode(plan) for plan in details["plans"]]
        await self._submit(details, texts)

    async def stream(self, **details: Any) -> None:
        """Submit a batch as a stream, with pauses; perhaps it breaks off."""
        await self._submit(details, self._texts(details))

    async def _texts(self, details: dict[str, Any]) -> AsyncIterator[str]:
        half = len(details["plans"]) // 2
        for number, plan in enumerate(details["plans"]):
            if number == half and details["breaks"]:
                if details["breaks"] == "dies":
                    self.die()
                await asyncio.sleep(1_000)
            await asyncio.sleep(details["pause"] / 4)
            yield encode(plan)

    async def _submit(self, details: dict[str, Any], texts: Any) -> None:
        batch = NewBatch(
            SPECS[details["task"]], key=details["key"], body_hash="list" if isinstance(texts, list) else "stream",
            policy=ClosePolicy(details["max_failed"]), on_close=SPECS["called"] if details["on_close"] else None,
        )  # fmt: skip
        self._known.begun.append(batch)
        batch_id = await self._batches.submit(batch, texts)
        self._known.batches.append(batch_id)
        await asyncio.sleep(details["pause"])
        if details["after"] == "cancel":
            await self._batches.cancel(batch_id)
        elif details["after"] == "extend":
            await self._batches.extend(batch_id, [encode(["quick", 0, 0])] * 3, key="more", queue=batch.spec.queue)
        elif details["after"] == "retry":
            await self._retry_when_closed(batch_id, batch.spec.queue)

    async def _retry_when_closed(self, batch_id: UUID, queue: str) -> None:
        for _ in range(40):
            view = await self._stores.inspect.get_batch(batch_id)
            if view is None or view.state is BatchState.CLOSED:
                break
            await asyncio.sleep(0.2)
        await self._batches.retry_failed(batch_id, queue=queue)

    async def pause(self, queue: str, seconds: float) -> None:
        """Pause a queue for some time."""
        await operations.set_queue_paused(self._stores, queue, paused=True)
        await asyncio.sleep(seconds)
        await operations.set_queue_paused(self._stores, queue, paused=False)

    async def limit(self, what: str, value: Any, seconds: float, tasks: list[str], plans: list[Any]) -> None:
        """Enqueue jobs, and change a limit of theirs for some time, or for good, or tell of calls that failed."""
        await self.jobs(tasks, plans, [None] * len(tasks), "", seconds / 2)
        match what:
            case "cap":
                await self._gate.set_cap(*value)
                await asyncio.sleep(seconds)
                await self._gate.set_cap(value[0], None)
            case "rate":
                await self._gate.set_rate("meter", replace(METER, per_second=value))
                await asyncio.sleep(seconds)
                await self._gate.set_rate("meter", None)
            case "weight":
                await self._gate.set_weight(GATED, *value)
            case "breaker":
                await self._gate.set_breaker(value, BreakerState.OPEN)
            case "fail":
                await self._gate.report_calls([BreakerReport(value, uuid4(), 1, succeeded=False)] * 3)

    @property
    def _gate(self) -> Admission:
        return self._stores.admission

    async def cancel(self, count: int) -> None:
        """Cancel jobs that somebody submitted, items of batches among them."""
        for _ in range(count):
            await asyncio.sleep(self._chance.random())
            views = await self._stores.inspect.list_jobs(limit=20)
            live = [view.id for view in views if not view.state.final]
            if live:
                await operations.cancel_job(self._stores, self._chance.choice(live))

    async def forge(self, count: int, leader: bool) -> None:
        """Write for attempts of others, as a zombie does that remembers too much: with the wrong session or attempt.

        With `leader` it takes itself for the leader.
        """
        jobs, at_once = self._stores.jobs, timedelta(days=-1)
        for _ in range(count):
            await asyncio.sleep(self._chance.random())
            if leader:
                term = LeaderTerm(uuid4(), self._chance.randint(1, 3))
                await jobs.fail_overdue_jobs(grace=at_once, limit=9, term=term)
                await jobs.prune_jobs(Retention(at_once, at_once, at_once), limit=9, term=term)
            running = await self._stores.inspect.list_jobs(state=JobState.RUNNING)
            for view in running:
                wrong_session, step = self._chance.random() < 0.5, self._chance.random() < 0.5
                session = uuid4() if wrong_session or view.session is None else view.session
                attempt = view.attempt if wrong_session else view.attempt + self._chance.choice((-1, 1))
                with suppress(FenceLostError):
                    if step:
                        await jobs.save_step(view.id, attempt=attempt, session=session, name="step-0", value="0")
                    else:
                        await jobs.complete_jobs(session, [Completion(view.id, attempt, JobState.SUCCEEDED, "0")])

    async def settle(self) -> None:
        """Bring to an end what others left half done: paused queues, batches that nobody seals."""
        for queue in QUEUES:
            await operations.set_queue_paused(self._stores, queue, paused=False)
        for cap in ("task:narrow", "queue:gated"):
            await self._gate.set_cap(cap, None)
        await self._gate.set_rate("meter", None)
        for view in await self._stores.inspect.list_batches():
            with suppress(HeadraceError):
                if view.state in (BatchState.OPEN, BatchState.ABANDONED):
                    seal = self._chance.random() < 0.5
                    await (self._batches.seal(view.id) if seal else self._batches.cancel(view.id))
