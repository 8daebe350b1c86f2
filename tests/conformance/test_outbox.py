"""Outbox: what was put in waits in its order until it is published, each id once; the log keeps events."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.event import OutboxStats, Outgoing
from headrace.model.ids import uuid7s
from headrace.model.session import LeaderTerm, Role, TermOverError
from tests.conformance.events import Events, as_stored, event, raw, row
from tests.conformance.scenario import ALL, DAY, SECOND, Scenario
from tests.waiting import wait_until

KEPT = 30 * DAY


@pytest.mark.parametrize(
    "payload", [None, 0, "", [], {"é": [1, None, {"x": '"'}], "n": 10**30, "f": 0.1}, "x" * 100_000]
)
async def test_an_event_comes_out_as_it_was_put_in(on: Scenario, events: Events, payload: Any) -> None:
    """With everything that is said of it, and the store's time."""
    facts = {"correlation_id": "c\u00e9", "causation_id": "foreign 7", "schema_version": 3, "retries": 2}
    given = row(payload, key="s é", **facts)
    await events.outbox.insert_events([given])

    [waiting] = await events.outbox.waiting_events(limit=ALL)
    assert waiting.outgoing == as_stored(given, on.clock.now())
    assert await events.outbox.list_events() == [waiting.outgoing.event]


async def test_the_time_of_an_event_is_kept(on: Scenario, events: Events) -> None:
    """Where it has one, it is not the store's."""
    happened = datetime(2020, 2, 29, 12, 30, 0, 123456, tzinfo=UTC)
    await events.outbox.insert_events([row(1, time=happened), row(2)])

    found = await events.outbox.waiting_events(limit=ALL)
    assert [waiting.outgoing.event and waiting.outgoing.event.time for waiting in found] == [happened, on.clock.now()]


@pytest.mark.parametrize("value", [None, b"", b"\x00\xff as it is"])
async def test_a_message_comes_out_as_it_was_put_in(events: Events, value: bytes | None) -> None:
    """Byte by byte, with its headers in their order; it is no event of the log."""
    given = raw(value, headers=(("a", "1"), ("dlt-error", 'é "no"'), ("a", "2")))
    await events.outbox.insert_events([given])

    [waiting] = await events.outbox.waiting_events(limit=ALL)
    assert waiting.outgoing == given
    assert await events.outbox.list_events() == []


async def test_what_was_put_in_first_comes_first(events: Events) -> None:
    """Over calls and within one, whatever the ids say; `limit` takes the first."""
    first, second, third = uuid7s(3)
    await events.put(row(1, id=str(third)), row(2, id=str(first)))
    await events.put(row(3, id=str(second)), raw(b"4"))

    assert await events.waiting() == [1, 2, 3, b"4"]
    assert [waiting.position for waiting in await events.outbox.waiting_events(limit=2)] == (await events.positions())[
        :2
    ]
    assert await events.positions() == sorted(set(await events.positions()))


async def test_topics_are_left_out(events: Events) -> None:
    """Their rows do not count for the limit, whatever is before; a topic that nobody wrote to leaves out nothing."""
    await events.put(raw(b"1", topic="a"), raw(b"2", topic="b"), row(3), raw(b"4", topic="a"), raw(b"5", topic="ab"))
    everything = await events.positions()

    async def left(*topics: str, limit: int = ALL) -> list[int]:
        rows = await events.outbox.waiting_events(limit=limit, without=topics)
        return [everything.index(row.position) + 1 for row in rows]

    assert await left() == await left("c") == [1, 2, 3, 4, 5]
    assert await left("a") == [2, 3, 5]
    assert await left("a", limit=2) == [2, 3]
    assert await left("a", "ab", "b") == [3]


async def test_a_known_id_changes_nothing(events: Events) -> None:
    """In the same call, while it waits, and once it was published: an answer that was lost may be asked for again."""
    given, message = row(1), raw(b"2")
    again = Outgoing("other", "key", event(9, id=given.event.id if given.event else ""))
    await events.outbox.insert_events([given, again, message, message])
    await events.outbox.insert_events([given, again, message])
    assert await events.waiting() == [1, b"2"]

    await events.outbox.mark_published(await events.positions())
    await events.outbox.insert_events([again, row(3)])
    assert await events.waiting() == [3]
    assert await events.logged() == [1, 3]


async def test_rows_are_put_in_all_or_none(events: Events) -> None:
    """One that cannot be stored keeps the others out."""
    for bad in (row(2, id="e-1"), Outgoing("t", "k")):
        with pytest.raises(InvalidInputError):
            await events.outbox.insert_events([row(1), bad])

    assert (await events.waiting(), await events.logged()) == ([], [])


async def test_nothing_may_be_put_in_and_marked(events: Events) -> None:
    """An empty call is one."""
    await events.outbox.insert_events([])
    await events.outbox.mark_published([])

    assert await events.waiting() == []


