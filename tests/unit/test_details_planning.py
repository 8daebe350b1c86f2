"""Details: what a batch is cut into, by the pace of the model and the room in its quota."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import App
from headrace.apps.details.kinds import KINDS, base_sizes, even_parts
from headrace.apps.details.pace import BASE, Measured, Pace, learn_all, read_pace
from headrace.apps.details.planning import LEAST_UNPROMISED, MOST_MORE, WAVE, Terms, make_plan
from headrace.apps.details.request import DetailsRequest, parse_request
from headrace.apps.details.room import Need, Room, room_of
from headrace.apps.details.rooms import Rooms
from headrace.engine.host import this_process
from headrace.engine.llm_queries import PoolView
from headrace.llm.quota.tempo import START_FLOW
from headrace.model.quota import Pool, PoolLimits
from headrace.model.session import NewSession
from headrace.model_settings import ModelSettings
from tests.unit.engine_app import QUICK

FAST = Pace(0.4, 100.0, 60.0, samples=9)
PACES = st.builds(Pace, st.floats(0.05, 4.0), st.floats(5.0, 400.0), st.floats(10.0, 200.0), st.just(9))
ROOMS = st.builds(
    Room,
    st.just("m"),
    st.dictionaries(st.sampled_from(["requests", "tokens", "pace"]), st.floats(0.5, 1e5), max_size=2),
    st.none() | st.integers(1, 100),
    st.floats(0.0, 5.0),
    st.integers(0, 20),
    st.integers(0, 20),
)


def request_of(count: int, first_response: int = 10, type_: str = "item") -> DetailsRequest:
    """A request."""
    return parse_request({"type": type_, "count": count, "first_response": first_response, "session_id": "s"})


REQUESTS = st.builds(request_of, st.integers(1, 50), st.integers(1, 25), st.sampled_from([*KINDS, "ship_name"]))


@pytest.mark.parametrize(
    ("count", "first", "calls", "largest", "expected"),
    [
        (10, 10, 5, 2, 2.0),
        (20, 10, 6, 4, 3.2),
        (50, 10, 10, 5, 3.8),
        (50, 25, 14, 4, 3.2),
        (50, 1, 10, 5, 3.8),
        (5, 1, 1, 5, 3.8),
    ],
)
def test_the_largest_sub_batches_that_keep_the_time(
    count: int, first: int, calls: int, largest: int, expected: float
) -> None:
    """At 0.4 s and 100 tokens/s five items of 60 tokens are there after 3.4 s, and one more ask fits before 5 s."""
    plan = make_plan(request_of(count, first), FAST)
    assert (len(plan.sizes), max(plan.sizes), plan.promised) == (calls, largest, True)
    assert plan.expected_seconds == pytest.approx(expected)


@given(request=REQUESTS, pace=PACES, room=ROOMS)
def test_plans_are_whole_and_never_above_the_base_sizes(request: DetailsRequest, pace: Pace, room: Room) -> None:
    """Every item is in one sub-batch, none is larger than the rule of sizes allows, and times are true numbers."""
    plan = make_plan(request, pace, room)
    assert sum(plan.sizes) == request.count
    assert 1 <= min(plan.sizes) <= max(plan.sizes) <= max(base_sizes(request.type, request.count))
    assert 0 < plan.first_expected_seconds <= plan.expected_seconds < math.inf
    assert plan.detail.startswith("expected ")


@given(request=REQUESTS, pace=PACES, room=ROOMS)
def test_a_promise_holds_by_the_pace_with_room_for_a_top_up(request: DetailsRequest, pace: Pace, room: Room) -> None:
    """Reckoned anew from its sizes a promised plan is in time, and the one with a call less was not."""
    plan = make_plan(request, pace, room)
    if not plan.promised:
        assert ": " in plan.detail
        assert max(plan.sizes) >= min(LEAST_UNPROMISED, *base_sizes(request.type, request.count))
        return
    assert in_time(plan.sizes, request, pace, room, late=1e-6)
    fewer = len(plan.sizes) - 1
    if fewer >= len(base_sizes(request.type, request.count)):
        assert not in_time(even_parts(request.count, fewer), request, pace, room, late=-1e-6)


def in_time(sizes: tuple[int, ...], request: DetailsRequest, pace: Pace, room: Room, *, late: float) -> bool:
    """Whether both times hold, item by item, if each were allowed to be so much later."""
    terms = Terms()
    per_item = pace.tokens_per_item / pace.tokens_per_second
    needs = [Need(400, pace.tokens_per_item * size, pace.first_token_seconds + size * per_item) for size in sizes]
    begins = room.starts(needs).seconds
    there = sorted(
        terms.overhead + begin + pace.first_token_seconds + per_item * (item + 1)
        for begin, size in zip(begins, sizes, strict=True)
        for item in range(size)
    )
    first = min(request.count, request.first_count + math.ceil(0.1 * request.first_count))
    top_up = pace.first_token_seconds + per_item
    return there[first - 1] <= terms.first + late and there[-1] + top_up <= terms.deadline + late


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (Room("openai:gpt-x", {"requests": 1.0}, waiting=5), "60 requests per minute of openai:gpt-x"),
        (Room("openai:gpt-x", {"tokens": 300.0}), "18,000 tokens per minute of openai:gpt-x"),
        (Room("openai:gpt-x", {"pace": 0.5}), "30 requests (learnt) per minute of openai:gpt-x"),
        (Room("openai:gpt-x", in_flight=2), "2 calls in flight of openai:gpt-x"),
    ],
)
def test_a_quota_that_binds_is_named_with_the_time(room: Room, words: str) -> None:
    """Where the quota cannot make it the plan says so at once: when, and which limit."""
    plan = make_plan(request_of(50), FAST, room)
    assert not plan.promised
    assert plan.expected_seconds > 5.0
    assert plan.detail == f"expected {plan.expected_seconds:.1f} s: {words}"


def test_a_model_that_is_too_slow_is_named() -> None:
    """Without a quota it is the model: as it was measured, or as it is taken to be until then."""
    slow = make_plan(request_of(50), Pace(2.0, 20.0, 60.0, samples=4))
    assert (slow.promised, max(slow.sizes)) == (False, LEAST_UNPROMISED)
    assert slow.detail.endswith("2.0 s to the first token and 20 tokens per second (measured), 60 tokens per item")
    plan = make_plan(request_of(50), Pace())
    assert "assumed: nothing was measured yet" in plan.detail
    assert (plan.promised, plan.measured) == (False, False)


def test_a_first_response_alone_can_break_the_promise() -> None:
    """Both times are told where only the first is missed."""
    plan = make_plan(request_of(10), Pace(1.2, 100.0, 60.0, samples=3))
    assert (plan.sizes, plan.promised) == ((4, 3, 3), False)
    assert plan.detail.startswith("expected 4.0 s, first response 4.0 s: ")


@pytest.mark.parametrize(("count", "calls"), [(51, 4), (500, 16), (1_000, 32)])
def test_large_requests_go_in_waves_without_a_promise(count: int, calls: int) -> None:
    """More than 50 items have the base sizes, and as many turns as 16 at once take."""
    plan = make_plan(request_of(count), FAST)
    assert (len(plan.sizes), plan.promised) == (calls, False)
    assert plan.sizes == base_sizes("item", count)
    turns = -(-calls // WAVE)
    assert plan.expected_seconds == pytest.approx(
        Terms().overhead + turns * FAST.call_seconds(max(plan.sizes)), abs=0.7
    )
    assert "more than 50 items carry no promise of time" in plan.detail


def test_terms_are_the_callers() -> None:
    """A longer deadline allows larger sub-batches."""
    usual = make_plan(request_of(50, 1), FAST)
    patient = make_plan(request_of(50, 1), FAST, terms=Terms(deadline=10.0))
    assert max(usual.sizes) < max(patient.sizes) == 13
    assert patient.promised


def test_calls_that_wait_and_run_are_reckoned_with() -> None:
    """Whoever waits already goes first; those in flight end one after another."""
    need = Need(400, 300, 3.0)
    flowing = Room("m", {"requests": 10.0}, burst_seconds=0.0)
    assert flowing.starts([need] * 3).seconds == pytest.approx((0.1, 0.2, 0.3))
    assert Room("m", {"requests": 10.0}, burst_seconds=0.0, waiting=10).starts([need]).seconds == pytest.approx((1.1,))
    assert Room("m", in_flight=3, running=3).starts([need] * 4).seconds == pytest.approx((1.0, 2.0, 3.0, 4.0))
    assert Room("m", in_flight=1, waiting=2).starts([need]).seconds == pytest.approx((3.0,))
    assert Room().starts([need] * 2).seconds == (0.0, 0.0)


def test_the_room_of_a_pool_is_its_limits() -> None:
    """Flows per second, calls in flight, and what was learnt in the place of what was configured."""
    pool = Pool("openai:gpt-x", PoolLimits(requests_per_minute=600, concurrency=8))
    room = room_of(pool, waiting=2, running=3)
    assert (room.flows, room.in_flight, room.burst_seconds) == ({"requests": 10.0}, 8, 1.0)
    assert room_of(pool, flows={"requests": 4.0}).flows == {"requests": 4.0}


def test_a_pace_is_learnt_and_settles_on_the_slower_side() -> None:
    """The first call replaces what was assumed; then worse calls count for more than better ones."""
    pace = Pace().learn(Measured(0.4, 3.0, 300, 5))
    assert pace == Pace(0.4, 100.0, 60.0, samples=1)
    worse, better = pace.learn(Measured(1.4, 6.0, 300, 3)), pace.learn(Measured(0.2, 1.5, 300, 10))
    assert worse.first_token_seconds - 0.4 == pytest.approx(0.3)
    assert 0.4 - better.first_token_seconds == pytest.approx(0.02)
    assert worse.tokens_per_second < 100 < better.tokens_per_second
    assert better.tokens_per_item < 60 < worse.tokens_per_item


@given(
    calls=st.lists(
        st.builds(Measured, st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 10**7), st.integers(0, 1_000)),
        max_size=30,
    )
)
def test_a_pace_stays_a_pace(calls: list[Measured]) -> None:
    """Whatever was measured, also by a clock that jumped, a plan can be made of it, and it travels as JSON."""
    pace = learn_all(Pace(), calls)
    assert pace.samples == len(calls)
    assert 0 <= pace.first_token_seconds <= 120
    assert 0 < pace.item_seconds < math.inf
    assert read_pace(pace.to_json()).item_seconds == pytest.approx(pace.item_seconds)
    assert make_plan(request_of(20), pace).sizes


def test_short_answers_tell_nothing_of_their_rate() -> None:
    """An answer of a few tokens, or of no item, leaves the other figures alone."""
    pace = FAST.learn(Measured(0.4, 5.0, 10, 0))
    assert (pace.tokens_per_second, pace.tokens_per_item) == pytest.approx((100.0, 60.0))


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [],
        {"samples": 3},
        {**FAST.to_json(), "samples": True},
        {**FAST.to_json(), "tokens_per_second": math.nan},
    ],
)
def test_what_is_no_pace_is_the_slow_one(data: object) -> None:
    """A stored pace that cannot be read is as good as none."""
    assert read_pace(data) == Pace()


@given(request=REQUESTS, pace=PACES, base=PACES)
def test_load_never_makes_many_more_calls_than_the_model_needs(request: DetailsRequest, pace: Pace, base: Pace) -> None:
    """However slow calls have become: at most half as many again as at the model's own pace."""
    base = base.not_above(pace)
    unhindered, now = make_plan(request, base), make_plan(request, pace, base=base)
    if unhindered.promised:
        assert len(now.sizes) <= math.ceil(MOST_MORE * len(unhindered.sizes))
    assert now.promised == in_time(now.sizes, request, pace, Room(), late=1e-9)


