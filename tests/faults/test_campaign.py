"""Everything at once: random faults from a seed, under load, and the verdict of the checker.

`FAULTS_SEED=7 make faults` draws other faults; the seed is printed with the figures.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from datetime import timedelta

import pytest

from tests.faults.campaign import campaign
from tests.faults.campaign_chaos import Chaos
from tests.faults.campaign_guards import EDITS, ENDING, GUARDS, Guard
from tests.faults.campaign_proxy import proxy_to
from tests.faults.checker import Verdict
from tests.faults.conftest import CRASHING_EVERY_SETTING, CRASHING_EVERY_STORE
from tests.faults.failpoints import Action, Failpoint
from tests.faults.redis_witness import is_redis
from tests.faults.site import Site
from tests.waiting import wait_until

SEED = int(os.environ.get("FAULTS_SEED", "1"))
#: Those in which Redis is unlike PostgreSQL, and a death: the others are of workers and links, whatever the store.
THE_STORES = (
    "worker killed", "store crashed", "answers to commits cut off", "scripts forgotten", "memory full", "store frozen"
)  # fmt: skip


async def survive(site: Site, faults: int | None = None, kinds: Sequence[str] = ()) -> None:
    """Expect a clean verdict after so many random faults, by default each kind that the store knows, or of `kinds`."""
    async with proxy_to(site, SEED) as proxy, campaign(site, SEED) as run:
        chaos = Chaos(run, proxy)
        if kinds:
            chaos.faults = {kind: chaos.faults[kind] for kind in kinds}
        await chaos.begin()
        await chaos.suffer(faults or len(chaos.faults))
        await run.reach_least()
        verdict = await run.verdict()
    assert verdict.clean, verdict


async def freeze_before_recording(site: Site, edits: str = "") -> Verdict:
    """Freeze a worker right before it records a long job that another one then takes over; return the verdict."""
    async with campaign(site, SEED) as run:
        run.extra = {EDITS: edits}
        # A single slot: what ended is recorded with the next claim.
        recording = "exchange_jobs.lua" if is_redis(site.server.dsn) else "finish_jobs.sql"
        point = Failpoint(f"{recording}:before", Action.STOP)
        victim = await run.worker(point, concurrency=1).started()
        run.client("long", "long")
        await wait_until(lambda: run.fired())
        await run.workers(2)
        await wait_until(lambda: sum(line["event"] == "start" for line in run.effects()) == 2)
        victim.signal(signal.SIGCONT)
        run.load(2, pause=0.1)
        await run.more(100)
        return await run.verdict(least=False)


async def work_without(site: Site, guard: Guard) -> Verdict:
    """Work under load with a guard switched off, while one worker dies; return the verdict."""
    async with campaign(site, SEED) as run:
        run.extra, run.patience = {EDITS: guard.edits}, timedelta(seconds=5)
        workers = await run.workers(4)
        run.load(4, pause=0.01)
        await run.more(200)
        workers[0].kill()
        await run.more(400)
        return await run.verdict(least=False)


def test_every_guard_is_where_its_edit_looks() -> None:
    """A guard that moved must not be switched off in vain."""
    assert {guard.path: guard.places for guard in GUARDS if guard.places != 1} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fragile_site", "guard"),
    [pytest.param(guard.site, guard, id=f"{guard.site}-{guard.name}") for guard in GUARDS],
    indirect=["fragile_site"],
)
async def test_a_guard_that_is_switched_off_turns_the_verdict_red(fragile_site: Site, guard: Guard) -> None:
    """A campaign that stayed green without the guards would prove nothing."""
    if guard.name == ENDING:
        verdict = await freeze_before_recording(fragile_site, guard.edits)
    else:
        verdict = await work_without(fragile_site, guard)
    assert getattr(verdict, guard.part), verdict


@CRASHING_EVERY_STORE
async def test_a_late_write_is_refused(fragile_site: Site) -> None:
    """With its fence the worker that froze before it recorded changes nothing."""
    verdict = await freeze_before_recording(fragile_site)
    assert verdict.clean, verdict


@pytest.mark.parametrize(
    ("fragile_site", "kinds"),
    [
        pytest.param("postgres", (), id="postgres"),
        pytest.param("redis", THE_STORES, id="redis"),
        pytest.param("redis", (), id="redis-every", marks=pytest.mark.slow),
    ],
    indirect=["fragile_site"],
)
async def test_every_kind_of_fault_in_random_order(fragile_site: Site, kinds: Sequence[str]) -> None:
    """Each kind of fault once: nothing is lost, doubled or stuck, and nothing leaks."""
    await survive(fragile_site, kinds=kinds)


@pytest.mark.slow
@pytest.mark.timeout(900)
@CRASHING_EVERY_SETTING
async def test_sixty_random_faults(fragile_site: Site) -> None:
    """The same for some minutes, with a Redis server that writes at each commit and one that does each second."""
    await survive(fragile_site, 60)
