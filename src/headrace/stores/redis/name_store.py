"""Names that are used once within a scope, on Redis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

from headrace.model.known_names import ClaimedNames, KnownName, NewName
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import parse_id

#: Names that one script reads.
PAGE = 1_000


class RedisNameStore:
    """`ports.name_store.NameStore`.

    Keys and names are stored as in JSON, in ASCII: a model may give characters that have no UTF-8.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def claim_names(self, scope: str, names: Sequence[NewName], *, seen: int) -> ClaimedNames:
        """Take what is free, or return what the caller has not seen."""
        words = [word for new in names for word in (new.owner.hex, _encoded(new.key), _encoded(new.name))]
        taken, rows = await self._namespace.run("claim_names", scope, seen, PAGE, *words)
        if taken:
            return ClaimedNames({_decoded(key): int(position) for key, position in rows})
        owners = {new.owner for new in names}
        newer = [_known(*row) for row in rows]
        rest = await self.list_names(scope, after=newer[-1].position)
        return ClaimedNames(newer=(*newer, *(known for known in rest if known.owner not in owners)))

    async def list_names(self, scope: str, *, after: int = 0) -> list[KnownName]:
        """Return the names of a scope."""
        known: list[KnownName] = []
        while True:
            rows = await self._namespace.run("list_names", scope, known[-1].position if known else after, PAGE)
            known += [_known(*row) for row in rows]
            if len(rows) < PAGE:
                return known

    async def release_names(self, scope: str, owner: UUID) -> int:
        """Give back the names of an owner."""
        released = position = 0
        while position >= 0:
            count, position = await self._namespace.run("release_names", scope, owner.hex, position, PAGE)
            released += count
        return released


def _known(key: str, text: str) -> KnownName:
    position, owner, name = text.split(" ", 2)
    return KnownName(_decoded(key), _decoded(name), parse_id(owner), int(position))


def _encoded(text: str) -> str:
    return json.dumps(text)[1:-1]


def _decoded(text: str) -> str:
    return str(json.loads(f'"{text}"'))
