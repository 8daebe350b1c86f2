"""One simulated day of a fleet, minute by minute: what comes, what is taken in, run, pruned, and what waits.

A namespace is one store: one schema on one server. Jobs go to the namespace that the hash of their tenant names. In
each minute its server first takes in what comes, then prunes what is due, then claims and ends jobs with what is left
of its processor, log and disk; workers bound it too. What arrives while a server is down waits outside, at the callers.
Nothing is random but the noise of arrivals, which a seed decides.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from random import Random

from benchmarks.capacity_costs import JobCosts, Load

MINUTES = 24 * 60
#: Parts of the day's work by hour: a quiet night, two peaks.
CURVE = (2, 1, 1, 1, 1, 2, 3, 5, 8, 10, 10, 8, 6, 7, 9, 10, 9, 7, 5, 4, 4, 3, 3, 2)
#: A worker looks again so long after a claim that found less than it has room for (`engine/claimer.py`).
REFILL_SECONDS = 0.002
#: Where the server is used more than this, answers take longer and exchanges so gather more.
CALM = 0.6
#: Tables and log hold more than their rows: half as much again, as history did in the soak of decision 0002.
SLACK = 1.5


@dataclass(frozen=True, slots=True)
class Server:
    """A machine for one namespace."""

    cores: int = 16
    #: flushes of the log a second
    fsyncs: float = 5_000
    wal_mb: float = 200
    disk_gb: float = 8_000
    #: share of the cores that work on jobs gets; two cores are all that was measured
    usable: float = 0.7
    #: commits that one flush may take along, where many wait
    group: float = 8
    #: transaction numbers a day: PostgreSQL stops at 2·10⁹ without a vacuum of every table in between
    numbers: float = 5e8

    def minute(self) -> Load:
        """Return what it can do in a minute."""
        return Load(self.cores * self.usable * 60e6, self.wal_mb * 60e6, self.fsyncs * self.group * 60, 60e6)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a day brings."""

    jobs: float
    #: share of the jobs by how many one call enqueues; what callers of one process enqueue at once travels together
    calls: tuple[tuple[int, float], ...] = ((1, 0.1), (10, 0.4), (1_000, 0.5))
    #: bytes of arguments and result
    payload: float = 300
    model_calls: float = 0.0
    curve: tuple[float, ...] = CURVE
    #: of the day's jobs in five minutes from 14:00, all of one tenant
    burst: float = 0.01
    tenants: int = 5_000
    #: the tenant of rank k has 1/k**skew of the work of the first
    skew: float = 0.8
    seed: int = 12

    def minutes(self) -> list[float]:
        """Return the jobs of each minute, without noise and burst."""
        rest = self.jobs * (1 - self.burst)
        return [rest * self.curve[minute // 60] / sum(self.curve) / 60 for minute in range(MINUTES)]


@dataclass(frozen=True, slots=True)
class Outage:
    """A server that is down."""

    namespace: int
    begins: int
    minutes: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """Servers, one for each namespace, and the workers of each."""

    namespaces: int
    server: Server = Server()
    #: worker processes of each namespace
    workers: int = 8
    slots: int = 400
    handler_seconds: float = 0.2
    rtt_ms: float = 0.5
    retention_days: float = 7
    #: history goes by whole partitions: nothing is pruned row by row
    partitions: bool = False
    #: workers run on the cores of the server
    beside: bool = False
    outage: Outage | None = None


@dataclass(slots=True)
class Waits:
    """How long jobs waited, in minutes, and how many."""

    counts: Counter[int] = field(default_factory=Counter)

    def at(self, share: float) -> int:
        """Return the minutes that so many of the jobs did not wait longer than."""
        left = share * sum(self.counts.values())
        for minutes, count in sorted(self.counts.items()):
            left -= count
            if left <= 1e-6:
                return minutes
        return max(self.counts, default=0)


@dataclass(slots=True)
class NamespaceDay:
    """What became of one namespace."""

    arrived: float = 0.0
    ended: float = 0.0
    #: at the end of the day: within, and at the callers
    waiting: float = 0.0
    outside: float = 0.0
    most_waiting: float = 0.0
    #: share of each resource in the busiest minute, and over the day
    peak: dict[str, float] = field(default_factory=dict)
    mean: dict[str, float] = field(default_factory=dict)
    used: Load = field(default_factory=Load)
    peak_load: Load = field(default_factory=Load)
    disk_gb: float = 0.0
    waits: Waits = field(default_factory=Waits)


@dataclass(frozen=True, slots=True)
class Day:
    """What became of all of them."""

    namespaces: tuple[NamespaceDay, ...]

    def total(self, name: str) -> float:
        """Return the sum of a figure."""
        return math.fsum(getattr(one, name) for one in self.namespaces)

    def worst(self) -> dict[str, float]:
        """Return of each resource the share used in the busiest minute of the busiest namespace."""
        return {name: max(one.peak[name] for one in self.namespaces) for name in self.namespaces[0].peak}

    def waits(self) -> Waits:
        """Return the waits of all jobs."""
        return Waits(sum((one.waits.counts for one in self.namespaces), Counter()))


def simulate(costs: JobCosts, traffic: Traffic, fleet: Fleet) -> Day:
    """Return the day."""
    shares = tenant_shares(traffic.tenants, traffic.skew, fleet.namespaces)
    bursting = _home(1, fleet.namespaces)
    days = []
    for number, share in enumerate(shares):
        arrivals = list(_arrivals(traffic, share, Random(f"{traffic.seed}-{number}"), bursts=number == bursting))
        outage = fleet.outage if fleet.outage is not None and fleet.outage.namespace == number else None
        days.append(_Namespace(costs, traffic, fleet, share).day(arrivals, outage))
    return Day(tuple(days))


@cache
def tenant_shares(tenants: int, skew: float, namespaces: int) -> tuple[float, ...]:
    """Return the share of the work that falls to each namespace.

    >>> [round(share, 2) for share in tenant_shares(5_000, 0.8, 4)]
    [0.24, 0.26, 0.25, 0.25]
    """
    found = [0.0] * namespaces
    for tenant in range(1, tenants + 1):
        found[_home(tenant, namespaces)] += tenant**-skew
    return tuple(share / math.fsum(found) for share in found)


def _home(tenant: int, namespaces: int) -> int:
    return int.from_bytes(blake2b(f"tenant-{tenant}".encode(), digest_size=8).digest(), "big") % namespaces


def _arrivals(traffic: Traffic, share: float, random: Random, *, bursts: bool) -> Iterator[float]:
    for minute, jobs in enumerate(traffic.minutes()):
        mean = jobs * share
        burst = traffic.jobs * traffic.burst / 5 if bursts and 14 * 60 <= minute < 14 * 60 + 5 else 0.0
        yield max(mean + random.gauss(0, 1) * math.sqrt(mean), 0.0) + burst


def worker_rate(costs: JobCosts, fleet: Fleet, size: float) -> float:
    """Return how many jobs a second a worker gets through: by its processor, its one exchange at a time, its slots."""
    worker_us = costs.worker_us.at(size)
    server_us = costs.work.at(size).server_us * costs.background
    trip = server_us * size / 1e6 + 1 / fleet.server.fsyncs + fleet.rtt_ms / 1000
    stay = fleet.handler_seconds + trip + worker_us * size / 1e6
    return min(1e6 / worker_us, size / trip, fleet.slots / stay)


def exchange_size(rate: float, server: Server, *, rtt_ms: float) -> float:
    """Return how many jobs a worker claims at once of `rate` a second: those that come during a claim and an end.

    >>> exchange_size(10, Server(), rtt_ms=0.5), round(exchange_size(5_000, Server(), rtt_ms=0.5), 1)
    (1.0, 14.5)
    """
    return max(rate * (REFILL_SECONDS + 2 / server.fsyncs + rtt_ms / 1000), 1.0)


class _Namespace:
    """One store during its day."""

    def __init__(self, costs: JobCosts, traffic: Traffic, fleet: Fleet, share: float) -> None:
        self._costs, self._traffic, self._fleet, self._share = costs, traffic, fleet, share
        payload = traffic.payload
        self._intake = _mixed(costs, traffic)
        self._ended_bytes = costs.ended_bytes[0] + costs.ended_bytes[1] * payload
        self._waiting_bytes = costs.waiting_bytes[0] + costs.waiting_bytes[1] * payload
        #: After each checkpoint a page of history is logged whole when it is filled, and again when it is pruned.
        whole_pages = Load(wal_bytes=self._ended_bytes * (1 if fleet.partitions else 2))
        self._model = costs.model_call * traffic.model_calls + whole_pages
        self._prune = Load() if fleet.partitions else costs.prune
        self._minute = fleet.server.minute()
        self._largest = max(min(costs.exchange, fleet.slots / 2), 1.0)
        self._inside: deque[tuple[int, float]] = deque()
        self._outside: deque[tuple[int, float]] = deque()
        self._due = 0.0
        self._day = NamespaceDay(peak=dict.fromkeys(_names(), 0.0))

    def day(self, arrivals: Sequence[float], outage: Outage | None) -> NamespaceDay:
        """Live through the day."""
        expected, day = self._traffic.minutes(), self._day
        for minute, jobs in enumerate(arrivals):
            day.arrived += jobs
            self._outside.append((minute, jobs))
            self._due += expected[minute] * self._share
            if outage is None or not outage.begins <= minute < outage.begins + outage.minutes:
                self._step(minute)
            day.most_waiting = max(day.most_waiting, _count(self._inside))
        day.waiting, day.outside = _count(self._inside), _count(self._outside)
        history = day.ended * self._fleet.retention_days * self._ended_bytes
        day.disk_gb = SLACK * (history + day.most_waiting * self._waiting_bytes) / 1e9
        day.mean = _shares(day.used, self._minute * MINUTES)
        day.peak["numbers"] = day.mean["numbers"] = day.used.commits / self._fleet.server.numbers
        day.peak["storage"] = day.mean["storage"] = day.disk_gb / self._fleet.server.disk_gb
        return day

    def _step(self, minute: int) -> None:
        """Do what the server can do in this minute."""
        used = self._background(self._costs.idle_worker * (60 * self._fleet.workers))
        taken = min(_count(self._outside), self._room(used, self._intake))
        self._inside.extend(_take(self._outside, taken))
        used += self._background(self._intake * taken)
        pruned = min(self._due, self._room(used, self._prune))
        self._due -= pruned
        used += self._background(self._prune * pruned)
        used += self._background(self._run(minute, used))
        self._day.used += used
        self._day.peak_load = Load(*map(max, used.all(), self._day.peak_load.all()))
        for name, share in _shares(used, self._minute).items():
            self._day.peak[name] = max(self._day.peak[name], share)

    def _run(self, minute: int, used: Load) -> Load:
        """Run what waits, as far as server and workers can, and return what that used."""
        waiting, fleet = _count(self._inside), self._fleet
        size = self._exchange(waiting)
        each = self._each(size)
        while size < self._largest and self._crowded(used, each * waiting):
            size = min(size * 2, self._largest)
            each = self._each(size)
        workers = fleet.workers * 60 * worker_rate(self._costs, fleet, size)
        count = min(waiting, self._room(used, each), workers)
        for came, jobs in _take(self._inside, count):
            self._day.waits.counts[minute - came] += jobs
        self._day.ended += count
        self._day.peak["workers"] = max(self._day.peak["workers"], count / workers)
        return each * count

    def _each(self, size: float) -> Load:
        """Return what it costs to run a job in an exchange of `size`."""
        each = self._costs.work.at(size, self._traffic.payload) + self._model
        beside = self._costs.worker_us.at(size) / self._costs.background if self._fleet.beside else 0.0
        return each + Load(beside)

    def _exchange(self, waiting: float) -> float:
        """Return how many jobs one exchange takes: those that gather while the one before is under way."""
        size = exchange_size(waiting / 60 / self._fleet.workers, self._fleet.server, rtt_ms=self._fleet.rtt_ms)
        return min(size, self._largest)

    def _crowded(self, used: Load, more: Load) -> bool:
        """Whether the server would be used more than calmly."""
        return max(_shares(used + self._background(more), self._minute).values()) > CALM

    def _background(self, load: Load) -> Load:
        return Load(load.server_us * self._costs.background, load.wal_bytes, load.commits, load.redis_us)

    def _room(self, used: Load, each: Load) -> float:
        """Return for how many more jobs the server has room."""
        each = self._background(each)
        pairs = zip(self._minute.all(), used.all(), each.all(), strict=True)
        return max(min(((whole - some) / one for whole, some, one in pairs if one), default=math.inf), 0.0)


def _mixed(costs: JobCosts, traffic: Traffic) -> Load:
    """Return what it costs to take in a job, over all the ways in which they come."""
    total = Load()
    for size, share in traffic.calls:
        total += costs.enqueue.at(size, traffic.payload) * share
    return total


def _names() -> tuple[str, ...]:
    return ("processor", "log", "disk", "redis", "workers")


def _shares(used: Load, whole: Load) -> dict[str, float]:
    return dict(zip(_names(), (some / all_ for some, all_ in zip(used.all(), whole.all(), strict=True)), strict=False))


def _count(cohorts: deque[tuple[int, float]]) -> float:
    return math.fsum(count for _, count in cohorts)


def _take(cohorts: deque[tuple[int, float]], count: float) -> list[tuple[int, float]]:
    """Take jobs away, those that came first first."""
    taken = []
    while count > 1e-9 and cohorts:
        minute, jobs = cohorts[0]
        part = min(jobs, count)
        taken.append((minute, part))
        count -= part
        if part < jobs:
            cohorts[0] = (minute, jobs - part)
        else:
            cohorts.popleft()
    return taken
