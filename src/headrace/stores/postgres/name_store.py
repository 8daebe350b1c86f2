"""Names that are used once within a scope, in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

from headrace.model.known_names import ClaimedNames, KnownName, NewName
from headrace.stores.postgres.database import Database, Row


class PostgresNameStore:
    """`ports.name_store.NameStore`; each verb is one statement.

    Keys and names are stored as in JSON, in ASCII: a model may give characters that the database refuses.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_names(self, scope: str, names: Sequence[NewName], *, seen: int) -> ClaimedNames:
        """Take what is free, or return what the caller has not seen."""
        rows = await self._database.fetch(
            "claim_names",
            scope=scope,
            owners=[new.owner for new in names],
            keys=[_encoded(new.key) for new in names],
            names=[_encoded(new.name) for new in names],
            seen=seen,
        )
        if rows and rows[0]["newer"]:
            return ClaimedNames(newer=tuple(_known(row) for row in rows))
        return ClaimedNames({_decoded(row["key"]): row["position"] for row in rows})

    async def list_names(self, scope: str, *, after: int = 0) -> list[KnownName]:
        """Return the names of a scope."""
        return [_known(row) for row in await self._database.fetch("list_names", scope=scope, after=after)]

    async def release_names(self, scope: str, owner: UUID) -> int:
        """Give back the names of an owner."""
        return len(await self._database.fetch("release_names", scope=scope, owner=owner))


def _known(row: Row) -> KnownName:
    return KnownName(_decoded(row["key"]), _decoded(row["name"]), row["owner"], row["position"])


def _encoded(text: str) -> str:
    return json.dumps(text)[1:-1]


def _decoded(text: str) -> str:
    return str(json.loads(f'"{text}"'))
