"""HandleStore: one thing ends a handle, whoever comes at the same time; its target is woken; old ones are removed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from headrace.model.errors import ConflictError, HandleExpiredError, NotFoundError
from headrace.model.resume_handle import HandleState
from tests.conformance.events import Events
from tests.conformance.handles import Handles, dead, result
from tests.conformance.scenario import ALL, DAY, MINUTE, SECOND, Scenario

WAITING, RESOLVED = HandleState.WAITING, HandleState.RESOLVED
EXPIRED, CANCELLED = HandleState.EXPIRED, HandleState.CANCELLED
KEPT = 7 * DAY

Act = Callable[[Handles, str], Awaitable[object]]


@pytest.fixture
def handles(events: Events) -> Handles:
    """Return what a test does with handles, in few words."""
    return Handles(events)


async def note(handles: Handles, key: str) -> object:
    """Resolve by a result."""
    return await handles.note(result(correlation_id=key))


async def note_dead(handles: Handles, key: str) -> object:
    """Resolve by a dead letter."""
    return await handles.note(dead(correlation_id=key))


async def cancel(handles: Handles, key: str) -> object:
    """Cancel."""
    return await handles.store.cancel_handle(key)


async def expire(handles: Handles, key: str) -> object:
    """Expire whatever is due."""
    assert key
    return await handles.store.expire_handles(limit=ALL)


async def token(handles: Handles, key: str) -> object:
    """Resolve by the token."""
    return await handles.store.resolve_by_token(f"hash {key}", '"by token"')


@pytest.mark.parametrize("second", [note, cancel, expire, token, note_dead])
@pytest.mark.parametrize("first", [note, cancel, expire, token])
async def test_of_two_ends_at_once_one_wins(on: Scenario, handles: Handles, first: Act, second: Act) -> None:
    """Also at the very instant at which it expires: state, signal and target tell of the same end, and once."""
    keys = [f"c{number}" for number in range(6)]
    for key in keys:
        await handles.register(key=key, token_hash=f"hash {key}", target=f"prefect:{key}")
    on.clock.advance(MINUTE if expire in (first, second) else SECOND)
    acts = [(first(handles, key), second(handles, key)) for key in keys]
    answers = await asyncio.gather(*(act for pair in acts for act in pair), return_exceptions=True)

    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(answer, ConflictError | HandleExpiredError) for answer in refused)
    views = [await handles.get(key) for key in keys]
    assert all(view.state.final for view in views)
    assert [await handles.signal(key) for key in keys] == [{"state": view.state.value} for view in views]
    due = await handles.store.due_wakes(limit=ALL, again_in=DAY)
    assert sorted(view.correlation_id for view in due) == keys
    for view in views:
        assert view.payload in (None, '"by token"')
        assert view.payload is None or view.state is RESOLVED


async def test_each_is_expired_once(on: Scenario, handles: Handles) -> None:
    """By one of the sweeps that look at the same time."""
    keys = [f"c{number}" for number in range(10)]
    for key in keys:
        await handles.register(key=key)
    on.clock.advance(MINUTE)
    sweeps = await asyncio.gather(*(handles.store.expire_handles(limit=4) for _ in range(5)))
    rest = await handles.store.expire_handles(limit=ALL)

    told = Counter(view.correlation_id for sweep in [*sweeps, rest] for view in sweep)
    assert told == Counter(keys)


async def test_handles_expire_in_their_time(on: Scenario, handles: Handles) -> None:
    """Not before it, by the store's clock; as many at once as asked for, and those that ended are left alone."""
    for key, timeout in (("a", MINUTE), ("b", 2 * MINUTE), ("c", MINUTE), ("d", MINUTE), ("e", DAY)):
        await handles.register(key=key, timeout=timeout)
    await handles.store.cancel_handle("d")
    on.clock.advance(MINUTE - SECOND)
    assert await handles.store.expire_handles(limit=ALL) == []
    on.clock.advance(SECOND)

    assert [len(await handles.store.expire_handles(limit=1)) for _ in range(3)] == [1, 1, 0]
    on.clock.advance(MINUTE)
    [view] = await handles.store.expire_handles(limit=ALL)
    assert view == await handles.get("b")
    assert (view.state, view.ended_at, view.arrived) == (EXPIRED, on.clock.now(), 0)
    assert [await handles.state(key) for key in "abcde"] == [EXPIRED, EXPIRED, EXPIRED, CANCELLED, WAITING]
    assert [await handles.signal(key) for key in "ae"] == [{"state": "expired"}, None]


