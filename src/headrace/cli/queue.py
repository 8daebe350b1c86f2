"""`headrace queue`: figures of queues, and what operators do to them."""

from __future__ import annotations

from datetime import timedelta

import click

from headrace.cli.opening import with_app, with_stores
from headrace.cli.output import age, json_option, print_json, print_table, print_text
from headrace.cli.values import DurationType, NameType
from headrace.engine import operations
from headrace.model.stats import QueueStats, Retention
from headrace.ports.stores import Stores

COLUMNS = (
    "QUEUE", "SCHEDULED", "READY", "RUNNING", "PARKED", "SUCCEEDED", "FAILED", "CANCELLED", "OLDEST READY", "IN/S",
    "OUT/S", "WORKERS", "STATE",
)  # fmt: skip
_COUNTED = ("scheduled", "ready", "running", "parked", "succeeded", "failed", "cancelled")
_QUEUE = click.argument("name", metavar="QUEUE", type=NameType())


@click.group()
def queue() -> None:
    """Figures of queues; pause, resume, retry, clean up."""


@queue.command()
@click.argument("name", metavar="[QUEUE]", type=NameType(), required=False)
@json_option
def stats(name: str | None, as_json: bool) -> None:
    """Show how many jobs are in which state, how old the oldest ready one is, rates of the last minute, workers.

    \b
    Examples:
      headrace queue stats
      headrace queue stats llm --json
    """

    async def read(stores: Stores) -> list[QueueStats]:
        if name is None:
            return await stores.inspect.queue_stats()
        return [await operations.find_queue(stores.inspect, name)]

    queues = with_stores(read)
    if as_json:
        print_json(queues if name is None else queues[0])
    elif not queues:
        print_text("No queue has jobs, workers or a setting yet.")
    else:
        print_table(COLUMNS, [_row(item) for item in queues])


def _row(item: QueueStats) -> tuple[object, ...]:
    state = "paused" if item.paused else "no worker" if item.ready and not item.live_workers else "ok"
    return (
        item.name, *(_figure(item, name) for name in _COUNTED),
        age(item.oldest_ready_age), _figure(item, "rate_in"), _figure(item, "rate_out"), item.live_workers,
        f"paused ({item.paused_reason})" if item.paused_reason else state,
    )  # fmt: skip


def _figure(item: QueueStats, name: str) -> object:
    value = getattr(item, name)
    return f"~{value:.0f}" if name in item.estimated else value


@queue.command()
@_QUEUE
@click.option("--reason", metavar="TEXT", show_default=False, help="Shown to whoever looks at the queue.")
@click.option("--force", is_flag=True, show_default=False, help="Also a queue that nobody has used yet.")
@json_option
def pause(name: str, reason: str | None, force: bool, as_json: bool) -> None:
    """Stop claiming jobs of a queue; running jobs go on, new ones may be enqueued.

    \b
    Example:
      headrace queue pause llm --reason "quota used up"
    """
    _set_paused(name, paused=True, reason=reason, force=force)
    _say_state(name, paused=True, as_json=as_json)


@queue.command()
@_QUEUE
@json_option
def resume(name: str, as_json: bool) -> None:
    """Claim jobs of a paused queue again.

    \b
    Example:
      headrace queue resume llm
    """
    _set_paused(name, paused=False)
    _say_state(name, paused=False, as_json=as_json)


def _set_paused(name: str, *, paused: bool, reason: str | None = None, force: bool = False) -> None:
    async def change(stores: Stores) -> None:
        if not force:
            await operations.find_queue(stores.inspect, name)
        await operations.set_queue_paused(stores, name, paused=paused, reason=reason)

    with_stores(change)


def _say_state(name: str, *, paused: bool, as_json: bool) -> None:
    if as_json:
        print_json({"queue": name, "paused": paused})
    else:
        print_text(f"{name} is {'paused' if paused else 'resumed'}")


@queue.command()
@_QUEUE
@json_option
def retry(name: str, as_json: bool) -> None:
    """Run the failed jobs of a queue again, each as a new job; those retried before are left alone.

    \b
    Example:
      headrace queue retry llm
    """

    async def retry_all(stores: Stores) -> int:
        await operations.find_queue(stores.inspect, name)
        return await operations.retry_queue(stores, name)

    count = with_stores(retry_all)
    if as_json:
        print_json({"queue": name, "retried": count})
    else:
        print_text(f"{count} failed jobs of {name} run again")


@queue.command()
@click.argument("name", metavar="[QUEUE]", type=NameType(), required=False)
@click.option("--retention", metavar="TIME", type=DurationType(), required=True, help="Keep what is younger.")
@json_option
def cleanup(name: str | None, retention: timedelta, as_json: bool) -> None:
    """Remove finished jobs older than --retention now, of one queue or of all.

    Workers do this by themselves with the times of [recovery]. Jobs of a batch go once the batch is closed. Stored
    answers of models stay as long as [recovery] keep_answers says.

    \b
    Examples:
      headrace queue cleanup --retention 7d
      headrace queue cleanup llm --retention 12h
    """

    async def remove(stores: Stores, answers: timedelta) -> dict[str, int]:
        if name is not None:
            await operations.find_queue(stores.inspect, name)
        kept = Retention(succeeded=retention, failed=retention, cancelled=retention, answers=answers)
        return (await operations.clean_up(stores, kept, queue=name)).removed

    removed = with_app(lambda app: remove(app.runtime.stores, app.settings.recovery.keep_answers))
    if as_json:
        print_json({"removed": removed})
    else:
        shown = ", ".join(f"{count} {what}" for what, count in removed.items() if count)
        print_text(f"removed {shown or 'nothing'}")
