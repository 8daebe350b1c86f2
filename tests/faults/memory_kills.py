"""Processes that make memory are killed at random moments; what was paid twice is counted by the provider itself."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import asyncpg

from headrace.model.calls import CallState
from tests.faults.memory_line import MemoryLine, chats
from tests.faults.site import WorkerProcess
from tests.waiting import wait_until

WORKERS = 3
#: Time between two looks for somebody who is at work.
PAUSE_SECONDS = (0.05, 0.6)
#: After so many kills there is peace for a while, so that work goes on at all on a busy machine.
ROW, PEACE_SECONDS = 3, 3.0
#: Jobs that saw two processes die run alone from then on, each in a process of its own, one after another.
LONG = timedelta(seconds=300)
#: How long beyond its lease a flush may be in processing: until somebody else is at it.
BEYOND = timedelta(seconds=10)
_LATE = "SELECT coalesce(max(extract(epoch FROM now() - lease_until)), 0) FROM {s}.flushes WHERE state = 'processing'"


@dataclass
class Report:
    """What a run showed."""

    kills: int = 0
    seconds: float = 0.0
    #: Calls that were under way at the kills, by the provider; by the ledger, which knows also those whose answer had
    #: come and was not stored yet; and calls beyond the first of each content.
    in_flight: int = 0
    orphaned: int = 0
    paid_twice: int = 0
    #: Those of them that the ledger does not list as orphaned, or as answered.
    unlisted: int = 0
    calls: int = 0
    #: The longest that a flush was in processing beyond its lease, in seconds.
    latest: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether every promise was kept."""
        paid_once = self.paid_twice <= max(self.in_flight, self.orphaned) and not self.unlisted
        return paid_once and not self.wrong and self.latest < BEYOND.total_seconds()


def describe(report: Report) -> dict[str, Any]:
    """Return a report as JSON has it."""
    return {**asdict(report), "clean": report.clean}


async def run(line: MemoryLine, *, users: int, each: int, kills: int, seed: int) -> Report:
    """Let users speak, and kill who makes memory of it again and again; count, once all of it is made."""
    report, chance, began = Report(), Random(seed), time.monotonic()
    for worker in [line.start() for _ in range(WORKERS)]:
        worker.wait_until_started()
    said = chats(users, each, Random(seed))
    for first in range(0, len(said), 20):
        await line.insert(said[first : first + 20])
    async with _watched(line, report):
        killing = asyncio.create_task(_kill(line, report, kills, chance))
        await line.settle(LONG)
        report.seconds = time.monotonic() - began
        killing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await killing
        await line.flush_rest(users)
    await count(line, report)
    return report


async def _kill(line: MemoryLine, report: Report, most: int, chance: Random) -> None:
    # Two of three in the middle of a call, the others anywhere.
    while report.kills < most:
        await asyncio.sleep(chance.uniform(*PAUSE_SECONDS))
        busy = await at_work(line)
        if not busy or (report.kills % 3 < 2 and not line.provider.stats().in_flight):
            continue
        report.in_flight += kill(line, chance.choice(busy))
        line.start()
        report.kills += 1
        if report.kills % ROW == 0:
            await asyncio.sleep(PEACE_SECONDS)


async def at_work(line: MemoryLine) -> list[WorkerProcess]:
    """Return the processes that have jobs under way."""
    sessions = await line.memory.app.runtime.stores.inspect.list_sessions()
    running = {session.process.pid for session in sessions if session.running}
    return [worker for worker in line.workers if worker.pid in running and worker.process.poll() is None]


def kill(line: MemoryLine, worker: WorkerProcess) -> int:
    """Kill a process, and return how many calls were under way just then."""
    # Stopped first: it begins and ends none between the look and its death.
    worker.signal(signal.SIGSTOP)
    in_flight = line.provider.stats().in_flight
    worker.kill()
    return in_flight


@asynccontextmanager
async def _watched(line: MemoryLine, report: Report) -> AsyncIterator[None]:
    """Look all the time how long flushes are in processing beyond their leases."""

    async def look() -> None:
        connection = await asyncpg.connect(line.dsn)
        try:
            while True:
                late = await connection.fetchval(_LATE.replace("{s}", line.schema))
                report.latest = max(report.latest, float(late))
                await asyncio.sleep(0.1)
        finally:
            await connection.close()

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def count(line: MemoryLine, report: Report) -> None:
    """Compare what the provider was asked with what the ledger lists, and look at the tables."""
    ledger = line.memory.app.runtime.stores.budgets
    listed: Counter[str] = Counter()
    for state in (CallState.SETTLED, CallState.ORPHANED):
        listed[state.value] = len(await ledger.list_calls(state=state, limit=10_000))
    report.calls, report.paid_twice = line.provider.stats().calls, line.paid_twice()
    report.orphaned = listed[CallState.ORPHANED.value]
    report.unlisted = max(report.calls - listed.total(), 0)
    report.wrong += [f"{row} did not wait for the one before" for row in await line.unordered()]
    report.wrong += [f"{row['user_id']}: {row['blob_id']} is {row['status']}" for row in await line.query(_LOST)]
    report.wrong += [f"{row['id']} has no event of its own" for row in await line.query(_WITHOUT)]
    twice = await line.query(_TWICE)
    report.wrong += [f"{row['blob_id']} is in {row['times']} flushes" for row in twice]


_LOST = "SELECT user_id, blob_id, status FROM {s}.buffer_zone WHERE status <> 'done'"
_WITHOUT = "SELECT id FROM {s}.flushes AS f WHERE NOT EXISTS (SELECT FROM {s}.user_events AS e WHERE e.id = f.id)"
_TWICE = """
SELECT blob_id, count(*) AS times FROM {s}.flushes CROSS JOIN unnest(blob_ids) AS u (blob_id)
GROUP BY 1 HAVING count(*) > 1
"""


class Gates:
    """Holds whoever writes something of flushes, inside the statement, until the gate is opened."""

    #: What the model made is to be kept; all of it is to be stored.
    SAVE, COMMIT = 1, 2

    def __init__(self, line: MemoryLine) -> None:
        self._line = line

    async def build(self) -> None:
        """Put the gates up, open."""
        await self._line.connection.execute(
            _GATE.replace("{s}", f'"{self._line.schema}"'),
        )

    async def close(self, gate: int) -> None:
        """Close a gate."""
        await self._line.query("SELECT pg_advisory_lock($1)", gate)

    async def someone_at(self, gate: int) -> int:
        """Wait until somebody stands at a closed gate, and return the process of the server that serves it."""

        async def waiting() -> int:
            rows = await self._line.query(
                "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted", gate
            )
            return rows[0]["pid"] if rows else 0

        return await wait_until(waiting, timedelta(seconds=60), message="somebody at the gate")

    async def open(self, gate: int, gone: int) -> None:
        """Open a gate; who stood there, and is dead, must not come through: the server does not know yet."""
        await self._line.query("SELECT pg_terminate_backend($1, 5000)", gone)
        await self._line.query("SELECT pg_advisory_unlock($1)", gate)


_GATE = """
CREATE FUNCTION {s}.gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state = 'processing' AND OLD.result IS NULL AND NEW.result IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock_shared(1);
  ELSIF NEW.state = 'done' AND OLD.state <> 'done' THEN
    PERFORM pg_advisory_xact_lock_shared(2);
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER gate BEFORE UPDATE ON {s}.flushes FOR EACH ROW EXECUTE FUNCTION {s}.gate();
"""
