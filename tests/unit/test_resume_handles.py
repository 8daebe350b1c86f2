"""`app.handles`, and tasks that wait for events: one winner, and nothing is parked for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace import App
from headrace.engine.events.waiting import MARGIN, HandleWaits
from headrace.model.errors import (
    ConfigError,
    ConflictError,
    HandleCancelledError,
    HandleExpiredError,
    InvalidInputError,
    JobFailedError,
    NotFoundError,
)
from headrace.model.event import Event
from headrace.model.job import JobState
from headrace.model.parking import ParkRequested
from headrace.model.resume_handle import HandleState, NewHandle, NotedEvent, hash_token, new_token, signal_key
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.waiting import wait_until

ASKED, MADE = "Shop.Order.Asked", "Shop.Order.Made"


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """An open app."""
    async with App("memory://") as made:
        yield made


def made(number: int = 1, **facts: Any) -> NotedEvent:
    """Return a result."""
    return NotedEvent(replace(Event(MADE, "ShopOrder", "o-1", number, "c-1", id=f"e-{number}"), **facts))


def dead(number: int = 9) -> NotedEvent:
    """Return a request that became a dead letter."""
    return NotedEvent(Event(ASKED, "ShopOrder", "o-1", None, "c-1", id=f"r-{number}"), True, "packer", "no")


async def note(app: App, *noted: NotedEvent) -> None:
    """Let events come."""
    for one in noted:
        await app.event_stores.handles.note_event(one)


async def test_a_handle_shows_what_it_waits_for(app: App) -> None:
    """As it was given, checked, in one order; agents by their canonical ids."""
    app.agent_ids.add("packer", aliases=["boxes"])
    handle = await app.handles.register(
        "c-1", MADE, "Shop.Order.Kept", timeout="1h", count=2, request_types=[ASKED], agents=["boxes", "World_Builder"],
        target="prefect:abc",
    )  # fmt: skip
    view = handle.view
    assert (handle.correlation_id, handle.state, handle.token, handle.payload) == (
        "c-1", HandleState.WAITING, None, None,
    )  # fmt: skip
    assert (view.expect_types, view.expect_count, view.target) == (("Shop.Order.Kept", MADE), 2, "prefect:abc")
    assert (view.request_types, view.agents) == ((ASKED,), ("packer", "worldbuilder"))
    assert view.expires_at - view.created_at == timedelta(hours=1)
    await note(app, made())
    assert await (await app.handles.show("c-1")).events() == [made()]
    assert [one.correlation_id for one in await app.handles.list()] == ["c-1"]


async def test_registering_again_changes_nothing(app: App) -> None:
    """Time and token stay those of the first; another wait under the same correlation id is a conflict."""
    first = await app.handles.register("c-1", MADE, ASKED, timeout="1h", token=True)
    again = await app.handles.register("c-1", ASKED, MADE, timeout="9h", token=True)
    assert again.view == first.view
    assert (again.token, bool(first.token)) == (None, True)
    with pytest.raises(ConflictError):
        await app.handles.register("c-1", MADE, timeout="1h")


async def test_a_token_ends_a_wait_once(app: App) -> None:
    """The same payload again is no error, another is; the token itself is shown once and stored nowhere."""
    handle = await app.handles.register("c-1", count=0, timeout="1h", token=True)
    assert handle.token is not None
    assert handle.token not in repr(handle)
    resolved = await app.handles.resolve(handle.token, {"paid": True})
    assert (resolved.state, resolved.payload) == (HandleState.RESOLVED, {"paid": True})
    assert (await app.handles.resolve(handle.token, {"paid": True})).view == resolved.view
    with pytest.raises(ConflictError):
        await app.handles.resolve(handle.token, {"paid": False})
    with pytest.raises(NotFoundError):
        await app.handles.resolve(new_token())
    outcome = await resolved.outcome()
    assert (outcome.events, outcome.payload, outcome.by_token) == ((), {"paid": True}, True)


async def test_a_token_that_was_made_before_is_kept(app: App) -> None:
    """A handler that runs again gives the same one, and gets it back each time."""
    token = new_token()
    for _ in range(2):
        assert (await app.handles.register("c-1", count=0, timeout="1h", token=token)).token == token
    assert (await app.handles.resolve(token)).state is HandleState.RESOLVED


async def test_a_cancelled_handle_stays_so(app: App) -> None:
    """What comes later changes nothing, and it is listed among those that have ended."""
    await app.handles.register("c-1", MADE, timeout="1h")
    assert (await app.handles.cancel("c-1")).state is HandleState.CANCELLED
    await note(app, made())
    handle = await app.handles.cancel("c-1")
    assert (handle.state, await handle.events()) == (HandleState.CANCELLED, [])
    assert await app.handles.list() == []
    assert [one.state for one in await app.handles.list(waiting=False)] == [HandleState.CANCELLED]
    with pytest.raises(HandleCancelledError):
        await handle.outcome()


@pytest.mark.parametrize("verb", ["show", "cancel"])
async def test_a_handle_that_is_not_there_is_named(app: App, verb: str) -> None:
    """By its correlation id."""
    with pytest.raises(NotFoundError, match="c-9"):
        await getattr(app.handles, verb)("c-9")


async def test_a_handle_that_waits_has_no_outcome(app: App) -> None:
    """It says so, and how to look again."""
    handle = await app.handles.register("c-1", MADE, timeout="1h")
    with pytest.raises(ConfigError, match=r"still waits: read it again with app\.handles\.show"):
        await handle.outcome()


MISTAKES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("correlation_id", ("", MADE), {}),
    ("correlation_id", ("a\nb", MADE), {}),
    ("event type", ("c", "Made"), {}),
    ("types", ("c",), {}),
    ("types", ("c", 7), {}),
    ("types", ("c", *[MADE] * 101), {}),
    ("count", ("c", MADE), {"count": -1}),
    ("count", ("c", MADE), {"count": True}),
    ("count", ("c", MADE), {"count": 10_001}),
    ("count", ("c",), {"count": 0}),
    ("timeout", ("c", MADE), {"timeout": 0}),
    ("timeout", ("c", MADE), {"timeout": "soon"}),
    ("request_types", ("c", MADE), {"request_types": ASKED}),
    ("event type", ("c", MADE), {"request_types": ["asked"]}),
    ("agents", ("c", MADE), {"agents": "packer"}),
    ("agent id", ("c", MADE), {"agents": ["no agent"]}),
    ("target", ("c", MADE), {"target": "flow"}),
    ("target", ("c", MADE), {"target": 7}),
    ("token", ("c", MADE), {"token": "secret"}),
    ("token", ("c", MADE), {"token": 1}),
]


@pytest.mark.parametrize(
    ("field", "given", "options"), MISTAKES, ids=[f"{field}-{number}" for number, (field, *_) in enumerate(MISTAKES)]
)
async def test_mistakes_are_named(app: App, field: str, given: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Field and rule; nothing is stored, and a token is not shown."""
    with pytest.raises(InvalidInputError) as refused:
        await app.handles.register(*given, **{"timeout": "1h", **options})
    assert refused.value.field == field
    assert "secret" not in str(refused.value)
    assert await app.handles.list() == []


