"""Chaos: one random fault after another, drawn from a seed, on a system under load."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from tests.backends.valkey import ValkeyServer
from tests.faults.campaign import CAPPED_APP, Actor, Campaign, crash, start_again
from tests.faults.campaign_proxy import Proxy
from tests.faults.links import links_to
from tests.faults.site import LEASE, RECOVERY
from tests.waiting import wait_until

#: After a fault that takes nothing from anybody, or once the store is up again.
RESUMED = timedelta(seconds=10)
#: Workers at any time, one of them for capped jobs, every second one behind the proxy.
WORKERS = 4


class Chaos:
    """Faults on one campaign."""

    def __init__(self, run: Campaign, proxy: Proxy) -> None:
        self._run, self._proxy, self._random = run, proxy, run.random
        self._workers: list[Actor] = []
        self._load: Actor | None = None
        self._loads = 0
        self.faults: dict[str, Callable[[], Awaitable[None]]] = {
            "worker killed": self._kill_worker,
            "worker frozen for less than its lease": self._freeze_briefly,
            "worker frozen beyond its lease": self._freeze_long,
            "worker restarted": self._restart_worker,
            "submitter killed": self._kill_submitter,
            "store crashed": self._crash,
            "connections ended": self._end_connections,
            "answers to commits cut off": self._cut,
            "links silent": self._silence,
        }
        if isinstance(run.site.server, ValkeyServer):
            self._valkey = run.site.server
            self.faults |= {
                "scripts forgotten": self._forget_scripts,
                "memory full": self._fill_memory,
                "store frozen": self._freeze_store,
            }

    async def begin(self) -> None:
        """Start workers and submitters."""
        self._workers = [self._worker(number) for number in range(WORKERS)]
        self._submit()
        for worker in self._workers:
            await worker.started()

    def _worker(self, place: int) -> Actor:
        self._run.dsn = self._proxy.dsn if place % 2 else self._run.site.server.dsn
        worker = self._run.worker(app=CAPPED_APP) if place == 0 else self._run.worker()
        self._run.dsn = self._run.site.server.dsn
        return worker

    def _submit(self) -> None:
        self._loads += 1
        self._run.dsn = self._proxy.dsn
        self._load = self._run.load(4, pause=0.08, name=f"load-{self._loads}")
        self._run.dsn = self._run.site.server.dsn

    async def suffer(self, count: int) -> None:
        """Do so many faults, each kind in turn before any comes again, and see after each that the system goes on."""
        kinds: list[str] = []
        for _ in range(count):
            if not kinds:
                kinds = self._random.sample(list(self.faults), len(self.faults))
            kind = kinds.pop()
            self._supervise()
            await self._run.more(self._random.randrange(5, 60))
            self._run.tally.plan(kind)
            await self.faults[kind]()
            self._run.tally.fire(kind)
            await self._run.observe()

    def _supervise(self) -> None:
        """Start workers again that ended by themselves: one that cannot reach its store when it starts says so."""
        for place, worker in enumerate(self._workers):
            if not worker.alive:
                self._workers[place] = self._worker(place)

    def _pick(self) -> int:
        return self._random.randrange(WORKERS)

    async def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        await wait_until(lambda: time.monotonic() >= until, timedelta(seconds=seconds + 5))

    async def _kill_worker(self) -> None:
        place = self._pick()
        victim = self._workers[place]
        victim.kill()
        self._workers[place] = self._worker(place)
        await self._run.taken_over(victim, RECOVERY)

    async def _freeze_briefly(self) -> None:
        worker = self._workers[self._pick()]
        worker.signal(signal.SIGSTOP)
        await self._pause(self._random.uniform(0.2, LEASE.total_seconds() / 3))
        worker.signal(signal.SIGCONT)

    async def _freeze_long(self) -> None:
        worker = self._workers[self._pick()]
        worker.signal(signal.SIGSTOP)
        await self._run.taken_over(worker, RECOVERY)
        await self._pause(self._random.uniform(0.0, LEASE.total_seconds()))
        worker.signal(signal.SIGCONT)

    async def _restart_worker(self) -> None:
        place = self._pick()
        former = self._workers[place]
        self._workers[place] = self._worker(place)
        former.signal(signal.SIGTERM)
        await former.ended()

    async def _kill_submitter(self) -> None:
        assert self._load is not None
        self._load.kill()
        self._submit()
        await self._run.goes_on(RESUMED)

    async def _crash(self) -> None:
        crash(self._run.site.server, self._random.choice([signal.SIGQUIT, signal.SIGKILL]))
        await self._pause(self._random.uniform(0.0, 1.5))
        await asyncio.to_thread(start_again, self._run.site.server)
        await self._run.goes_on(RESUMED)

    async def _end_connections(self) -> None:
        async with links_to(self._run.site) as links:
            for _ in range(5):
                ours = sorted(await links.ours())
                for number in self._random.sample(ours, min(2, len(ours))):
                    await links.cut(number)
                await self._pause(0.2)
        await self._run.goes_on(RESUMED)

    async def _forget_scripts(self) -> None:
        assert self._valkey.call("SCRIPT", "FLUSH") == "+OK"
        await self._run.goes_on(RESUMED)

    async def _fill_memory(self) -> None:
        self._limit_memory("1mb")
        await self._pause(self._random.uniform(0.5, 2.0))
        self._limit_memory("0")
        await self._run.goes_on(RESUMED)

    def _limit_memory(self, size: str) -> None:
        assert self._valkey.call("CONFIG", "SET", "maxmemory", size) == "+OK"

    async def _freeze_store(self) -> None:
        self._valkey.signal(signal.SIGSTOP)
        await self._pause(self._random.uniform(0.2, 1.5 * LEASE.total_seconds()))
        self._valkey.signal(signal.SIGCONT)
        await self._run.goes_on(RESUMED)

    async def _cut(self) -> None:
        before, self._proxy.cut_share = self._proxy.cuts, 0.3
        await wait_until(lambda: self._proxy.cuts >= before + 10, RECOVERY)
        self._proxy.cut_share = 0.0
        await self._run.goes_on(RESUMED)

    async def _silence(self) -> None:
        self._proxy.silent = True
        await self._pause(self._random.uniform(0.5, 1.5 * LEASE.total_seconds()))
        self._proxy.silent = False
        self._proxy.close_all()
        with suppress(AssertionError):  # whoever waits for an answer that will never come has a deadline of its own
            await self._run.goes_on(timedelta(seconds=1))
            return
        await self._run.goes_on(RESUMED)
