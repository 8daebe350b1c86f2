"""`headrace demo`: the main job on embedded everything, with its own worker killed in the middle.

Twelve short documents, an embedded PostgreSQL, the local model. The model is reached through a counting server of this
process, which outlives the worker: so what it counts is evidence that no stored answer was asked for again.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from typing import Any

import click

from headrace import App, Batch, HeadraceError
from headrace.apps.papers.command import write_results
from headrace.apps.papers.job import register
from headrace.apps.papers.orphans import find_orphans
from headrace.apps.papers.report import build_report
from headrace.apps.papers.run import Run, RunOptions, collect, open_run
from headrace.testing.provider import ChatRequest, ScriptedProvider

DATA = Path(__file__).parent
#: Marks a folder that the demo made and may empty.
MARKER = ".headrace-demo"
#: The worker is killed once so many documents are done.
KILL_AFTER = 3
CONCURRENCY = 2
#: The demo gives up after this many seconds without its end.
PATIENCE_SECONDS = 240.0
PAUSE_SECONDS = 0.1


class DemoFailedError(HeadraceError):
    """The demonstration did not do what it shows."""

    code = "demo_failed"


@click.command("demo")
@click.option("--out", metavar="DIR", default="demo-out", type=click.Path(path_type=Path), help="Folder to work in.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document instead of text.")
def demo(*, out: Path, as_json: bool) -> int:
    """Run the main job on embedded everything and kill its worker on the way.

    Extracts five fields from twelve short documents with a small model on this machine, on an embedded PostgreSQL,
    both kept in DIR. A worker is killed with SIGKILL in the middle; another goes on. Exit code 1 when no quote was
    located or a stored answer was asked for twice.

    \b
    Examples:
      headrace demo
      headrace demo --out /tmp/demo --json
    """
    tell = (lambda text: click.echo(text, err=True)) if as_json else click.echo
    summary = asyncio.run(_run(out.resolve(), tell))
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    return 0 if summary["ok"] else 1


async def _run(out: Path, tell: Any) -> dict[str, Any]:
    _empty(out)
    app = _app(out)
    task = register(app)
    tell("Starting an embedded PostgreSQL and a small model on this machine …")
    async with asyncio.timeout(PATIENCE_SECONDS), app, _counting_provider(out) as provider:
        options = RunOptions(DATA / "documents", DATA / "demo.yaml", out / "results")
        run = await open_run(app, task, options)
        total = (await run.batch.progress()).total
        tell(f"Submitted {total} documents as one batch, {run.batch.id}.")
        killed = await _kill_a_worker(run.batch, provider, out, tell)
        with _worker(out, provider, "second"):
            tell("Started another worker; it takes over …")
            await run.batch.wait()
        calls = provider.count()
        with _worker(out, provider, "third"):
            await _run_again(app, run, options)
        counts = {**killed, "calls": calls, "calls_again": provider.count() - calls}
        return await _summary(app, run, provider=provider, counts=counts, tell=tell)


def _empty(out: Path) -> None:
    """Begin anew in a folder of the demo; anything else is left alone."""
    if out.exists() and any(out.iterdir()) and not (out / MARKER).exists():
        raise DemoFailedError(f"{out} holds files that are not the demo's; name another folder with --out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARKER).touch()


def _app(out: Path) -> App:
    return App(settings=replace(App().settings, directory=out / ".headrace"))


@asynccontextmanager
async def _counting_provider(out: Path) -> AsyncIterator[ScriptedProvider]:
    """Serve the local model on loopback and count what it is asked."""
    async with App("memory://", settings=replace(App().settings, directory=out / ".headrace")) as model:

        async def forward(request: ChatRequest) -> str:
            messages = [{"role": role, "content": text} for role, text in request.messages]
            return await model.llm.complete(messages=messages, stop=request.stop, max_tokens=request.max_tokens)

        async with ScriptedProvider(answer=forward, model=model.llm.model_name) as provider:
            yield provider


@contextmanager
def _worker(out: Path, provider: ScriptedProvider, name: str) -> Iterator[Popen[bytes]]:
    """Run a worker process until the block ends."""
    command = [sys.executable, "-m", "headrace", "worker", "headrace.apps.papers.worker:app"]
    environment = {
        **os.environ,
        **provider.environment,
        "HEADRACE_LLM_STYLE": "plain",
        "HEADRACE_DIRECTORY": str(out / ".headrace"),
    }
    with (out / f"worker-{name}.log").open("wb") as log:
        process = Popen(  # noqa: S603 - our own module
            [*command, "--concurrency", str(CONCURRENCY)], stdout=log, stderr=log, env=environment, cwd=out
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


async def _kill_a_worker(batch: Batch, provider: ScriptedProvider, out: Path, tell: Any) -> dict[str, Any]:
    """Let a worker do some documents, then kill it while it runs others."""
    with _worker(out, provider, "first") as worker:
        while True:
            progress = await batch.progress()
            if progress.done >= KILL_AFTER and progress.running:
                break
            if worker.poll() is not None:
                raise DemoFailedError(f"the first worker ended by itself; see {out / 'worker-first.log'}")
            await asyncio.sleep(PAUSE_SECONDS)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    done, running = progress.done, progress.running
    tell(
        f"Killed the worker (kill -9 {worker.pid}): {done} documents done, {running} running, "
        f"{provider.count()} model calls made."
    )
    return {"done_at_kill": done, "running_at_kill": running}


async def _run_again(app: App, run: Run, options: RunOptions) -> None:
    """Submit the same documents once more: nothing is left to do."""
    again = await open_run(app, app.find_task("papers_extract_single"), options)
    if again.batch.id != run.batch.id:
        raise DemoFailedError("the same documents made a second batch")
    await again.batch.wait()


async def _summary(
    app: App, run: Run, *, provider: ScriptedProvider, counts: dict[str, Any], tell: Any
) -> dict[str, Any]:
    orphans = await find_orphans(app, run.batch)
    report = build_report(run, await collect(run), await run.batch.view(), orphans=orphans)
    files = await asyncio.to_thread(write_results, app, report, run.out)
    summary = report.summary()
    repeated = sum(content["calls"] - 1 for content in provider.per_content())
    right, known = _agreement(report)
    located = summary["fields"]["found"]
    ok = bool(located) and repeated <= counts["running_at_kill"] and not counts["calls_again"]
    _tell(summary, counts, repeated, f"{right} of {known}", tell)
    for file in files:
        tell(f"Result: {file}")
    return {**summary, **counts, "calls_repeated": repeated, "fields_right": right, "fields_known": known, "ok": ok,
            "files": [str(file) for file in files]}  # fmt: skip


def _agreement(report: Any) -> tuple[int, int]:
    """Return how many fields agree with what a careful reader wrote down, and how many were written down."""
    known = json.loads((DATA / "answers.json").read_text(encoding="utf-8"))
    right = total = 0
    for row in report.rows:
        expected = known.get(row.name, {})
        total += len(expected)
        if row.result is not None:
            right += sum(_same(row.result.fields[name].value, value) for name, value in expected.items())
    return right, total


def _same(value: Any, expected: Any) -> bool:
    return str(value).casefold() == str(expected).casefold()


def _tell(summary: dict[str, Any], counts: dict[str, Any], repeated: int, agreement: str, tell: Any) -> None:
    fields = summary["fields"]
    tell(
        f"All {summary['documents']} documents ended: {summary['extracted']} extracted, {summary['unreadable']} "
        f"unreadable (named in the results), {summary['failed']} failed, {summary['duplicates']} duplicate.\n"
        f"Fields: {fields['found']} found with a located quote, {fields['not_reported']} not reported, "
        f"{fields['unclear']} unclear. {agreement} agree with a careful reader (the model is very small).\n"
        f"Calls: {counts['calls']} in all, {repeated} asked twice; at most {counts['running_at_kill']} were in flight "
        f"at the kill, and every stored answer was reused.\n"
        f"The same command again: {counts['calls_again']} calls."
    )
