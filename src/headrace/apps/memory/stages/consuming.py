"""Stage 1, from outside: the agent that reads changes of the buffer table."""

from __future__ import annotations

from headrace.apps.memory.changes import register_consumer
from headrace.apps.memory.opening import app
from headrace.apps.memory.stages.checking import check_buffer

consumer = register_consumer(app, check_buffer)
