"""What the submitters of a campaign do, each in a process of its own that may be killed at any moment.

An operation is named by a token. After a kill the same operation with the same token is sent again, as a caller would
do it, and has to end as if nothing had happened. What was acknowledged is on disk before the next step.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from headrace import Batch
from headrace.engine import draining, operations, schedules
from headrace.model.backlog import Alarm
from headrace.model.batch import BatchState, ClosePolicy
from headrace.model.errors import ConflictError, HeadraceError, QueueClosedError, StoreUnavailableError
from headrace.model.job import JobSpec, NewJob
from headrace.model.limits import Rate
from headrace.model.llm import Answer, StoredAnswer
from headrace.model.schedule import CatchUp, CronRule, Declaration
from headrace.stores.postgres import migrate as migrations
from tests.faults.campaign_events import emit
from tests.faults.campaign_tasks import (
    app,
    broken,
    capped,
    capped_app,
    closed,
    flaky,
    freshes,
    guarded,
    letter,
    mark,
    never,
    tick,
)  # fmt: skip
from tests.waiting import wait_until

#: The file of what was acknowledged.
ACKS = "FAULTS_ACKS"
#: How long one operation may take, with the store away in between.
PATIENCE = timedelta(seconds=60)
ITEMS = 20

Operation = Callable[["Client"], Awaitable[None]]


@dataclass
class Client:
    """One submitter, with the numbers and keys of its token."""

    token: str
    settings: Any
    stopping: Path
    _numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        # Numbers of one token never meet those of another, nor those of an earlier process with the same token,
        # except where the operation is sent again under its key.
        base = UUID(bytes=Random(self.token).randbytes(16)).int >> 80
        self._numbers = iter(range(base * 100, (base + 1) * 100))

    def numbers(self, count: int) -> list[int]:
        """Return numbers that belong to this token alone."""
        return [next(self._numbers) for _ in range(count)]

    def acknowledge(self, operation: str, **facts: Any) -> None:
        """Write down what the store has accepted, and return once that is on disk."""
        line = {"operation": operation, "token": self.token, **facts}
        log = os.open(os.environ[ACKS], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        try:
            os.write(log, json.dumps(line, default=str).encode() + b"\n")
            os.fsync(log)
        finally:
            os.close(log)

    async def submit(self, operation: str, task: Any, items: Any, count: int, **options: Any) -> Batch:
        """Submit a batch under the key of the token, with a callback, and acknowledge it."""
        batch = await app.submit(task, items, key=f"{self.token}-{operation}", on_close=closed, **options)
        self.acknowledge(operation, batch=batch.id, key=f"{self.token}-{operation}", count=count)
        return batch


def new_number() -> int:
    """Return a number for a job without a key: sent again, it is another job."""
    return uuid4().int >> 80


async def single(client: Client) -> None:
    """Enqueue one job without a key."""
    client.acknowledge("single", jobs=[(await mark.enqueue(new_number())).id])


async def several(client: Client) -> None:
    """Enqueue jobs at one moment: they share an insert."""
    jobs = await asyncio.gather(*(mark.enqueue(new_number()) for _ in range(5)))
    client.acknowledge("several", jobs=[job.id for job in jobs])


async def backlog(client: Client) -> None:
    """Submit so many jobs that workers claim with their acks."""
    for part in range(3):
        await client.submit(f"backlog-{part}", mark, client.numbers(30), 30)


async def again(client: Client) -> None:
    """Insert jobs again that have ended, as an insert does that was on its way for long: they must leave no trace."""
    jobs = [NewJob(JobSpec(mark.name), f'{{"args":[],"kwargs":{{"number":{new_number()}}}}}') for _ in range(40)]
    stores = app.runtime.stores
    await stores.jobs.insert_jobs([replace(job, run_at=datetime.now(UTC) + timedelta(hours=1)) for job in jobs])
    for job in jobs:
        await operations.cancel_job(stores, job.id)
    client.acknowledge("again", jobs=[job.id for job in jobs])
    await stores.jobs.insert_jobs(jobs)


async def long(client: Client) -> None:
    """Enqueue one job that runs for longer than a lease."""
    client.acknowledge("long", jobs=[(await mark.enqueue(new_number(), pause=4.0)).id])


async def slow(client: Client) -> None:
    """Enqueue jobs that run for three seconds."""
    jobs = await asyncio.gather(*(mark.enqueue(new_number(), pause=3.0) for _ in range(6)))
    client.acknowledge("slow", jobs=[job.id for job in jobs])


async def keyed(client: Client) -> None:
    """Enqueue one job under a key."""
    [number] = client.numbers(1)
    job = await mark.options(key=client.token).enqueue(number)
    client.acknowledge("keyed", jobs=[job.id], key=client.token)


async def delayed(client: Client) -> None:
    """Enqueue one job that starts a little later."""
    client.acknowledge("delayed", jobs=[(await mark.options(run_at="50ms").enqueue(new_number())).id])


async def capped_jobs(client: Client) -> None:
    """Enqueue jobs that run three at a time."""
    jobs = await asyncio.gather(*(capped.enqueue(new_number()) for _ in range(4)))
    client.acknowledge("capped", jobs=[job.id for job in jobs])


async def guarded_jobs(client: Client) -> None:
    """Enqueue jobs of several shares and keys, behind caps, rates and a breaker."""
    numbers = [new_number() for _ in range(4)]
    calls = [
        guarded.options(fair_key=f"tenant-{number % 3}", concurrency_key=f"key-{number % 5}", cost=1 + number % 3)
        for number in numbers
    ]
    jobs = zip(calls, numbers, strict=True)
    handles = await asyncio.gather(*(call.enqueue(number, f"key-{number % 5}") for call, number in jobs))
    client.acknowledge("guarded", jobs=[job.id for job in handles])


async def batch(client: Client) -> None:
    """Submit a list."""
    await client.submit("batch", mark, client.numbers(ITEMS), ITEMS)


async def flaky_batch(client: Client) -> None:
    """Submit a list of jobs that fail once, with steps."""
    await client.submit("flaky", flaky, client.numbers(4), 4)


async def stream(client: Client) -> None:
    """Submit a generator, in several slices."""
    numbers = client.numbers(25)
    await client.submit("stream", mark, (number for number in numbers), len(numbers))


async def resume(client: Client) -> None:
    """Submit a generator that breaks off, let it be abandoned, and submit it again."""
    numbers = client.numbers(15)
    found = await app.find_batch(mark, f"{client.token}-resume")
    if found is None:

        def broken_off() -> Iterator[int]:
            yield from numbers[:10]
            raise KeyError("the submitter gives up")

        with suppress(KeyError):
            await app.submit(mark, broken_off(), key=f"{client.token}-resume", on_close=closed)
        found = await app.find_batch(mark, f"{client.token}-resume")
        assert found is not None
    handle = found

    async def silent() -> bool:
        return (await handle.view()).state is not BatchState.OPEN

    await wait_until(silent)
    await client.submit("resume", mark, (number for number in numbers), len(numbers))


async def extend(client: Client) -> None:
    """Submit a list, wait for its end, and append another round."""
    numbers = client.numbers(15)
    handle = await client.submit("extend", mark, numbers[:3], 3)
    if (await handle.view()).round == 1:
        await handle.wait(PATIENCE)
    await handle.extend((number for number in numbers[3:]), key="more")
    client.acknowledge("extended", batch=handle.id, count=len(numbers), counted=3)


async def retry_failed(client: Client) -> None:
    """Submit a batch whose items all fail, and run them again."""
    handle = await client.submit("retry_failed", broken, client.numbers(4), 4)
    await handle.wait(PATIENCE)
    if (await handle.view()).round == 1:
        await handle.retry_failed()


async def policy(client: Client) -> None:
    """Submit a batch that is cancelled after its second failure."""
    await client.submit("policy", broken, client.numbers(40), 40, policy=ClosePolicy(max_failed=1))


async def cancel(client: Client) -> None:
    """Submit a batch and cancel it."""
    items = [{"number": number, "pause": 0.2} for number in client.numbers(60)]
    handle = await client.submit("cancel", mark, items, len(items), spread=True)
    await handle.cancel()


async def pause_batch(client: Client) -> None:
    """Submit a batch, pause it, give another reason, and resume it."""
    items = [{"number": number, "pause": 0.2} for number in client.numbers(30)]
    handle = await client.submit("pause_batch", mark, items, len(items), spread=True)
    for reason in ("a campaign", "still a campaign"):
        # Whoever died here before left it to the workers, who may have ended it.
        with suppress(ConflictError):
            await handle.pause(reason)
    await handle.resume()


async def cancel_job(client: Client) -> None:
    """Cancel a job that waits, and one that runs."""
    stores = app.runtime.stores
    [number, other] = client.numbers(2)
    waiting = await never.options(key=f"{client.token}-waits").enqueue(number)
    running = await mark.options(key=f"{client.token}-runs").enqueue(other, pause=2.0)
    client.acknowledge("cancel_job", jobs=[waiting.id, running.id])

    async def started() -> bool:
        return (await running.status()).value not in ("ready", "scheduled")

    await wait_until(started, PATIENCE)
    for job in (waiting, running):
        await operations.cancel_job(stores, job.id)


async def retry_job(client: Client) -> None:
    """Run a failed item of a batch again while another item still runs."""
    first, second = client.numbers(2)
    items = [{"number": first}, {"number": second, "fails": False, "pause": 1.5}]
    handle = await client.submit("retry_job", broken, items, 2, spread=True)
    jobs = await app.runtime.stores.inspect.list_jobs(batch_id=handle.id)
    original = next(job for job in jobs if job.ordinal == 0 and job.retry_of is None)

    async def failed() -> bool:
        view = await app.runtime.stores.inspect.get_job(original.id)
        return view is not None and view.state.final

    await wait_until(failed, PATIENCE)
    client.acknowledge("retried", jobs=[await operations.retry_job(app.runtime.stores, original.id)])


async def retry_queue(client: Client) -> None:
    """Run the failed jobs of a queue again that nobody ran again."""
    job = await letter.options(key=client.token).enqueue(client.numbers(1)[0])
    client.acknowledge("retry_queue", jobs=[job.id])

    async def failed() -> bool:
        return (await job.status()).final

    await wait_until(failed, PATIENCE)
    await operations.retry_queue(app.runtime.stores, "letters")


async def redrive(client: Client) -> None:
    """Redrive the dead letters of a queue, in several slices, with an argument that lets them succeed."""
    handle = await client.submit("redrive", letter, client.numbers(ITEMS), ITEMS)
    await handle.wait(PATIENCE)
    await app.dead_letters.redrive(queue="letters", patch={"kwargs": {"fails": False}})
    jobs = await app.runtime.stores.inspect.list_jobs(batch_id=handle.id, limit=10 * ITEMS)
    again = {job.retry_of for job in jobs}
    if left := [str(job.id) for job in jobs if job.retry_of is None and job.id not in again]:
        client.acknowledge("redrive", error=f"a redrive left {left}")


async def pause_queue(client: Client) -> None:
    """Pause a queue and resume it."""
    for paused in (True, False):
        await operations.set_queue_paused(app.runtime.stores, "broken", paused=paused, reason="a campaign")


async def operate(client: Client) -> None:
    """Change every limit while jobs run under it, and let all be as declared again."""
    stores, limits = capped_app.runtime.stores, capped_app.limits
    await limits.set_cap("task:capped", 1)
    await limits.set_rate("calls", "100/s", burst=10)
    await limits.set_weight("guarded", "tenant-0", 2.0)
    await limits.set_breaker("shaky", "open")
    await limits.close("calls", "50ms")
    own = f"own-{Random(client.token).randbytes(6).hex()}"
    await stores.limiter.declare({own: Rate(1.0, 1.0)})
    await stores.limiter.forget(own)
    await stores.control.set_alarms({"broken": Alarm(size=client.numbers(1)[0] % 1_000 + 1_000_000)})
    await limits.set_breaker("shaky", "closed")
    await limits.set_rate("calls", None)
    await limits.set_cap("task:capped", None)
    await limits.set_weight("guarded", "tenant-0", 1.0)
    await limits.set_cap(f"task:{own}", 1, force=True)
    await limits.forget(f"task:{own}")


async def cap_queue(client: Client) -> None:
    """Give a queue its first cap while its jobs run."""
    known = {cap.key for cap in (await capped_app.limits.show()).caps}
    task = next(task for task in freshes if f"queue:{task.name}" not in known)
    jobs = await asyncio.gather(*(task.enqueue(new_number()) for _ in range(6)))
    client.acknowledge("cap_queue", jobs=[job.id for job in jobs])

    async def started() -> bool:
        return (await jobs[0].status()).value not in ("ready", "scheduled")

    await wait_until(started, PATIENCE)
    await capped_app.limits.set_cap(f"queue:{task.name}", 2)


async def drain(client: Client) -> None:
    """Drain a queue, see that it lets nothing in, and open it again."""
    stores, queue = app.runtime.stores, f"drained-{Random(client.token).randbytes(6).hex()}"
    job = never.options(queue=queue, key=client.token)
    [number] = client.numbers(1)
    # Whoever was killed before may have left it closed.
    await draining.resume_queue(stores, queue)

    async def let_in() -> Any:
        with suppress(QueueClosedError):
            return await job.enqueue(number)

    waiting = await wait_until(let_in, PATIENCE)
    client.acknowledge("drain", jobs=[waiting.id])
    await operations.cancel_job(stores, waiting.id)
    assert (await draining.drain_queue(stores, queue, timeout=PATIENCE)).done
    with suppress(QueueClosedError):
        client.acknowledge("drain", error=f"{queue} is closed and let {await job.enqueue(number)} in")
    await draining.resume_queue(stores, queue)


async def memo(client: Client) -> None:
    """Store a paid answer, which the first writer decides."""
    key = Random(client.token).randbytes(32).hex()
    answer = Answer(text=uuid4().hex)
    stored = await app.runtime.stores.memo.store_answer(key, StoredAnswer("none", answer))
    client.acknowledge("memo", answer=[key, stored.answer.text])


async def clock(client: Client) -> None:
    """Declare a schedule that fires in years, run it by hand, let it rest, and forget it."""
    stores, name = app.runtime.stores, f"clock-{client.token}"
    assert stores.schedules is not None
    text = tick.definition.codec.encode([name], {})
    rule = CronRule("0 0 29 2 *", catch_up=CatchUp.ALL)
    declarations = [Declaration(name, rule, app.spec_of(tick.definition), text)]
    await stores.schedules.declare_schedules(declarations)
    await stores.schedules.declare_schedules(declarations, renew=True)
    client.acknowledge("clock", jobs=[await schedules.run_schedule(stores, name)])
    for paused in (True, False):
        await schedules.set_schedule_paused(stores, name, paused=paused)
    await schedules.forget_schedule(stores, name, force=True)


async def foreign(client: Client) -> None:
    """Enqueue inside a transaction of the caller's own."""
    connection = await asyncpg.connect(client.settings.queue.url)
    try:
        async with app.transaction(connection):
            job = await mark.options(connection=connection, key=client.token).enqueue(client.numbers(1)[0])
        client.acknowledge("foreign", jobs=[job.id], key=client.token)
    finally:
        await connection.close()


