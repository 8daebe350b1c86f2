"""Units taken beforehand from a limiter beside the store: of what is needed, no more than that, and enough of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from headrace.engine import grants
from headrace.engine.grants import Grants
from headrace.model.job import Claim
from headrace.model.limits import Declared, Gate, Rate
from headrace.ports.limiter import Limiter, Taken
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.conformance.scenario import MINUTE, SECOND, Scenario


class Counted:
    """A limiter that counts what is asked of it."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self.counts: Counter[str] = Counter()
        self.taken: list[Mapping[str, float]] = []

    async def take(self, wanted: Mapping[str, float], **options: Any) -> Taken:
        """Count a call, and the units it brings."""
        taken = await self._limiter.take(wanted, **options)
        self.taken.append(taken.units)
        self.counts.update({"takes": 1, **{name: int(units) for name, units in taken.units.items()}})
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._limiter, name)


@dataclass
class Site:
    """A store, a limiter that is not its own, and a session."""

    on: Scenario
    limiter: Counted
    session: UUID
    started: Counter[str] = field(default_factory=Counter)

    def claimer(self) -> Grants:
        """Return what admits for one worker."""
        return Grants(self.limiter, self.on.gate)  # type: ignore[arg-type]

    async def admit(self, claimer: Grants, limit: int = 10, queue: str = "default") -> int:
        """Look until a look is not to be followed by another one at once, thrice at most; return what was started."""
        began = self.started.total()
        for _ in range(3):
            left = limit - (self.started.total() - began)
            admitted = await claimer.admit_jobs(Claim(self.session, queue, left))
            self.started.update(job.task for job in admitted.jobs)
            if len(admitted.jobs) == left or admitted.look_in is None or admitted.look_in:
                break
        return self.started.total() - began


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """A site where time passes only by its clock: claimers ask as often as they look."""
    for name in ("AWAY_SECONDS", "BELIEVED_SECONDS"):
        monkeypatch.setattr(grants, name, 0.0)
    clock = FakeClock()
    stores, beside = open_memory_stores(clock), open_memory_stores(clock)
    on = Scenario(stores, clock)
    yield Site(on, Counted(beside.limiter), await on.worker(lease=600 * MINUTE))
    await beside.close()
    await stores.close()


async def declare(site: Site, **rates: Rate) -> None:
    """Declare rates, and let them fill."""
    await site.on.gate.declare_limits(Declared({"task:capped": 0}, rates))
    await site.limiter.declare(rates)
    site.on.clock.advance(60 * MINUTE)


async def test_debts_are_those_of_all_workers(site: Site) -> None:
    """Eight workers of one slot, a rate of one unit a second, jobs of a thousand: one starts in 200 s, not eight."""
    await declare(site, tokens=Rate(1.0, 10.0))
    await site.on.enqueue(50, gate=Gate(limits=(("tokens", None),)), cost=1_000.0)
    claimers = [site.claimer() for _ in range(8)]

    for _ in range(200):
        claimers = [claimer for claimer in claimers if not await site.admit(claimer, 1)]
        site.on.clock.advance(SECOND)
    assert site.started.total() * 1_000 <= 10 + 200 + 1_000
    assert site.started.total() == 1
    assert (await site.limiter.levels(["tokens"]))["tokens"].units == pytest.approx(10 - 1_000 + 200)


async def test_queues_that_need_no_units_take_none(site: Site) -> None:
    """Neither one without jobs, nor one whose jobs name no rate, nor one whose jobs a cap holds back anyway."""
    await declare(site, api=Rate(1.0, 100.0))
    await site.on.enqueue(1, gate=Gate(limits=(("api", 1.0),)), queue="busy")
    await site.on.enqueue(5, gate=Gate(fair_key="a"), queue="free")
    await site.on.enqueue(5, gate=Gate(caps=("task:capped",), limits=(("api", 1.0),)), queue="capped")
    claimer = site.claimer()

    assert [await site.admit(claimer, 3, queue) for queue in ("free", "capped", "empty")] == [3, 0, 0]
    assert not site.limiter.counts
    assert await site.admit(claimer, 3, "busy") == 1
    assert site.limiter.counts == {"takes": 1, "api": 3}


async def test_a_queue_that_is_known_is_served_by_one_admission(site: Site) -> None:
    """What it needs is taken along, as much as jobs that wait may use; what none used is given back."""
    await declare(site, api=Rate(1.0, 100.0))
    claimer, gate = site.claimer(), Gate(limits=(("api", 2.0),))
    await site.on.enqueue(10, gate=gate)
    assert await site.admit(claimer, 4) == 4
    site.limiter.counts.clear()

    for _ in range(3):
        admitted = await claimer.admit_jobs(Claim(site.session, "default", 1))
        assert (len(admitted.jobs), site.limiter.counts.pop("takes")) == (1, 1)
    assert await site.admit(claimer, 8) == 3
    assert (await site.limiter.levels(["api"]))["api"].units == pytest.approx(80.0)


