"""What the items of a batch are, and which of them failed, in scripts that are short each."""

from __future__ import annotations

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
    # In this order: an item that ends meanwhile moves from the first part to the end of the second.
    for part in ("live", "ended"):
        cursor = "0"
        while cursor:
            words = (batch_id.hex, part, cursor, PAGE, first, first + limit)
            answer = await namespace.run("batch_states", *words)
            if answer is None:
                raise no_batch(batch_id)
            end, cursor, *pairs = answer
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


async def item_jobs(namespace: Namespace, batch_id: UUID, ordinal: int) -> list[str]:
    """Return the ids of the tries of an item, in no order."""
    found: dict[str, None] = {}
    # In this order: a try that ends meanwhile moves from the first part to the end of the second.
    for part in ("live", "ended"):
        cursor = "0"
        while cursor:
            cursor, *ids = await namespace.run("list_item_jobs", batch_id.hex, part, cursor, PAGE, ordinal)
            found |= dict.fromkeys(ids)
    return list(found)


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
