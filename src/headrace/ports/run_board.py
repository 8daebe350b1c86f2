"""The run board port: the hot state of runs, for those who look often, beside the store that is the truth.

Nothing rests on it. What it holds may be thrown away at any time, and is built anew from the store when it is asked
for; what it holds of a run that goes on goes after a minute, so that a change that never reached it is seen then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from headrace.model.run import NodeState, RunChange, RunStatus


class RunBoard(Protocol):
    """Statuses of runs. All methods raise StoreUnavailableError when the server cannot answer."""

    async def read_status(self, run_id: UUID) -> RunStatus | None:
        """Return the status of a run, None where the board has none."""
        ...

    async def read_counts(self, run_id: UUID) -> dict[NodeState, int] | None:
        """Return how many paths of a run are in each state, None where the board does not have the run."""
        ...

    async def put_status(self, run_id: UUID, status: RunStatus) -> None:
        """Keep a status that was read from the store; a final state of a path that is there already stays."""
        ...

    async def note_changes(self, changes: Sequence[RunChange]) -> None:
        """Change statuses that the board has. A final state of a path, or of a run, never changes."""
        ...

    async def waiting_for(self, key: str) -> dict[UUID, list[str]]:
        """Return the runs that wait for a signal, as far as the board has them, with the paths that do."""
        ...
