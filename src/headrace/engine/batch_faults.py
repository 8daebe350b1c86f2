"""Why items of a batch failed: its dead letters in groups of one fingerprint, as those of queues are grouped."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.engine.dead_letters import LOOK
from headrace.engine.queries import to_json
from headrace.model.dead_letter import DeadLetterGroup, Grouping
from headrace.ports.inspect_batches import InspectBatches

#: Example jobs of each fault.
EXAMPLES = 3
#: Failures that are grouped before others have their turn: each costs some ten microseconds.
_SLICE = 200


@dataclass(frozen=True, slots=True)
class BatchFault:
    """Failures of one fingerprint. `kind` is the class of the error, `message` and `examples` are of the newest."""

    fingerprint: str
    kind: str
    message: str
    count: int
    first_at: datetime
    last_at: datetime
    examples: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class BatchFaults:
    """Why items of a batch failed, what most failed of first.

    Counts and instants are of the `looked_at` failures that were looked at; `sampled`: there are more. `left_out` tells
    how many smaller faults are not shown.
    """

    faults: tuple[BatchFault, ...]
    looked_at: int
    sampled: bool
    left_out: int


async def batch_faults(inspect: InspectBatches, batch_id: UUID, *, limit: int, look: int = LOOK) -> BatchFaults:
    """Return at most `limit` faults among `look` failures of a batch, retried ones left out. Raises NotFoundError."""
    # One more tells whether there are others.
    letters = await inspect.batch_dead_letters(batch_id, limit=look + 1)
    seen, grouping = letters[:look], Grouping()
    for first in range(0, len(seen), _SLICE):
        grouping.add(seen[first : first + _SLICE])
        await asyncio.sleep(0)
    groups = grouping.groups
    faults = tuple(_fault(group) for group in groups[:limit])
    return BatchFaults(faults, len(seen), sampled=len(letters) > look, left_out=len(groups) - len(faults))


def _fault(group: DeadLetterGroup) -> BatchFault:
    return BatchFault(
        group.fingerprint, group.kind, group.message, group.count, group.first_at, group.last_at,
        tuple(group.examples[:EXAMPLES]),
    )  # fmt: skip


def faults_document(batch_id: UUID, found: BatchFaults) -> dict[str, Any]:
    """Return the faults of a batch as one document."""
    return {"batch": str(batch_id), **to_json(found)}