async def test_a_wait_is_cancelled(on: Scenario, handles: Handles) -> None:
    """Again, or after another end, it stays as it is; what is not known is said."""
    await handles.register()
    on.clock.advance(SECOND)
    view = await handles.store.cancel_handle("c")
    on.clock.advance(SECOND)

    assert (view.state, view.ended_at) == (CANCELLED, on.clock.now() - SECOND)
    assert await handles.store.cancel_handle("c") == view == await handles.get()
    assert await handles.signal() == {"state": "cancelled"}
    await handles.ended("r", RESOLVED)
    assert (await handles.store.cancel_handle("r")).state is RESOLVED
    await handles.note(result(correlation_id="early"))
    for unknown in ("none", "early"):
        with pytest.raises(NotFoundError):
            await handles.store.cancel_handle(unknown)


async def test_a_token_ends_a_wait_once(on: Scenario, handles: Handles) -> None:
    """With what comes with it; the same again is answered the same, for an answer may be lost."""
    await handles.register(2, token_hash="h")
    await handles.note(result(1))
    on.clock.advance(SECOND)
    view = await handles.store.resolve_by_token("h", '{"ok": true}')
    on.clock.advance(DAY)

    assert (view.state, view.payload, view.arrived, view.ended_at) == (
        RESOLVED,
        '{"ok": true}',
        1,
        on.clock.now() - DAY,
    )
    assert await handles.store.resolve_by_token("h", '{"ok": true}') == view == await handles.get()
    with pytest.raises(ConflictError):
        await handles.store.resolve_by_token("h", '{"ok": false}')
    assert (await handles.get(), await handles.signal()) == (view, {"state": "resolved"})


async def test_of_tokens_at_once_one_wins(handles: Handles) -> None:
    """Two that say the same are both answered; who says something else is told that it came too late."""
    await handles.register(0, token_hash="h")
    said = [str(number % 4) for number in range(8)]
    answers = await asyncio.gather(
        *(handles.store.resolve_by_token("h", one) for one in said), return_exceptions=True
    )  # fmt: skip

    stands = (await handles.get()).payload
    assert [isinstance(answer, ConflictError) for answer in answers] == [one != stands for one in said]


async def test_without_expected_events_only_the_token_resolves(handles: Handles) -> None:
    """No event does, early or late."""
    await handles.note(result(1))
    await handles.register(0, token_hash="h")
    await handles.note(result(2), dead())

    assert await handles.state() is WAITING
    assert (await handles.store.resolve_by_token("h", "null")).state is RESOLVED


@pytest.mark.parametrize("state", [RESOLVED, CANCELLED, EXPIRED])
async def test_a_token_comes_too_late(handles: Handles, state: HandleState) -> None:
    """Something else ended the wait: that stands, and the error tells expiry from the rest."""
    before = await handles.ended("c", state, token_hash="h")

    for payload in ('"x"', "null"):
        with pytest.raises(HandleExpiredError if state is EXPIRED else ConflictError):
            await handles.store.resolve_by_token("h", payload)
    assert await handles.get() == before


async def test_a_token_is_late_though_no_sweep_ran(on: Scenario, handles: Handles) -> None:
    """The handle ends as expired, with signal and target, and any payload of the token is told so again."""
    await handles.register(0, token_hash="h", target="prefect:1")
    on.clock.advance(MINUTE)
    for payload in ("1", "1", "2"):
        with pytest.raises(HandleExpiredError):
            await handles.store.resolve_by_token("h", payload)

    view = await handles.get()
    assert (view.state, view.payload, view.wake_due) == (EXPIRED, None, True)
    assert await handles.signal() == {"state": "expired"}
    assert await handles.store.expire_handles(limit=ALL) == []


async def test_an_unknown_token_is_not_found(handles: Handles) -> None:
    """Nor the empty one, for handles without a token have none, nor that of a registration that changed nothing."""
    await handles.register()
    await handles.register(key="d", token_hash="first")
    await handles.register(key="d", token_hash="second")

    for unknown in ("h", "", "second"):
        with pytest.raises(NotFoundError):
            await handles.store.resolve_by_token(unknown, "1")
    assert (await handles.state(), await handles.state("d")) == (WAITING, WAITING)


