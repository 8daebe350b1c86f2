"""Every test of this folder runs on every backend of `tests/backends` that is there."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from importlib.util import find_spec

import pytest

from headrace.ports.stores import Stores
from headrace.testing.clock import FakeClock
from tests.conformance.books import Books
from tests.conformance.events import Events
from tests.conformance.runs import Runs
from tests.conformance.scenario import Scenario

#: A new backend is one name here and one module `tests/backends/NAME.py` with `open_test_stores(clock)`.
BACKENDS = [name for name in ("memory", "postgres", "redis") if find_spec(f"tests.backends.{name}")]


@pytest.fixture
def clock() -> FakeClock:
    """Return the time of the stores: it stands still until the test moves it."""
    return FakeClock()


@pytest.fixture(params=BACKENDS)
async def stores(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Stores]:
    """Open empty stores of one backend."""
    backend = importlib.import_module(f"tests.backends.{request.param}")
    async with backend.open_test_stores(clock) as opened:
        yield opened


@pytest.fixture
def on(stores: Stores, clock: FakeClock) -> Scenario:
    """Return what a test does on the stores, in few words."""
    return Scenario(stores, clock)


@pytest.fixture
def books(on: Scenario) -> Books:
    """Return what a test does with the ledger of calls, in few words."""
    return Books(on.stores, on.clock)


@pytest.fixture
def runs(on: Scenario) -> Runs:
    """Return what a test does with runs of workflows, in few words."""
    return Runs(on)


@pytest.fixture
def events(on: Scenario) -> Events:
    """Return what a test does with events, in few words; not on stores that have none (see test_event_stores)."""
    if on.stores.events is None:
        pytest.skip("this store has no outbox")
    return Events(on, on.stores.events)
