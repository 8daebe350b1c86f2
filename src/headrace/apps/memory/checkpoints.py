"""Checkpoints: what is done, what is to be done and what waits, for people and for whoever follows.

The tables are the truth, and a checkpoint is derived from them: it says nothing that they do not, and nothing rests on
it. After the loss of everything but the database `restoring.restore` reads the tables again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headrace.apps.memory.data.flushes import FlushState
from headrace.apps.memory.restoring import MOST_RESTORED, DurableState, unfinished_flushes

if TYPE_CHECKING:
    from headrace import App

#: The feed of checkpoints, and the type of its entries.
FEED, ENTRY = "memory:checkpoints", "checkpoint"
WORKFLOW, RUNNING, IDLE = "memory", "running", "idle"
#: Flushes that are named as done and as to be done, users whose buffers are, and bytes of those.
MOST_DONE, MOST_PENDING, MOST_BUFFERS, BUFFER_BYTES = 100, 500, 100, 24_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What stands at one moment."""

    #: "memory": all of it
    workflow_id: str
    #: "running" or "idle"
    state: str
    timestamp: datetime
    #: ids of flushes, the newest first
    completed_tasks: tuple[str, ...] = ()
    #: the same, in the order in which they are worked
    pending_tasks: tuple[str, ...] = ()
    #: tokens that wait, by user
    user_buffers: Mapping[str, int] = field(default_factory=dict)
    #: how many more are pending that are not named
    left_out: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values.

        >>> point = Checkpoint("memory", "idle", datetime(2026, 5, 1, tzinfo=UTC))
        >>> Checkpoint.from_json(point.to_json()) == point
        True
        """
        return {**asdict(self), "timestamp": self.timestamp.isoformat()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint that `to_json` gave."""
        return cls(
            value["workflow_id"],
            value["state"],
            datetime.fromisoformat(value["timestamp"]),
            tuple(value["completed_tasks"]),
            tuple(value["pending_tasks"]),
            dict(value["user_buffers"]),
            value["left_out"],
        )


async def checkpoint(app: App, tables: DurableState) -> Checkpoint:
    """Return what stands now, and keep it in the feed `memory:checkpoints`.

    One of each `[memory] checkpoint_interval` is kept, whoever calls; each call reads the tables. Raises
    StoreUnavailableError.
    """
    now, interval = datetime.now(UTC), app.settings.memory.checkpoint_interval
    point = await _read(tables, now)
    key = str(int(now.timestamp() // interval.total_seconds()))
    await app.feed(FEED).append(ENTRY, point.to_json(), key=key)
    return point


async def last_checkpoint(app: App) -> Checkpoint | None:
    """Return the newest checkpoint that was kept of all of memory. Raises StoreUnavailableError."""
    feed = app.feed(FEED)
    entries = await feed.read(max(0, await feed.end() - 1), 1)
    return Checkpoint.from_json(entries[-1].data) if entries else None


async def _read(tables: DurableState, now: datetime) -> Checkpoint:
    pending = await unfinished_flushes(tables, MOST_RESTORED)
    # After them: what ended meanwhile is done, and not both.
    done = [str(flush.id) for flush in await tables.list_flushes(None, FlushState.DONE, MOST_DONE)]
    left = [str(flush.id) for flush in pending if str(flush.id) not in set(done)]
    users = await tables.idle_users(timedelta(), MOST_BUFFERS)
    buffers = _bounded([(user, (await tables.buffer(user)).tokens) for user in users])
    return Checkpoint(
        WORKFLOW,
        RUNNING if left or users else IDLE,
        now,
        tuple(done),
        tuple(left[:MOST_PENDING]),
        buffers,
        left_out=len(left[MOST_PENDING:]),
    )


def _bounded(buffers: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return as many buffers as fit an entry of a feed; one that was emptied meanwhile is none."""
    kept: dict[str, int] = {}
    size = 0
    for user, tokens in buffers:
        size += len(json.dumps(user)) + 12
        if size > BUFFER_BYTES:
            break
        if tokens:
            kept[user] = tokens
    return kept
