"""The workflows of memory: that of a flush, and that of messages which somebody waits for.

    memory_flush:   process ── store
    memory:         consume ── buffer ── one wait for each flush

A flush has a run of its own, keyed by user and blobs, whoever asked for it: so that two who ask get the same one.
"""

from __future__ import annotations

from typing import Any

from headrace import Canvas, chain, input_, map_, wait_signal
from headrace.apps.memory.intake import insert_messages
from headrace.apps.memory.opening import app
from headrace.apps.memory.stages.checking import check_buffer
from headrace.apps.memory.stages.processing import process_flush
from headrace.apps.memory.stages.runs import SIGNAL, WORKFLOW
from headrace.apps.memory.stages.storing import store_flush

_TAGS = ("schedule:node_level",)


@app.workflow(name=WORKFLOW, tags=_TAGS)
def memory_flush(flush_id: str, user: str, told: str) -> Canvas:
    """Return the parts of a flush. `told`: whoever waits for its end waits for the signal of this name."""
    return chain(
        process_flush.s(flush_id, user, told).options(name="process"),
        store_flush.s().options(name="store"),
    )


@app.workflow(name="memory", tags=_TAGS)
def memory(user: str, messages: list[dict[str, Any]], blob_id: str) -> Canvas:
    """Return the parts of messages that are made memory of at once."""
    consumed = insert_messages.s(user, messages, blob_id).options(name="consume")
    checked = check_buffer.si(user, "explicit").options(name="buffer")
    ended = map_(wait_signal(SIGNAL, input_, timeout="1h"), over=checked.output["told"]).options(name="flushes")
    return chain(consumed, checked, ended)


__all__ = ["memory", "memory_flush"]