async def test_what_is_published_waits_no_more(events: Events) -> None:
    """In any order, twice or never known; its events stay in the log."""
    one, two, three = await events.put(row(1), row(2), row(3))
    await events.outbox.mark_published([three, one])
    await events.outbox.mark_published([one, three + 1_000])

    assert await events.positions() == [two]
    assert await events.logged() == [1, 2, 3]


async def test_putting_in_hints(on: Scenario, events: Events) -> None:
    """The relay need not wait for its next look."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    await events.outbox.insert_events([row()])

    await wait_until(lambda: "events" in heard)


async def test_many_at_once_are_all_there_once(events: Events) -> None:
    """Also where two put in the same; of each key the order of one writer holds."""
    rows = [[row([writer, number], key=f"k{writer}") for number in range(5)] for writer in range(8)]
    await asyncio.gather(*(events.outbox.insert_events(part) for part in rows + rows))

    waiting = await events.waiting()
    assert len(waiting) == 40
    for writer in range(8):
        assert [number for key, number in waiting if key == writer] == list(range(5))


async def test_how_full_it_is(on: Scenario, events: Events) -> None:
    """Each row is counted once; the age is that of the oldest that waits."""
    assert await events.outbox.outbox_stats() == OutboxStats()
    term = await events.relay()
    bad, held = await events.put(row(1), row(2))
    on.clock.advance(SECOND)
    await events.put(row(3, key="other"), raw())
    on.clock.advance(2 * SECOND)
    assert await events.outbox.outbox_stats() == OutboxStats(waiting=4, oldest_seconds=3.0)

    await events.outbox.park_events([(bad, "no")], term=term)
    await events.outbox.hold_events([held], term=term)
    assert await events.outbox.outbox_stats() == OutboxStats(waiting=2, held=1, parked=1, oldest_seconds=2.0)


async def test_the_log_is_read_by_what_belongs_together(events: Events) -> None:
    """By correlation, by aggregate and by both; page by page as they were inserted, whatever their ids."""
    ids = [str(new) for new in reversed(uuid7s(6))]
    facts = [("c1", "a"), ("c2", "a"), ("c1", "b"), (None, "a"), ("c1", "a"), ("c1", "a")]
    given = [row(n, id=ids[n], correlation_id=facts[n][0], key=facts[n][1]) for n in range(6)]
    await events.outbox.insert_events(given[:4])
    await events.outbox.insert_events(given[4:])

    assert await events.logged() == [0, 1, 2, 3, 4, 5]
    assert await events.logged(correlation_id="c1") == [0, 2, 4, 5]
    assert await events.logged(aggregate_id="a") == [0, 1, 3, 4, 5]
    assert await events.logged(correlation_id="c1", aggregate_id="a") == [0, 4, 5]
    assert await events.logged(limit=2) == [0, 1]
    assert await events.logged(after=ids[1], limit=3) == [2, 3, 4]
    assert await events.logged(correlation_id="c1", after=ids[0], limit=2) == [2, 4]
    assert await events.logged(aggregate_id="a", after=ids[3]) == [4, 5]
    assert await events.logged(correlation_id="none") == []


async def test_the_log_forgets_what_is_old(on: Scenario, events: Events) -> None:
    """Counted from when it happened, and never what is not published yet."""
    term = await events.relay()
    sent, bad, _ = await events.put(row("sent"), row("parked", key="k"), row("waiting", key="w"))
    await events.outbox.mark_published([sent])
    await events.outbox.park_events([(bad, "no")], term=term)
    on.clock.advance(KEPT - SECOND)
    assert await events.outbox.prune_events(older_than=KEPT, limit=ALL) == 0
    await events.outbox.mark_published(await events.put(row("young")))
    on.clock.advance(2 * SECOND)

    assert await events.outbox.prune_events(older_than=KEPT, limit=ALL) == 1
    assert await events.logged() == ["parked", "waiting", "young"]
    await events.outbox.release_parked([bad], drop=True)
    assert await events.outbox.prune_events(older_than=KEPT, limit=ALL) == 1


async def test_forgetting_stops_at_its_limit_and_needs_the_term(on: Scenario, events: Events) -> None:
    """Under a term that is over nothing goes; the next calls go on."""
    await events.outbox.mark_published(await events.put(*(row(number) for number in range(5))))
    on.clock.advance(KEPT + SECOND)
    term = await on.term()
    other = LeaderTerm(uuid4(), term.term)

    assert await events.outbox.prune_events(older_than=KEPT, limit=2, term=other) == 0
    pruned = [await events.outbox.prune_events(older_than=KEPT, limit=2, term=term) for _ in range(4)]
    assert pruned == [2, 2, 1, 0]


async def test_a_term_of_another_role_is_another_term(on: Scenario, events: Events) -> None:
    """The leader of workers is not that of relays, though both have the first term."""
    term = await on.term()
    [position] = await events.put(row(1))
    with pytest.raises(TermOverError):
        await events.outbox.park_events([(position, "no")], term=LeaderTerm(term.session, term.term, Role.RELAY))

    assert await events.positions() == [position]
