"""HandleStore: a handle and its events never miss each other, whichever comes first; what counts, counts once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from headrace.model.errors import ConflictError
from headrace.model.job import JobState, Park
from headrace.model.resume_handle import HandleState, HandleView, signal_key
from tests.conformance.events import Events
from tests.conformance.handles import REQUEST, RESULT, Handles, dead, result
from tests.conformance.scenario import ALL, DAY, MINUTE, SECOND, Scenario
from tests.waiting import wait_until

WAITING, RESOLVED = HandleState.WAITING, HandleState.RESOLVED


@pytest.fixture
def handles(events: Events) -> Handles:
    """Return what a test does with handles, in few words."""
    return Handles(events)


async def test_a_handle_is_read_as_it_was_registered(on: Scenario, handles: Handles) -> None:
    """With the store's times, and nothing has come."""
    registered = await handles.register(
        3, expect_types=(RESULT, "A.B.C"), agents=("writer", "é"), target="prefect:1", timeout=2 * MINUTE,
        token_hash="h",
    )  # fmt: skip
    now = on.clock.now()

    assert registered == HandleView(
        "c", (RESULT, "A.B.C"), 3, (REQUEST,), ("writer", "é"), WAITING, 0, "prefect:1", wake_due=False,
        created_at=now, expires_at=now + 2 * MINUTE,
    )  # fmt: skip
    assert await handles.get() == registered
    assert await handles.store.get_handle("none") is None
    assert await handles.signal() is None


async def test_results_resolve_a_handle(on: Scenario, handles: Handles) -> None:
    """The last of as many as it expects ends it, and sends the signal."""
    await handles.register(3)
    on.clock.advance(SECOND)

    assert await handles.note(result(1), result(2)) == [WAITING, WAITING]
    assert ((await handles.get()).arrived, await handles.signal()) == (2, None)
    assert await handles.note(result(3)) == [RESOLVED]
    view = await handles.get()
    assert (view.state, view.arrived, view.ended_at, view.payload) == (RESOLVED, 3, on.clock.now(), None)
    assert await handles.signal() == {"state": "resolved"}
    assert await handles.kept() == [1, 2, 3]


async def test_results_that_come_early_are_kept(handles: Handles) -> None:
    """The handle finds them: some of what it expects, or all, and then it is resolved at once."""
    assert await handles.note(result(1), result(2)) == [None, None]
    assert await handles.store.get_handle("c") is None
    assert ((await handles.register(3)).arrived, await handles.note(result(3))) == (2, [RESOLVED])

    await handles.note(result(4, correlation_id="d"))
    view = await handles.register(key="d")
    assert (view.state, view.arrived, view.ended_at) == (RESOLVED, 1, view.created_at)
    assert (await handles.signal("d"), await handles.kept("d")) == ({"state": "resolved"}, [4])


async def test_an_event_counts_once(handles: Handles) -> None:
    """However often it comes, before the handle and after; the first of an id stands."""
    first = result(1)
    again = replace(first, event=replace(first.event, payload=9))
    await handles.note(first, again)
    await handles.register(2)
    await handles.note(again, first)

    assert ((await handles.get()).arrived, await handles.kept()) == (1, [1])


async def test_what_comes_after_the_end_is_not_kept(handles: Handles) -> None:
    """The handle stays as it ended, whatever ended it."""
    for key, state in (("r", RESOLVED), ("c", HandleState.CANCELLED), ("e", HandleState.EXPIRED)):
        before = await handles.ended(key, state)
        kept = await handles.kept(key)

        assert await handles.note(result(9, correlation_id=key), dead(correlation_id=key)) == [state, state]
        assert (await handles.get(key), await handles.kept(key)) == (before, kept)
        assert await handles.signal(key) == {"state": state.value}


async def test_registering_again_changes_nothing(on: Scenario, handles: Handles) -> None:
    """The time and token of the first stand; so it may be registered again after its end as well."""
    first = await handles.register(1, target="prefect:1", token_hash="one", agents=("a", "b"))
    on.clock.advance(SECOND)
    again = {"target": "prefect:1", "agents": ("a", "b")}
    assert await handles.register(1, timeout=DAY, token_hash="two", **again) == first
    await handles.note(result())
    ended = await handles.get()

    assert await handles.register(1, timeout=DAY, token_hash="three", **again) == ended
    assert (ended.state, ended.expires_at) == (RESOLVED, first.expires_at)


