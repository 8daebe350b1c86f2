"""The inline executor: coroutines on the worker's event loop."""

from __future__ import annotations

from typing import Any

from headrace.ports.executor import Call


class InlineExecutor:
    """Awaits the handler. Cancelling stops it at its next await."""

    async def run(self, call: Call) -> Any:
        """Await the handler and return its value."""
        return await call.invoke()

    async def close(self) -> None:
        """Nothing to end."""
