"""Many who write at once, who make memory at once, and a store that is away: nothing doubles, nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from random import Random
from uuid import NAMESPACE_URL, uuid5

import asyncpg
import pytest

from headrace.apps.memory.means import TABLES
from tests.backends.server import PostgresServer
from tests.faults.memory_kills import Report, at_work, count, describe, kill
from tests.faults.memory_line import MemoryLine, chats, memory_line
from tests.faults.site import ROOT
from tests.waiting import wait_until

WRITERS, USERS, EACH = 8, 3, 4
pytestmark = pytest.mark.timeout(300)


def writers(line: MemoryLine, *numbers: int) -> subprocess.Popen[bytes]:
    """Start a process in which some write."""
    command = [sys.executable, "-m", "tests.faults.memory_writer", *map(str, (USERS, EACH, *numbers))]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **line.environment})


@pytest.mark.parametrize("kills", [0, pytest.param(5, marks=pytest.mark.slow)])
async def test_eight_who_write_for_a_user_never_double_a_flush(tmp_path: Path, kills: int) -> None:
    """Inserts, looks and explicit flushes at once, by 8 in 4 processes, for the same users; 2 make memory of it."""
    async with memory_line(tmp_path, model=("--latency", "0.3" if kills else "0")) as line:
        for _ in range(2):
            line.start()
        writing = [writers(line, number, number + 1) for number in range(0, WRITERS, 2)]
        report, chance = Report(), Random(4)
        while report.kills < kills:
            victim = chance.choice(await wait_until(lambda: at_work(line), timedelta(seconds=60)))
            report.in_flight += kill(line, victim)
            report.kills += 1
            line.start()
            await wait_until(lambda: line.provider.stats().in_flight > 1, timedelta(seconds=60))
        for one in writing:
            assert await asyncio.to_thread(one.wait, 120) == 0
        await line.settle()
        await line.flush_rest(USERS)
        await count(line, report)
        assert report.clean, describe(report)
        said = {
            str(uuid5(NAMESPACE_URL, f"u-{user:02}/{number}/{place}"))
            for user in range(USERS)
            for number in range(WRITERS)
            for place in range(EACH)
        }
        kept = await line.kept()
        flushed = [blob for _, _, _, blobs, *_ in kept["flushes"] for blob in blobs]
        assert len(flushed) == len(said) and set(flushed) == said
        assert len(kept["events"]) == len(kept["flushes"])
        likes = {row[0]: set(row[3].split("; ")) for row in kept["profiles"] if row[1:3] == ("interest", "likes")}
        told = {f"Assam{number}x{place}" for number in range(WRITERS) for place in range(EACH)}
        assert likes == {f"u-{user:02}": told for user in range(USERS)}


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_store_that_stops_and_starts_in_the_middle_holds_up_nobody_for_long(
    tmp_path: Path, how: signal.Signals
) -> None:
    """It is away for longer than leases last, in the middle of calls; all goes on, and nothing is done twice."""
    users, each = 12, 6
    async with memory_line(tmp_path) as line:
        line.start()
        await line.insert(chats(users, each, Random(5)))
        await line.settle()
        await line.flush_rest(users)
        wanted = await line.kept()
    server = PostgresServer(durable=True)
    try:
        async with memory_line(tmp_path, server=server, model=("--latency", "1")) as line:
            for worker in [line.start(), line.start()]:
                worker.wait_until_started()
            await line.insert(chats(users, each, Random(5)))
            await wait_until(lambda: line.provider.stats().in_flight > 2, timedelta(seconds=60))
            in_flight = line.provider.stats().in_flight
            server.stop(how)
            await asyncio.sleep(8)
            server.start()
            line.connection.terminate()
            line.connection = await asyncpg.connect(server.dsn)
            await line.settle()
            await line.flush_rest(users)
            report = Report(kills=1, in_flight=in_flight)
            await count(line, report)
            assert report.clean, describe(report)
            assert await line.kept() == wanted
    finally:
        server.remove()


@pytest.mark.slow
async def test_who_was_frozen_beyond_the_lease_writes_nothing_late(tmp_path: Path) -> None:
    """Another takes the flush meanwhile, and stores it; the one that wakes up changes nothing."""
    async with memory_line(tmp_path, model=("--latency", "1")) as line:
        frozen = line.start().wait_until_started()
        [blob] = chats(1, 1, Random(1))
        await line.insert([blob])
        [flush] = await line.memory.flush("u-00")

        async def begun() -> bool:
            return bool(await line.query("SELECT 1 FROM {s}.flushes WHERE state = 'processing'"))

        await wait_until(begun, timedelta(seconds=30))
        await wait_until(lambda: line.provider.stats().in_flight, timedelta(seconds=30))
        frozen.signal(signal.SIGSTOP)
        other = line.start()
        await line.settle()
        kept = await line.kept()
        frozen.signal(signal.SIGCONT)
        other.kill()
        # It works on what comes next, as any other.
        await line.insert(chats(1, 3, Random(2))[1:])
        await line.flush_rest(1)
        assert (await TABLES.find_flush(flush.id)).state == "done"  # type: ignore[union-attr]
        then = await line.kept()
        assert (len(then["flushes"]), len(then["events"])) == (2, 2)
        for table in ("events", "flushes"):
            assert then[table][0] == kept[table][0]
