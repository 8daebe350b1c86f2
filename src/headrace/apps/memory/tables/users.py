"""Verbs of users."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.apps.memory.rules.priority import check_level
from headrace.apps.memory.tables.checks import check_language, check_user
from headrace.apps.memory.tables.statements import Statements
from headrace.apps.memory.tables.values import User
from headrace.apps.memory.tables.verbs import Verbs


class UserVerbs(Verbs):
    """Making, reading and deleting users."""

    async def put_user(self, user_id: str, *, level: int = 0, language: str | None = None) -> None:
        """Make a user, or change level and language of one. Raises InvalidInputError for what does not fit."""
        check_user(user_id)
        check_level(level)
        check_language(language)
        await self._statements.fetch("put_user", user_id=user_id, level=level, language=language)

    async def get_user(self, user_id: str) -> User | None:
        """Return a user, or None."""
        check_user(user_id)
        return (await self.users([user_id])).get(user_id)

    async def users(self, user_ids: Sequence[str]) -> dict[str, User]:
        """Return users by their ids, those that are known."""
        rows = await self._statements.fetch("users", user_ids=list(user_ids))
        return {row["id"]: User(row["id"], row["level"], row["language"], row["created_at"]) for row in rows}

    async def delete_user(self, user_id: str) -> bool:
        """Delete a user and all that is known of it; whether it was there. Who works on a flush of it loses it."""
        check_user(user_id)

        async def delete(statements: Statements) -> bool:
            await statements.fetch("lock_user", user_id=user_id)
            # A statement of its own: it sees what was made while the first one waited.
            await statements.fetch("lock_flushes", user_id=user_id)
            return bool(await statements.fetch("delete_user", user_id=user_id))

        return await self._statements.together(delete)