def test_a_crowd_that_slows_itself_stays_small() -> None:
    """Twenty batches at once on a model whose calls take longer the more there are: their number stays bounded.

    Without a base pace each answers to slower calls with more of them, up to more than twice as many.
    """

    def most_calls(base: Pace | None) -> int:
        pace, calls = FAST, [len(make_plan(request_of(50), FAST).sizes)]
        for _ in range(100):
            slower = max(1.0, 20 * calls[-1] / 150)
            pace = pace.learn(Measured(0.4 * slower, 3.0 * slower, 300, 5))
            calls.append(len(make_plan(request_of(50), pace, base=base).sizes))
        return max(calls)

    alone = len(make_plan(request_of(50), FAST).sizes)
    assert alone < most_calls(FAST) <= math.ceil(MOST_MORE * alone) < 2 * alone < most_calls(None)


def test_a_base_pace_hardly_heeds_what_is_worse() -> None:
    """An hour of load moves it little; one call that is better tells what the model can do."""
    base = FAST
    for _ in range(5):
        base = base.learn(Measured(1.4, 6.0, 300, 5), *BASE)
    assert base.first_token_seconds == pytest.approx(0.4 + 1.0 * (1 - 0.95**5))
    assert base.learn(Measured(0.3, 3.0, 300, 5), *BASE).first_token_seconds < base.first_token_seconds - 0.09


