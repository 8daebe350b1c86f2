"""The app of memory, its queues, and how each kind of work is tried again.

One app for all processes: tasks that run on a cluster are found by the name of this module.
"""

from __future__ import annotations

from headrace import App, Backoff

CONSUME, BUFFER, PROCESS, STORAGE = "memory_consume", "memory_buffer", "memory_process", "memory_storage"
#: Kinds of work, and the queue of each.
KINDS = {"consume": CONSUME, "buffer": BUFFER, "process": PROCESS, "storage": STORAGE}
#: Jobs of each queue that one process runs at once: least, most, and to begin with. `[queues.NAME]` and a file of
#: `headrace memory run` say otherwise.
SLOTS = {CONSUME: (5, 20, 10), BUFFER: (3, 10, 5), PROCESS: (10, 50, 20), STORAGE: (5, 30, 10)}

#: The task that looks at the buffer of a user: an app that has it is this one.
CHECK = "memory.check_buffer"
#: base · 2ⁿ after the n-th failure.
RETRIES = {
    CONSUME: Backoff.exponential(max_attempts=4, base="1s", cap="1m"),
    BUFFER: Backoff.exponential(max_attempts=4, base="2s", cap="1m"),
    PROCESS: Backoff.exponential(max_attempts=6, base="5s", cap="5m"),
    STORAGE: Backoff.exponential(max_attempts=4, base="1s", cap="1m"),
}

app = App()
for _queue, (_least, _most, _start) in SLOTS.items():
    app.queue(_queue, min_slots=_least, max_slots=_most, start_slots=_start, grow_above=1_000, shrink_below=100)


def makes_memory(app: App) -> bool:
    """Whether an app is that of memory."""
    return app.registry.get(CHECK) is not None
