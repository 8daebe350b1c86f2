"""Waiting for flushes, and showing how far they are."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from headrace import RunCancelledError, RunFailedError
from headrace.apps.flows.commands.telling import tell
from headrace.apps.memory.data.flushes import Flush, FlushState
from headrace.apps.memory.documents import document_of

if TYPE_CHECKING:
    from headrace import Run
    from headrace.apps.memory.memory import Memory

#: Seconds between two looks.
LOOK = 0.3
ENDED = (FlushState.DONE, FlushState.FAILED)
INTERRUPTED = "\nInterrupted. Nothing is lost: `headrace memory run` goes on with it."


async def submitted(memory: Memory, user_id: str, said: list[Any], key: str | None, *, quiet: bool) -> dict[str, Any]:
    """Submit messages, wait for what becomes of them, and return that."""
    from headrace.apps.memory.means import TABLES

    given = await memory.submit(user_id, said, key=None if key is None else f"{user_id}/{key}")
    if not quiet:
        tell(f"run {given.run.id}", err=True)
    failed = await _follow(given.run, quiet=quiet)
    found: dict[str, Any] = {"user_id": user_id, "run": str(given.run.id), "blob_id": str(given.blob_id)}
    ends = [] if failed else await _ends(given.run)
    events = await TABLES.events_of_flushes([UUID(one["flush_id"]) for one in ends])
    return found | {
        "success": not failed and all(one["success"] for one in ends),
        "error": failed,
        "flushes": ends,
        "events": document_of(events),
    }


async def _ends(run: Run) -> list[dict[str, Any]]:
    """Return what the signals told of each flush."""
    return [
        {"flush_id": one["flush_id"], "success": bool(one["success"]), "error": one.get("error")}
        for one in await run.result()
    ]


async def _follow(run: Run, *, quiet: bool) -> str | None:
    """Show how far a run is until it has ended; return why it failed, if it did."""
    ended = asyncio.create_task(_error_of(run))
    bar = _new_bar(quiet=quiet)
    try:
        while not ended.done():
            counts = (await run.progress()).nodes
            done = sum(state.value == "succeeded" for state in counts.values())
            bar.show(done, max(len(counts), 4))
            await asyncio.wait([ended], timeout=LOOK)
        return await ended
    except asyncio.CancelledError:
        if not quiet:
            click.echo(INTERRUPTED, err=True)
        raise
    finally:
        ended.cancel()
        bar.close()


async def _error_of(run: Run) -> str | None:
    try:
        await run.result()
    except (RunFailedError, RunCancelledError) as error:
        return str(error)
    return None


async def until_ended(memory: Memory, flushes: Sequence[Flush], *, quiet: bool) -> list[Flush]:
    """Wait until flushes are done or have failed, and return them as they are then; not those of a forgotten user."""
    from headrace.apps.memory.means import TABLES

    bar = _new_bar(quiet=quiet)
    try:
        while True:
            found = [one for each in flushes if (one := await TABLES.find_flush(each.id)) is not None]
            done = sum(one.state in ENDED for one in found)
            bar.show(done, len(found))
            if done == len(found):
                return found
            await asyncio.sleep(LOOK)
    except asyncio.CancelledError:
        if not quiet:
            click.echo(INTERRUPTED, err=True)
        raise
    finally:
        bar.close()


class Silent:
    """Shows nothing."""

    def show(self, done: int, total: int) -> None:
        """Take no notice."""

    def close(self) -> None:
        """Nothing to end."""


class Bar:
    """A bar on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("memory", total=None)
        self._bar.start()

    def show(self, done: int, total: int) -> None:
        """Draw the bar anew."""
        self._bar.update(self._task, completed=done, total=total)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()


def _new_bar(*, quiet: bool) -> Silent | Bar:
    return Bar() if sys.stderr.isatty() and not quiet else Silent()
