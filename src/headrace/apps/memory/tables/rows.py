"""Values of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.data.events import Gist, Tag, UserEvent
from headrace.apps.memory.data.flushes import Flush, FlushState, Reason
from headrace.apps.memory.data.profiles import Slot


def flush_of(row: Any) -> Flush:
    """Return the flush of a row."""
    return Flush(
        id=row["id"],
        user_id=row["user_id"],
        blob_ids=tuple(row["blob_ids"]),
        tokens=row["tokens"],
        number=row["number"],
        state=FlushState(row["state"]),
        reason=Reason(row["reason"]),
        created_at=row["created_at"],
        round=row["round"],
        error=row["error"],
    )


def blobs_of(rows: Iterable[Any]) -> tuple[Blob, ...]:
    """Return the blobs of the rows of one flush; one that was deleted by hand is left out."""
    return tuple(
        Blob(
            id=row["blob_id"],
            user_id=row["user_id"],
            type=row["blob_type"],
            data=json.loads(row["blob_data"]),
            tokens=row["token_size"],
            created_at=row["blob_created_at"],
        )
        for row in rows
        if row["blob_id"] is not None
    )


def slot_of(row: Any) -> Slot:
    """Return the slot of a row."""
    return Slot(
        topic=row["topic"],
        sub_topic=row["sub_topic"],
        content=row["content"],
        version=row["version"],
        update_hits=row["update_hits"],
        updated_at=row["updated_at"],
    )


def event_of(row: Any) -> UserEvent:
    """Return the event of a row."""
    return UserEvent(
        id=row["id"],
        user_id=row["user_id"],
        event_tip=row["event_tip"],
        tags=tuple(Tag(each["tag"], each["value"]) for each in json.loads(row["event_tags"])),
        profile_delta=tuple(json.loads(row["profile_delta"])),
        created_at=row["created_at"],
    )


def gist_of(row: Any) -> Gist:
    """Return the gist of a row."""
    return Gist(row["event_id"], row["number"], row["content"], row["created_at"])
