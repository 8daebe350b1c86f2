"""Measure how fast events leave the outbox, and what a full outbox costs.

Run ``python -m benchmarks.events [--events 20000] [--bus store|kafka] [--format headrace|cloudevents]``. It fills the
outbox of a PostgreSQL of its own (fsync and synchronous_commit on, other settings default), looks at its front, and
lets a relay in a process of its own drain it: to the log of messages in the same server, or to a broker of the Kafka
protocol that keeps topics in memory. With ``--events 500000`` it also tells whether memory and speed stay as they are.
Needs what the tests need: `uv sync --all-extras`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg

from headrace.buses.stored import StoreBus
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.relay import PUBLISHED, Relay, RelayOptions
from headrace.engine.telemetry import Telemetry
from headrace.event_settings import EventSettings, KafkaSettings
from headrace.model.event import Event, outgoing
from headrace.model.session import Role
from headrace.ports.bus import Bus
from headrace.ports.outbox import Outbox
from headrace.ports.stores import EventStores, Stores
from headrace.stores.postgres import open_postgres_stores
from tests.backends.server import PostgresServer

SCHEMA = "bench"
KEYS, PAYLOAD = 1_000, {"style": "grim", "text": "x" * 400}
#: The outbox is filled in transactions of so many events.
SLICE = 5_000
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, for the process of the relay."""

    dsn: str
    servers: str
    events: int
    form: str
    batch: int


@dataclass(slots=True)
class Drained:
    """What the process of the relay saw."""

    seconds: float
    #: Resident memory in MiB: before the first batch, after a tenth, at the end, and the most there ever was.
    before: float
    tenth: float
    after: float
    peak: float


def resident() -> float:
    """Return the resident memory of this process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


async def open_stores(dsn: str) -> tuple[Stores, EventStores]:
    """Open the stores of a server."""
    stores = await open_postgres_stores(dsn=dsn, schema=SCHEMA, auto_migrate=True)
    assert stores.events is not None
    return stores, stores.events


async def fill(outbox: Outbox, count: int) -> float:
    """Put events into the outbox; return the seconds that took."""
    begun = time.perf_counter()
    for first in range(0, count, SLICE):
        numbers = range(first, min(first + SLICE, count))
        events = [Event("Bench.Thing.Happened", "Thing", f"thing-{n % KEYS}", {**PAYLOAD, "n": n}) for n in numbers]
        await outbox.insert_events([outgoing(event) for event in events])
    return time.perf_counter() - begun


async def front(outbox: Outbox, batch: int) -> float:
    """Return the median milliseconds of a look at the front of the outbox."""
    taken = []
    for _ in range(9):
        begun = time.perf_counter()
        assert len(await outbox.waiting_events(limit=batch)) == batch
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


def make_bus(plan: Plan, stores: Stores, events: EventStores) -> Bus:
    """Return the bus of a plan."""
    settings = EventSettings(bus="kafka" if plan.servers else "store", kafka=KafkaSettings(servers=plan.servers))
    if not plan.servers:
        lease, poll = settings.member_lease, settings.poll_interval
        return StoreBus(events.log, stores.notifier, partitions=settings.partitions, lease=lease, poll=poll)
    from headrace.buses.kafka import KafkaBus

    return KafkaBus(settings)


async def drain(plan: Plan) -> Drained:
    """Relay all events of a plan."""
    stores, events = await open_stores(plan.dsn)
    bus, telemetry = make_bus(plan, stores, events), Telemetry()
    leadership = Leadership(stores, uuid4(), role=Role.RELAY)
    await leadership.step()
    relay = Relay(events.outbox, bus, leadership, telemetry, RelayOptions(batch=plan.batch, form=plan.form))
    before, begun = resident(), time.perf_counter()
    leadership.start()
    relay.start()

    async def published(count: int) -> float:
        while telemetry.value(PUBLISHED) < count:  # noqa: ASYNC110 - a counter tells nobody
            await asyncio.sleep(0.005)
        return resident()

    tenth = await published(plan.events // 10)
    after = await published(plan.events)
    took = time.perf_counter() - begun
    await relay.stop()
    await leadership.stop()
    await leadership.resign()
    await bus.close()
    await stores.close()
    return Drained(took, before, tenth, after, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def run_drain(plan: Plan, answer: Any) -> None:
    """Drain in a process of its own."""
    answer.send(asdict(asyncio.run(drain(plan))))


def drain_apart(plan: Plan) -> Drained:
    """Return what another process saw of its relay."""
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=run_drain, args=(plan, there))
    child.start()
    there.close()
    try:
        return Drained(**here.recv())
    finally:
        child.join()


@contextmanager
def broker(kind: str) -> Iterator[tuple[str, str]]:
    """Yield the address of a broker, "" for the store, and what it is."""
    if kind == "store":
        yield "", "the log of messages in the same PostgreSQL"
        return
    from tests.backends.kafka import KafkaBroker

    server = KafkaBroker()
    try:
        yield server.servers, "one Tansu broker, topics in memory, on the same machine"
    finally:
        server.remove()


async def with_outbox(dsn: str, work: Callable[[Outbox], Awaitable[Any]]) -> Any:
    """Do something with the outbox of a server."""
    stores, events = await open_stores(dsn)
    try:
        return await work(events.outbox)
    finally:
        await stores.close()


async def versions(dsn: str) -> str:
    """Return what is measured with."""
    connection = await asyncpg.connect(dsn)
    server = await connection.fetchval("SHOW server_version")
    sync = await connection.fetchval("SELECT current_setting('fsync') || '/' || current_setting('synchronous_commit')")
    await connection.close()
    return (
        f"PostgreSQL {server} (fsync/synchronous_commit {sync}), Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )


def measure(plan: Plan) -> dict[str, Any]:
    """Fill, look, drain four fifths, look, drain the rest; return the figures."""
    filled = asyncio.run(with_outbox(plan.dsn, lambda outbox: fill(outbox, plan.events)))
    full = asyncio.run(with_outbox(plan.dsn, lambda outbox: front(outbox, plan.batch)))
    most = plan.events * 4 // 5
    first = drain_apart(replace(plan, events=most))
    left = asyncio.run(with_outbox(plan.dsn, lambda outbox: outbox.outbox_stats())).waiting
    later = asyncio.run(with_outbox(plan.dsn, lambda outbox: front(outbox, plan.batch)))
    second = drain_apart(replace(plan, events=left))
    return {
        "inserted per second": round(plan.events / filled),
        "front of the outbox, full [ms]": round(full, 2),
        f"front after {plan.events - left} deletions [ms]": round(later, 2),
        "drained per second, full": round(most / first.seconds),
        "drained per second, the rest": round(left / second.seconds) if left else None,
        "relay memory [MiB]": {name: round(getattr(first, name), 1) for name in ("before", "tenth", "after", "peak")},
    }


def main() -> None:
    """Read the options, measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--bus", choices=("store", "kafka"), default="store")
    parser.add_argument("--format", choices=("headrace", "cloudevents"), default="headrace")
    parser.add_argument("--batch", type=int, default=500)
    options = parser.parse_args()
    server = PostgresServer(durable=True)
    try:
        with broker(options.bus) as (servers, what):
            print(f"{options.events} events of {KEYS} keys, {len(json.dumps(PAYLOAD))} bytes each, batches of "
                  f"{options.batch}; {asyncio.run(versions(server.dsn))}; bus: {what}")  # fmt: skip
            plan = Plan(server.dsn, servers, options.events, options.format, options.batch)
            print(json.dumps(measure(plan), indent=2))
    finally:
        server.remove()


if __name__ == "__main__":
    main()
