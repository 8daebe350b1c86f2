"""Dead letters: found and grouped page by page, and redriven slice by slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from headrace.model.dead_letter import DeadLetterFilter, DeadLetterPage, DeadLettersFound, FailedAt, Grouping
from headrace.model.merge_patch import check_argument_patch, patch_arguments
from headrace.model.numbers import check_whole
from headrace.ports.inspect import Inspect
from headrace.ports.stores import Stores

#: Failed jobs of one page.
PAGE = 500
#: Failed jobs that are looked at unless the caller wants another number: ids and groups of so many are kept.
LOOK = 10_000
#: Jobs of one transaction, and where their arguments are read: each may be 256 KiB.
SLICE, PATCHED_SLICE = 500, 50


async def find_dead_letters(
    inspect: Inspect, wanted: DeadLetterFilter, *, limit: int | None = None, look: int = LOOK
) -> DeadLettersFound:
    """Return the newest dead letters that are meant, at most `limit`, among the newest `look` failed jobs.

    The store chooses by queue, task and age; kind and fingerprint are chosen here.
    """
    grouping, looked_at, before = Grouping(), 0, None
    jobs: list[UUID] = []
    while True:
        page = await _page(inspect, wanted, before, min(PAGE, look - looked_at))
        letters = [letter for letter in page.letters if wanted.matches(letter)]
        room = len(letters) if limit is None else limit - len(jobs)
        grouping.add(letters[:room])
        jobs += [letter.id for letter in letters[:room]]
        looked_at, before = looked_at + page.looked_at, page.before
        more = before is not None or len(letters) > room
        if not more or looked_at >= look or len(jobs) == limit:
            return DeadLettersFound(grouping.groups, looked_at, complete=not more, jobs=tuple(jobs))


async def count_kinds(inspect: Inspect, wanted: DeadLetterFilter, *, look: int) -> tuple[Counter[str], bool]:
    """Count dead letters by the kinds of their errors among the newest `look` failed jobs, and say whether that is all.

    Cheaper than `find_dead_letters`: nothing is grouped. A fingerprint that is wanted costs as much as there.
    """
    kinds, looked_at, before = Counter[str](), 0, None
    while True:
        page = await _page(inspect, wanted, before, min(PAGE, look - looked_at))
        kinds.update(letter.error.kind for letter in page.letters if wanted.matches(letter))
        looked_at, before = looked_at + page.looked_at, page.before
        if before is None or looked_at >= look:
            return kinds, before is None


async def _page(inspect: Inspect, wanted: DeadLetterFilter, before: FailedAt | None, limit: int) -> DeadLetterPage:
    return await inspect.dead_letters(
        queue=wanted.queue, task=wanted.task, within=wanted.within, before=before, limit=limit
    )


async def redrive(
    stores: Stores,
    found: DeadLettersFound,
    *,
    patch: Mapping[str, Any] | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> int:
    """Run dead letters again, each as a new job, those that failed first in front; return how many.

    What was retried meanwhile is left out, and so is what belongs to a batch that is being cancelled. `patch` changes
    the arguments of each (see `model/merge_patch.py`); a job whose arguments it makes wrong raises InvalidInputError,
    and the jobs before it run. `on_progress` is told how many jobs were just dealt with.
    """
    checked = None if patch is None else check_argument_patch(patch)
    oldest_first, size, count = found.jobs[::-1], SLICE if checked is None else PATCHED_SLICE, 0
    try:
        for first in range(0, len(oldest_first), size):
            part = oldest_first[first : first + size]
            texts = dict.fromkeys(part) if checked is None else await _patched(stores.inspect, part, checked)
            count += len(await stores.control.retry_jobs(texts))
            on_progress(len(part))
    finally:
        if count:
            for queue in {queue for group in found.groups for queue in group.queues}:
                stores.notifier.hint(f"queue:{queue}")
    return count


async def _patched(inspect: Inspect, jobs: Sequence[UUID], patch: dict[str, Any]) -> dict[UUID, str | None]:
    views = await inspect.final_jobs(jobs)
    texts: dict[UUID, str | None] = {}
    for job_id in jobs:
        if job_id in views:
            texts[job_id] = patch_arguments(views[job_id].args, patch, field=f"patched arguments of job {job_id}")
    return texts


def check_limits(limit: int | None, look: int) -> None:
    """Raise InvalidInputError unless both are whole numbers of at least 1."""
    for name, value in (("limit", limit), ("look", look)):
        if value is not None:
            check_whole(name, value)
