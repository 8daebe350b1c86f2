"""`headrace papers extract`: the run as a command, with a live bar and an end that can be resumed."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace import App
from headrace.apps.papers.bars import Bar, dollars, new_bar
from headrace.apps.papers.errors import OutputError
from headrace.apps.papers.estimate import Estimate
from headrace.apps.papers.foresight import Meter, estimate_run
from headrace.apps.papers.gold import accuracy, judge, read_gold, write_accuracy
from headrace.apps.papers.job import register, texts_of, workspace_of
from headrace.apps.papers.orphans import find_orphans
from headrace.apps.papers.review.command import review
from headrace.apps.papers.review.log import ReviewLog
from headrace.apps.papers.run import Run, RunOptions, collect, follow, open_run
from headrace.apps.papers.template import load_template

if TYPE_CHECKING:
    from headrace.apps.papers.output.model import Report

#: What a run takes is looked at so often.
LOOK_SECONDS = 2.0

EXTRACT_HELP = """Extract the fields of a template from every document below DIR.

Writes into the folder OUT; every value comes with its quote, page and offsets:

\b
  results.xlsx                  documents, rows, disagreements of --dual, problems
  results.csv                   a line for every value (long form)
  results.jsonl                 a line for every document
  results.html                  a page that shows each value marked in its text
  review.xlsx, review.csv       sheets to verify values in: headrace papers review
  run.json                      the record of the run: models, prompts, counts, money
  accuracy.json                 how right the fields are, with --gold
  verified.csv, verified.jsonl  what people decided, once a sheet was read back

With --json the files are named in the document; a bar is shown where standard error is a terminal.

Ctrl-C, a crash or a reboot loses nothing: the same command goes on and pays for no answer twice. Documents added later
are extracted by the same command; a changed template extracts anew.

\b
Examples:
  headrace papers extract papers/ --template trial.yaml --out results/
  headrace papers extract papers/ --template trial.yaml --out results/ --concurrency 4 --json
  headrace papers extract papers/ --template trial.yaml --out results/ --estimate
  headrace papers extract papers/ --template trial.yaml --out results/ --dual prompts
