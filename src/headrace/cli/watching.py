"""Following a batch: a live line on a terminal, a line per change elsewhere, JSON lines on request."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from headrace.app import App
from headrace.cli.output import age, console, print_json, print_text
from headrace.engine.pace import Pace
from headrace.engine.queries import batch_document, show_batch
from headrace.model.batch import BatchState, BatchView, Progress
from headrace.model.errors import ResultTimeoutError

if TYPE_CHECKING:
    from rich.live import Live

Look = tuple[BatchView, Progress]

#: Least time between two looks, however much happens.
LEAST_SECONDS = 0.1


async def watch_batch(
    app: App, batch_id: UUID, *, interval: timedelta, timeout: timedelta | None, as_json: bool
) -> BatchView:
    """Show a batch until it is closed and return it. Raises NotFoundError, ResultTimeoutError."""
    shown = _JsonLines() if as_json else _Live() if sys.stdout.isatty() else _Lines()
    pace = Pace()
    try:
        async with asyncio.timeout(None if timeout is None else timeout.total_seconds()) as limit:
            with shown:
                async for view, progress in _looks(app, batch_id, interval):
                    pace.note(time.monotonic(), progress.done)
                    shown.show(view, progress, pace)
    except TimeoutError:
        if not limit.expired():
            raise
        raise ResultTimeoutError(f"batch {batch_id} did not close within {age(timeout)}; it goes on") from None
    shown.end(view, progress)
    return view


async def _looks(app: App, batch_id: UUID, interval: timedelta) -> AsyncIterator[Look]:
    """Yield the batch now, after each change, and when it is closed."""
    waiters, seen = app.runtime.waiters, None
    while True:
        mark, looked_at = waiters.mark, time.monotonic()
        look = await show_batch(app.runtime.stores.inspect, batch_id)
        if look != seen:
            yield look
        if look[0].state is BatchState.CLOSED:
            return
        seen = look
        await waiters.change(at_most=interval.total_seconds(), since=mark)
        # Every job that ends anywhere is a hint; a look is a query.
        await asyncio.sleep(max(looked_at + LEAST_SECONDS - time.monotonic(), 0))


class Display(Protocol):
    """Where a batch is shown."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *_: object) -> None: ...

    def show(self, view: BatchView, progress: Progress, pace: Pace) -> None:
        """Show how far it is."""
        ...

    def end(self, view: BatchView, progress: Progress) -> None:
        """Show how it ended."""
        ...


def progress_text(view: BatchView, progress: Progress, pace: Pace) -> str:
    """Return how far a batch is in one line."""
    total = "?" if progress.total is None else progress.total
    parts = [f"{progress.done}/{total}", f"{progress.percent} %"]
    counts = {"failed": progress.failed, "cancelled": progress.cancelled, "running": progress.running}
    parts += [f"{count} {word}" for word, count in counts.items() if count]
    if pace.rate is not None:
        parts.append(f"{pace.rate:.1f}/s")
    left = None if progress.total is None else pace.eta(progress.total - progress.done)
    if left is not None and view.state is not BatchState.CLOSED:
        parts.append(f"{age(left)} left")
    state = "" if view.state in (BatchState.SEALED, BatchState.CLOSED) else f" [{view.state}]"
    return ", ".join(parts) + state + ("" if view.paused_at is None else " [paused]")


def ending_text(view: BatchView, progress: Progress) -> str:
    """Return how a batch ended in one line."""
    took = "" if view.closed_at is None else f" in {age(view.closed_at - view.created_at)}"
    counts = {"succeeded": progress.succeeded, "failed": progress.failed, "cancelled": progress.cancelled}
    shown = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{view.outcome}{took}: {shown or 'no items'}"


class _JsonLines:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    def show(self, view: BatchView, progress: Progress, pace: Pace) -> None:
        left = None if progress.total is None else pace.eta(progress.total - progress.done)
        eta = None if left is None else round(left.total_seconds(), 3)
        print_json(batch_document(view, progress) | {"rate": pace.rate, "eta_seconds": eta})
        sys.stdout.flush()

    def end(self, view: BatchView, progress: Progress) -> None:
        """The last line was the end."""


class _Lines:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    def show(self, view: BatchView, progress: Progress, pace: Pace) -> None:
        print_text(progress_text(view, progress, pace))
        sys.stdout.flush()

    def end(self, view: BatchView, progress: Progress) -> None:
        print_text(ending_text(view, progress))


class _Live:
    """One line that changes, with a bar."""

    _live: Live

    def __enter__(self) -> None:
        from rich.live import Live

        self._live = Live(console=console(), auto_refresh=False, transient=True)
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, view: BatchView, progress: Progress, pace: Pace) -> None:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=progress.total or 1, completed=progress.done if progress.total else 0, width=30)
        line.add_row(bar, progress_text(view, progress, pace))
        self._live.update(line, refresh=True)

    def end(self, view: BatchView, progress: Progress) -> None:
        from headrace.cli.output import cell

        console().print(cell(view.outcome), ending_text(view, progress).partition(" ")[2])