@pytest.mark.parametrize(
    ("verb", "given"), [("resolve", ("x",)), ("resolve", (None,)), ("show", ("",)), ("cancel", (7,))]
)
async def test_mistakes_in_other_verbs_are_named(app: App, verb: str, given: tuple[Any, ...]) -> None:
    """Before the store is asked."""
    with pytest.raises(InvalidInputError):
        await getattr(app.handles, verb)(*given)


@pytest.mark.parametrize("options", [{"limit": 0}, {"waiting": "yes"}])
async def test_mistakes_in_a_list_are_named(app: App, options: dict[str, Any]) -> None:
    """Of either option."""
    with pytest.raises(InvalidInputError):
        await app.handles.list(**options)


# Tasks that wait


@asynccontextmanager
async def waiting(app: App, **options: Any) -> AsyncIterator[Any]:
    """Yield the job of a task that waits for events of "c-1", and is parked, while a worker runs."""

    @app.task
    async def wait() -> list[Any]:
        resumed = await app.wait_for_events("c-1", MADE, **{"timeout": "1h", **options})
        return [[event.payload for event in resumed.events], [one.error for one in resumed.dead], resumed.payload]

    async with app.worker():
        job = await wait.enqueue()

        async def parked() -> bool:
            view = await app.runtime.stores.inspect.get_job(job.id)
            return view is not None and view.state is JobState.PARKED

        await wait_until(parked, message="the job to be parked")
        yield job


async def test_a_task_goes_on_with_its_events() -> None:
    """After the last of them; requests that died count and are told."""
    app = App("memory://")
    async with waiting(app, count=3, request_types=(ASKED,)) as job:
        await note(app, made(1), made(1), dead(), made(2))
        assert await job.result(timeout=20) == [[1, 2], ["no"], None]


async def test_a_task_whose_events_came_before_does_not_leave() -> None:
    """An event before its handle is found; so is the handle of a run before."""
    app = App("memory://")

    @app.task
    async def wait() -> list[Any]:
        return [event.payload for event in (await app.wait_for_events("c-1", MADE, timeout="1h")).events]

    async with app.worker():
        await note(app, made(7))
        for _ in range(2):
            assert await (await wait.enqueue()).result(timeout=20) == [7]


@pytest.mark.parametrize(
    ("end", "error"), [("cancel", "handle_cancelled"), ("expire", "handle_expired")], ids=["cancel", "timeout"]
)
async def test_a_task_is_told_of_another_end(end: str, error: str) -> None:
    """Its wait raises what happened; nobody waits on."""
    app = App("memory://")
    async with waiting(app, timeout="50ms" if end == "expire" else "1h") as job:
        if end == "cancel":
            await app.handles.cancel("c-1")
        else:
            handles = app.event_stores.handles
            await wait_until(lambda: handles.expire_handles(limit=10), message="the handle to expire")
        with pytest.raises(JobFailedError, match=error):
            await job.result(timeout=20)


