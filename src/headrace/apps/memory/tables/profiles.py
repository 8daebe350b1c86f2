"""Verbs of profiles: reading them, and changing slots from the version that a change was made from."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import ConflictError, NotFoundError
from headrace.apps.memory.data.profiles import ProfileChange, Slot
from headrace.apps.memory.tables.checks import check_changes, check_user, storable
from headrace.apps.memory.tables.rows import slot_of
from headrace.apps.memory.tables.statements import Statements
from headrace.apps.memory.tables.values import StaleSlot
from headrace.apps.memory.tables.verbs import Verbs


class ProfileVerbs(Verbs):
    """Reading and changing what is known of users."""

    async def profile(self, user_id: str) -> list[Slot]:
        """Return what is known of a user, by topic and sub-topic."""
        check_user(user_id)
        return [slot_of(row) for row in await self._statements.fetch("profile", user_id=user_id)]

    async def change_profile(self, user_id: str, changes: Sequence[ProfileChange]) -> list[Slot]:
        """Make changes, all or none, and return the profile after them.

        Raises ConflictError naming the slots that are newer than the change, NotFoundError for an unknown user,
        InvalidInputError for changes that cannot be made together.
        """
        check_user(user_id)
        check_changes(changes)

        async def change(statements: Statements) -> list[Slot]:
            if stale := await write_changes(statements, user_id, changes):
                if not await statements.fetch("users", user_ids=[user_id]):
                    raise NotFoundError(f"no user {user_id}: insert something of it first")
                raise ConflictError(_wording(stale))
            return [slot_of(row) for row in await statements.fetch("profile", user_id=user_id)]

        return await self._statements.together(change)


async def write_changes(
    statements: Statements, user_id: str, changes: Sequence[ProfileChange]
) -> tuple[StaleSlot, ...]:
    """Write changes in a transaction, and return the slots that are newer: then it is to be taken back."""
    if not changes:
        return ()
    stale = await statements.fetch(
        "change_profile",
        user_id=user_id,
        ops=[change.op for change in changes],
        topics=[change.topic for change in changes],
        sub_topics=[change.sub_topic for change in changes],
        contents=[storable(change.content) for change in changes],
        versions=[change.expected_version for change in changes],
    )
    if not stale:
        return ()
    topics, sub_topics = [row["topic"] for row in stale], [row["sub_topic"] for row in stale]
    found = await statements.fetch("slot_versions", user_id=user_id, topics=topics, sub_topics=sub_topics)
    versions = {(row["topic"], row["sub_topic"]): row["version"] for row in found}
    return tuple(
        StaleSlot(row["topic"], row["sub_topic"], row["version"], versions[row["topic"], row["sub_topic"]])
        for row in stale
    )


def _wording(stale: Sequence[StaleSlot]) -> str:
    slots = "; ".join(
        f"{slot.topic}/{slot.sub_topic} has version {slot.version}, not {slot.expected_version}" for slot in stale
    )
    return f"the profile was changed meanwhile: {slots}. Read it again, and make the change from what it is now"
