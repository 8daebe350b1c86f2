"""The audit store port on Redis: who did what, and when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from headrace.model.audit import Action, NewAction, Place
from headrace.model.session import LeaderTerm
from headrace.stores.redis import pruning
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import instant, micros, parse_id, span

#: Actions of one script.
SLICE = 100


class RedisAuditStore:
    """`ports.audit_store.AuditStore`; scripts are short each."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def note_actions(self, actions: Sequence[tuple[NewAction, timedelta]]) -> None:
        """Store actions whose ids are new."""
        for start in range(0, len(actions), SLICE):
            part = actions[start : start + SLICE]
            words = [word for action, age in part for word in (span(age), *_words(action))]
            await self._namespace.run("note_actions", *words)

    async def list_actions(
        self, *, before: Place | None = None, limit: int, who: str | None = None, operation: str | None = None
    ) -> list[Action]:
        """Return actions, the newest first, by the index of what is asked for."""
        at, action_id = ("", "") if before is None else (str(micros(before[0])), before[1].hex)
        index = index_of(who, operation)
        return [_action(*row) for row in await self._namespace.run("list_actions", index, at, action_id, limit)]

    async def prune_actions(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old actions; nothing under a term that is over."""
        return await pruning.prune_actions(self._namespace, older_than, limit=limit, term=term)


def index_of(who: str | None, operation: str | None) -> str:
    """Return the key of the index that has these actions alone; names of operations have no colon.

    >>> index_of(None, None), index_of("shop", None), index_of("shop", "cancel_job")
    ('actions', 'actions::shop', 'actions:cancel_job:shop')
    """
    if who is not None:
        return f"actions:{operation or ''}:{who}"
    return "actions" if operation is None else f"actions:{operation}"


def _words(action: NewAction) -> tuple[str | int, ...]:
    token_id = "" if action.token_id is None else action.token_id.hex
    subject = json.dumps(action.subject)
    return (
        action.id.hex, action.who, token_id, action.address, action.operation, subject, action.detail, action.status,
        action.via,
    )  # fmt: skip


def _action(  # noqa: PLR0913 - a row
    action_id: str, at: str, who: str, token_id: str, address: str, operation: str, subject: str, detail: str,
    status: str, via: str,
) -> Action:  # fmt: skip
    token: UUID | None = parse_id(token_id) if token_id else None
    return Action(
        parse_id(action_id), instant(at), who, token, address, operation, json.loads(subject), detail, int(status), via
    )
