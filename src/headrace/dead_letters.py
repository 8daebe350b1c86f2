"""`app.dead_letters`: failed jobs grouped by their error, and run again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from headrace.engine.dead_letters import LOOK, check_limits, find_dead_letters, redrive
from headrace.model.dead_letter import DeadLetterFilter, DeadLettersFound
from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError

if TYPE_CHECKING:
    from headrace.app import App


class Which(TypedDict, total=False):
    """Which dead letters are meant; all that is given must hold."""

    #: of this queue, of this task (by name)
    queue: str | None
    task: str | None
    #: with an error of this kind, or with this fingerprint or the beginning of it
    kind: str | None
    fingerprint: str | None
    #: failed no longer ago than this: "7d", seconds or a timedelta
    since: float | str | timedelta | None
    #: how many of the newest failed jobs are looked at, default 10,000
    look: int
    #: at most so many, the newest
    limit: int | None


_TEXTS = ("queue", "task", "kind", "fingerprint")


class DeadLetters:
    """The dead letters of an app's store: jobs that failed and were not run again.

    >>> from headrace import App, Backoff
    >>> app = App("memory://")
    >>> @app.task(retry=Backoff.none())
    ... async def pay(card: int, *, bank: str) -> str:
    ...     if bank == "old":
    ...         raise ValueError(f"card {card} is unknown")
    ...     return f"card {card} paid"
    >>> async def main() -> None:
    ...     async with app.worker():
    ...         cards = [{"card": number, "bank": "old"} for number in range(3)]
    ...         batch = await app.submit(pay, cards, spread=True)
    ...         errors = [item.error async for item in batch.results()]
    ...         [group] = (await app.dead_letters.list()).groups
    ...         print(group.task, group.kind, group.count)
    ...         print(await app.dead_letters.redrive(patch={"kwargs": {"bank": "new"}}), "run again")
    >>> import asyncio; asyncio.run(main())
    pay ValueError 3
    3 run again
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(self, **which: Unpack[Which]) -> DeadLettersFound:
        """Return dead letters in groups of one fingerprint, the largest first; see `Which` for the filters.

        Raises InvalidInputError for a wrong filter, StoreUnavailableError.
        """
        _check_names(which)
        limit, look = which.get("limit"), which.get("look", LOOK)
        check_limits(limit, look)
        return await find_dead_letters(self._app.runtime.stores.inspect, _filter(which), limit=limit, look=look)

    async def redrive(self, *, patch: Mapping[str, Any] | None = None, **which: Unpack[Which]) -> int:
        """Run dead letters again, each as a new job (`retry_of`), and return how many.

        `patch` is a JSON merge patch of {"args": […], "kwargs": {…}}: `args` replaces all positional arguments, members
        of `kwargs` replace keyword arguments, None removes one. Items of a batch run in a new round of it. Raises
        InvalidInputError, PayloadTooLargeError when a patch gives no valid arguments, StoreUnavailableError.
        """
        return await redrive(self._app.runtime.stores, await self.list(**which), patch=patch)


def _check_names(which: Which) -> None:
    """Refuse a filter that does not exist, or is no text: without it everything would run again."""
    for name, value in which.items():
        if name not in Which.__annotations__:
            raise InvalidInputError("dead letter filter", f"must be among {', '.join(Which.__annotations__)}", name)
        if name in _TEXTS and value is not None and not isinstance(value, str):
            raise InvalidInputError(name, "must be text", value)


def _filter(which: Which) -> DeadLetterFilter:
    since = which.get("since")
    return DeadLetterFilter(
        queue=which.get("queue"),
        task=which.get("task"),
        kind=which.get("kind"),
        fingerprint=which.get("fingerprint"),
        within=None if since is None else parse_duration(since, field="since"),
    )
