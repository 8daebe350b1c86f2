"""A campaign: workers and submitters in processes of their own, faults on a plan, and the verdict of the checker.

Everything that is random comes from the seed. Every fault is planned before it is tried and counted when it fired.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import asyncpg

from headrace.model.errors import HeadraceError
from tests.backends.server import PostgresServer
from tests.backends.valkey import ValkeyServer
from tests.faults import checker
from tests.faults.campaign_clients import ACKS
from tests.faults.campaign_nursery import LEADS, nursery, submit, work
from tests.faults.checker import Connections, Evidence, Verdict
from tests.faults.effects import PORT, EffectServer, read_log
from tests.faults.failpoints import FIRED, POINTS, Failpoint, format_points
from tests.faults.site import Site
from tests.waiting import wait_until, wait_until_sync

#: After the last fault everything has to be final within this, on a busy machine.
QUIET = timedelta(seconds=60)
APP, CAPPED_APP = "tests.faults.campaign_tasks:app", "tests.faults.campaign_tasks:capped_app"
#: Connections of one worker at most: the default of `[queue] max_pool_size`.
POOL_SIZE = 10
#: Beside those of the site: short enough for streams that break off to be abandoned while the campaign runs.
LIMITS = {
    "HEADRACE_RECOVERY_SEAL_TIMEOUT": "2s",
    "HEADRACE_RECOVERY_PRUNE_INTERVAL": "1s",
    "HEADRACE_RECOVERY_AGGREGATE_INTERVAL": "500ms",
    "HEADRACE_WORKER_SHUTDOWN_GRACE": "5s",
    # Submitters that emit are their own relays.
    "HEADRACE_WORKER_RELAY_ENABLED": "false",
}


@dataclass
class Actor:
    """A process of a campaign."""

    process: BaseProcess
    output: Path
    #: Whether it is a worker.
    works: bool

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.exitcode is None

    @property
    def killed(self) -> bool:
        """Whether it died of SIGKILL."""
        return self.process.exitcode == -signal.SIGKILL

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it is gone."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it as a power cut does."""
        self.signal(signal.SIGKILL)
        self.process.join(10)

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return what it announced."""
        lines = self.output.read_text().splitlines() if self.output.exists() else []
        told = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in told if line.get("event") == event]

    def log(self) -> str:
        """Return what it logged."""
        log = Path(f"{self.output}.log")
        return log.read_text() if log.exists() else ""

    async def started(self) -> Actor:
        """Wait until it works."""
        await wait_until(lambda: self.said("started") or not self.alive, message="a worker to start")
        return self

    async def ended(self, timeout: timedelta = timedelta(seconds=30)) -> Actor:
        """Wait until it has ended."""
        await wait_until(lambda: not self.alive, timeout, message=f"process {self.pid} to end")
        return self


@dataclass
class Tally:
    """Faults planned and fired by kind, and how long the system took to go on after each."""

    planned: dict[str, int] = field(default_factory=dict)
    fired: dict[str, int] = field(default_factory=dict)
    recoveries: list[float] = field(default_factory=list)

    def plan(self, kind: str, count: int = 1) -> None:
        """Count faults that are about to be tried."""
        self.planned[kind] = self.planned.get(kind, 0) + count

    def fire(self, kind: str, count: int = 1) -> None:
        """Count faults that happened."""
        self.fired[kind] = self.fired.get(kind, 0) + count

    def __str__(self) -> str:
        times = sorted(self.recoveries)
        shown = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        spread = ", ".join(f"{name} {times[min(len(times) - 1, int(part * len(times)))]:.2f} s"
                           for name, part in shown.items()) if times else "not measured"  # fmt: skip
        faults = ", ".join(f"{kind} {self.fired.get(kind, 0)}/{count}" for kind, count in sorted(self.planned.items()))
        return f"faults fired/planned: {faults}; recovery {spread}"


class Campaign:
    """One system under faults."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site, self.seed, self.random = site, seed, Random(seed)
        self.tally = Tally()
        self.actors: list[Actor] = []
        self._effects = EffectServer(site.root / "effects.jsonl")
        self._digests: dict[UUID, str] = {}
        #: How long the system may take to become quiet.
        self.patience = QUIET
        self._before = 0
        self._connections = Connections()
        self._started_at = time.monotonic()
        #: What every process gets besides.
        self.extra: dict[str, str] = {}
        #: Another way to the server for processes that are started from now on, such as a proxy.
        self.dsn = site.server.dsn

    @property
    def stopping(self) -> Path:
        """The file that tells submitters of load to end."""
        return self.site.root / "stopping"

    @property
    def environment(self) -> dict[str, str]:
        """What its processes get."""
        files = {ACKS: "acknowledged.jsonl", FIRED: "fired.jsonl"}
        own = {name: str(self.site.root / file) for name, file in files.items()}
        return {**self.site.environment, **LIMITS, **own, PORT: str(self._effects.port), "HEADRACE_URL": self.dsn}

    async def begin(self) -> None:
        """Take the baseline."""
        self._before = (await checker.read_connections(self.site.server.dsn))[0]

    def _start(self, target: Any, points: Iterable[Failpoint], environ: dict[str, str], arguments: list[str]) -> Actor:
        output = self.site.root / f"actor-{len(self.actors)}"
        environ = {**self.environment, **self.extra, POINTS: format_points(list(points)), **environ}
        process = nursery().Process(target=target, args=(environ, str(output), arguments), daemon=True)
        process.start()
        self.actors.append(Actor(process, output, works=target is work))
        return self.actors[-1]

    def worker(
        self, *points: Failpoint, leads: bool = True, app: str = APP, concurrency: int = 6, **environ: str
    ) -> Actor:
        """Start a worker."""
        environ = {LEADS: "yes" if leads else "no", **environ}
        return self._start(work, points, environ, [app, "--concurrency", str(concurrency)])

    async def workers(self, count: int, **options: Any) -> list[Actor]:
        """Start workers and wait until they work; the last one works under caps."""
        started = [self.worker(**options) for _ in range(count - 1)]
        return [await actor.started() for actor in [*started, self.worker(app=CAPPED_APP, **options)]]

    def client(self, token: str, operation: str, *points: Failpoint) -> Actor:
        """Start a submitter of one operation."""
        return self._start(submit, points, {}, [token, operation, str(self.stopping)])

    def load(self, lanes: int, *, pause: float = 0.05, name: str = "load") -> Actor:
        """Start a submitter that goes on in several lanes until the campaign ends, with pauses in seconds."""
        return self._start(submit, (), {}, [f"{self.seed}-{name}", f"load:{lanes}:{pause}", str(self.stopping)])

    def acknowledged(self) -> list[dict[str, Any]]:
        """Return the clients' log so far."""
        return read_log(self.site.root / "acknowledged.jsonl")

    def acknowledged_jobs(self) -> int:
        """Return how many jobs are acknowledged so far."""
        return checker.acknowledged_jobs(self.acknowledged())

    def fired(self) -> list[dict[str, Any]]:
        """Return the failpoints that fired so far."""
        return read_log(self.site.root / "fired.jsonl")

    def effects(self) -> list[dict[str, Any]]:
        """Return the effect log so far."""
        return read_log(self.site.root / "effects.jsonl")

    def progress(self) -> tuple[int, int]:
        """Return how far the two logs have grown: acknowledgements, and effects."""
        sizes = [self.site.root / name for name in ("acknowledged.jsonl", "effects.jsonl")]
        return tuple(path.stat().st_size if path.exists() else 0 for path in sizes)  # type: ignore[return-value]

    async def goes_on(self, within: timedelta, *, since: tuple[int, int] | None = None) -> float:
        """Wait until jobs are acknowledged and run again, and return after how many seconds they were."""
        before, began = since or self.progress(), time.monotonic()

        def both() -> bool:
            return all(now > then for now, then in zip(self.progress(), before, strict=True))

        await wait_until(both, within, message="the system to go on")
        self.tally.recoveries.append(time.monotonic() - began)
        return self.tally.recoveries[-1]

    async def taken_over(self, actor: Actor, within: timedelta) -> float:
        """Wait until nothing runs any more under the sessions of a process that died or froze; return the seconds."""
        began = time.monotonic()

        async def none_left() -> bool:
            return await checker.count_running(self.site.server.dsn, self.site.schema, actor.pid) == 0

        await wait_until(none_left, within, message=f"the jobs of {actor.pid} to be taken over")
        self.tally.recoveries.append(time.monotonic() - began)
        return self.tally.recoveries[-1]

    async def more(self, jobs: int, timeout: timedelta = timedelta(seconds=60)) -> None:
        """Wait until so many more jobs are acknowledged."""
        target = self.acknowledged_jobs() + jobs
        await wait_until(lambda: self.acknowledged_jobs() >= target, timeout, message=f"{jobs} more acknowledged jobs")

    async def leader(self) -> UUID | None:
        """Return who leads now: an id of the leading worker's own, not that of its session."""
        return await checker.read_leader(self.site.server.dsn, self.site.schema)

    async def reach_least(self) -> None:
        """Wait until there are enough acknowledged jobs for a verdict."""
        await wait_until(lambda: self.acknowledged_jobs() >= checker.LEAST_ACKNOWLEDGED, QUIET, message="enough jobs")

    async def tables(self) -> Evidence:
        """Return what the tables say now."""
        return await checker.read_tables(self.site.server.dsn, self.site.schema)

    async def observe(self) -> None:
        """Remember the final rows as they are now: none of them may change any more."""
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, HeadraceError):
            for job, digest in (await checker.read_digests(self.site.server.dsn, self.site.schema)).items():
                self._digests.setdefault(job, digest)

    async def quiet(self) -> None:
        """End the load, let everything become final, and stop what still runs."""
        self.stopping.touch()
        for actor in self.actors:
            actor.signal(signal.SIGCONT)
        await self.observe()
        with suppress(AssertionError):  # what is stuck, the verdict tells
            await wait_until(self._settled, self.patience)
        await self._count_connections()
        for actor in self.actors:
            actor.signal(signal.SIGTERM)
        for actor in self.actors:
            await actor.ended()

    async def _count_connections(self) -> None:
        """Count what the workers hold while they have nothing to do, once the submitters are gone."""
        submitters = [actor for actor in self.actors if not actor.works]
        with suppress(AssertionError):  # one that does not end is killed below
            await wait_until(lambda: not any(actor.alive for actor in submitters), QUIET)
        allowed = POOL_SIZE * sum(actor.alive for actor in self.actors)

        async def within() -> bool:
            working, idle = await checker.read_connections(self.site.server.dsn)
            self._connections = Connections(self._before, 0, working, allowed, idle)
            return working <= self._before + allowed and not idle

        with suppress(AssertionError):  # the verdict tells
            await wait_until(within, timedelta(seconds=10))

    async def _settled(self) -> bool:
        return not checker.stuck(replace(await self.tables(), acknowledged=self.acknowledged()))

    async def evidence(self) -> Evidence:
        """Collect what the witnesses say, after `quiet`."""
        server = self.site.server.dsn

        async def given_back() -> bool:
            return (await checker.read_connections(server))[0] <= self._before

        with suppress(AssertionError):
            await wait_until(given_back, timedelta(seconds=10))
        after, _ = await checker.read_connections(server)
        return replace(
            await self.tables(), acknowledged=self.acknowledged(), effects=self.effects(), digests_before=self._digests,
            connections=replace(self._connections, after=after),
        )  # fmt: skip

    async def verdict(self, *, least: bool = True) -> Verdict:
        """Become quiet and judge; with `least`, too few jobs or faults are an error. Prints what happened."""
        await self.quiet()
        evidence = await self.evidence()
        verdict = checker.judge(evidence)
        print(f"\n{self.report(evidence)}\n  verdict: {verdict}")
        if least:
            planned, fired = (sum(counts.values()) for counts in (self.tally.planned, self.tally.fired))
            checker.require_enough(evidence, planned=planned, fired=fired)
        return verdict

    def report(self, evidence: Evidence) -> str:
        """Say what happened."""
        attempts = sum(line["event"] == "start" for line in evidence.effects)
        return (
            f"campaign, seed {self.seed}: {checker.acknowledged_jobs(evidence.acknowledged)} jobs acknowledged,"
            f" {len(evidence.final)} final, {len(evidence.batches)} batches, {attempts} attempts,"
            f" {len(self.actors)} processes, {time.monotonic() - self._started_at:.0f} s\n  {self.tally}"
        )

    def end(self) -> None:
        """Kill what is left."""
        for actor in self.actors:
            actor.signal(signal.SIGCONT)
            actor.kill()
        self._effects.stop()


@asynccontextmanager
async def campaign(site: Site, seed: int) -> AsyncIterator[Campaign]:
    """Run a campaign on a site; whatever happens, no process is left."""
    started = Campaign(site, seed)
    try:
        await started.begin()
        yield started
    finally:
        started.end()


def crash(server: PostgresServer | ValkeyServer, how: signal.Signals) -> None:
    """Let the store crash: SIGQUIT to all of PostgreSQL, or SIGKILL to its first process; SIGKILL to Valkey."""
    server.stop(how)


def start_again(server: PostgresServer | ValkeyServer) -> None:
    """Start it, as soon as what was left of the crashed one lets it."""

    def tried() -> bool:
        try:
            server.start()
        except AssertionError:
            return False
        return True

    wait_until_sync(tried, message="the store to start after a crash")
