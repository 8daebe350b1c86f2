"""The audit store port on PostgreSQL: who did what, and when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from headrace.model.audit import Action, NewAction, Place
from headrace.model.session import LeaderTerm
from headrace.stores.postgres.database import Database, Row
from headrace.stores.postgres.terms import fetch_under


class PostgresAuditStore:
    """`ports.audit_store.AuditStore`; each verb is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note_actions(self, actions: Sequence[tuple[NewAction, timedelta]]) -> None:
        """Store actions whose ids are new."""
        if not actions:
            return
        given = [action for action, _ in actions]
        await self._database.fetch(
            "note_actions", ids=[one.id for one in given], ages=[age for _, age in actions],
            token_ids=[one.token_id for one in given], statuses=[one.status for one in given],
            vias=[one.via for one in given], names=[one.who for one in given],
            addresses=[one.address for one in given], operations=[one.operation for one in given],
            subjects=[json.dumps(one.subject) for one in given], details=[one.detail for one in given],
        )  # fmt: skip

    async def list_actions(
        self, *, before: Place | None = None, limit: int, who: str | None = None, operation: str | None = None
    ) -> list[Action]:
        """Return actions, the newest first, by the index of what is asked for."""
        at, action_id = (None, None) if before is None else before
        place = {"before": at, "before_id": action_id, "limit": limit}
        if who is not None:
            rows = await self._database.fetch("list_actions_of", who=who, operation=operation, **place)
        elif operation is not None:
            rows = await self._database.fetch("list_operation", operation=operation, **place)
        else:
            rows = await self._database.fetch("list_actions", **place)
        return [_action(row) for row in rows]

    async def prune_actions(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old actions; nothing under a term that is over."""
        return len(await fetch_under(self._database, term, "prune_actions", retention=older_than, limit=limit))


def _action(row: Row) -> Action:
    return Action(
        row["id"], row["done_at"], row["who"], row["token_id"], row["address"], row["operation"],
        json.loads(row["subject"]), row["detail"], row["status"], row["via"],
    )  # fmt: skip
