"""The pruner of what leaves by its age: on the leader alone, slice by slice, each kind after its own retention."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from headrace.engine.loops.age_pruner import AgePruner
from headrace.engine.loops.leadership import Leadership
from headrace.model.audit import NewAction
from headrace.model.feed import NewEntry
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.waiting import wait_until

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FakeClock:
    """A clock that the test moves."""
    return FakeClock()


@pytest.fixture
def stores(clock: FakeClock) -> Stores:
    """Empty stores."""
    return open_memory_stores(clock)


def pruner_of(stores: Stores, leadership: Leadership) -> AgePruner:
    """Return a pruner of two kinds, two of each at once."""
    kinds = [(stores.feeds.prune_feeds, HOUR), (stores.audit.prune_actions, 2 * HOUR)]
    return AgePruner("pruner", kinds, leadership, HOUR, limit=2)


async def happen(stores: Stores, count: int) -> None:
    """Let an entry and an action come, so many times."""
    for _ in range(count):
        await stores.feeds.append_entries("f", [NewEntry("item", "1")])
        await stores.audit.note_actions([(NewAction(uuid4(), "shop", "cancel_job", {}, 200), timedelta())])


async def left(stores: Stores) -> tuple[int, int]:
    """Return how many entries and actions there are."""
    entries = await stores.feeds.read_feed("f", after=0, limit=9)
    return len(entries), len(await stores.audit.list_actions(limit=9))


async def test_what_is_old_leaves_on_the_leader_alone(stores: Stores, clock: FakeClock) -> None:
    """Before it leads nothing goes; then what is older than its retention does, slice by slice."""
    await happen(stores, 3)
    clock.advance(HOUR)
    await happen(stores, 1)
    leadership = Leadership(stores, uuid4())
    pruner = pruner_of(stores, leadership)
    await pruner.step()
    assert await left(stores) == (4, 4)

    await leadership.step()
    for expected in ((2, 4), (1, 4)):
        await pruner.step()
        assert await left(stores) == expected
    clock.advance(HOUR)
    await leadership.step()
    await pruner.step()
    assert await left(stores) == (0, 2)


async def test_it_comes_back_at_once_while_slices_are_full(stores: Stores, clock: FakeClock) -> None:
    """A full slice of any kind brings the next step, with no wait for its time."""
    await happen(stores, 5)
    clock.advance(2 * HOUR)
    leadership = Leadership(stores, uuid4())
    await leadership.step()
    pruner = pruner_of(stores, leadership)
    pruner.start()

    async def gone() -> bool:
        return not any(await left(stores))

    await wait_until(gone)
    await pruner.stop()
