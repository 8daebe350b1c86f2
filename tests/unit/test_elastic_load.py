"""Elastic slots under load, on virtual time: they follow bursts, do not flap, and do not grow where a limit binds."""

from __future__ import annotations

import pytest

from headrace.engine.slot_use import SlotUse
from headrace.model.breaker import BreakerRule, BreakerState
from headrace.model.elastic import ElasticSlots
from headrace.model.limits import Gate, Rate
from tests.unit.elastic_world import QUEUE, RULE, World, changes, in_world, turns


def test_they_grow_and_shrink_with_each_burst() -> None:
    """Up to the most while it lasts, down to the fewest after it, and one turn of direction at either end."""

    async def bursts(world: World) -> None:
        await world.start()
        for _ in range(2):
            await world.submit(1_500)
            await world.pass_time(50)
            assert await world.left() == 0
            await world.pass_time(40)

    [sizes] = in_world(bursts).sizes
    assert changes(sizes) == [8, 12, 18, 27, 40, 28, 19, 13, 9, 6, 4, 6, 9, 14, 21, 32, 40, 28, 19, 13, 9, 6, 4]
    assert turns(sizes) == 3


def test_they_do_not_grow_where_the_quota_of_a_model_binds(caplog: pytest.LogCaptureFixture) -> None:
    """A backlog of a thousand at five calls a second: more slots would only wait."""
    caplog.set_level("INFO", "headrace.slots")

    async def load(world: World) -> None:
        await world.start()
        await world.submit(1_000, task="ask")
        await world.pass_time(60)
        assert 500 < await world.left() < 800

    world = in_world(load, quota_per_second=5.0)
    assert max(world.sizes[0]) == 8
    assert "quota or budget of a model" in world.held_by
    assert "slots held at 8 by quota or budget of a model" in caplog.text


def test_without_the_guard_for_quotas_they_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same load where nobody looks at what the slots wait for: so it is the guard that held them."""
    look = SlotUse.look
    monkeypatch.setattr(SlotUse, "look", lambda use: (look(use)[0], False))

    async def load(world: World) -> None:
        await world.start()
        await world.submit(1_000, task="ask")
        await world.pass_time(60)

    assert max(in_world(load, quota_per_second=5.0).sizes[0]) > 8


def test_a_call_for_several_jobs_lets_all_of_them_wait() -> None:
    """Jobs that are gathered wait for the quota of the one call that is made for them."""

    async def load(world: World) -> None:
        await world.start()
        await world.submit(1_000, task="ask_together")
        await world.pass_time(40)

    world = in_world(load, quota_per_second=1.0)
    assert max(world.sizes[0]) == 8
    assert "quota or budget of a model" in world.held_by


def test_they_grow_where_a_quota_has_enough() -> None:
    """Calls of models that wait for their answers, not for their quota."""

    async def load(world: World) -> None:
        await world.start()
        await world.submit(1_000, task="ask")
        await world.pass_time(20)

    assert max(in_world(load, quota_per_second=1_000.0).sizes[0]) == RULE.most


def test_they_grow_up_to_a_cap_and_no_further() -> None:
    """Of two workers under a cap of 20 over both; the effective cap is the smaller."""

    async def load(world: World) -> None:
        await world.declare(caps={f"queue:{QUEUE}": 20})
        await world.start(2, rule=ElasticSlots(4, 40, 4, grow_above=100, shrink_below=10))
        await world.submit(2_500)
        await world.pass_time(40)
        assert await world.left() > 300

    world = in_world(load)
    assert world.most_running == 20
    assert 20 <= sum(sizes[-1] for sizes in world.sizes) <= 22
    assert max(turns(sizes) for sizes in world.sizes) <= 1


def test_they_do_not_grow_where_a_rate_limit_binds() -> None:
    """Five a second start, whatever the slots; what is not used of them goes."""

    async def load(world: World) -> None:
        await world.declare(rates={f"queue:{QUEUE}": Rate(5.0, 5.0)})
        await world.start()
        await world.submit(1_000)
        await world.pass_time(60)

    world = in_world(load)
    assert max(world.sizes[0]) == 8
    assert world.sizes[0][-1] == 4
    assert f"rate queue:{QUEUE}" in world.held_by


def test_they_do_not_grow_behind_an_open_breaker() -> None:
    """A thousand jobs wait for it to close."""

    async def load(world: World) -> None:
        await world.declare(breakers={"api": BreakerRule()})
        await world.stores.admission.set_breaker("api", BreakerState.OPEN)
        await world.start()
        await world.submit(1_000, gate=Gate(breakers=("api",)))
        await world.pass_time(20)

    world = in_world(load)
    assert max(world.sizes[0]) == 8
    assert "breaker api" in world.held_by


def test_jobs_of_few_keys_are_a_small_backlog() -> None:
    """A thousand jobs of three users, one at a time each: three could start."""

    async def load(world: World) -> None:
        await world.start()
        for user in ("ann", "bob", "eve"):
            await world.submit(300, gate=Gate(key=user, key_limit=1))
        await world.pass_time(30)

    assert max(in_world(load).sizes[0]) == 8


def test_workers_divide_the_backlog() -> None:
    """Four workers see a quarter each: what would make one grow leaves them as they are."""

    async def load(world: World) -> None:
        await world.start(4, rule=ElasticSlots(2, 40, 2, grow_above=400, shrink_below=10))
        await world.submit(900)
        await world.pass_time(30)

    assert {tuple(changes(sizes)) for sizes in in_world(load).sizes} == {(2,)}


@pytest.mark.parametrize("per_second", [3, 20, 45, 70])
def test_under_a_constant_load_they_settle(per_second: int) -> None:
    """Jobs that come at a constant rate: at most one turn, and the backlog stays within its mark."""

    async def load(world: World) -> None:
        await world.start()
        for _ in range(150):
            await world.submit(per_second)
            await world.pass_time(1)

    world = in_world(load)
    assert turns(world.sizes[0]) <= 1
    assert len(set(world.sizes[0][-60:])) == 1
    assert world.sizes[0][-1] >= per_second * 0.5
