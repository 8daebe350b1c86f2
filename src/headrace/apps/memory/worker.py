"""All that a worker of memory does: for `headrace worker`, `serve` and `agent headrace.apps.memory.worker:app`.

What the consumer reads follows from `[memory]` as it is when this is imported: `Memory().app.worker()` imports it when
it begins.
"""

from __future__ import annotations

from headrace.apps.memory.beginning import begun
from headrace.apps.memory.graph import memory, memory_flush
from headrace.apps.memory.opening import app
from headrace.apps.memory.stages.consuming import consumer
from headrace.apps.memory.stages.sweeping import begin_sweep, release_leases, sweep

app.lifespan = begun

__all__ = ["app", "begin_sweep", "consumer", "memory", "memory_flush", "release_leases", "sweep"]
