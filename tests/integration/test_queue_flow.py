"""Bounded queues and gathered jobs on PostgreSQL: the count in its place, several processes, and a worker that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.engine.intake import LEAST_CREDIT, Intake
from headrace.model.backlog import Bound
from headrace.model.errors import QueueFullError
from headrace.model.job import JobState, NewJob
from headrace.model.queue import QueueRule
from headrace.settings import QueueSettings, RecoverySettings, Settings
from tests.integration.postgres_setup import ARGS, SPEC, connection, schema_stores, shared_server
from tests.waiting import wait_until

JOBS = """
import asyncio, os, signal
from datetime import timedelta
from pathlib import Path
from headrace import App, Backoff
from headrace.settings import QueueSettings, RecoverySettings, Settings

app = App(settings=Settings(
    queue=QueueSettings(url=os.environ["TEST_URL"], schema=os.environ["TEST_SCHEMA"]),
    recovery=RecoverySettings(check_interval=timedelta(milliseconds=100)),
))
LOG, DEADLY = Path(os.environ["TEST_LOG"]), os.environ.get("TEST_DEADLY")

@app.task(batch_size=5, max_wait="50ms", retry=Backoff.none())
async def work(numbers: list[int]) -> list[int]:
    with LOG.open("a") as log:
        log.write("".join(f"{number}\\n" for number in numbers))
    if DEADLY and len(LOG.read_text().split()) == 15:
        # The third call; not before those ahead of it are recorded.
        while (await app.runtime.stores.inspect.queue_stats())[0].succeeded < 10:
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return [number * 2 for number in numbers]

async def main():
    async with app.worker(queues={"default": 5}):
        await asyncio.Event().wait()

if __name__ == "__main__":
    asyncio.run(main())
"""


async def test_a_killed_call_runs_again_and_only_what_was_not_recorded(tmp_path: Path) -> None:
    """After kill -9 in a call its jobs run again, gathered anew; those of the calls before it do not."""
    script, log = tmp_path / "gathered_jobs.py", tmp_path / "log"
    script.write_text(JOBS, encoding="utf-8")
    async with schema_stores() as (schema, stores):
        environ = os.environ | {
            "TEST_URL": shared_server().dsn, "TEST_SCHEMA": schema, "TEST_LOG": str(log),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }  # fmt: skip
        client = App(settings=Settings(queue=QueueSettings(url=shared_server().dsn, schema=schema)))
        async with client:
            jobs = [NewJob(SPEC, f'{{"args":[{number}],"kwargs":{{}}}}') for number in range(20)]
            await stores.jobs.insert_jobs(jobs)
            victim = subprocess.Popen([sys.executable, str(script)], env=environ | {"TEST_DEADLY": "1"})
            assert await asyncio.to_thread(victim.wait, 30) == -signal.SIGKILL
            killed = {int(line) for line in log.read_text().split()[-5:]}
            other = subprocess.Popen([sys.executable, str(script)], env=environ)
            try:
                views = [await client.job(job.id).result(30) for job in jobs]
            finally:
                other.terminate()
                await asyncio.to_thread(other.wait, 30)
            crashes = {number: await _crashes(stores, job) for number, job in enumerate(jobs)}
    assert views == [number * 2 for number in range(20)]
    runs = Counter(int(line) for line in log.read_text().split())
    again = {number for number, count in runs.items() if count > 1}
    assert again == killed
    assert set(runs) == set(range(20))
    assert max(runs.values()) == 2
    assert {number for number, count in crashes.items() if count} == again


async def _crashes(stores: Any, job: NewJob) -> int:
    view = await stores.inspect.get_job(job.id)
    assert view.state is JobState.SUCCEEDED
    return int(view.crashes)


async def test_eight_processes_overshoot_by_their_credits_at_most() -> None:
    """Eight intakes that press into one bounded queue stop near its bound, with the store's own count."""
    most = 200
    async with schema_stores() as (_, stores):

        async def press() -> int:
            stored, intake = 0, Intake(stores, {"default": QueueRule("default", bound=Bound(most))})
            try:
                while True:
                    if not intake.lets_in("default"):
                        await intake.enter("default")
                    await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
                    stored += 1
            except QueueFullError:
                return stored
            finally:
                await intake.close()

        stored = sum(await asyncio.gather(*(press() for _ in range(8))))
        assert await stores.inspect.waiting_jobs("default", at_most=10_000) == stored
    assert most <= stored <= most + 7 * LEAST_CREDIT


async def test_a_full_queue_refuses_inside_a_transaction_and_leaves_it_usable() -> None:
    """The caller's transaction goes on after a refusal: what it did before is kept, and nothing waited."""
    async with schema_stores() as (schema, _), connection() as mine:
        app = App(
            settings=Settings(
                queue=QueueSettings(url=shared_server().dsn, schema=schema),
                recovery=RecoverySettings(check_interval=timedelta(seconds=1)),
            )
        )
        app.queue("default", max_waiting=1, on_full="wait", wait_timeout="60s")

        @app.task
        async def work(number: int) -> int:
            return number

        async with app:
            await work.enqueue(1)
            async with asyncio.timeout(10), mine.transaction():
                await mine.execute("CREATE TEMPORARY TABLE kept (n int)")
                with pytest.raises(QueueFullError):
                    await work.options(connection=mine).enqueue(2)
                await mine.execute("INSERT INTO kept VALUES (1)")
            assert await mine.fetchval("SELECT count(*) FROM kept") == 1
            assert await app.runtime.stores.inspect.waiting_jobs("default", at_most=10) == 1


async def test_a_closed_queue_is_refused_in_another_process_within_a_second() -> None:
    """An app of its own, enqueueing all the time, hears of a close in less than a second and a half."""
    async with schema_stores() as (schema, stores):
        app = App(settings=Settings(queue=QueueSettings(url=shared_server().dsn, schema=schema)))

        @app.task
        async def work(number: int) -> int:
            return number

        async with app:
            await work.enqueue(0)
            loop = asyncio.get_running_loop()
            closed_at = loop.time()
            await stores.control.set_queue_closed("default", closed=True)

            async def refused() -> bool:
                try:
                    await work.enqueue(1)
                except Exception as error:
                    return type(error).__name__ == "QueueClosedError"
                return False

            await wait_until(refused)
            assert loop.time() - closed_at < 1.5