@pytest.mark.parametrize("state", [RESOLVED, CANCELLED, EXPIRED])
async def test_the_target_of_an_ended_handle_is_to_be_woken(handles: Handles, state: HandleState) -> None:
    """Whatever ended it, until somebody says that it was; one without a target never."""
    await handles.ended("plain", state)
    assert not (await handles.register(key="waits", target="prefect:2", timeout=DAY)).wake_due
    view = await handles.ended("c", state, target="prefect:1")
    assert (view.wake_due, (await handles.get("plain")).wake_due) == (True, False)

    [due] = await handles.store.due_wakes(limit=ALL, again_in=SECOND)
    assert (due.correlation_id, due.target, due.state) == ("c", "prefect:1", state)
    await handles.store.mark_woken("c")
    await handles.store.mark_woken("c")
    await handles.store.mark_woken("none")
    handles.on.clock.advance(MINUTE)
    assert await handles.store.due_wakes(limit=ALL, again_in=SECOND) == []
    assert not (await handles.get()).wake_due


async def test_a_wake_is_seen_by_one_process_at_a_time(on: Scenario, handles: Handles) -> None:
    """For the time it asks for; then it is tried again."""
    for key in "abcd":
        await handles.ended(key, CANCELLED, target=f"prefect:{key}")
        on.clock.advance(SECOND)
    looks = await asyncio.gather(*(handles.store.due_wakes(limit=3, again_in=MINUTE) for _ in range(30)))
    rest = await handles.store.due_wakes(limit=ALL, again_in=MINUTE)

    assert sorted(view.correlation_id for look in [*looks, rest] for view in look) == list("abcd")
    on.clock.advance(MINUTE - SECOND)
    assert await handles.store.due_wakes(limit=ALL, again_in=MINUTE) == []
    assert (await handles.get("a")).wake_due
    on.clock.advance(SECOND)
    assert len(await handles.store.due_wakes(limit=3, again_in=MINUTE)) == 3
    assert len(await handles.store.due_wakes(limit=3, again_in=MINUTE)) == 1


async def test_handles_are_removed_after_their_time(on: Scenario, handles: Handles) -> None:
    """Counted from their end, with their events; those that wait stay, however long they do."""
    await handles.register(2, key="waits", timeout=1_000 * DAY)
    await handles.note(result("kept", correlation_id="waits"))
    await handles.ended("old", RESOLVED, token_hash="h")
    on.clock.advance(KEPT - SECOND)
    assert await handles.store.prune_handles(older_than=KEPT, limit=ALL) == 0
    await handles.ended("young", CANCELLED)
    on.clock.advance(2 * SECOND)

    assert await handles.store.prune_handles(older_than=KEPT, limit=ALL) == 1
    assert await handles.store.get_handle("old") is None
    assert (await handles.kept("old"), await handles.kept("waits")) == ([], ["kept"])
    assert await handles.state("young") is CANCELLED
    with pytest.raises(NotFoundError):
        await handles.store.resolve_by_token("h", "1")
    assert (await handles.register(key="old")).arrived == 0


async def test_early_events_are_removed_after_their_time(on: Scenario, handles: Handles) -> None:
    """Those that no handle came for; younger ones stay, also of the same correlation id."""
    await handles.note(result(correlation_id="old"), dead(correlation_id="old"), result(correlation_id="mixed"))
    on.clock.advance(KEPT - SECOND)
    await handles.store.prune_handles(older_than=KEPT, limit=ALL)
    await handles.note(result(correlation_id="young"), result("young", correlation_id="mixed"))
    on.clock.advance(2 * SECOND)
    await handles.store.prune_handles(older_than=KEPT, limit=ALL)

    assert (await handles.register(2, key="old")).arrived == 0
    assert (await handles.register(2, key="young")).arrived == 1
    assert (await handles.register(2, key="mixed")).arrived == 1
    assert await handles.kept("mixed") == ["young"]


async def test_removing_stops_at_its_limit_and_needs_the_term(on: Scenario, handles: Handles) -> None:
    """Under a term that is over nothing goes; the next calls go on."""
    for number in range(5):
        await handles.ended(f"c{number}", CANCELLED)
    on.clock.advance(KEPT + SECOND)
    term = await on.term()

    assert await handles.store.prune_handles(older_than=KEPT, limit=2, term=replace(term, session=uuid4())) == 0
    pruned = [await handles.store.prune_handles(older_than=KEPT, limit=2, term=term) for _ in range(4)]
    assert pruned == [2, 2, 1, 0]
