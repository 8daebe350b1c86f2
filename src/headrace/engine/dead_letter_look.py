"""What command line and HTTP service find of dead letters: those that are meant, what bounded the look, what a patch
makes of them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import reduce
from typing import Any
from uuid import UUID

from headrace.engine.dead_letters import find_dead_letters
from headrace.engine.operations import find_queue
from headrace.engine.queries import to_json
from headrace.model.dead_letter import DeadLetterFilter, DeadLettersFound
from headrace.model.merge_patch import patch_arguments
from headrace.model.sentence import Sentence, say
from headrace.ports.stores import Stores

#: Groups of which a patched job is shown.
PATCHED = 5
#: Names that are told of those there are.
_NAMES = 10


class Bound(StrEnum):
    """Why there may be more dead letters than were found."""

    #: as many were found as were asked for
    LIMIT = "limit"
    #: as many failed jobs were looked at as may be
    LOOK = "look"


@dataclass(frozen=True, slots=True)
class Patched:
    """The arguments of a job before and after a patch."""

    job: UUID
    task: str
    arguments: Any
    patched: Any


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found. `others`: where nothing matched, all dead letters there are."""

    found: DeadLettersFound
    wanted: DeadLetterFilter
    bound: Bound | None = None
    others: DeadLettersFound | None = None
    patched: tuple[Patched, ...] = ()


async def look_for(
    stores: Stores,
    wanted: DeadLetterFilter,
    *,
    look: int,
    limit: int | None = None,
    patch: dict[str, Any] | None = None,
) -> Looked:
    """Return the dead letters that are meant, and of the largest groups a job as `patch` makes it.

    Raises NotFoundError for a queue that nobody knows, InvalidInputError where a patch gives no valid arguments.
    """
    inspect = stores.inspect
    found = await find_dead_letters(inspect, wanted, look=look, limit=limit)
    bound = None if found.complete else Bound.LIMIT if limit is not None and found.count >= limit else Bound.LOOK
    if found.count:
        return Looked(found, wanted, bound, patched=() if patch is None else await _patched(stores, found, patch))
    if wanted.queue is not None:
        await find_queue(inspect, wanted.queue)
    everything = (
        found if wanted == DeadLetterFilter() else await find_dead_letters(inspect, DeadLetterFilter(), look=look)
    )
    return Looked(found, wanted, bound, others=everything)


async def _patched(stores: Stores, found: DeadLettersFound, patch: dict[str, Any]) -> tuple[Patched, ...]:
    ids = [group.examples[0] for group in found.groups[:PATCHED]]
    views = await stores.inspect.final_jobs(ids)
    texts = {
        job: patch_arguments(views[job].args, patch, field=f"patched arguments of job {job}")
        for job in ids if job in views
    }  # fmt: skip
    return tuple(Patched(job, views[job].task, views[job].args, json.loads(text)) for job, text in texts.items())


def looked_document(looked: Looked) -> dict[str, Any]:
    """Return what was found as one document."""
    found = looked.found
    facts = {"count": found.count, "looked_at": found.looked_at, "complete": found.complete, "bound": looked.bound}
    return facts | {"groups": [to_json(asdict(group)) for group in found.groups]}


def none_of(looked: Looked) -> Sentence:
    """Return why there is nothing to show: no dead letters at all, or which there are that the filters leave out."""
    others = looked.others
    if others is None or not others.count:
        return say("There are no dead letters.")
    among = "" if others.complete else say(" among the newest {looked} failed jobs", looked=others.looked_at)
    there = _there_are(looked.wanted, others)
    if there is None:
        return say("None of the {count} dead letters{among} is that young.", count=others.count, among=among)
    return say(
        "None of the {count} dead letters{among} matches. There are {there}.",
        count=others.count, among=among, there=there,
    )  # fmt: skip


def _there_are(wanted: DeadLetterFilter, others: DeadLettersFound) -> Sentence | None:
    """Return what there is of each kind of name that was asked for; None: none was."""
    groups = others.groups
    known = (
        (wanted.task, say("tasks"), {group.task for group in groups}),
        (wanted.kind, say("kinds"), {group.kind for group in groups}),
        (wanted.queue, say("queues"), {queue for group in groups for queue in group.queues}),
        (wanted.fingerprint, say("fingerprints"), {group.fingerprint for group in groups}),
    )
    parts = [say("{what}: {names}", what=what, names=_some(names)) for asked, what, names in known if asked is not None]
    return reduce(lambda one, other: say("{one}; {other}", one=one, other=other), parts) if parts else None


def _some(names: set[str]) -> Sentence | str:
    shown = sorted(names)[:_NAMES]
    left, told = len(names) - len(shown), ", ".join(shown)
    return say("{names} and {left} more", names=told, left=left) if left else told
