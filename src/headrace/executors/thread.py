"""The thread executor: sync handlers beside the event loop, in daemon threads."""

from __future__ import annotations

from typing import Any

from headrace.daemon_threads import DaemonThreads
from headrace.ports.executor import Call


class ThreadExecutor:
    """Runs handlers in threads. A thread cannot be stopped: cancelling only stops waiting for it."""

    def __init__(self) -> None:
        self._threads = DaemonThreads()

    async def run(self, call: Call) -> Any:
        """Run the handler in a thread, with the context variables of the attempt."""
        return await self._threads.run(call.invoke)

    async def close(self) -> None:
        """Let idle threads end; running handlers are not waited for. A later call begins anew."""
        self._threads.end()