def test_a_slow_model_behind_a_quota_is_told_with_both() -> None:
    """Where neither would keep the promise alone, both are named."""
    plan = make_plan(request_of(50), Pace(), Room("m", {"requests": 1.0}))
    assert "60 requests per minute of m, and 1.0 s to the first token" in plan.detail
    assert not plan.promised and plan.expected_seconds > 5


def test_a_closed_pool_is_told_with_the_time() -> None:
    """After a refusal nothing passes for a while: no plan begins before."""
    plan = make_plan(request_of(10), FAST, Room("m", closed=7.0))
    assert plan.expected_seconds > 7.0 and plan.calls[0][0] == 7.0
    assert plan.detail.endswith(": m lets nothing pass for 7 s")


@asynccontextmanager
async def rooms_of(**llm: Any) -> AsyncIterator[tuple[Rooms, list[PoolView]]]:
    """Rooms of an app, and the list whose last entry its processes tell."""
    model = ModelSettings(model="gpt-x", base_url="http://127.0.0.1:9/v1", api_key="none", **llm)
    app = App(settings=replace(QUICK, llm=model))
    told = [PoolView("")]

    async def pool(name: str) -> PoolView:
        assert name == app.settings.llm_settings().pool_name
        return told[-1]

    async with app:
        app.pool = pool  # type: ignore[method-assign]
        yield Rooms(app), told


