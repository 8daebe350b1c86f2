"""How far a run is, shown on a terminal or in a log, with what it will take in all."""

from __future__ import annotations

import sys
import time
from datetime import timedelta

import click

from headrace import Progress
from headrace.apps.papers.estimate import Estimate


def expected(estimate: Estimate | None) -> str:
    """What the run will take in all, as far as it was measured; empty before.

    >>> expected(None), expected(Estimate((), 5, 0, 1_200_000, 80_000, cost_nano=1_500_000_000, measured=3))
    ('', ' · in all about 1.2 M + 80 k tokens, $1.50')
    """
    if estimate is None or not estimate.measured:
        return ""
    return f" · in all about {tokens(estimate)}, {dollars(estimate)}"


def tokens(estimate: Estimate) -> str:
    """Tokens of prompts and answers, in words."""
    return f"{_short(estimate.input_tokens)} + {_short(estimate.output_tokens)} tokens"


def dollars(estimate: Estimate) -> str:
    """The money, in words.

    >>> dollars(Estimate((), 0, 0, 0, 0, cost_nano=1_000_000)), dollars(Estimate((), 0, 0, 0, 0))
    ('$0.001', 'price unknown')
    """
    if estimate.dollars is None:
        return "price unknown"
    return f"${estimate.dollars:.2f}" if estimate.dollars >= 0.1 or not estimate.dollars else f"${estimate.dollars:.2g}"


def _short(count: int) -> str:
    if count >= 1_000_000:
        return f"{count / 1e6:.1f} M"
    return f"{count / 1e3:.0f} k" if count >= 1_000 else str(count)


def new_bar(*, live_only: bool = False) -> Bar | None:
    """The display that suits where standard error goes; None: none.

    `live_only`: only a bar for a person at a terminal, as with --json, where programs may read errors from there.
    """
    if sys.stderr.isatty():
        return TerminalBar()
    return None if live_only else PlainLines()


class TerminalBar:
    """A live bar with counts, rate, the time left and what it takes."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("extracting"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("extracting", total=None, counts="")
        self._rate = Rate()
        self._bar.start()

    def show(self, progress: Progress, estimate: Estimate | None) -> None:
        """Draw the bar anew."""
        rate = self._rate.of(progress.done)
        counts = f"{progress.failed} failed · {progress.running} running · {rate:.1f}/s{expected(estimate)}"
        self._bar.update(self._task, total=progress.total, completed=progress.done, counts=counts)

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._bar.stop()


class PlainLines:
    """A line at every change of whole tenths, for logs."""

    def __init__(self) -> None:
        self._rate = Rate()
        self._shown: int | None = None

    def show(self, progress: Progress, estimate: Estimate | None) -> None:
        """Write a line when there is news."""
        tenth = progress.percent // 10
        if tenth == self._shown:
            return
        self._shown = tenth
        rate = self._rate.of(progress.done)
        click.echo(
            f"{progress.done} of {progress.total} documents ({progress.percent} %), {progress.failed} failed, "
            f"{rate:.1f}/s, left: {self._rate.left(progress)}{expected(estimate)}",
            err=True,
        )

    def close(self) -> None:
        """Nothing to end."""


Bar = TerminalBar | PlainLines


class Rate:
    """Documents per second of this command, from what it has seen end."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._first: int | None = None
        self._rate = 0.0

    def of(self, done: int) -> float:
        """Return the rate, given how many are done by now."""
        if self._first is None:
            self._first = done
        elapsed = time.monotonic() - self._began
        self._rate = (done - self._first) / elapsed if elapsed > 0 else 0.0
        return self._rate

    def left(self, progress: Progress) -> str:
        """Return the time until all are done at this rate, in words."""
        if not self._rate:
            return "unknown"
        return str(timedelta(seconds=round(((progress.total or 0) - progress.done) / self._rate)))
