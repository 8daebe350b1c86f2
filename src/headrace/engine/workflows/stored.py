"""The ends of a run's nodes, read from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from headrace.model.run import NodeEnding
from headrace.ports.run_store import RunStore

#: Paths of one read.
PART = 2_000


@dataclass(frozen=True, slots=True)
class StoredEndings:
    """Reads them anew each time."""

    runs: RunStore
    run_id: UUID

    async def read(self, paths: Sequence[str]) -> Mapping[str, NodeEnding]:
        """Return those of `paths` that ended, by path."""
        found: dict[str, NodeEnding] = {}
        for start in range(0, len(paths), PART):
            part = await self.runs.read_nodes(self.run_id, paths[start : start + PART])
            found.update((ending.path, ending) for ending in part)
        return found
