"""A limiter beside the store that does not answer: what has no rate does not wait for it, and nothing is forgotten."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from headrace.engine import grants, late_limiter, reach
from headrace.engine.grants import Grants
from headrace.model.job import Claim
from headrace.model.limits import Declared, Gate, Rate
from headrace.ports.admission import Admission
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.conformance.scenario import MINUTE, Scenario
from tests.unit.limiter_doubles import Fickle
from tests.waiting import wait_until

PATIENCE = 0.3
API = Gate(limits=(("api", 1.0),))
FREE = Gate(fair_key="free")


class Ledger:
    """An admission whose rates are read slowly when a test says so."""

    def __init__(self, gate: Admission) -> None:
        self._gate = gate
        self.seconds = 0.0

    async def list_rates(self) -> Any:
        """Take some time over it."""
        await asyncio.sleep(self.seconds)
        return await self._gate.list_rates()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gate, name)


@dataclass
class Site:
    """A store, a limiter beside it, and what admits for one worker."""

    on: Scenario
    limiter: Fickle
    ledger: Ledger
    claimer: Grants
    session: UUID

    async def admit(self, queue: str = "default", limit: int = 1) -> int:
        """Look once; return how many jobs started."""
        return len((await self.claimer.admit_jobs(Claim(self.session, queue, limit))).jobs)

    async def until_admitted(self, least: int = 1) -> None:
        """Look until one look starts so many jobs."""
        await wait_until(lambda: self._admits(least))

    async def _admits(self, least: int) -> Any:
        return await self.admit(limit=least) == least


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """A site with a rate of 1,000 a second, and jobs with and without it, in a queue each and in one together."""
    monkeypatch.setattr(late_limiter, "PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr(reach, "PROBE_SECONDS", 0.05)
    monkeypatch.setattr(grants, "BELIEVED_SECONDS", 0.05)
    stores, beside = open_memory_stores(), open_memory_stores()
    on, limiter = Scenario(stores, FakeClock()), Fickle(beside.limiter)
    await on.gate.declare_limits(Declared({}, {"api": Rate(1_000.0, 10.0)}))
    await on.enqueue(100, gate=FREE, queue="free")
    await on.enqueue(100, gate=API)
    ledger = Ledger(on.gate)
    claimer = Grants(limiter, ledger)  # type: ignore[arg-type]
    yield Site(on, limiter, ledger, claimer, await on.worker(lease=600 * MINUTE))
    await claimer.close()
    await beside.close()
    await stores.close()


async def test_a_frozen_limiter_holds_up_no_job_without_a_rate(site: Site) -> None:
    """However often one looks, nobody waits for it: it is asked behind the admissions, by a probe at a time."""
    site.limiter.frozen = True
    began = time.monotonic()
    assert [await site.admit("free") for _ in range(40)] == [1] * 40
    assert time.monotonic() - began < 20 * PATIENCE
    await wait_until(lambda: site.limiter.asked["levels"] > 0)
    assert site.limiter.asked == {"declare": 1, "levels": site.limiter.asked["levels"]}


async def test_one_look_waits_for_a_limiter_that_freezes_in_use(site: Site) -> None:
    """The first one that asks for units finds it away; those that come after it, of the same queue, go on at once."""
    await site.on.enqueue(60, gate=FREE)
    await site.until_admitted()
    await site.admit()
    site.limiter.frozen = True
    taken = site.limiter.asked["take"]
    began, started = time.monotonic(), 0
    for _ in range(30):
        started += await site.admit()
    assert started >= 29
    assert time.monotonic() - began < 20 * PATIENCE
    assert site.limiter.asked["take"] - taken <= 1


async def test_a_rate_that_changed_meanwhile_counts_when_it_is_back(site: Site) -> None:
    """The limiter is told what was changed while it was away, and jobs with a rate start again."""
    await site.until_admitted()
    site.limiter.away = True
    await site.on.gate.set_rate("api", Rate(2_000.0, 20.0))
    await asyncio.sleep(2 * grants.BELIEVED_SECONDS)
    assert await site.admit("free") == 1
    declared = site.limiter.asked["declare"]
    assert [await site.admit("free") for _ in range(5)] == [1] * 5
    assert site.limiter.asked["declare"] == declared

    site.limiter.away = False
    await site.until_admitted()

    async def fuller() -> Any:
        return (await site.limiter.levels(["api"]))["api"].units > 10.0

    await wait_until(fuller)


@pytest.mark.parametrize("while_declaring", [True, False])
async def test_what_goes_on_behind_the_admissions_ends(site: Site, while_declaring: bool) -> None:
    """No task is left behind by a worker that stops, neither one that declares nor one that probes."""
    before = asyncio.all_tasks()
    site.limiter.frozen = while_declaring
    site.limiter.away = not while_declaring
    await site.admit("free")
    assert asyncio.all_tasks() - before
    await site.claimer.close()
    assert asyncio.all_tasks() == before


async def test_an_admission_after_the_end_begins_no_probe(site: Site) -> None:
    """One that was still under way finds out that the limiter is away, and leaves no task behind either."""
    before = asyncio.all_tasks()
    await site.claimer.close()
    site.limiter.away = True
    await site.admit("free")
    await wait_until(lambda: asyncio.all_tasks() == before)


async def test_a_slow_ledger_is_not_a_limiter_that_is_away(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Where a bucket was lost, units of the others are used, and reading the rates takes the time that it takes."""
    rate = Rate(1_000.0, 10.0)
    await site.on.gate.declare_limits(Declared({}, {"api": rate, "other": rate}))
    await site.on.enqueue(20, gate=Gate(fair_key="other", limits=(("other", 1.0),)))

    await site.until_admitted(2)
    await site.limiter.forget("other")
    site.ledger.seconds = 2 * PATIENCE
    with caplog.at_level(logging.WARNING, "headrace.limits"):
        assert await site.admit(limit=2) > 0
        assert "does not know other" in caplog.text
        await site.until_admitted(2)
    assert "is away" not in caplog.text
