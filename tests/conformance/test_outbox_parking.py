"""Outbox: what no bus takes is put by, and what comes behind it in its topic and key waits for an operator."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from headrace.model.event import ParkedEvent
from headrace.model.session import LeaderTerm, TermOverError
from tests.conformance.events import STARTED, Events, raw, row
from tests.conformance.scenario import ALL, SECOND, Scenario
from tests.waiting import wait_until

TOPIC = "outbox.event.GenesisSession"


async def park(events: Events, *positions: int) -> LeaderTerm:
    """Become the relay, park rows, and return the term."""
    term = await events.relay()
    await events.outbox.park_events([(position, f"no {position}") for position in positions], term=term)
    return term


async def parked(events: Events) -> list[int]:
    """Return the positions of parked rows."""
    return [row.position for row in await events.outbox.list_parked(limit=ALL)]


async def test_a_parked_row_is_shown_and_waits_no_more(on: Scenario, events: Events) -> None:
    """With the reason, when, and how many wait behind it; one without an event as well."""
    given = row(1, id=str(UUID(int=7 << 64)))
    bad, behind, message = await events.put(given, row(2), raw(key="k"))
    on.clock.advance(SECOND)
    term = await park(events, bad)
    on.clock.advance(SECOND)
    await events.outbox.park_events([(message, "é\0")], term=term)
    await events.outbox.hold_events([behind], term=term)

    assert await events.positions() == []
    first, second = await events.outbox.list_parked(limit=ALL)
    then = on.clock.now() - SECOND
    assert first == ParkedEvent(bad, TOPIC, "s-1", str(UUID(int=7 << 64)), STARTED, f"no {bad}", then, held=1)
    assert replace(second, error="") == ParkedEvent(message, "t.dlt", "k", None, None, "", on.clock.now(), held=0)
    assert second.error.startswith("é")
    assert [row.position for row in await events.outbox.list_parked(limit=1)] == [bad]


async def test_only_what_waits_is_parked(events: Events) -> None:
    """Not what was published meanwhile or never was there; what is parked keeps its reason."""
    one, two = await events.put(row(1), row(2, key="k"))
    await events.outbox.mark_published([one])
    term = await park(events, one, two, two + 1_000)
    await events.outbox.park_events([(two, "another")], term=term)

    [only] = await events.outbox.list_parked(limit=ALL)
    assert (only.position, only.error) == (two, f"no {two}")


async def test_a_parked_row_is_for_its_operator(events: Events) -> None:
    """Also where another relay got it through: what is held behind it would have nobody to release it."""
    bad, behind, held = await events.put(row(1), row(2), row(3))
    term = await park(events, bad)
    await events.outbox.hold_events([behind, held], term=term)
    await events.outbox.mark_published([bad, behind])

    assert (await parked(events), (await events.outbox.outbox_stats()).held) == ([bad], 1)
    await events.outbox.release_parked([bad], drop=True)
    assert await events.positions() == [held]


async def test_only_what_is_behind_a_parked_row_is_held(events: Events) -> None:
    """Of its topic and key: another key, or the key in another topic, goes on waiting, and so does all without one."""
    bad, same, key, topic, _ = await events.put(
        row(1), row(2), row(3, key="k"), row(4, aggregate_type="Other"), row(5)
    )  # fmt: skip
    term = await park(events, bad)

    assert await events.outbox.hold_events([same, key, topic, topic + 1_000], term=term) == [same]
    assert await events.waiting() == [3, 4, 5]
    assert await events.outbox.hold_events([key], term=term) == []


async def test_a_released_row_waits_at_its_place(on: Scenario, events: Events) -> None:
    """Ahead of those behind it, which wait again as well; the relay is told."""
    bad, second, other, third = await events.put(row(1), row(2), row(9, key="k"), row(3))
    term = await park(events, bad)
    await events.outbox.hold_events([second, third], term=term)
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)

    assert await events.outbox.release_parked([bad], drop=False) == [bad]
    assert await events.positions() == [bad, second, other, third]
    assert await parked(events) == []
    await wait_until(lambda: "events" in heard)


async def test_a_dropped_row_is_gone(events: Events) -> None:
    """What was behind it goes on; the log still knows it, so that putting it in again changes nothing."""
    given = row(1)
    bad, second = await events.put(given, row(2))
    term = await park(events, bad)
    await events.outbox.hold_events([second], term=term)

    assert await events.outbox.release_parked([bad], drop=True) == [bad]
    await events.outbox.insert_events([given])
    assert (await events.waiting(), await events.logged()) == ([2], [1, 2])


@pytest.mark.parametrize("drop", [True, False])
async def test_only_parked_rows_are_released(events: Events, drop: bool) -> None:
    """Not what waits, is held, or is not there; and of other keys nothing."""
    bad, held, waiting, elsewhere = await events.put(row(1), row(2), row(3), row(4, key="k"))
    term = await park(events, bad, elsewhere)
    await events.outbox.hold_events([held], term=term)

    assert await events.outbox.release_parked([held, waiting, bad + 1_000], drop=drop) == []
    assert await events.positions() == [waiting]
    assert await events.outbox.release_parked([elsewhere], drop=drop) == [elsewhere]
    assert (await events.outbox.outbox_stats()).held == 1


async def test_a_held_row_waits_for_the_last_parked_one_of_its_key(events: Events) -> None:
    """Two of a key were parked: what is behind both goes on after both."""
    first, second, behind = await events.put(row(1), row(2), row(3))
    term = await park(events, first, second)
    await events.outbox.hold_events([behind], term=term)
    await events.outbox.release_parked([first], drop=True)
    assert await events.positions() == []

    await events.outbox.release_parked([second], drop=False)
    assert await events.positions() == [second, behind]


async def refused(events: Events, term: LeaderTerm, bad: int, behind: int) -> None:
    """Check that a term is over for all that is done under it, also where nothing is asked."""
    for positions in ([bad], []):
        with pytest.raises(TermOverError):
            await events.outbox.park_events([(position, "no") for position in positions], term=term)
    for positions in ([behind], []):
        with pytest.raises(TermOverError):
            await events.outbox.hold_events(positions, term=term)


async def test_a_term_that_is_over_parks_and_holds_nothing(on: Scenario, events: Events) -> None:
    """Of another session, a former one, and one whose lease has ended; that is said, whatever was asked."""
    bad, behind, other = await events.put(row(1), row(2), row(3, key="k"))
    await events.outbox.park_events([(bad, "no")], term=await events.relay(SECOND))
    on.clock.advance(SECOND)
    ended = await events.relay(SECOND)
    on.clock.advance(SECOND)
    for false in (ended, replace(ended, session=uuid4()), replace(ended, term=ended.term - 1)):
        await refused(events, false, other, behind)
    now = await events.relay()
    for false in (ended, replace(now, session=uuid4()), replace(now, term=now.term + 1)):
        await refused(events, false, other, behind)

    assert await events.positions() == [behind, other]
    await events.outbox.park_events([], term=now)
    assert await events.outbox.hold_events([], term=now) == []
    assert await events.outbox.hold_events([behind], term=now) == [behind]


@pytest.mark.parametrize("drop", [True, False])
async def test_nothing_stays_held_that_nothing_holds(events: Events, drop: bool) -> None:
    """While the relay holds rows behind parked ones an operator releases these: whoever is first, all go on."""
    keys = [f"k{number}" for number in range(12)]
    bad = await events.put(*(row(0, key=key) for key in keys))
    behind = await events.put(*(row(1, key=key) for key in keys))
    term = await park(events, *bad)

    pairs = zip(bad, behind, strict=True)
    acts = [(events.outbox.hold_events([b], term=term), events.outbox.release_parked([a], drop=drop)) for a, b in pairs]
    answers = await asyncio.gather(*(act for pair in acts for act in pair))
    assert answers[1::2] == [[position] for position in bad]
    stats = await events.outbox.outbox_stats()
    assert (stats.held, stats.parked, stats.waiting) == (0, 0, 12 if drop else 24)


async def test_of_two_who_release_rows_of_a_key_the_later_frees_what_is_held(events: Events) -> None:
    """Each sees the other's parked row, or that it is gone: nothing is left held."""
    keys = [f"k{number}" for number in range(8)]
    first = await events.put(*(row(0, key=key) for key in keys))
    second = await events.put(*(row(1, key=key) for key in keys))
    behind = await events.put(*(row(2, key=key) for key in keys))
    term = await park(events, *first, *second)
    assert await events.outbox.hold_events(behind, term=term) == behind

    pairs = zip(first, second, strict=True)
    await asyncio.gather(*(events.outbox.release_parked([place], drop=True) for pair in pairs for place in pair))
    assert await events.positions() == behind


async def test_the_same_row_is_released_once(events: Events) -> None:
    """Two operators at once: one of them is told that it did it."""
    [bad] = await events.put(row(1))
    await park(events, bad)
    answers = await asyncio.gather(*(events.outbox.release_parked([bad], drop=False) for _ in range(5)))

    assert sorted(map(len, answers)) == [0, 0, 0, 0, 1]
    assert await events.positions() == [bad]
