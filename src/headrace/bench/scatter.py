"""One job submits 1,000 others with a callback for when all are done: from the first enqueue to the callback."""

from __future__ import annotations

import time

from headrace.bench.contenders.base import Contender
from headrace.bench.latency import wait_for_notes
from headrace.bench.order import Order
from headrace.bench.work import working

#: Scatters of 10 before the one that counts.
WARM_UP = 1


async def scatter(contender: Contender, order: Order) -> dict[str, float]:
    """Measure one scatter of `order.jobs` on a worker that is warm."""
    async with working(contender) as worker:
        for number in range(WARM_UP):
            await contender.enqueue("scatter", 10)
            await wait_for_notes(worker, lambda notes, wanted=number: len(notes) > wanted)  # type: ignore[misc]
        begun = time.time()
        await contender.enqueue("scatter", order.jobs)
        notes = await wait_for_notes(worker, lambda notes: len(notes) > WARM_UP)
    return {"seconds": notes[WARM_UP].at - begun, "jobs": order.jobs}
