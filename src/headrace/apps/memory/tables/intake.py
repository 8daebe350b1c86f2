"""Verbs of the intake: blobs, and notes that buffers are to be looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import asyncpg

from headrace import ConflictError
from headrace.apps.memory.data.blobs import PROCESSED
from headrace.apps.memory.tables.checks import as_json, check_blob, check_user
from headrace.apps.memory.tables.statements import Statements
from headrace.apps.memory.tables.values import NewBlob
from headrace.apps.memory.tables.verbs import Verbs

_TRIES = 3


class IntakeVerbs(Verbs):
    """Taking in what users say."""

    async def insert_blobs(self, blobs: Sequence[NewBlob]) -> list[UUID]:
        """Store blobs, put those that memory is made of into their users' buffers, and return their ids: all or none.

        Users that are new are made. A blob that is there already changes nothing. Raises ConflictError where other
        content has its id, InvalidInputError for one that cannot be stored.
        """
        if not blobs:
            return []
        columns = _columns(blobs)

        async def insert(statements: Statements) -> None:
            inserted = await statements.fetch("insert_blobs", **columns)
            if len(inserted) < len(blobs) and (clashing := await statements.fetch("find_clashing_blobs", **columns)):
                names = ", ".join(str(row["id"]) for row in clashing[:5])
                raise ConflictError(f"{len(clashing)} blobs are there with other content: {names}; give new ids")

        await self._while_users_go(insert)
        return [blob.id for blob in blobs]

    async def note_checks(self, user_ids: Sequence[str]) -> list[str]:
        """Note that buffers are to be looked at, and return the users of whom it was not noted."""
        for user_id in user_ids:
            check_user(user_id)
        rows = await self._statements.fetch("note_checks", user_ids=list(user_ids))
        return [row["user_id"] for row in rows]

    async def take_check(self, user_id: str) -> bool:
        """Take the note of a user, before its buffer is looked at; whether there was one."""
        return bool(await self._statements.fetch("take_check", user_id=user_id))

    async def _while_users_go(self, insert: Callable[[Statements], Awaitable[None]]) -> None:
        """Insert, and again where a user was made and deleted by others during the statement."""
        for turn in range(1, _TRIES + 1):
            try:
                await self._statements.together(insert)
                return
            except asyncpg.ForeignKeyViolationError:
                if turn == _TRIES:
                    raise


def _columns(blobs: Sequence[NewBlob]) -> dict[str, object]:
    for blob in blobs:
        check_blob(blob)
    return {
        "ids": [blob.id for blob in blobs],
        "user_ids": [blob.user_id for blob in blobs],
        "types": [blob.type for blob in blobs],
        "data": [as_json("data", blob.data) for blob in blobs],
        "tokens": [blob.tokens for blob in blobs],
        "created_at": [blob.created_at for blob in blobs],
        "buffered": [blob.type in PROCESSED for blob in blobs],
    }