async def test_the_room_is_what_processes_tell_and_what_was_planned_since(monkeypatch: pytest.MonkeyPatch) -> None:
    """They tell with each heartbeat; what one process has planned meanwhile counts as well, until it is over."""
    now = 1_000.0
    monkeypatch.setattr("headrace.apps.details.rooms.time.monotonic", lambda: now)
    async with rooms_of(requests_per_minute=600) as (rooms, told):
        assert (await rooms.current()).flows == {"requests": 10.0}
        rooms.take([(0.0, 2.0), (0.5, 2.5), (3.0, 5.0)])
        told.append(PoolView("", in_flight=7, waiting=0, flows={"requests": 4.0}, closed=timedelta(seconds=9)))
        now += 0.6
        room = await rooms.current()
        assert (room.flows, room.waiting, room.running, room.closed) == ({"requests": 10.0}, 1, 2, 0.0)
        now += 0.5
        room = await rooms.current()
        assert (room.flows, room.waiting, room.running, room.closed) == ({"requests": 4.0}, 1, 7, 9.0)
        now += 0.5
        assert (await rooms.current()).closed == pytest.approx(8.5)


async def test_a_pool_without_limits_begins_with_the_first_flow_of_pools() -> None:
    """Which is what it is let through with before anything is learnt."""
    async with rooms_of() as (rooms, told):
        room = await rooms.current()
        assert room.flows == {"pace": START_FLOW}
        plan = make_plan(request_of(50), FAST, replace(room, waiting=40))
        assert not plan.promised and "600 requests (learnt) per minute of openai:" in plan.detail
        told.append(PoolView("", flows={"pace": 55.0}))
        rooms._looked_at = 0.0
        assert (await rooms.current()).flows == {"pace": 55.0}


async def test_processes_tell_of_a_pool_with_their_heartbeats() -> None:
    """What live ones tell of it adds up; other pools do not."""
    told = {
        "name": "p", "waiting": 2, "in_flight": 3, "waits": 0, "waited_seconds": 0.0, "refused": 0, "overloaded": 0,
        "closed_seconds": 1.5, "used": {"pace": 4.0}, "flows": {"pace": 12.0}, "learnt": 12.0,
    }  # fmt: skip
    app = App("memory://")
    async with app:
        sessions = app.runtime.stores.sessions
        for _ in range(2):
            made = NewSession(this_process(), "host", {}, timedelta(seconds=30))
            await sessions.register_session(made)
            stats = {"headrace.llm.pools": [told, told | {"name": "other"}]}
            await sessions.renew_session(made.id, lease=timedelta(seconds=30), stats=stats)
        pool = await app.pool("p")
        assert (pool.in_flight, pool.waiting, pool.flows, pool.closed) == (6, 4, {"pace": 12.0}, timedelta(seconds=1.5))
        assert (await app.pool("unknown")).flows == {}
