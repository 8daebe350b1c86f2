"""How rates are shown that a limiter beside the store counts: from there, or as unknown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import pytest

from headrace.engine import late_limiter
from headrace.engine.levels import explain_job, list_limits
from headrace.model.admission import RateView, WaitReason
from headrace.model.ids import uuid7
from headrace.model.limits import Declared, Gate, Rate
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.conformance.scenario import Scenario
from tests.unit.limiter_doubles import Fickle

API = Rate(0.1, 5.0)
HOUR = timedelta(hours=1)


@dataclass
class Site:
    """A store whose own bucket is full, and a limiter beside it that has four units less."""

    stores: Stores
    limiter: Fickle
    clock: FakeClock
    job: UUID

    async def rate(self) -> RateView:
        """Return the only rate."""
        [found] = (await list_limits(self.stores, self.limiter)).rates  # type: ignore[arg-type]
        return found

    async def why(self, job_id: UUID | None = None) -> tuple[WaitReason, object, object]:
        """Return why the job waits, for how long, and the level that is told."""
        found = await explain_job(self.stores, self.limiter, job_id or self.job)  # type: ignore[arg-type]
        assert found is not None
        return found.reason, found.until and found.until - self.clock.now(), found.facts.get("level")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A site with a job of two units."""
    clock = FakeClock()
    stores, beside = open_memory_stores(clock), open_memory_stores(clock)
    await stores.admission.declare_limits(Declared({}, {"api": API}))
    await beside.limiter.declare({"api": API})
    clock.advance(HOUR)
    await beside.limiter.take({"api": 4.0})
    [job] = await Scenario(stores, clock).enqueue(1, gate=Gate(limits=(("api", 2.0),)))
    yield Site(stores, Fickle(beside.limiter), clock, job)
    await beside.close()
    await stores.close()


async def test_levels_are_those_beside(site: Site) -> None:
    """Not those of the store's own bucket, which is full: one unit is there, and another one in ten seconds."""
    assert (await site.rate()).level == 1.0
    assert await site.why() == (WaitReason.RATE, timedelta(seconds=10), 1.0)


async def test_a_closing_beside_is_told(site: Site) -> None:
    """With the instant at which it ends."""
    await site.limiter.give_back({"api": 5.0})
    await site.limiter.close_bucket("api", HOUR)
    assert (await site.rate()).closed_until == site.clock.now() + HOUR
    assert await site.why() == (WaitReason.RATE, HOUR, 5.0)


async def test_a_bucket_that_is_not_known_there_is_empty(site: Site) -> None:
    """The next worker declares it, and it fills from nothing."""
    await site.limiter.forget("api")
    assert ((await site.rate()).level, (await site.rate()).closed_until) == (0.0, None)
    assert await site.why() == (WaitReason.RATE, timedelta(seconds=20), 0.0)


@pytest.mark.parametrize("how", ["away", "frozen"])
async def test_levels_are_unknown_while_it_does_not_answer(
    site: Site, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """No level, no instant, and no job is told another reason than before; the rest of the list is there."""
    monkeypatch.setattr(late_limiter, "PATIENCE_SECONDS", 0.05)
    [free] = await Scenario(site.stores, site.clock).enqueue(1, gate=Gate(fair_key="free"))
    setattr(site.limiter, how, True)
    assert await site.rate() == RateView("api", API, None, None)
    assert await site.why() == (WaitReason.RATE, None, None)
    assert (await site.why(free))[0] is WaitReason.NO_WORKER


async def test_the_limiter_of_the_store_is_not_asked_beside(site: Site) -> None:
    """A store that counts its own rates tells them itself; so does an id that is not known."""
    own = Fickle(site.stores.limiter)
    stores = replace(site.stores, limiter=own)
    [rate] = (await list_limits(stores, own)).rates  # type: ignore[arg-type]
    assert (rate.level, own.asked.total()) == (5.0, 0)
    found = await explain_job(stores, own, site.job)  # type: ignore[arg-type]
    assert found is not None and found.reason is WaitReason.NO_WORKER
    assert await explain_job(site.stores, site.limiter, uuid7()) is None  # type: ignore[arg-type]