async def migrate(client: Client) -> None:
    """Fill a schema of its own."""
    schema = f"site_{Random(client.token).randbytes(6).hex()}"
    await migrations.apply(client.settings.queue.url, schema=schema)
    assert await migrations.pending(client.settings.queue.url, schema=schema) == []
    client.acknowledge("migrate")


OPERATIONS: dict[str, Operation] = {
    function.__name__: function
    for function in (
        single, several, backlog, again, long, slow, keyed, delayed, capped_jobs, batch, flaky_batch, stream, resume,
        extend, retry_failed, policy, cancel, pause_batch, cancel_job, retry_job, retry_queue, redrive, pause_queue,
        memo, foreign, migrate, clock, guarded_jobs, operate, cap_queue, drain, emit,
    )
}  # fmt: skip
#: What a submitter does all the time, by weight. None of it waits for the end of its jobs.
LOAD = [single] * 4 + [keyed] * 4 + [capped_jobs, guarded_jobs, batch] * 2 + [
    several, backlog, delayed, flaky_batch, stream
]  # fmt: skip


@asynccontextmanager
async def opened() -> AsyncIterator[None]:
    """Open both apps, however long the store is away."""
    async with AsyncExitStack() as stack:
        for each in (app, capped_app):
            while not each.is_open:
                try:
                    await stack.enter_async_context(each)
                except StoreUnavailableError:
                    await asyncio.sleep(0.1)
        yield


