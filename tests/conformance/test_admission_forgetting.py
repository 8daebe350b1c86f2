"""Admission.forget_limit, and weights that are those of any fair key: what nobody needs leaves nothing behind."""

from __future__ import annotations

import pytest

from headrace.model.admission import LimitKind, LimitsView, WaitReason
from headrace.model.breaker import BreakerReport, BreakerRule, BreakerState, OnOpen
from headrace.model.limits import Declared, Gate, Rate
from tests.conformance.scenario import SECOND, Scenario

RULE = BreakerRule(failures=1, cooldown=30 * SECOND)
#: One name of each kind, and a gate that names it.
DECLARED = Declared(caps={"task:x": 1}, rates={"x": Rate(0.1, 1.0)}, breakers={"y": RULE})
GATES = {
    "task:x": (LimitKind.CAP, WaitReason.CAP, Gate(caps=("task:x",))),
    "x": (LimitKind.RATE, WaitReason.RATE, Gate(limits=(("x", 1.0),))),
    "y": (LimitKind.BREAKER, WaitReason.BREAKER, Gate(breakers=("y",))),
}


async def wait_behind(on: Scenario, name: str) -> None:
    """Let one job run behind a limit, and nothing else pass it."""
    await on.gate.declare_limits(DECLARED)
    session = await on.worker()
    first, second = await on.enqueue(2, gate=GATES[name][2])
    [job] = await on.admit(session, 1)
    assert job.id == first
    if name == "y":
        await on.gate.set_breaker("y", BreakerState.OPEN)
    assert await on.admit(session) == []
    found = await on.gate.explain_job(second)
    assert found is not None
    assert (found.reason, found.subject) == (GATES[name][1], name)


async def test_a_cap_that_nobody_set_any_more_is_none(on: Scenario) -> None:
    """An override that was taken back, or never set, leaves no cap to forget; a declared one stays."""
    await on.gate.declare_limits(DECLARED)
    for cap in (5, None):
        await on.gate.set_cap("task:x", cap)
        await on.gate.set_cap("task:z", cap)
    await on.gate.set_cap("task:never", None)

    caps = (await on.gate.list_limits()).caps
    assert [(cap.key, cap.declared, cap.override) for cap in caps] == [("task:x", 1, None)]
    assert [await on.gate.forget_limit(name) for name in ("task:z", "task:never")] == [frozenset(), frozenset()]


@pytest.mark.parametrize("name", GATES)
async def test_what_waits_behind_a_forgotten_limit_starts(on: Scenario, name: str) -> None:
    """It limits nothing any more, what runs goes on, and other limits stay."""
    await wait_behind(on, name)
    running = await on.running()

    assert await on.gate.forget_limit(name) == {GATES[name][0]}
    view = await on.gate.list_limits()
    named = {*(cap.key for cap in view.caps), *(rate.name for rate in view.rates), *(one.key for one in view.breakers)}
    assert named == GATES.keys() - {name}
    assert await on.running() == running
    assert len(await on.admit(await on.worker())) == 1


@pytest.mark.parametrize("name", GATES)
async def test_a_forgotten_limit_can_be_declared_again(on: Scenario, name: str) -> None:
    """The bucket is full then and the breaker closed, but under the cap what runs counts."""
    await wait_behind(on, name)
    await on.gate.forget_limit(name)
    await on.gate.declare_limits(DECLARED)

    assert len(await on.admit(await on.worker())) == (0 if name == "task:x" else 1)


async def test_overrides_and_closings_are_forgotten_too(on: Scenario) -> None:
    """Nothing of what operators and providers said is left; one that nobody declared can be forgotten as well."""
    await on.gate.declare_limits(DECLARED)
    await on.gate.set_cap("task:x", 7)
    await on.gate.set_cap("task:set", 0)
    await on.gate.set_rate("x", Rate(9.0, 9.0))
    await on.limiter.close_bucket("x", 90 * SECOND)
    for name in ("task:x", "task:set", "x"):
        assert await on.gate.forget_limit(name)
    assert await on.gate.list_limits() == LimitsView(breakers=(await on.gate.list_limits()).breakers)
    assert await on.limiter.levels(["x"]) == {}

    await on.gate.declare_limits(DECLARED)
    [cap], [rate] = (await on.gate.list_limits()).caps, await on.gate.list_rates()
    assert (cap.cap, cap.override) == (1, None)
    assert (rate.rate, rate.override, rate.level, rate.closed_until) == (Rate(0.1, 1.0), None, 1.0, None)


