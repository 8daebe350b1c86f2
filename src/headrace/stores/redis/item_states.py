"""What the items of a batch are, were called with, and which of them failed, in scripts that are short each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from headrace.model.dead_letter import DeadLetter
from headrace.model.item_states import BatchStates, StateCells, check_range
from headrace.model.job import JobState
from headrace.stores.redis.batch_store import no_batch
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.views import dead_letter

#: Jobs that one script looks at, and jobs whose errors it reads.
PAGE, TEXTS = 1_000, 200
_RETRIED = "retried"


async def batch_states(namespace: Namespace, batch_id: UUID, *, first: int, limit: int) -> BatchStates:
    """Do what `Inspect.batch_states` promises."""
    check_range(first, limit)
    end, found = 0, dict[int, str]()
    async for reached, *pairs in _walk(namespace, "batch_states", batch_id, first, first + limit):
        end = reached
        _note(found, dict(zip(pairs[::2], pairs[1::2], strict=True)))
    cells = StateCells(first=first, limit=limit, end=end)
    for ordinal, state in found.items():
        # A retry that came after the first part was read: it waits, or did a moment ago.
        cells.note([ordinal], JobState.READY if state == _RETRIED else JobState(state))
    return cells.states


def _note(found: dict[int, str], pairs: dict[int, str]) -> None:
    """Note what items are; of one that was retried something newer may be known."""
    for ordinal, state in pairs.items():
        if state == _RETRIED:
            found.setdefault(ordinal, state)
        else:
            found[ordinal] = state


async def batch_args(namespace: Namespace, batch_id: UUID) -> dict[int, str]:
    """Do what `Inspect.batch_args` promises."""
    found: dict[int, str] = {}
    async for pairs in _walk(namespace, "batch_args", batch_id, page=TEXTS):
        found |= {int(place): args for place, args in zip(pairs[::2], pairs[1::2], strict=True)}
    return found


async def item_jobs(namespace: Namespace, batch_id: UUID, ordinal: int) -> list[str]:
    """Return the ids of the tries of an item, in no order."""
    found: dict[str, None] = {}
    async for ids in _walk(namespace, "list_item_jobs", batch_id, ordinal):
        found |= dict.fromkeys(ids)
    return list(found)


async def _walk(
    namespace: Namespace, verb: str, batch_id: UUID, *words: int, page: int = PAGE
) -> AsyncIterator[list[Any]]:
    """Yield what a script says of the items of a batch, page by page. Raises NotFoundError.

    Those that live come first: an item that ends meanwhile moves from there to the end of what ended.
    """
    for part in ("live", "ended"):
        cursor = "0"
        while cursor:
            answer = await namespace.run(verb, batch_id.hex, part, cursor, page, *words)
            if answer is None:
                raise no_batch(batch_id)
            cursor, *told = answer
            yield told


async def batch_dead_letters(namespace: Namespace, batch_id: UUID, *, limit: int) -> list[DeadLetter]:
    """Do what `Inspect.batch_dead_letters` promises; where there are more than `limit`, any of them."""
    found: dict[UUID, DeadLetter] = {}
    cursor = ""
    while cursor != "0" and len(found) < limit:
        answer = await namespace.run("batch_dead_letters", batch_id.hex, cursor or "0", TEXTS)
        if answer is None:
            raise no_batch(batch_id)
        cursor, rows = answer
        letters = (dead_letter(*row) for row in rows)
        found |= {letter.id: letter for letter in letters}
    newest = sorted(found.values(), key=lambda letter: (letter.finished_at, letter.id), reverse=True)
    return newest[:limit]
