"""`headrace job`: look at one job and its log, ask why it waits, cancel it, run it again."""

from __future__ import annotations

import json
from uuid import UUID

import click

from headrace.app import App
from headrace.cli.opening import with_app, with_stores
from headrace.cli.output import (
    age,
    console,
    json_option,
    print_facts,
    print_json,
    print_table,
    print_text,
    shorten,
)
from headrace.cli.plain import plain
from headrace.cli.tables import Give
from headrace.cli.values import IdType
from headrace.engine.operations import cancel_job, retry_job
from headrace.engine.queries import (
    Explained,
    explain_job,
    explain_view,
    logs_document,
    show_job,
    show_logs,
    to_json,
)
from headrace.model.attempt_log import AttemptLog
from headrace.model.job import AttemptRecord, CancelAnswer, JobView
from headrace.wiring.farm_explaining import with_farm

_ID = click.argument("job_id", metavar="ID", type=IdType())
_ATTEMPTS = ("ATTEMPT", "STARTED", "TOOK", "ENDED", "ERROR")
_ANSWERS = {
    CancelAnswer.CANCELLED: "cancelled: it had not started",
    CancelAnswer.REQUESTED: "its worker was asked to stop it; `headrace job show` tells when it has",
    CancelAnswer.ALREADY_FINAL: "nothing to cancel: it had ended before",
}


@click.group()
def job() -> None:
    """Look at one job and its log, ask why it waits, cancel it, run it again."""


@job.command()
@_ID
@json_option
def show(job_id: UUID, as_json: bool) -> None:
    """Show a job: its state and why it waits, its attempts with their errors, its arguments and its result.

    Long values are cut; --json writes them whole.

    \b
    Example:
      headrace job show 01980000-0000-7000-8000-000000000000
    """

    async def read(app: App) -> tuple[JobView, list[AttemptRecord], Explained | None]:
        stores, limiter = app.runtime.stores, app.runtime.limiter
        view, attempts = await show_job(stores.inspect, job_id)
        explained = None if view.state.final else await explain_view(stores, limiter, view)
        return view, attempts, None if explained is None else await with_farm(app.settings, explained)

    view, attempts, explained = with_app(read)
    why = None if explained is None else explained.sentence
    if as_json:
        print_json(to_json(view) | {"why": why, "attempts": to_json(attempts)})
    else:
        print_facts(_facts(view, why))
        _print_attempts(view, attempts)


@job.command()
@_ID
@json_option
def explain(job_id: UUID, as_json: bool) -> None:
    """Say the one reason why a job is not running, or what became of it.

    The reason comes from the predicate by which workers take jobs: waiting for its time, behind other jobs, a full
    cap, a rate limit and when it frees, an open breaker, a paused queue, no worker, no Celery worker, no node of a Ray
    cluster that is large enough.

    \b
    Example:
      headrace job explain 01980000-0000-7000-8000-000000000000
    """

    async def read(app: App) -> Explained:
        return await with_farm(app.settings, await explain_job(app.runtime.stores, app.runtime.limiter, job_id))

    explained = with_app(read)
    if as_json:
        document = to_json(explained.explanation)
        print_json({"job": document.pop("job_id"), **document, "sentence": explained.sentence})
    else:
        print_text(explained.sentence)


@job.command()
@_ID
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Of this attempt alone.")
@json_option
def logs(job_id: UUID, attempt: int | None, as_json: bool) -> None:
    """Show what the handler logged in each attempt, the last lines of it.

    Kept are lines of `ctx.log` and `ctx.progress`, once their attempt has ended: [worker] keep_log_lines says how many.
    An attempt whose worker died kept none.

    \b
    Examples:
      headrace job logs 01980000-0000-7000-8000-000000000000
      headrace job logs 01980000-0000-7000-8000-000000000000 --attempt 2
    """
    found = with_stores(lambda stores: show_logs(stores.inspect, job_id, attempt))
    if as_json:
        print_json(logs_document(job_id, found))
    elif found:
        for log in found:
            _print_log(log)
    else:
        print_text(f"no lines were kept of {'the job' if attempt is None else f'attempt {attempt}'}")


def _print_log(log: AttemptLog) -> None:
    lost = "" if not log.dropped else f", without {log.dropped} line{'s' * (log.dropped > 1)} before these"
    print_text(f"attempt {log.attempt}{lost}")
    for line in log.lines:
        print_text(
            f"  {line.at:%Y-%m-%d %H:%M:%S}.{line.at.microsecond // 1000:03} {line.level.upper():<7} {line.message}"
        )


def _facts(view: JobView, why: str | None) -> dict[str, object]:
    batch = None if view.batch_id is None else f"{view.batch_id}, item {view.ordinal}"
    failures = f"{view.failures} of {view.max_attempts} allowed"
    return {
        "job": view.id,
        "state": view.state,
        "why": why,
        "cancel": "requested" if view.cancel_requested and not view.state.final else None,
        "task": view.task,
        "queue": view.queue,
        "priority": view.priority,
        "batch": batch,
        "run": view.run_id,
        "node": view.node,
        "retry of": view.retry_of,
        "attempts": view.attempt,
        "failures": failures if view.failures else None,
        "crashes": view.crashes or None,
        "created": view.created_at,
        "runs at": view.run_at if not view.state.final else None,
        "started": view.started_at,
        "finished": view.finished_at,
        "session": view.session if not view.state.final else None,
        "arguments": _value(view.args),
        "result": None if view.result is None else _value(view.result),
        "usage": None if view.usage is None else _value(view.usage),
        "error": None if view.error is None else shorten(f"{view.error.kind}: {view.error.message}"),
    }


def _value(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False))


def _print_attempts(view: JobView, attempts: list[AttemptRecord]) -> None:
    if attempts:
        print_text("")
        give = Give(first=("TOOK", "STARTED"), prose=("ERROR",))
        print_table(_ATTEMPTS, [_attempt_row(record) for record in attempts], give)
    last = next((record.error for record in reversed(attempts) if record.error and record.error.trace), view.error)
    if last is not None and last.trace:
        console().print(f"\nLast trace:\n{plain(last.trace.rstrip())}", style="dim", soft_wrap=True)


def _attempt_row(record: AttemptRecord) -> tuple[object, ...]:
    took = "" if record.started_at is None else age(record.finished_at - record.started_at)
    error = "" if record.error is None else shorten(f"{record.error.kind}: {record.error.message}", 200)
    return record.attempt, record.started_at, took, record.outcome, error


@job.command()
@_ID
@json_option
def cancel(job_id: UUID, as_json: bool) -> None:
    """Cancel a job: at once when it has not started, else by asking its worker.

    \b
    Example:
      headrace job cancel 01980000-0000-7000-8000-000000000000
    """
    answer = with_stores(lambda stores: cancel_job(stores, job_id))
    if as_json:
        print_json({"job": job_id, "answer": answer})
    else:
        print_text(_ANSWERS[answer])


@job.command()
@_ID
@json_option
def retry(job_id: UUID, as_json: bool) -> None:
    """Run a failed or cancelled job again, as a new job, and print that one's id.

    A job that was retried before is not retried twice: the id of that retry is printed.

    \b
    Example:
      headrace job retry 01980000-0000-7000-8000-000000000000
    """
    new_id = with_stores(lambda stores: retry_job(stores, job_id))
    if as_json:
        print_json({"job": new_id, "retry_of": job_id})
    else:
        print_text(str(new_id))
