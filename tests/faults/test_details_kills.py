"""Details over separate processes, each killed once under load: nothing is lost and every batch is delivered whole."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace.testing.provider import ProviderProcess
from headrace.wiring import migrate
from tests.backends.kafka import KafkaBroker
from tests.backends.server import PostgresServer
from tests.backends.valkey import ValkeyServer
from tests.faults.details_line import APART, DetailsLine, describe
from tests.faults.details_load import Load, Outcome, generate, store_figures
from tests.waiting import wait_until

pytestmark = pytest.mark.faults
RULES = files("headrace.apps.details.demo") / "rules.json"
#: The relay is the last: who takes over from it waits for the end of its term, and meanwhile nothing would flow.
VICTIMS = ("agent", "service", "callback", "worker", "redis", "broker", "postgres", "relay")


@pytest.fixture
def line() -> Iterator[DetailsLine]:
    """Every process by itself, over real servers of the three protocols, with a model that answers at once."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="hrdetails", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        postgres, redis, broker = PostgresServer(durable=True), ValkeyServer(), KafkaBroker(durable=True)
        for server in (postgres, redis, broker):
            stack.callback(server.remove)
        provider = stack.enter_context(ProviderProcess("--latency", "0.2,200", "--answers", str(RULES)))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        yield DetailsLine(postgres, provider, folder, port, redis, broker, APART)


async def _campaign(
    line: DetailsLine, load: Load, victims: Sequence[str], *, each: int
) -> tuple[Outcome, dict[str, Any]]:
    """Kill each victim once while batches come and go; `each`: batches that end between two kills."""
    await migrate(line.settings)
    stop, killed = asyncio.Event(), []
    try:
        await line.start_all()
        loading = asyncio.create_task(generate(line.client, load, stop))
        for name in victims:
            await _until_delivered(line, each)
            if name == "redis":
                assert line.redis is not None
                line.redis.call("FLUSHALL")
            await line.kill(name)
            killed.append(name)
        await _until_delivered(line, each)
        stop.set()
        outcome = await asyncio.wait_for(loading, 180)
        report = outcome.summary() | {"killed": killed, "ended": line.ended, "doubled_names": outcome.doubled[:5]}
        return outcome, report | {"store": await store_figures(line.postgres.dsn)}
    finally:
        line.end()


async def _until_delivered(line: DetailsLine, count: int) -> None:
    """Wait until so many more batches came to their end: what is killed next is at work."""
    before = await _ended(line)

    async def delivered() -> bool:
        return await _ended(line) >= before + count

    await wait_until(delivered, timedelta(seconds=90), message=f"{count} batches to end; {before} had")


async def _ended(line: DetailsLine) -> int:
    connection = await asyncpg.connect(line.postgres.dsn)
    try:
        found = await connection.fetchval(
            "SELECT count(*) FROM headrace.finished_jobs WHERE task = 'genesis_detail_batch_flow'"
        )
        return int(found)
    finally:
        await connection.close()


@pytest.mark.timeout(240)
async def test_each_process_is_killed_once_while_batches_are_made(line: DetailsLine) -> None:
    """Service, worker, relay, agent, callback service and the three servers: every batch is whole, no name doubled."""
    outcome, report = await _campaign(line, Load(clients=6, seconds=200, most=20), VICTIMS, each=2)
    print(describe(report))
    assert not outcome.faults, report
    assert not outcome.doubled, report
    assert not report["ended"], report
    assert len(outcome.journeys) > len(VICTIMS)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_each_process_is_killed_once_under_more_load(line: DetailsLine) -> None:
    """The same with 20 batches at once of up to 50 items, and each victim twice."""
    outcome, report = await _campaign(line, Load(clients=20, seconds=800), VICTIMS * 2, each=30)
    print(describe(report))
    assert not outcome.faults, report
    assert not outcome.doubled, report
    assert not report["ended"], report
