"""An app that serves memory: for `headrace worker`, `serve` and `agent headrace.apps.memory.worker:app`."""

from headrace.apps.memory.graph import memory, memory_flush
from headrace.apps.memory.opening import app
from headrace.apps.memory.stages.consuming import consumer
from headrace.apps.memory.stages.sweeping import sweep

__all__ = ["app", "consumer", "memory", "memory_flush", "sweep"]