async def test_all_that_a_name_stands_for_is_forgotten(on: Scenario) -> None:
    """A cap, a rate and a breaker may have one name; the answer says which there were, nothing for an unknown one."""
    name = "queue:default"
    await on.gate.declare_limits(Declared({name: 1}, {name: Rate(1.0, 1.0)}, {name: RULE}))
    await on.enqueue(5)

    assert await on.gate.forget_limit(name) == set(LimitKind)
    assert await on.gate.forget_limit(name) == set()
    assert await on.gate.forget_limit("nobody's") == set()
    look = await on.look(await on.worker())
    assert (len(look.jobs), look.gated) == (5, True)


async def test_a_forgotten_breaker_takes_no_reports(on: Scenario) -> None:
    """What ends after it was forgotten makes no new one, nor does the probe that was under way."""
    await on.gate.declare_limits(Declared(breakers={"y": BreakerRule(failures=1, on_open=OnOpen.FAIL)}))
    await on.gate.set_breaker("y", BreakerState.OPEN)
    on.clock.advance(60 * SECOND)
    session = await on.worker()
    await on.enqueue(3, gate=Gate(breakers=("y",)))
    [probe] = [job for job in await on.admit(session, 1) if job.refused is None]

    assert await on.gate.forget_limit("y") == {LimitKind.BREAKER}
    await on.gate.report_calls([BreakerReport("y", probe.id, probe.attempt, succeeded=False)])
    assert [job.refused for job in await on.admit(session)] == [None, None]
    assert (await on.gate.list_limits()).breakers == ()


async def test_a_weight_of_one_is_not_kept(on: Scenario) -> None:
    """It is what every fair key has; nothing is listed for it, and what another key weighs stays."""
    for fair_key in "abc":
        await on.gate.set_weight("default", fair_key, 3.0)
    for fair_key in "aad":
        await on.gate.set_weight("default", fair_key, 1.0)

    assert [(one.fair_key, one.weight) for one in (await on.gate.list_limits()).shares] == [("b", 3.0), ("c", 3.0)]
    for most, keys in ((0, []), (1, ["b"]), (2, ["b", "c"]), (3, ["b", "c"])):
        assert [one.fair_key for one in (await on.gate.list_limits(most_shares=most)).shares] == keys
    for fair_key in "bc":
        await on.gate.set_weight("default", fair_key, 1.0)
    assert (await on.gate.list_limits()).shares == ()


async def test_a_share_that_was_served_keeps_its_tag(on: Scenario) -> None:
    """Back at weight one, a fair key still owes what it used, and from then on uses as much as any other."""
    session = await on.worker()
    await on.gate.set_weight("default", "a", 0.5)
    await on.enqueue(4, gate=Gate(fair_key="a"))
    await on.enqueue(4, gate=Gate(fair_key="b"))
    await on.admit(session, 2)
    assert await tag_of(on, "a") == (0.5, 2.0)

    await on.gate.set_weight("default", "a", 1.0)
    assert await tag_of(on, "a") == (1.0, 2.0)
    await on.admit(session, 3)
    assert await tag_of(on, "a") == (1.0, 3.0)


async def tag_of(on: Scenario, fair_key: str) -> tuple[float, float]:
    """Return the weight and the finish tag of a fair key."""
    [share] = [one for one in (await on.gate.list_limits()).shares if one.fair_key == fair_key]
    return share.weight, share.finish


async def test_a_cap_whose_override_was_lifted_is_none(on: Scenario) -> None:
    """Where nobody declares it and no operator sets it any more there is nothing to forget."""
    await on.gate.set_cap("task:work", 3)
    await on.gate.set_cap("task:work", None)

    assert await on.gate.forget_limit("task:work") == frozenset()
