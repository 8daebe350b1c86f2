"""The pruner of feeds: on the leader alone, slice by slice."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from headrace.engine.loops import feed_pruner
from headrace.engine.loops.feed_pruner import FeedPruner
from headrace.engine.loops.leadership import Leadership
from headrace.model.feed import NewEntry
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock

HOUR = timedelta(hours=1)


async def test_old_entries_leave_on_the_leader_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it leads nothing goes; then what is older than its retention does, slice by slice."""
    monkeypatch.setattr(feed_pruner, "SLICE", 2)
    clock = FakeClock()
    stores = open_memory_stores(clock)
    await stores.feeds.append_entries("f", [NewEntry("item", "1")] * 3)
    clock.advance(HOUR)
    await stores.feeds.append_entries("f", [NewEntry("item", "2")])
    leadership = Leadership(stores, uuid4())
    pruner = FeedPruner(stores.feeds, leadership, keep=HOUR, interval=HOUR)
    left = []
    for leads in (False, True, True):
        if leads:
            await leadership.step()
        await pruner.step()
        left.append(len(await stores.feeds.read_feed("f", after=0, limit=9)))

    assert left == [4, 2, 1]
