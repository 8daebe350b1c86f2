"""Hints of feeds for other processes: many topics, few calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from headrace.hinting import FEEDS_SPACING, ServerNotifier
from tests.waiting import wait_until


class Recorded(ServerNotifier):
    """A notifier whose server keeps what is sent, call by call, with the time of each."""

    def __init__(self) -> None:
        super().__init__("channel", tells=True, listens=False, rides=False)
        self.calls: list[list[str]] = []
        self.times: list[float] = []

    async def _publish(self, payloads: Sequence[str]) -> None:
        self.calls.append([payload.partition(" ")[2] for payload in payloads])
        self.times.append(asyncio.get_running_loop().time())

    async def _listen(self) -> None:
        raise AssertionError("nobody listens here")


@pytest.fixture
async def notifier() -> AsyncIterator[Recorded]:
    """Return a notifier that is closed at the end."""
    recorded = Recorded()
    yield recorded
    await recorded.close()


async def test_hints_of_feeds_leave_together(notifier: Recorded) -> None:
    """Of one moment in one call, each topic once, however many there are."""
    topics = [f"feed:batch:{number}" for number in range(200)]
    for topic in topics * 3:
        notifier.hint(topic)
    await wait_until(lambda: bool(notifier.calls))
    await asyncio.sleep(3 * FEEDS_SPACING)

    assert notifier.calls == [sorted(topics)]


async def test_calls_for_feeds_are_spaced(notifier: Recorded) -> None:
    """Feeds that go on growing cost a call in so many milliseconds; the last hint is not lost."""
    for number in range(50):
        notifier.hint(f"feed:{number}")
        await asyncio.sleep(0.001)
    await wait_until(lambda: sum(map(len, notifier.calls)) == 50)

    between = [later - earlier for earlier, later in zip(notifier.times, notifier.times[1:], strict=False)]
    # A turn of the loop may begin a moment before its time.
    assert sum(between) >= len(between) * (FEEDS_SPACING - 0.001)
    assert len(notifier.calls) < 25


async def test_a_lone_hint_of_a_feed_leaves_at_once(notifier: Recorded) -> None:
    """It waits for no other."""
    begun = asyncio.get_running_loop().time()
    notifier.hint("feed:a")
    await wait_until(lambda: notifier.calls == [["feed:a"]])

    assert notifier.times[0] - begun < FEEDS_SPACING


async def test_hints_of_queues_do_not_wait_for_those_of_feeds(notifier: Recorded) -> None:
    """A queue is told of at once, in the middle of what is gathered."""
    notifier.hint("feed:a")
    await wait_until(lambda: notifier.calls == [["feed:a"]])
    notifier.hint("feed:b")
    notifier.hint("queue:default")
    await wait_until(lambda: len(notifier.calls) == 3)

    assert notifier.calls == [["feed:a"], ["queue:default"], ["feed:b"]]


async def test_closing_drops_what_is_gathered(notifier: Recorded) -> None:
    """As all hints not yet sent: nothing is sent on a server that is being closed."""
    notifier.hint("feed:a")
    await notifier.close()
    await asyncio.sleep(2 * FEEDS_SPACING)

    assert notifier.calls == []
