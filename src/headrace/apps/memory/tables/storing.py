"""The verb that makes a flush memory: event, gists, profile, rows and flush in one transaction under the fence."""

from __future__ import annotations

import json
from typing import Any

from headrace import HeadraceError
from headrace.apps.memory.data.events import gists_of
from headrace.apps.memory.data.flushes import FlushState, Held
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.tables.checks import check_changes, storable
from headrace.apps.memory.tables.holding import lost
from headrace.apps.memory.tables.profiles import write_changes
from headrace.apps.memory.tables.statements import Statements
from headrace.apps.memory.tables.values import Committed, Conflict, StaleSlot
from headrace.apps.memory.tables.verbs import Verbs
from headrace.apps.memory.tables.words import words_of


class _ProfileIsNewerError(HeadraceError):
    """Takes the transaction back; as one of ours, which the connection outlives."""

    def __init__(self, slots: tuple[StaleSlot, ...]) -> None:
        super().__init__()
        self.slots = slots


class StoringVerbs(Verbs):
    """Storing what became of flushes."""

    async def commit(self, held: Held, result: FlushResult, *, keep_blobs: bool) -> Committed | Conflict:
        """Write all that a flush came to, or nothing.

        Conflict: slots of the profile are newer than the changes; merge them again. A commit whose answer was lost may
        be repeated: it is recognised, and nothing is written twice. Raises LostFlushError when the flush is another's,
        InvalidInputError for changes that cannot be made together.
        """
        check_changes(result.changes)

        async def write(statements: Statements) -> Committed:
            row = await statements.fetch_one("end_flush", **_parts(held, result), keep_blobs=keep_blobs)
            if row is None:
                return await _committed_before(statements, held)
            if stale := await write_changes(statements, held.flush.user_id, result.changes):
                raise _ProfileIsNewerError(stale)
            return Committed(held.flush.id if _has_event(result) else None, row["processed_count"])

        try:
            return await self._statements.together(write)
        except _ProfileIsNewerError as newer:
            return Conflict(newer.slots)


async def _committed_before(statements: Statements, held: Held) -> Committed:
    row = await statements.fetch_one("find_flush", flush_id=held.flush.id)
    if row is None or row["state"] != FlushState.DONE or row["fence"] != held.fence:
        raise lost(held)
    return Committed(row["id"] if row["has_event"] else None, len(row["blob_ids"]), repeated=True)


def _has_event(result: FlushResult) -> bool:
    return bool(result.event_tip.strip() or result.changes)


def _parts(held: Held, result: FlushResult) -> dict[str, Any]:
    clean = storable(result.to_json())
    gists = gists_of(clean["event_tip"])
    words = [words_of(gist) for gist in gists]
    return {
        "user_id": held.flush.user_id,
        "flush_id": held.flush.id,
        "fence": held.fence,
        "result": json.dumps(clean, ensure_ascii=False),
        "has_event": _has_event(result),
        "event_tip": clean["event_tip"],
        "event_tags": json.dumps(clean["tags"], ensure_ascii=False),
        "profile_delta": json.dumps(storable([_delta(change) for change in result.changes]), ensure_ascii=False),
        "gists": list(gists),
        "words": [each.words for each in words],
        "pieces": [each.pieces for each in words],
    }


def _delta(change: ProfileChange) -> dict[str, Any]:
    return {"content": change.content, "attributes": {"topic": change.topic, "sub_topic": change.sub_topic}}
