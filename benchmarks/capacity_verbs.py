"""What verbs of the store cost by how many jobs one call takes: enqueue, claim, end, exchange, prune, model calls."""

from __future__ import annotations

import random
import statistics
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any

from benchmarks.capacity_meter import DAY, Costs, Site
from headrace.model.batch import NewBatch
from headrace.model.calls import NewCall, Settlement
from headrace.model.job import Claim, ClaimedJob, Completion, JobSpec, JobState, NewJob
from headrace.model.llm import Answer, StoredAnswer
from headrace.model.quota import Estimate
from headrace.model.stats import Retention
from headrace.model.usage import Usage

SPEC = JobSpec("work", timeout=timedelta(minutes=5))
AT_ONCE = timedelta(0)
#: Nothing is kept, so that a prune takes all there is.
NOTHING = Retention(AT_ONCE, AT_ONCE, AT_ONCE, AT_ONCE)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: calls of one job, jobs of larger calls, rounds, and the bytes of the large payload."""

    single: int = 80
    jobs: int = 1_000
    rounds: int = 5
    payload: int = 1_000

    def calls(self, size: int) -> int:
        """Return how many calls of a size."""
        return self.single if size == 1 else max(self.jobs // size, 2)


SHORT = Effort(single=3, jobs=20, rounds=1)


@dataclass(slots=True)
class Series:
    """One verb at one size: costs a job by round."""

    verb: str
    size: int
    payload: int
    rounds: list[Costs] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return medians, and the least and the most of processor time."""
        columns = list(zip(*(costs.all() for costs in self.rounds), strict=True))
        medians = Costs(*map(statistics.median, columns))
        spread = {
            name: [round(min(values), 2), round(max(values), 2)]
            for name, values in zip(asdict(medians), columns, strict=True)
            if name.endswith("_us")
        }
        rounded = {name: round(max(value, 0.0), 4) for name, value in asdict(medians).items()}
        return {"verb": self.verb, "size": self.size, "payload": self.payload, **rounded, "spread": spread}


