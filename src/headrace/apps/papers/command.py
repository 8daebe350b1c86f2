"""`headrace papers extract`: the run as a command, with a live bar and an end that can be resumed."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from headrace import App, Progress
from headrace.apps.papers.errors import OutputError
from headrace.apps.papers.job import register
from headrace.apps.papers.run import Run, RunOptions, collect, follow, open_run

EXTRACT_HELP = """Extract the fields of a template from every document below DIR.

Writes results.xlsx, results.jsonl and run.json into the folder OUT. Every value comes with its quote, page and offsets.

Ctrl-C, a crash or a reboot loses nothing: the same command goes on and pays for nothing twice. Documents added later
are extracted by the same command; a changed template extracts anew.

\b
Examples:
  headrace papers extract papers/ --template trial.yaml --out results/
  headrace papers extract papers/ --template trial.yaml --out results/ --concurrency 4 --json
"""


@click.group(short_help="Structured extraction from a folder of documents.")
def papers() -> None:
    """Structured extraction from a folder of documents, with located quotes."""


@papers.command("extract", help=EXTRACT_HELP)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--template", required=True, metavar="T.yaml", type=click.Path(path_type=Path), help="The fields.")
@click.option("--out", required=True, metavar="OUT", type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--key", metavar="K", help="Name of the run. [default: the output]")
@click.option("--concurrency", type=click.IntRange(1, 1000), default=10, help="Documents extracted at once.")
@click.option("--dual", metavar="prompts|MODEL", help="Extract twice: in two wordings, or with a second model.")
@click.option("--pilot", metavar="N", type=click.IntRange(1), help="Only N documents, always the same ones.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document about the run instead of text.")
def extract(*, as_json: bool, **options: Any) -> int:
    """Run the extraction and return the exit code."""
    summary = asyncio.run(extract_folder(RunOptions(**options), quiet=as_json))
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    return 1 if summary["failed"] else 0


async def extract_folder(options: RunOptions, *, quiet: bool) -> dict[str, Any]:
    """Extract, write the results, and return a summary of the run."""
    from headrace.apps.papers.report import build_report, write_report

    check_folder(options.out)
    app = App()
    task = register(app)
    async with app:
        run = await open_run(app, task, options)
        await _watch(app, run, concurrency=options.concurrency, quiet=quiet)
        report = build_report(run, await collect(run), await run.batch.view())
    files = await asyncio.to_thread(write_report, report, options.out)
    summary = {**report.summary(), "batch_id": str(run.batch.id), "files": [str(file) for file in files]}
    if not quiet:
        _tell(summary)
    return summary


def check_folder(out: Path) -> None:
    """Make the folder of the results before anything is asked. Raises OutputError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise OutputError(
            f"--out must be a folder that can be written, got {out} ({error.strerror}); name another"
        ) from None


async def _watch(app: App, run: Run, *, concurrency: int | None, quiet: bool) -> None:
    """Follow the run with a bar on a terminal, and with a line now and then elsewhere."""
    bar = None if quiet else _bar()
    try:
        async for progress in follow(app, run, concurrency=concurrency):
            if bar is not None:
                bar.show(progress)
    except asyncio.CancelledError:
        if not quiet:
            click.echo("\nInterrupted. Nothing is lost: the same command goes on from here.", err=True)
        raise
    finally:
        if bar is not None:
            bar.close()


def _bar() -> TerminalBar | PlainLines:
    return TerminalBar() if sys.stderr.isatty() else PlainLines()


class TerminalBar:
    """A live bar with counts, rate and the time left."""

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

    def show(self, progress: Progress) -> None:
        """Draw the bar anew."""
        rate = self._rate.of(progress.done)
        counts = f"{progress.failed} failed · {progress.running} running · {rate:.1f}/s"
        self._bar.update(self._task, total=progress.total, completed=progress.done, counts=counts)

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._bar.stop()


class PlainLines:
    """A line at every change of whole tenths, for logs."""

    def __init__(self) -> None:
        self._rate = Rate()
        self._shown: int | None = None

    def show(self, progress: Progress) -> None:
        """Write a line when there is news."""
        tenth = progress.percent // 10
        if tenth == self._shown:
            return
        self._shown = tenth
        rate = self._rate.of(progress.done)
        click.echo(
            f"{progress.done} of {progress.total} documents ({progress.percent} %), {progress.failed} failed, "
            f"{rate:.1f}/s, left: {self._rate.left(progress)}",
            err=True,
        )

    def close(self) -> None:
        """Nothing to end."""


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


def _money(summary: dict[str, Any]) -> str:
    return "what they cost is unknown" if summary["usd"] is None else f"{summary['usd']:.4f} US dollars"


def _tell(summary: dict[str, Any]) -> None:
    fields = summary["fields"]
    click.echo(
        f"{summary['extracted']} of {summary['documents']} documents extracted, {summary['unreadable']} unreadable, "
        f"{summary['failed']} failed, {summary['duplicates']} duplicates\n"
        f"{fields['found']} fields found, {fields['not_reported']} not reported, {fields['unclear']} unclear, "
        f"{fields['not_applicable']} not applicable\n"
        f"{summary['usage']['calls']} model calls paid, {summary['usage']['reused']} answers reused, "
        f"{_money(summary)}"
    )
    for group, count in summary["rows"].items():
        click.echo(f"{count} rows of {group}")
    if summary["disagreements"]:
        click.echo(f"{summary['disagreements']} disagreements for a person to decide")
    for file in summary["files"]:
        click.echo(f"written: {file}")