async def persist(client: Client, operation: Operation) -> None:
    """Do an operation, again and again while the store is away: with its key it stays the same one."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE.total_seconds()
    while True:
        client.__post_init__()
        try:
            await operation(client)
        except ConflictError as error:
            # Nobody else uses its keys: a conflict is a false one.
            client.acknowledge("conflict", error=str(error))
            return
        except StoreUnavailableError:
            if loop.time() > until:
                raise
            await asyncio.sleep(0.05)
        except HeadraceError as error:
            client.acknowledge("refused", error=f"{type(error).__name__}: {error}")
            return
        else:
            return


async def run_once(token: str, name: str, stopping: Path) -> None:
    """Do one operation."""
    async with opened():
        await persist(Client(token, app.settings, stopping), OPERATIONS[name])


async def run_load(token: str, lanes: int, pause: float, stopping: Path) -> None:
    """Do operations in several lanes until a file appears, with pauses of so many seconds on the average."""
    async with opened(), asyncio.TaskGroup() as group:
        for lane in range(lanes):
            group.create_task(_lane(f"{token}-{lane}", pause, stopping))


async def _lane(token: str, pause: float, stopping: Path) -> None:
    random = Random(token)
    number = 0
    while not stopping.exists():
        number += 1
        await persist(Client(f"{token}-{number}", app.settings, stopping), random.choice(LOAD))
        await asyncio.sleep(random.uniform(0.0, 2 * pause))
