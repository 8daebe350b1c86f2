"""The thread executor: sync handlers beside the event loop."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headrace.ports.executor import Call

#: Threads are made only when none is idle; a handler that ignores its timeout keeps its thread, not a slot.
MAX_THREADS = 1_000


class ThreadExecutor:
    """Runs handlers in threads. A thread cannot be stopped: cancelling only stops waiting for it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="headrace-task")

    async def run(self, call: Call) -> Any:
        """Run the handler in a thread, with the context variables of the attempt."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._pool, context.run, call.invoke)

    async def close(self) -> None:
        """Let idle threads end; running handlers are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
