"""Working on a report in this process, and showing how far it is."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any

import click

from headrace import RunCancelledError, RunFailedError
from headrace.apps.report.job import Job
from headrace.apps.report.opening import Q_LLM, SLOTS, app
from headrace.apps.report.progress import ReportProgress, StageProgress, look_at

#: Seconds between two looks: at least so many, and so many times as long as a look takes.
LOOK, TIMES = 0.5, 20.0
INTERRUPTED = "\nInterrupted. Nothing is lost: the same command goes on from here."


@asynccontextmanager
async def working(*, concurrency: int, elsewhere: bool) -> AsyncIterator[None]:
    """Open the app and work its jobs here, `concurrency` questions at once, unless workers elsewhere do."""
    from headrace.model.run import NODES_QUEUE

    # A question without an answer is told in the report: a line for each of a thousand would hide all else.
    logging.getLogger("headrace.jobs").setLevel(logging.ERROR)
    worker: AbstractAsyncContextManager[Any] = nullcontext()
    if not elsewhere:
        worker = app.worker(queues={**SLOTS, Q_LLM: concurrency, NODES_QUEUE: 8})
    async with app, worker:
        yield


async def follow(job: Job, *, quiet: bool) -> ReportProgress:
    """Show how far a report is until its run has ended, and return the last of it."""
    bar = _new_bar(quiet=quiet)
    ended = asyncio.create_task(_ended(job))
    try:
        while not ended.done():
            began = time.monotonic()
            bar.show(await look_at(job))
            pause = max(LOOK, TIMES * (time.monotonic() - began))
            await asyncio.wait([ended], timeout=pause)
        progress = await look_at(job)
        bar.show(progress)
        return progress
    except asyncio.CancelledError:
        if not quiet:
            click.echo(INTERRUPTED, err=True)
        raise
    finally:
        ended.cancel()
        bar.close()


async def _ended(job: Job) -> None:
    with suppress(RunCancelledError, RunFailedError):
        await job.run.result()


class Silent:
    """Shows nothing."""

    def show(self, progress: ReportProgress) -> None:
        """Take no notice."""

    def close(self) -> None:
        """Nothing to end."""


class Lines:
    """A line when a stage begins or ends, for logs."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def show(self, progress: ReportProgress) -> None:
        """Write what is new."""
        for one in progress.stages:
            if one.status != "pending" and self._told.get(one.stage) != one.status:
                self._told[one.stage] = one.status
                click.echo(f"{progress.percent:3d} % · {one.stage}: {one.status} {_told(one)}".rstrip(), err=True)

    def close(self) -> None:
        """Nothing to end."""


class Bars:
    """A bar for each stage."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(), console=Console(stderr=True),
        )  # fmt: skip
        self._ids: dict[str, Any] = {}
        self._bars.start()

    def show(self, progress: ReportProgress) -> None:
        """Draw the bars anew."""
        for one in progress.stages:
            if one.stage not in self._ids:
                self._ids[one.stage] = self._bars.add_task(one.stage, total=100, told="", start=False)
            number = self._ids[one.stage]
            if one.status != "pending":
                self._bars.start_task(number)
            self._bars.update(number, completed=one.percent, told=_told(one) or one.status)
            if one.percent == 100:
                self._bars.stop_task(number)

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._bars.stop()


def _told(one: StageProgress) -> str:
    return f"({one.message})" if one.message else ""


def _new_bar(*, quiet: bool) -> Silent | Lines | Bars:
    if sys.stderr.isatty():
        return Bars()
    return Silent() if quiet else Lines()
