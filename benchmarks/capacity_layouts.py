"""Layouts of a fleet: what exists, and what would have to be built; and how many servers each needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from benchmarks.capacity_costs import Curve, JobCosts, Load, Work
from benchmarks.capacity_day import Day, Fleet, Server, Traffic, simulate, tenant_shares

#: Nothing is to be used to more than this in the busiest minute.
WELL = 0.6
MOST = 128
#: The Redis store as `headrace bench` measured it (results/all.json): server time to claim and end, 100 slots; an
#: enqueue in bulk is no dearer than a client gets through. 1.2 kB of memory a job with 100 bytes of arguments.
REDIS_WORK_US, REDIS_ENQUEUE_US = 26.6, 18.3
REDIS_BYTES = (1_100.0, 1.0)
REDIS_SERVER = Server(cores=1, usable=1.0, wal_mb=1e9, fsyncs=1e9, disk_gb=64, numbers=1e18)
#: What is gathered from callers of all processes of a namespace before one insert of the record.
GATHERED = 100


@dataclass(frozen=True, slots=True)
class Layout:
    """How jobs are spread over servers, and what a job costs there."""

    name: str
    says: str
    #: whether it can be had today
    ships: bool
    server: Server = field(default_factory=Server)
    most: int = MOST
    partitions: bool = False
    retention_days: float = 7
    #: slots of a worker process
    slots: int = 400
    changes: Callable[[JobCosts], JobCosts] | None = None

    def costs(self, costs: JobCosts) -> JobCosts:
        """Return what a job costs here."""
        return self.changes(costs) if self.changes else costs

    def fleet(self, servers: int) -> Fleet:
        """Return so many servers; workers are to be fitted."""
        return Fleet(
            servers, self.server, workers=1, slots=self.slots, partitions=self.partitions,
            retention_days=self.retention_days,
        )  # fmt: skip


def _on_redis(costs: JobCosts) -> JobCosts:
    """All of it in Redis: one core, nothing in the log of PostgreSQL."""
    return replace(
        costs, enqueue=_flat(redis_us=REDIS_ENQUEUE_US), work=_flat(redis_us=REDIS_WORK_US), prune=Load(),
        model_call=Load(), idle_worker=Load(), waiting_bytes=REDIS_BYTES, ended_bytes=REDIS_BYTES,
    )  # fmt: skip


def _ordered_by_redis(costs: JobCosts) -> JobCosts:
    """Redis says what runs next; PostgreSQL gets the job when it comes and when it ends, many at a time."""
    record = costs.enqueue
    flat = Work({name: Curve(((1, curve.at(GATHERED)),)) for name, curve in record.curves.items()}, record.per_byte)
    return replace(
        costs, enqueue=replace(flat, extra=Load(redis_us=REDIS_ENQUEUE_US)),
        work=replace(flat, extra=Load(redis_us=REDIS_WORK_US)),
    )  # fmt: skip


def _flat(*, redis_us: float) -> Work:
    return Work({}, extra=Load(redis_us=redis_us))


_ALL = (
    Layout("one server", "one PostgreSQL", True, most=1),
    Layout("namespaces", "a PostgreSQL for each namespace, by the hash of the tenant", True),
    Layout("partitions", "the same, history in partitions by day that are dropped whole", False, partitions=True),
    Layout("redis", "the Redis store for each namespace, history kept for an hour", True, REDIS_SERVER,
           retention_days=1 / 24, changes=_on_redis),
    Layout("redis for order", "Redis for order and PostgreSQL as record in each namespace", False,
           changes=_ordered_by_redis),
)  # fmt: skip
LAYOUTS = {layout.name: layout for layout in _ALL}


def fewest(layout: Layout, costs: JobCosts, traffic: Traffic) -> tuple[Fleet, Day] | None:
    """Return the fewest servers at which nothing is used too much, and their day, both without the burst.

    None where no number is enough: what binds does not fall as servers are added.
    """
    servers, smooth = 1, replace(traffic, burst=0.0)
    while servers <= layout.most:
        fleet = fit(layout, costs, smooth, layout.fleet(servers))
        day = simulate(layout.costs(costs), smooth, fleet)
        used = max(share for name, share in day.worst().items() if name != "workers")
        if used <= WELL:
            return fleet, day
        servers += max(1, min(servers, int(servers * (used / WELL - 1) * 0.9)))
    return None


def fit(layout: Layout, costs: JobCosts, traffic: Traffic, fleet: Fleet) -> Fleet:
    """Return the fleet with as many workers as the busiest namespace needs: by their processor and by their slots."""
    share = max(tenant_shares(traffic.tenants, traffic.skew, fleet.namespaces))
    peak = max(traffic.minutes()) / 60 * share
    processor = peak * costs.worker_us.at(10) / 1e6 / WELL
    slots = peak * fleet.handler_seconds / fleet.slots / WELL
    return replace(fleet, workers=max(math.ceil(max(processor, slots)), 2))


def ceilings(costs: JobCosts, calls: tuple[tuple[int, float], ...], server: Server) -> dict[str, float]:
    """Return how many jobs a second each resource of a server allows at 60 %, all the time.

    A worker's exchange takes as many jobs as a call that enqueues, up to a hundred.
    """
    payload, need = Traffic(1).payload, costs.prune
    for size, share in calls:
        need += (costs.enqueue.at(size, payload) + costs.work.at(min(size, 100), payload)) * share
    need += Load(wal_bytes=2 * (costs.ended_bytes[0] + costs.ended_bytes[1] * payload))
    limits = {
        "processor": server.cores * server.usable * 1e6 / (need.server_us * costs.background),
        "log": server.wal_mb * 1e6 / need.wal_bytes,
        "disk": server.fsyncs * server.group / need.commits,
        "numbers": server.numbers / 86_400 / need.commits,
    }
    return {name: limit * WELL for name, limit in limits.items()}


def ceiling(costs: JobCosts, calls: tuple[tuple[int, float], ...], server: Server) -> tuple[float, str]:
    """Return how many jobs a second one server takes all the time at 60 %, and what of it is used up first."""
    limits = ceilings(costs, calls, server)
    name = min(limits, key=lambda one: limits[one])
    return limits[name], name
