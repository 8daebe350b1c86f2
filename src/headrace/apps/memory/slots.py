"""Which queues a process of memory works, and how many jobs of each at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.apps.memory.opening import SLOTS
from headrace.model.run import NODES_QUEUE, WORKFLOWS_QUEUE

if TYPE_CHECKING:
    from headrace import App

#: Of the queues of runs.
OTHERS = 8


def slots_of(app: App) -> dict[str, int]:
    """Return the jobs at once that each queue of the app begins with, runs and their nodes included."""
    queues = {*app.registry.queues(), *SLOTS, NODES_QUEUE, WORKFLOWS_QUEUE}
    begin = {queue: start for queue, (_, _, start) in SLOTS.items()}
    return {queue: begin.get(queue, OTHERS) for queue in sorted(queues)}