async def test_a_rate_is_reached_by_few_questions(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """While units are missing nobody asks for them before they may be there, however often one looks."""
    await declare(site, api=Rate(10.0, 1.0))
    await site.on.enqueue(10, gate=Gate(limits=(("api", 1.0),)))
    monkeypatch.setattr(grants, "AWAY_SECONDS", 0.5)
    claimer = site.claimer()
    assert await site.admit(claimer, 4) == 1
    asked = site.limiter.counts["takes"]

    looks = [await claimer.admit_jobs(Claim(site.session, "default", 4)) for _ in range(20)]
    assert site.limiter.counts["takes"] - asked <= 1
    assert all(look.look_in is not None and look.look_in.total_seconds() <= 0.1 for look in looks)
    await asyncio.sleep(0.1)
    site.on.clock.advance(SECOND / 10)
    assert await site.admit(claimer, 4) == 1


async def test_a_dear_job_comes_to_its_units(site: Site) -> None:
    """Nothing is taken of a bucket that has less than the first job needs, so that it fills up to that."""
    await declare(site, api=Rate(1.0, 100.0))
    await site.limiter.take({"api": 100.0})
    site.limiter.counts.clear()
    await site.on.enqueue(1, gate=Gate(limits=(("api", 80.0),)))
    claimers = [site.claimer() for _ in range(3)]

    for _ in range(79):
        for claimer in claimers:
            assert not await site.admit(claimer)
        site.on.clock.advance(SECOND)
    assert site.limiter.counts["api"] == 0
    site.on.clock.advance(SECOND)
    assert sum([await site.admit(claimer) for claimer in claimers]) == 1


async def test_a_queue_that_needs_units_no_more_forgets_them(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """For some time it asks for those of one job, then for none."""
    await declare(site, api=Rate(1.0, 100.0))
    await site.on.enqueue(2, gate=Gate(limits=(("api", 1.0),)))
    claimer = site.claimer()
    await site.admit(claimer)
    await site.admit(claimer)
    site.limiter.counts.clear()

    await site.admit(claimer)
    assert site.limiter.counts == {"takes": 1, "api": 1}
    monkeypatch.setattr(grants, "KEPT_SECONDS", 0.0)
    await site.admit(claimer)
    assert site.limiter.counts == {"takes": 1, "api": 1}


DEAR = Gate(limits=(("a", 500.0), ("b", 500.0)))


@pytest.mark.parametrize("extra", [None, 53, 54])
async def test_jobs_dearer_than_two_bursts_start(site: Site, extra: int | None) -> None:
    """Whichever bucket is full first, and however often one looks; a full one is left in debt in vain once a job."""
    await declare(site, a=Rate(10.0, 100.0), b=Rate(9.0, 100.0))
    await site.on.enqueue(5, gate=DEAR)
    claimer, began = site.claimer(), site.on.clock.monotonic()

    for second in range(400):
        for _ in range(2 if second == extra else 1):
            await site.admit(claimer)
        site.on.clock.advance(SECOND)
        if site.started.total() == 5:
            break
    assert site.started.total() == 5
    assert site.on.clock.monotonic() - began <= 4 * 500 / 9 + 10
    assert sum(max(units.values(), default=0.0) > 100.0 for units in site.limiter.taken) <= 2 * 5


async def test_nobody_looks_again_and_again_for_what_is_not_there(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at what was asked for before, time passes; so do the jobs, as fast as the slower rate lets."""
    monkeypatch.setattr(grants, "AWAY_SECONDS", 0.5)
    rates = {"a": Rate(1_000.0, 100.0), "b": Rate(900.0, 100.0)}
    stores, beside = open_memory_stores(), open_memory_stores()
    on = Scenario(stores, FakeClock())
    session = await on.worker(lease=600 * MINUTE)
    await on.gate.declare_limits(Declared({}, rates))
    await beside.limiter.declare(rates)
    await on.enqueue(5, gate=DEAR)
    claimer, looks, started, at_once = Grants(beside.limiter, on.gate), 0, 0, 0
    began = asyncio.get_running_loop().time()
    while started < 4 and asyncio.get_running_loop().time() - began < 10:
        admitted = await claimer.admit_jobs(Claim(session, "default", 10))
        looks, started = looks + 1, started + len(admitted.jobs)
        at_once = at_once + 1 if admitted.look_in == 0 * SECOND else 0
        assert at_once <= 2
        await asyncio.sleep(0.5 if admitted.look_in is None else admitted.look_in.total_seconds())
    assert (started, looks < 60) == (4, True)
    await claimer.close()
    await beside.close()
    await stores.close()


async def test_a_dear_job_that_lacks_another_bucket_leaves_a_full_one_to_others(site: Site) -> None:
    """While it waits for minutes for the one, cheap jobs of its queue use the other as fast as that fills."""
    await declare(site, a=Rate(10.0, 100.0), b=Rate(1.0, 100.0))
    await site.limiter.take({"b": 500.0})
    await site.on.enqueue(1, gate=DEAR)
    claimer = site.claimer()
    for _ in range(5):
        await site.admit(claimer)
        site.on.clock.advance(SECOND)
    await site.on.enqueue(3_000, gate=Gate(fair_key="cheap", limits=(("a", 1.0),)))

    for _ in range(100):
        for _ in range(3):
            await site.admit(claimer)
        site.on.clock.advance(SECOND)
    assert 900 <= site.started.total() <= 1_100
    for _ in range(460):
        await site.admit(claimer)
        site.on.clock.advance(SECOND)
    assert (await site.limiter.levels(["b"]))["b"].units < 100.0 - 300.0