@pytest.mark.parametrize(
    "other", [{"count": 2}, {"expect_types": ("A.B.C",)}, {"agents": ("x",)}, {"target": "prefect:2"}]
)
@pytest.mark.parametrize("over", [True, False])
async def test_another_handle_of_a_correlation_id_is_refused(
    handles: Handles, other: dict[str, Any], over: bool
) -> None:
    """Two that wait for different things cannot have the same; the first stands."""
    first = await (handles.ended("c", RESOLVED) if over else handles.register())

    with pytest.raises(ConflictError):
        await handles.register(**{"count": 1, **other})
    assert await handles.get() == first


async def test_the_end_wakes_the_jobs_that_wait(on: Scenario, handles: Handles) -> None:
    """Those parked on its signal are ready; their queue hears of it."""
    session = await on.worker(lease=DAY)
    for end in ("note", "early", "cancel", "expire", "token"):
        _, job = await on.start(session, queue=end)
        await on.end(session, job, state=JobState.PARKED, park=Park(signal_key(end)))
        heard: list[str] = []
        stop = await on.stores.notifier.subscribe(heard.append)
        if end == "early":
            await handles.note(result(correlation_id=end))
        await handles.register(key=end, token_hash=f"hash {end}")
        if end == "note":
            await handles.note(result(correlation_id=end))
        elif end == "cancel":
            await handles.store.cancel_handle(end)
        elif end == "token":
            await handles.store.resolve_by_token(f"hash {end}", "1")
        elif end == "expire":
            on.clock.advance(MINUTE)
            await handles.store.expire_handles(limit=ALL)

        assert [again.id for again in await on.claim(session, queue=end)] == [job.id], end
        await wait_until(lambda heard=heard, end=end: f"queue:{end}" in heard)  # type: ignore[misc]
        stop()


async def test_events_and_handle_at_once_never_miss_each_other(handles: Handles) -> None:
    """Whichever is first: each handle is resolved, with one signal, and has all its events."""
    keys = [f"c{number}" for number in range(12)]
    acts = [
        act
        for key in keys
        for act in (
            handles.note(result(1, correlation_id=key)),
            handles.register(2, key=key),
            handles.note(result(2, correlation_id=key)),
        )
    ]  # fmt: skip
    await asyncio.gather(*acts)

    assert {await handles.state(key) for key in keys} == {RESOLVED}
    assert [sorted(await handles.kept(key)) for key in keys] == [[1, 2]] * len(keys)
    assert [await handles.signal(key) for key in keys] == [{"state": "resolved"}] * len(keys)


async def test_fifty_events_of_one_handle_at_once(handles: Handles) -> None:
    """Each counts once, though each comes twice; registering at the same time by several changes nothing."""
    noted = [result(number) for number in range(25)] + [dead(number) for number in range(25)]
    registering = [handles.register(50) for _ in range(3)]
    await asyncio.gather(*(handles.note(one) for one in noted), *registering, *(handles.note(one) for one in noted))

    view = await handles.get()
    assert (view.state, view.arrived) == (RESOLVED, 50)
    assert len(await handles.kept()) == 50


async def test_events_are_kept_as_they_came(handles: Handles) -> None:
    """With everything that is said of them, in the order in which they came."""
    noted = [result({"é": n}, key=f"s{n}", schema_version=2, retries=n) for n in (2, 0, 1)] + [
        dead([1], agent="wrïter")
    ]
    noted[1] = replace(noted[1], event=replace(noted[1].event, id="foreign é id", causation_id="x"))
    await handles.note(*noted[:2])
    await handles.register(9)
    await handles.note(*noted[2:])

    assert await handles.store.noted_events("c") == noted
    assert await handles.store.noted_events("none") == []


async def test_handles_are_listed_newest_first(on: Scenario, handles: Handles) -> None:
    """All of them, or those that wait; early events alone are no handle."""
    await handles.note(result(correlation_id="early"))
    for key in ("a", "b", "c", "d"):
        await handles.register(key=key, timeout=DAY)
        on.clock.advance(SECOND)
    await handles.store.cancel_handle("c")

    assert [view.correlation_id for view in await handles.store.list_handles(waiting=False, limit=9)] == list("dcba")
    assert [view.correlation_id for view in await handles.store.list_handles(waiting=True, limit=2)] == list("db")
    assert (await handles.store.list_handles(waiting=False, limit=2))[1] == await handles.get("c")
