"""How long completions wait for their statement, on virtual time: the machine's own load cannot disturb it."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.engine.acks import Acks
from headrace.engine.telemetry import Telemetry
from headrace.model.job import Completion, JobState

#: Seconds that no completion waits longer than, when the store answers in time.
PROMISED = 0.005
_ROUNDING = 1e-9


class VirtualSelector(selectors.DefaultSelector):
    """Lets time pass instead of waiting for it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Return what is ready, after the time it would have been waited for."""
        self.now += timeout or 0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while it has nothing to do."""

    def __init__(self) -> None:
        self.virtual = VirtualSelector()
        super().__init__(self.virtual)

    def time(self) -> float:
        """Return the virtual time."""
        return self.virtual.now


class NoClaims:
    """Nothing to take along."""

    def offer(self) -> None:
        """Offer no claim."""

    def settle(self, _claim: Any, _jobs: Any) -> None:
        """Never called."""
        raise AssertionError("there was no claim")


class Store:
    """Takes so many seconds for a statement, and notes how long its completions had waited when it began."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ended_at: dict[UUID, float] = {}
        self.waits: list[float] = []

    async def complete_jobs(self, _session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        """Take them all."""
        now = asyncio.get_running_loop().time()
        self.waits += [now - self.ended_at[completion.job_id] for completion in completions]
        await asyncio.sleep(self.seconds)
        return [completion.job_id for completion in completions]


async def send(store: Store, *, per_second: int, together: int, seconds: float) -> None:
    """Let attempts end at random moments, some of them together."""
    hints = SimpleNamespace(hint=lambda _topic: None)
    stores: Any = SimpleNamespace(jobs=store, notifier=hints)
    acks = Acks(stores, uuid4(), Telemetry(), claims=NoClaims(), running_batches=set, on_sent=lambda *_: None)
    acks.start()
    loop, chance = asyncio.get_running_loop(), random.Random(per_second)
    while loop.time() < seconds:
        for _ in range(together):
            completion = Completion(uuid4(), 1, JobState.SUCCEEDED)
            store.ended_at[completion.job_id] = loop.time()
            acks.put(completion)
        await asyncio.sleep(chance.expovariate(per_second / together))
    await acks.drain()
    await acks.stop()


def measure(statement: float, *, per_second: int, together: int) -> Store:
    """Return the store after 5,000 completions, or five seconds."""
    store = Store(statement)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(send(store, per_second=per_second, together=together, seconds=min(5.0, 5_000 / per_second)))
    return store


LOADS = [(20, 1), (1_000, 1), (1_000, 10), (1_000, 100), (10_000, 1), (10_000, 64), (30_000, 1)]


@pytest.mark.parametrize(("per_second", "together"), LOADS)
@pytest.mark.parametrize("statement", [0.0005, 0.001, 0.002, 0.004])
def test_no_completion_waits_5_ms(statement: float, per_second: int, together: int) -> None:
    """While the store answers within 4 ms every completion is on its way within 5 ms, under any load."""
    store = measure(statement, per_second=per_second, together=together)
    assert len(store.waits) == len(store.ended_at)
    assert max(store.waits) <= PROMISED + _ROUNDING


@pytest.mark.parametrize(("per_second", "together"), LOADS[:-1])
def test_a_slow_store_is_waited_for_once(per_second: int, together: int) -> None:
    """Where a statement takes 20 ms a completion waits for the end of the one under way, and no longer."""
    store = measure(0.020, per_second=per_second, together=together)
    assert 0.015 < max(store.waits) <= 0.020 + _ROUNDING


def test_a_lone_completion_does_not_wait() -> None:
    """What ends alone is sent at once: nothing is waited for in the hope of company."""
    store = measure(0.001, per_second=20, together=1)
    assert sorted(store.waits)[len(store.waits) // 2] == 0
