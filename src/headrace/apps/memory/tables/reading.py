"""Verbs that read what became of it all: events, gists by their words, and counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.data.events import Gist, Tag, UserEvent
from headrace.apps.memory.tables.checks import check_user, storable
from headrace.apps.memory.tables.rows import blobs_of, event_of, gist_of
from headrace.apps.memory.tables.values import FoundGist
from headrace.apps.memory.tables.verbs import Verbs
from headrace.apps.memory.tables.words import asked_of


class ReadingVerbs(Verbs):
    """Reading events, and counting."""

    async def events(
        self, user_id: str, *, limit: int = 20, before: datetime | None = None, tag: Tag | None = None
    ) -> list[UserEvent]:
        """Return events of a user, newest first; those before an instant, and those with a tag, where given."""
        check_user(user_id)
        tags = None if tag is None else json.dumps([storable(asdict(tag))])
        rows = await self._statements.fetch("events", user_id=user_id, before=before, tags=tags, limit=limit)
        return [event_of(row) for row in rows]

    async def events_of_flushes(self, flush_ids: Sequence[UUID]) -> list[UserEvent]:
        """Return the events that flushes came to, oldest first; a flush that told of nothing has none."""
        return [event_of(row) for row in await self._statements.fetch("events_of_flushes", ids=list(flush_ids))]

    async def search(self, user_id: str, query: str, *, limit: int = 10) -> list[FoundGist]:
        """Return gists of a user that have any word of the query, best first, in English and Chinese.

        The query is plain text of which the first 1,000 characters count: nothing in it is an operator.
        """
        check_user(user_id)
        asked = asked_of(query)
        rows = await self._statements.fetch(
            "search_gists", user_id=user_id, words=asked.words, pieces=asked.pieces, limit=limit
        )
        return [FoundGist(gist_of(row), row["score"]) for row in rows]

    async def latest_gists(self, user_id: str, limit: int) -> list[Gist]:
        """Return gists of a user, newest first."""
        check_user(user_id)
        return [gist_of(row) for row in await self._statements.fetch("latest_gists", user_id=user_id, limit=limit)]

    async def find_blob(self, blob_id: UUID) -> Blob | None:
        """Return a blob; None for one that is not kept."""
        row = await self._statements.fetch_one("find_blob", blob_id=blob_id)
        return None if row is None else blobs_of([row])[0]

    async def counts(self) -> Mapping[str, int]:
        """Return how many flushes wait, are worked on and have failed, and how many rows of the buffer table.

        Keys: flushes_waiting, flushes_processing, flushes_failed; rows_idle, of which rows_buffered are bound to no
        flush, rows_processing, rows_failed. What is done is not counted: it grows without end.
        """
        found = {row["state"]: row for row in await self._statements.fetch("counts")}
        counts = dict.fromkeys(("waiting", "processing", "failed", "buffered"), 0)
        rows = {**counts, **{state: int(row["rows"]) for state, row in found.items()}}
        flushes = {**counts, **{state: row["flushes"] for state, row in found.items()}}
        return {
            **{f"flushes_{state}": flushes[state] for state in ("waiting", "processing", "failed")},
            "rows_idle": rows["buffered"] + rows["waiting"],
            "rows_buffered": rows["buffered"],
            "rows_processing": rows["processing"],
            "rows_failed": rows["failed"],
        }
