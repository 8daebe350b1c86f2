"""`headrace batch`: look at batches, follow them, see why items failed, retry, pause and cancel them."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import click

from headrace.app import App
from headrace.batch import Batch
from headrace.cli.exits import Exit
from headrace.cli.opening import with_app, with_stores
from headrace.cli.output import json_option, one_line, print_facts, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import DurationType, IdType, WholeType
from headrace.engine.batch_faults import BatchFault, batch_faults, faults_document
from headrace.engine.dead_letters import LOOK
from headrace.engine.queries import batch_document, item_document, show_batch
from headrace.model.batch import BatchItem, BatchOutcome, BatchView, Progress
from headrace.model.job import JobState

COLUMNS = ("BATCH", "TASK", "QUEUE", "STATE", "TOTAL", "ROUND", "CREATED", "CLOSED", "KEY")
_GIVE = Give(first=("CLOSED", "ROUND", "CREATED", "KEY", "QUEUE", "TOTAL"))
FAULT_COLUMNS = ("FINGERPRINT", "COUNT", "KIND", "FIRST", "LAST", "NEWEST JOB", "MESSAGE")
_GIVE_FAULTS = Give(first=("FIRST", "LAST", "KIND"), prose=("MESSAGE",))
_ID = click.argument("batch_id", metavar="ID", type=IdType())
#: Outcomes with which `watch` ends as failed; `partial` is for whoever submitted the batch to judge.
FAILED = (BatchOutcome.FAILED, BatchOutcome.CANCELLED)


@click.group()
def batch() -> None:
    """Look at batches, see why items failed, retry, pause and cancel them."""


@batch.command("list")
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 10_000), default=50, help="How many, newest first.")
@json_option
def list_(limit: int, as_json: bool) -> None:
    """List batches, newest first.

    \b
    Example:
      headrace batch list --limit 10
    """
    batches = with_stores(lambda stores: stores.inspect.list_batches(limit=limit))
    if as_json:
        print_json(batches)
    elif not batches:
        print_text("There are no batches.")
    else:
        print_table(COLUMNS, [_row(view) for view in batches], _GIVE)


def _row(view: BatchView) -> tuple[object, ...]:
    total = "" if view.total is None else view.total
    return (
        str(view.id), view.task, view.queue, _state(view), total, view.round, view.created_at, view.closed_at,
        view.key,
    )  # fmt: skip


def _state(view: BatchView) -> str:
    return f"{view.outcome or view.state}{'' if view.paused_at is None else ', paused'}"


@batch.command()
@_ID
@json_option
def show(batch_id: UUID, as_json: bool) -> None:
    """Show a batch and how far it is.

    \b
    Example:
      headrace batch show 01980000-0000-7000-8000-000000000000
    """
    view, progress = with_stores(lambda stores: show_batch(stores.inspect, batch_id))
    if as_json:
        print_json(batch_document(view, progress))
    else:
        print_facts(_facts(view, progress))


def _facts(view: BatchView, progress: Progress) -> dict[str, object]:
    limit = view.policy.max_failed
    return {
        "batch": view.id,
        "state": view.state,
        "outcome": view.outcome,
        "paused": view.paused_at,
        "why paused": view.paused_reason,
        "key": view.key,
        "task": view.task,
        "queue": view.queue,
        "round": view.round,
        "fails when": None if limit is None else f"more than {limit} items failed",
        "items": f"{progress.done} of {'?' if progress.total is None else progress.total} done ({progress.percent} %)",
        "succeeded": progress.succeeded,
        "failed": progress.failed,
        "cancelled": progress.cancelled,
        "running": progress.running,
        "waiting": progress.waiting,
        "created": view.created_at,
        "sealed": view.sealed_at,
        "closed": view.closed_at,
    }


@batch.command()
@_ID
@click.option("--interval", metavar="TIME", type=DurationType(), default="500ms", help="Longest time between looks.")
@click.option(
    "--timeout",
    metavar="TIME",
    type=DurationType(),
    show_default=False,
    help="Give up after this time; the batch goes on.  [default: never]",
)
@json_option
def watch(batch_id: UUID, interval: timedelta, timeout: timedelta | None, as_json: bool) -> int:  # fmt: skip
    """Follow a batch until it is closed: counts, rate, and when it will be done.

    Ends with 1 when the batch failed or was cancelled, and with 0 when it succeeded, in whole or in part. --json
    writes a line for each change.

    \b
    Example:
      headrace batch watch 01980000-0000-7000-8000-000000000000
    """
    from headrace.cli.watching import watch_batch

    view = with_app(lambda app: watch_batch(app, batch_id, interval=interval, timeout=timeout, as_json=as_json))
    return Exit.FAILED if view.outcome in FAILED else Exit.OK


@batch.command()
@_ID
@click.option("--follow", is_flag=True, show_default=False, help="Go on until the batch is closed.")
@click.option("--cursor", metavar="CURSOR", default="", show_default=False, help="Go on after an item read before.")
@click.option("--failed-only", is_flag=True, show_default=False, help="Only items that failed or were cancelled.")
@json_option
def results(batch_id: UUID, follow: bool, cursor: str, failed_only: bool, as_json: bool) -> None:
    """Write finished items as JSON lines, with or without --json, in the order they were recorded.

    Each line holds index, status, result or error, cost, job and cursor. With --cursor of the last line read nothing
    is missed; items that ended at the same moment may come again, so key what you keep by index.

    \b
    Examples:
      headrace batch results 01980000-0000-7000-8000-000000000000 --follow
      headrace batch results 01980000-0000-7000-8000-000000000000 --failed-only
    """

    async def stream(app: App) -> None:
        async for item in app.batch(batch_id).results(cursor, follow=follow):
            if not failed_only or item.status is not JobState.SUCCEEDED:
                sys.stdout.write(item_line(item))
                if follow:
                    # Who follows wants each item when it ends.
                    sys.stdout.flush()

    with_app(stream)


def item_line(item: BatchItem) -> str:
    """Return one line of `batch results`."""
    return json.dumps(item_document(item)) + "\n"


@batch.command()
@_ID
@click.option("--limit", metavar="N", type=WholeType("limit", 1, 10_000), default=20, help="How many faults.")
@click.option(
    "--look", metavar="N", type=WholeType("look", 1, 1_000_000), default=LOOK, help="Look at N failed items at most."
)
@json_option
def faults(batch_id: UUID, limit: int, look: int, as_json: bool) -> None:
    """Show why items of a batch failed: errors that differ only in their data are one fault, the largest first.

    Items that are run again are left out. The fingerprint is that of `headrace dlq`.

    \b
    Examples:
      headrace batch faults 01980000-0000-7000-8000-000000000000
      headrace batch faults 01980000-0000-7000-8000-000000000000 --json
    """
    found = with_stores(lambda stores: batch_faults(stores.inspect, batch_id, limit=limit, look=look))
    if as_json:
        print_json(faults_document(batch_id, found))
        return
    if found.faults:
        print_table(FAULT_COLUMNS, [_fault_row(fault) for fault in found.faults], _GIVE_FAULTS)
    else:
        print_text("No item failed that was not run again.")
    if found.left_out:
        print_text(f"and {found.left_out} smaller faults; --limit {limit * 10} shows more")
    if found.sampled:
        print_text(f"Looked at {found.looked_at} failures, and there are more; --look {look * 10} looks further.")


def _fault_row(fault: BatchFault) -> tuple[object, ...]:
    message = one_line(fault.message)
    return fault.fingerprint, fault.count, fault.kind, fault.first_at, fault.last_at, str(fault.examples[0]), message


@batch.command()
@_ID
@json_option
def retry(batch_id: UUID, as_json: bool) -> None:
    """Run the failed items of a closed batch again, in a new round of it.

    \b
    Example:
      headrace batch retry 01980000-0000-7000-8000-000000000000
    """
    count = with_app(lambda app: app.batch(batch_id).retry_failed())
    if as_json:
        print_json({"batch": batch_id, "retried": count})
    else:
        print_text(f"{count} failed items run again" if count else "no item failed: nothing to run again")


@batch.command()
@_ID
@click.option("--reason", metavar="TEXT", show_default=False, help="Shown to whoever looks at the batch or its jobs.")
@json_option
def pause(batch_id: UUID, reason: str | None, as_json: bool) -> None:
    """Start no item of a batch until it is resumed; running ones go on, and results come as they do.

    \b
    Example:
      headrace batch pause 01980000-0000-7000-8000-000000000000 --reason "the provider has an incident"
    """
    view, progress = _steer(batch_id, lambda one: one.pause(reason))
    if as_json:
        print_json(batch_document(view, progress))
    else:
        print_text(f"paused: {progress.waiting} waiting, {progress.running} running go on")


@batch.command()
@_ID
@json_option
def resume(batch_id: UUID, as_json: bool) -> None:
    """Let the items of a paused batch start again, in their old order.

    \b
    Example:
      headrace batch resume 01980000-0000-7000-8000-000000000000
    """
    view, progress = _steer(batch_id, lambda one: one.resume())
    if as_json:
        print_json(batch_document(view, progress))
    else:
        print_text(f"{view.outcome or view.state}: {progress.waiting} waiting")


def _steer(batch_id: UUID, act: Callable[[Batch], Awaitable[None]]) -> tuple[BatchView, Progress]:
    """Do something with a batch that exists, and return it as it is then."""

    async def steer(app: App) -> tuple[BatchView, Progress]:
        await show_batch(app.runtime.stores.inspect, batch_id)
        await act(app.batch(batch_id))
        return await show_batch(app.runtime.stores.inspect, batch_id)

    return with_app(steer)


@batch.command()
@_ID
@json_option
def cancel(batch_id: UUID, as_json: bool) -> None:
    """Cancel a batch: no item starts any more, running ones are asked to stop.

    \b
    Example:
      headrace batch cancel 01980000-0000-7000-8000-000000000000
    """
    view, progress = _steer(batch_id, lambda one: one.cancel())
    if as_json:
        print_json(batch_document(view, progress))
    else:
        print_text(f"{view.outcome or view.state}: {progress.cancelled} cancelled, {progress.running} asked to stop")
