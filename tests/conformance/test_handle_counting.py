"""HandleStore: what counts for a handle: results it expects, and requests that died without any; each once."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from headrace.model.resume_handle import HandleState, NotedEvent
from tests.conformance.events import Events, event
from tests.conformance.handles import REQUEST, RESULT, Handles, dead, result

WAITING, RESOLVED = HandleState.WAITING, HandleState.RESOLVED


@pytest.fixture
def handles(events: Events) -> Handles:
    """Return what a test does with handles, in few words."""
    return Handles(events)


@pytest.mark.parametrize(
    "other",
    [
        result(9, type="Genesis.Batch.Other"),
        result(9, type=REQUEST),
        result(9, correlation_id="d"),
        dead(9, type=RESULT),
        dead(9, type="Genesis.Batch.Other"),
        dead(9, agent="reader"),
    ],
)
@pytest.mark.parametrize("early", [True, False])
async def test_what_is_not_expected_counts_nothing(handles: Handles, other: NotedEvent, early: bool) -> None:
    """Neither early nor late: other types, correlation ids and agents; the request itself is no result."""
    if early:
        await handles.note(other)
    await handles.register(1, agents=("writer",))
    await handles.note(other)

    assert ((await handles.get()).arrived, await handles.state(), await handles.kept()) == (0, WAITING, [])


async def test_events_without_a_correlation_id_are_none_of_its_business(handles: Handles) -> None:
    """Nobody can wait for them."""
    assert await handles.store.note_event(NotedEvent(event(1, type=RESULT))) is None


@pytest.mark.parametrize("odd", ["", "a\0b", "x" * 10_000, "\ud800"])
async def test_nobody_can_wait_for_an_odd_correlation_id(handles: Handles, odd: str) -> None:
    """Others give their events whatever they like: such ones are passed over, not an error for ever."""
    assert await handles.note(result(correlation_id=odd), dead(correlation_id=odd)) == [None, None]


async def test_dead_letters_count_for_what_they_would_have_caused(handles: Handles) -> None:
    """Of the types of its requests; with results together they make the number."""
    await handles.register(3)
    one, two = dead("d1"), dead("d2")

    assert await handles.note(one, result("r1"), two) == [WAITING, WAITING, RESOLVED]
    assert ((await handles.get()).arrived, await handles.kept()) == (3, ["d1", "r1", "d2"])
    assert await handles.signal() == {"state": "resolved"}


async def test_without_types_of_requests_a_dead_letter_is_no_end(handles: Handles) -> None:
    """It is waited for, since someone may send the request again."""
    await handles.register(1, request_types=())
    await handles.note(dead())

    assert (await handles.get()).arrived == 0


async def test_a_dead_letter_counts_once(handles: Handles) -> None:
    """Sent again by its relay, and given up by a second agent as well: one request is one."""
    letter = dead()
    await handles.note(letter)
    await handles.register(3)
    await handles.note(letter, replace(letter, agent="reader"))

    assert (await handles.get()).arrived == 1
    assert await handles.store.noted_events("c") == [letter]


@pytest.mark.parametrize("early", [0, 1, 2, 3])
async def test_of_several_agents_only_those_named_give_up(handles: Handles, early: int) -> None:
    """The same request is given up by one that does not count first: the other one's word is not lost by that."""
    request = dead(agent="logger")
    noted = [request, replace(request, agent="writer"), replace(request, agent="reader")]
    await handles.note(*noted[:early])
    await handles.register(2, agents=("writer", "reader"))
    await handles.note(*noted[early:])

    assert (await handles.get()).arrived == 1
    assert len(await handles.kept()) == 1


@pytest.mark.parametrize("early", [0, 1, 2])
async def test_a_request_that_was_seen_alive_may_die(handles: Handles, early: int) -> None:
    """Its event and its dead letter have one id: having seen the first before does not hide the second."""
    letter = dead()
    noted = [replace(letter, dead=False, agent="", error=""), letter]
    await handles.note(*noted[:early])
    await handles.register(1)
    await handles.note(*noted[early:])

    assert await handles.state() is RESOLVED


@pytest.mark.parametrize("early", [0, 1, 2, 3])
@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_a_request_that_is_run_again_is_not_counted_twice(
    handles: Handles, order: tuple[int, ...], early: int
) -> None:
    """Its dead letter and the results that it caused after all: the results count, in whatever order they come."""
    letter = dead("d")
    noted = [letter, result("r1", cause=letter), result("r2", cause=letter)]
    arrives = [noted[number] for number in order]
    await handles.note(*arrives[:early])
    await handles.register(4)
    await handles.note(*arrives[early:])

    assert ((await handles.get()).arrived, await handles.state()) == (2, WAITING)
    assert await handles.note(dead(), result()) == [WAITING, RESOLVED]


async def test_only_what_is_expected_takes_the_place_of_a_dead_letter(handles: Handles) -> None:
    """Another event that the request caused is not kept, so that it does not count in its place."""
    letter = dead()
    other = result(cause=letter, type="Genesis.Batch.Progress")
    elsewhere = result(cause=letter, correlation_id="d")
    await handles.note(other, elsewhere)
    await handles.register(2)
    await handles.note(letter, other, elsewhere)

    assert (await handles.get()).arrived == 1