"""


def _no_blank(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """An empty name is a variable that was not set, and would be one run for every folder."""
    if value is not None and not value.strip():
        raise click.BadParameter("must not be empty; leave it out to name the run by its output")
    return value


@click.group(short_help="Structured extraction from a folder of documents.")
def papers() -> None:
    """Structured extraction from a folder of documents, with located quotes."""


papers.add_command(review)


@papers.command("extract", help=EXTRACT_HELP)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--template", required=True, metavar="T.yaml", type=click.Path(path_type=Path), help="The fields.")
@click.option("--out", required=True, metavar="OUT", type=click.Path(path_type=Path), help="Folder for the results.")
@click.option("--key", metavar="K", callback=_no_blank, help="Name of the run. [default: the output]")
@click.option("--concurrency", type=click.IntRange(1, 1000), default=10, help="Documents extracted at once.")
@click.option("--dual", metavar="prompts|MODEL", help="Extract twice: in two wordings, or with a second model.")
@click.option("--pilot", metavar="N", type=click.IntRange(1), help="Only N documents, always the same ones.")
@click.option(
    "--gold", metavar="GOLD.csv", type=click.Path(path_type=Path), help="Known values: tell how many fields are right."
)
@click.option("--estimate", is_flag=True, help="Only tell calls, tokens, money, time and the binding limit.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document about the run instead of text.")
def extract(*, as_json: bool, estimate: bool, **options: Any) -> int:
    """Run the extraction and return the exit code."""
    if estimate:
        foreseen = asyncio.run(estimate_folder(RunOptions(**options)))
        click.echo(json.dumps(foreseen.to_json()) if as_json else "\n".join(told_estimate(foreseen)))
        return 0
    summary = asyncio.run(extract_folder(RunOptions(**options), quiet=as_json, live=as_json))
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    return 1 if summary["failed"] else 0


async def estimate_folder(options: RunOptions) -> Estimate:
    """Tell what the extraction would take; nothing is asked and nothing submitted.

    What would end the extraction before anything is asked ends this too. Raises ConfigError.
    """
    if options.out.exists():
        check_folder(options.out)
    if options.gold is not None:
        read_gold(options.gold, load_template(options.template))
    app = App()
    task = register(app)
    async with app:
        return await estimate_run(app, task, options)


def told_estimate(estimate: Estimate) -> list[str]:
    """An estimate in lines for people."""
    seconds = None if estimate.duration is None else round(estimate.duration.total_seconds())
    return [
        f"{len(estimate.documents)} documents to extract, {estimate.done_before} done before, "
        f"{estimate.unreadable} unreadable",
        f"calls: {estimate.calls}, and {estimate.reused} answers that were paid before",
        f"tokens: {estimate.input_tokens} of prompts, about {estimate.output_tokens} of answers",
        f"money: {dollars(estimate)}",
        f"time: {'unknown' if seconds is None else timedelta(seconds=seconds)}",
        f"binding limit: {_binding(estimate)}",
        f"Nothing was asked. {_grounds(estimate)}".strip(),
    ]


def _binding(estimate: Estimate) -> str:
    return (estimate.binding or "unknown") if estimate.calls else "none, nothing has to be asked"


def _grounds(estimate: Estimate) -> str:
    if not estimate.calls:
        return ""
    if estimate.measured:
        return f"Corrected by what {estimate.measured} documents of the run took."
    return "The lengths of answers are typical ones; from 5 % of the documents on they are measured."


async def extract_folder(options: RunOptions, *, quiet: bool, live: bool = False) -> dict[str, Any]:
    """Extract, write the results, and return a summary of the run.

    `quiet`: write nothing to the terminal; with `live` only a bar while it runs, where standard error is one.
    """
    from headrace.apps.papers.report import build_report

    check_folder(options.out)
    gold = None if options.gold is None else read_gold(options.gold, load_template(options.template))
    app = App()
    task = register(app)
    async with app:
        run = await open_run(app, task, options)
        bar = new_bar(live_only=quiet) if live or not quiet else None
        await _watch(app, run, bar, quiet=quiet)
        orphans = await find_orphans(app, run.batch)
        report = build_report(run, await collect(run), await run.batch.view(), orphans=orphans)
    files = await asyncio.to_thread(write_results, app, report, options.out)
    summary = {**report.summary(), "batch_id": str(run.batch.id), "files": [str(file) for file in files]}
    if gold is not None:
        judged = judge(run.template, report.rows, gold)
        left_out = len(gold) - len(judged)
        summary["accuracy"] = accuracy(judged, left_out=left_out)
        summary["files"].append(str(write_accuracy(options.out, judged, left_out=left_out)))
    if not quiet:
        _tell(summary)
    return summary


def write_results(app: App, report: Report, out: Path) -> tuple[Path, ...]:
    """Write the results, with what was decided of the run over the service."""
    from headrace.apps.papers.report import write_report

    workspace = workspace_of(app)
    workspace.note_output(report.record.run_id, out)
    ReviewLog(out).take_over(workspace.folder(report.record.run_id))
    return write_report(report, out, texts=texts_of(app))


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


async def _watch(app: App, run: Run, bar: Bar | None, *, quiet: bool) -> None:
    """Follow the run and show how far it is."""
    meter, estimate, looked_at = Meter(app, run), None, -LOOK_SECONDS
    try:
        async for progress in follow(app, run, concurrency=run.options.concurrency):
            if bar is None:
                continue
            if time.monotonic() - looked_at >= LOOK_SECONDS:
                estimate, looked_at = await meter.look(), time.monotonic()
            bar.show(progress, estimate)
    except asyncio.CancelledError:
        if not quiet:
            click.echo("\nInterrupted. Nothing is lost: the same command goes on from here.", err=True)
        raise
    finally:
        if bar is not None:
            bar.close()


def _accuracy_lines(told: dict[str, Any] | None) -> Iterator[str]:
    if told is None:
        return
    yield f"{told['values']} known values of {told['documents']} documents compared"
    if told["left_out"]:
        yield f"  {told['left_out']} left out: their documents were not extracted; are their names right?"
    for name, counts in told["fields"].items():
        verdicts = {verdict: count for verdict, count in counts.items() if verdict != "accuracy" and count}
        others = [f"{count} {verdict.replace('_', ' ')}" for verdict, count in verdicts.items()]
        yield f"  {name}: {counts['accuracy']:.0%} right ({', '.join(others)})"


def _orphan_lines(told: dict[str, Any]) -> Iterator[str]:
    if told["calls"]:
        bound = told["usd_at_most"]
        most = "what they cost is unknown" if bound == "unknown" else f"{bound:.4f} US dollars at most"
        yield f"{told['calls']} calls may have been paid for nothing, {most}: headrace llm calls --state orphaned"


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
    for line in _orphan_lines(summary["orphaned"]):
        click.echo(line)
    for group, count in summary["rows"].items():
        click.echo(f"{count} rows of {group}")
    if summary["disagreements"]:
        click.echo(f"{summary['disagreements']} disagreements for a person to decide")
    for line in _accuracy_lines(summary.get("accuracy")):
        click.echo(line)
    for file in summary["files"]:
        click.echo(f"written: {file}")