class Measured:
    """All series so far, by verb, size and payload."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, int, int], Series] = {}

    def note(self, verb: str, size: int, costs: Costs, payload: int = 0) -> None:
        """Note what a job cost in one round."""
        key = (verb, size, payload)
        self._series.setdefault(key, Series(*key)).rounds.append(costs)

    def to_json(self) -> list[dict[str, Any]]:
        """Return all of them."""
        return [series.to_json() for series in self._series.values()]


class Verbs:
    """Runs verbs on a site and notes what each costs a job."""

    def __init__(self, site: Site, effort: Effort) -> None:
        self.site, self.effort, self.measured = site, effort, Measured()
        self._random = random.Random(12)
        self._nothing = Costs(*(0.0,) * 7)

    async def round(self) -> None:
        """Measure everything once."""
        before = await self.site.look()
        self._nothing = await self.site.look() - before
        for size in (1, 10, 100, 1_000):
            await self.enqueue(size)
        await self.enqueue(100, self.effort.payload)
        for size in (1, 10, 100):
            await self.claim_and_end(size)
        for size in (1, 10, 100):
            await self.exchange(size)
        await self.exchange(100, payload=self.effort.payload)
        await self.exchange(100, after_checkpoint=True)
        await self.submit(1_000)
        for size in (1, 10):
            await self.model_calls(size)
        await self.step()
        await self.renew()

    async def time(self, verb: str, size: int, calls: Sequence[Callable[[], Awaitable[Any]]], payload: int = 0) -> None:
        """Run calls of `size` jobs each, without what looking costs."""
        before = await self.site.look()
        for call in calls:
            await call()
        costs = await self.site.look() - before - self._nothing
        self.measured.note(verb, size, costs / (size * len(calls)), payload)

    def args(self, payload: int) -> str:
        """Return arguments of so many random bytes, which do not compress."""
        text = self._random.randbytes(payload // 2).hex()
        return f'{{"args":["{text}"],"kwargs":{{}}}}' if payload else '{"args":[123],"kwargs":{}}'

    def jobs(self, count: int, payload: int = 0) -> list[NewJob]:
        """Return new jobs."""
        return [NewJob(SPEC, self.args(payload)) for _ in range(count)]

    async def enqueue(self, size: int, payload: int = 0) -> None:
        """Insert jobs by calls of a size, then take them away."""
        lists = [self.jobs(size, payload) for _ in range(self.effort.calls(size))]
        insert = self.site.jobs.insert_jobs
        await self.time("enqueue", size, [lambda jobs=jobs: insert(jobs) for jobs in lists], payload)  # type: ignore[misc]
        await self.drain()

    async def claim(self, size: int) -> list[ClaimedJob]:
        """Claim jobs."""
        return await self.site.jobs.claim_jobs(Claim(self.site.session.id, "default", size))

    async def end(self, jobs: Sequence[ClaimedJob]) -> None:
        """End jobs well."""
        await self.site.jobs.complete_jobs(self.site.session.id, endings(jobs))

    async def drain(self) -> None:
        """Claim and end what waits, and vacuum: where nobody does, claims walk past what has gone."""
        while jobs := await self.claim(1_000):
            await self.end(jobs)
        await self.site.watch.execute("VACUUM capacity.jobs")

    async def fill(self, count: int, payload: int = 0) -> None:
        """Enqueue jobs, a thousand at a time."""
        for start in range(0, count, 1_000):
            await self.site.jobs.insert_jobs(self.jobs(min(1_000, count - start), payload))

    async def claim_and_end(self, size: int) -> None:
        """Claim by calls of a size, and end by as many."""
        calls, claimed = self.effort.calls(size), []
        await self.fill(calls * size)

        async def take() -> None:
            claimed.append(await self.claim(size))

        await self.time("claim", size, [take] * calls)
        await self.time("end", size, [lambda jobs=jobs: self.end(jobs) for jobs in claimed])  # type: ignore[misc]
        await self.drain()

    async def exchange(self, size: int, payload: int = 0, *, after_checkpoint: bool = False) -> None:
        """End what was claimed and claim as many, as a worker with a backlog does."""
        calls = self.effort.calls(size)
        await self.fill((calls + 1) * size, payload)
        held = await self.claim(size)
        if after_checkpoint:
            await self.site.watch.execute("CHECKPOINT")

        async def swap() -> None:
            nonlocal held
            claim = Claim(self.site.session.id, "default", size, after=(held[-1].sort_at, held[-1].id))
            _, held = await self.site.jobs.exchange_jobs(self.site.session.id, endings(held), claim)

        verb = "exchange after a checkpoint" if after_checkpoint else "exchange"
        await self.time(verb, size, [swap] * calls, payload)
        await self.end(held)
        await self.drain()

    async def submit(self, size: int) -> None:
        """Submit batches of a size."""
        batches = [NewBatch(SPEC) for _ in range(self.effort.calls(size))]
        items = [self.args(0)] * size
        create = self.site.batches.create_batch
        await self.time("submit a batch", size, [lambda b=b: create(b, items) for b in batches])  # type: ignore[misc]
        await self.drain()

    async def model_calls(self, size: int) -> None:
        """Open model calls and settle them with an answer of 1 kB, then ask for the same again."""
        lists = [list(self._calls(size)) for _ in range(self.effort.calls(size))]
        text = self._random.randbytes(500).hex()
        answer = StoredAnswer("scripted", Answer(text=text, usage=Usage(calls=1, input_tokens=100, output_tokens=250)))

        async def call(calls: list[NewCall]) -> None:
            await self.site.calls.open_calls(self.site.session.id, calls)
            usage = answer.answer.usage
            await self.site.calls.settle_calls([Settlement(call=one, answer=answer, usage=usage) for one in calls])

        async def again(calls: list[NewCall]) -> None:
            await self.site.calls.open_calls(self.site.session.id, [_again(one) for one in calls])

        await self.time("model call", size, [lambda calls=calls: call(calls) for calls in lists])  # type: ignore[misc]
        await self.time("answer from the memo", size, [lambda calls=calls: again(calls) for calls in lists])  # type: ignore[misc]

    def _calls(self, size: int) -> Iterator[NewCall]:
        for _ in range(size):
            key = sha256(self._random.randbytes(16)).hexdigest()
            yield NewCall(key=key, pool="main", provider="scripted", model="m", estimate=Estimate(100, 250))

    async def step(self) -> None:
        """Store a step of 100 bytes."""
        calls = self.effort.calls(1)
        await self.fill(calls)
        jobs = await self.claim(calls)
        save, session, value = self.site.jobs.save_step, self.site.session.id, f'"{"x" * 98}"'
        steps = [
            lambda job=job: save(job.id, attempt=job.attempt, session=session, name="s", value=value)  # type: ignore[misc]
            for job in jobs
        ]
        await self.time("step", 1, steps)
        await self.end(jobs)

    async def renew(self) -> None:
        """Renew a lease, as every worker does each few seconds."""
        renew, session = self.site.sessions.renew_session, self.site.session.id
        await self.time("heartbeat", 1, [lambda: renew(session, lease=DAY, stats={})] * self.effort.calls(1))

    async def prune(self) -> None:
        """Take all history away, a thousand at a time."""
        before, removed = await self.site.look(), 0
        while count := (await self.site.jobs.prune_jobs(NOTHING, limit=1_000)).removed["jobs"]:
            removed += count
        costs = await self.site.look() - before - self._nothing
        self.measured.note("prune", 1_000, costs / max(removed, 1))


def endings(jobs: Sequence[ClaimedJob]) -> list[Completion]:
    """Return how all of them end well."""
    return [Completion(job.id, job.attempt, JobState.SUCCEEDED, result="null") for job in jobs]


def _again(call: NewCall) -> NewCall:
    """Return another call that asks the same."""
    return NewCall(key=call.key, pool=call.pool, provider=call.provider, model=call.model, estimate=call.estimate)
