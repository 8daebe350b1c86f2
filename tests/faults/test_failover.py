"""The primary dies under load and its standby is promoted: work goes on there, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.model.batch import BatchOutcome
from headrace.stores.postgres import open_postgres_stores
from tests.backends.replicated import Pair, replicated_pair
from tests.backends.server import PostgresServer
from tests.faults.checker import check
from tests.faults.links import watched
from tests.faults.site import Site
from tests.faults.tasks import effect, report
from tests.faults.test_store_restarts import Submitters, settled
from tests.faults.test_takeover import defaults
from tests.waiting import wait_until

#: Seconds from the promotion until work goes on, and until somebody leads, as promised.
PROMISED = 15.0


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Return a primary that a standby follows."""
    with replicated_pair() as pair:
        yield pair


@pytest.fixture
async def fragile_site(pair: Pair, tmp_path: Path) -> AsyncIterator[Site]:
    """Return a system whose URL names both servers, and whose commits wait for the standby."""
    (tmp_path / "gates").mkdir()
    await (await open_postgres_stores(pair.dsn, schema="site", auto_migrate=True)).close()
    await pair.replicate_synchronously()
    async with watched(Site(pair, "site", tmp_path)) as site:
        yield site


async def leader(pair: Pair, server: PostgresServer) -> Any:
    """Return who leads now by the word of a server, if anybody does."""
    rows = await pair.run(server, "SELECT session FROM site.leader WHERE expires_at > now()")
    return rows[0]["session"] if rows else None


async def seconds_until(condition: Callable[[], Awaitable[object]], begun: float) -> float:
    """Wait for a condition and return how long after `begun` it held."""
    await wait_until(condition, timedelta(seconds=4 * PROMISED))
    return time.monotonic() - begun


@pytest.mark.parametrize(
    "until_led", [pytest.param(False, id="work"), pytest.param(True, id="work-and-lead", marks=pytest.mark.slow)]
)
async def test_a_failover_under_load_loses_nothing(fragile_site: Site, pair: Pair, app: App, until_led: bool) -> None:
    """Primary and leading worker die at once; the promoted standby has every acknowledged job, which ends once."""
    site, submitters = fragile_site, Submitters()
    [leading] = site.start_workers(1, "--concurrency", "10", environ=defaults())
    leads = await wait_until(lambda: leader(pair, pair.primary))
    [other] = site.start_workers(1, "--concurrency", "10", environ=defaults())
    async with app:
        batch = await app.submit(effect, range(200), on_close=report)
        running = asyncio.create_task(submitters.run())
        await submitters.more(300)
        leading.kill()
        pair.kill_primary()
        await pair.promote()
        promoted_at, before = time.monotonic(), len(site.effects("effect"))

        async def goes_on() -> bool:
            return len(site.effects("effect")) > before + 20

        async def leads_again() -> bool:
            return await leader(pair, pair.standby) not in (None, leads)

        resumed = await seconds_until(goes_on, promoted_at)
        await submitters.more()
        submitters.enough.set()
        await running
        # The term of the dead leader has to run out first, which takes most of this test.
        led = await seconds_until(leads_again, promoted_at) if until_led else 0.0
        assert (await batch.wait(60)).outcome is BatchOutcome.SUCCEEDED
        await wait_until(lambda: settled(app), timedelta(seconds=60))
        assert other.process.poll() is None, other.log()
    told = f"led after {led:.1f} s" if until_led else "leadership not awaited"
    print(f"work went on after {resumed:.1f} s, {told}, {len(submitters.acknowledged)} acknowledged")
    assert max(resumed, led) <= PROMISED
    verdict = await check(site, submitters.acknowledged)
    assert verdict.clean, verdict
