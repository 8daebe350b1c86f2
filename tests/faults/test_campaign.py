"""Everything at once: random faults from a seed, under load, and the verdict of the checker.

`FAULTS_SEED=7 make faults` draws other faults; the seed is printed with the figures.
"""

from __future__ import annotations

import os

import pytest

from tests.faults.campaign import campaign
from tests.faults.campaign_chaos import Chaos
from tests.faults.campaign_proxy import proxy_to
from tests.faults.site import Site

SEED = int(os.environ.get("FAULTS_SEED", "1"))


async def survive(site: Site, faults: int) -> None:
    """Expect a clean verdict after so many random faults."""
    async with proxy_to(site.server, SEED) as proxy, campaign(site, SEED) as run:
        chaos = Chaos(run, proxy)
        await chaos.begin()
        await chaos.suffer(faults)
        await run.reach_least()
        verdict = await run.verdict()
    assert verdict.clean, verdict


async def test_every_kind_of_fault_in_random_order(fragile_site: Site) -> None:
    """Each kind of fault once: nothing is lost, doubled or stuck, and nothing leaks."""
    await survive(fragile_site, 9)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_hundred_random_faults(fragile_site: Site) -> None:
    """The same for some minutes."""
    await survive(fragile_site, 100)
