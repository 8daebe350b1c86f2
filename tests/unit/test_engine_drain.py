"""A shift that is ended while it is being ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from headrace.engine.acks import Acks
from headrace.engine.telemetry import Telemetry
from headrace.model.job import Completion, JobState
from headrace.stores.memory import open_memory_stores


class NoClaims:
    """No claim goes along."""

    def offer(self) -> None:
        """Offer none."""

    def settle(self, claim: Any, jobs: Any) -> None:
        """Nothing was offered."""


class SilentBatches:
    """A batch store that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def close_batches(self, batch_ids: Sequence[UUID]) -> list[Any]:
        """Say nothing."""
        self.asked.set()
        await asyncio.Event().wait()
        return []


async def test_waiting_for_a_close_that_was_stopped_cancels_nobody() -> None:
    """A worker that stops while its lost shift is being abandoned waits for a close that is cancelled, and goes on."""
    batches = SilentBatches()
    stores = replace(open_memory_stores(), batches=batches)  # type: ignore[arg-type]
    acks = Acks(stores, uuid4(), Telemetry(), claims=NoClaims(), running_batches=set, on_sent=lambda *_: None)
    acks.start()
    acks.put(Completion(uuid4(), 1, JobState.SUCCEEDED, batch_id=uuid4()))
    await asyncio.wait_for(batches.asked.wait(), 5)
    draining = asyncio.create_task(acks.drain())
    await asyncio.sleep(0)

    await acks.stop()
    await asyncio.wait_for(draining, 5)
    await asyncio.wait_for(acks.drain(), 5)