async def test_a_token_lets_a_task_go_on() -> None:
    """With what came with it, and the events that had come by then."""
    app = App("memory://")
    async with app:
        handle = await app.handles.register("c-1", MADE, timeout="1h", count=2, token=True)
        assert handle.token is not None
        async with waiting(app, count=2) as job:
            await note(app, made(1))
            await app.handles.resolve(handle.token, "enough")
            assert await job.result(timeout=20) == [[1], [], "enough"]


async def test_elsewhere_there_is_nobody_who_could_wait(app: App) -> None:
    """Outside of a task it says so and stores nothing."""
    with pytest.raises(ConfigError, match="works within a task"):
        await app.wait_for_events("c-1", MADE, timeout="1h")
    assert await app.handles.list() == []


# The wait itself


class World:
    """Stores on a clock that the test moves, and the wait of a job whose own clock may be wrong."""

    def __init__(self, wrong: timedelta = timedelta()) -> None:
        self.clock = FakeClock()
        self.stores = open_memory_stores(self.clock)
        assert self.stores.events is not None
        self.handles = self.stores.events.handles
        own = FakeClock(self.clock.now() + wrong)
        self.waits = HandleWaits(self.handles, self.stores.signals, own, self.stores.notifier)

    async def leave(self, new: NewHandle) -> ParkRequested:
        """Wait, and return how the slot is left."""
        with pytest.raises(ParkRequested) as left:
            await self.waits.wait(new)
        return left.value


NEW = NewHandle("c-1", (MADE,), 1, timedelta(minutes=10))


@pytest.mark.parametrize(
    ("wrong", "wait"),
    [(0, timedelta(minutes=10)), (-3_600, timedelta(minutes=10)), (3_600, timedelta()), (60, timedelta(minutes=9))],
    ids=["right", "slow by an hour", "fast by an hour", "fast by a minute"],
)
async def test_a_job_looks_again_after_its_time_whatever_its_clock_says(wrong: int, wait: timedelta) -> None:
    """Never before a while is over, and never later than a while after the whole time."""
    left = await World(timedelta(seconds=wrong)).leave(NEW)
    assert (left.wait, left.key) == (wait + MARGIN, "resume:c-1")


async def test_a_signal_of_an_earlier_handle_is_not_waited_for() -> None:
    """It has come and would wake the job again and again: the job looks now and then instead."""
    world = World()
    await world.stores.signals.send_signal(signal_key("c-1"), "{}")
    left = await world.leave(NEW)
    assert (left.wait, left.key) == (MARGIN, None)


async def test_a_handle_that_ends_between_two_looks_is_seen() -> None:
    """Its signal has come when the job looks, so it looks once more and goes on."""
    world = World()

    class Late:
        """Signals, before which are read the handle ends."""

        async def read_signal(self, key: str) -> str | None:
            await world.handles.note_event(made())
            return await world.stores.signals.read_signal(key)

    resumed = await replace(world.waits, signals=Late()).wait(NEW)  # type: ignore[arg-type]
    assert [event.id for event in resumed.events] == ["e-1"]


async def test_a_request_that_was_run_again_after_all_is_not_told_as_dead() -> None:
    """Its result counts in its place."""
    world, new = World(), replace(NEW, expect_count=2, request_types=(ASKED,))
    await world.handles.register_handle(new)
    for noted in (dead(1), made(1, causation_id="r-1"), dead(2)):
        await world.handles.note_event(noted)
    resumed = await world.waits.wait(new)
    assert ([one.id for one in resumed.events], [one.event.id for one in resumed.dead]) == (["e-1"], ["r-2"])


async def test_who_comes_late_learns_what_had_come() -> None:
    """An expired wait says how much was there."""
    world, new = World(), replace(NEW, expect_count=2)
    await world.handles.register_handle(new)
    await world.handles.note_event(made())
    world.clock.advance(timedelta(minutes=10))
    await world.handles.expire_handles(limit=1)
    with pytest.raises(HandleExpiredError, match="1 of 2 events had come"):
        await world.waits.wait(new)


async def test_many_ends_at_once_have_one_winner() -> None:
    """Result, cancel, timeout and token at the same moment: all who ask later are told the same."""
    world, token = World(), new_token()
    await world.handles.register_handle(replace(NEW, token_hash=hash_token(token)))
    world.clock.advance(timedelta(minutes=10))
    ends = [
        world.handles.note_event(made()), world.handles.cancel_handle("c-1"), world.handles.expire_handles(limit=9),
        world.handles.resolve_by_token(hash_token(token), "1"),
    ]  # fmt: skip
    await asyncio.gather(*ends, return_exceptions=True)
    views = [await world.handles.get_handle("c-1"), await world.handles.register_handle(NEW)]
    assert views[0] is not None
    assert views[0].state.final
    assert views[0] == views[1]
