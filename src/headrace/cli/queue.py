"""`headrace queue`: figures of queues, and what operators do to them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import click

from headrace.cli.ending import InterruptedByUserError
from headrace.cli.exits import Exit
from headrace.cli.opening import with_app, with_stores
from headrace.cli.output import age, json_option, print_json, print_table, print_text
from headrace.cli.plain import plain
from headrace.cli.scaling import scale
from headrace.cli.tables import Give
from headrace.cli.values import DurationType, NameType
from headrace.engine import operations
from headrace.engine.draining import HEARD_SECONDS, drain_queue, resume_queue
from headrace.engine.exposition import expose, expose_outbox
from headrace.engine.slot_exposition import expose_slots
from headrace.engine.worker_queries import list_workers
from headrace.model.backlog import Drained, QueueState
from headrace.model.stats import QueueStats, Retention
from headrace.ports.stores import Stores
from headrace.settings import load_settings

COLUMNS = (
    "QUEUE", "SCHEDULED", "READY", "RUNNING", "PARKED", "SUCCEEDED", "FAILED", "CANCELLED", "OLDEST READY", "IN/S",
    "OUT/S", "WORKERS", "STATE",
)  # fmt: skip
_GIVE = Give(
    first=("CANCELLED", "SUCCEEDED", "IN/S", "PARKED", "OUT/S", "SCHEDULED", "WORKERS", "FAILED", "OLDEST READY"),
    prose=("STATE",),
)  # fmt: skip
_COUNTED = ("scheduled", "ready", "running", "parked", "succeeded", "failed", "cancelled")
_QUEUE = click.argument("name", metavar="QUEUE", type=NameType())


@click.group()
def queue() -> None:
    """Figures of queues; pause, drain, resume, retry, clean up; adopt a store that lost its jobs."""


queue.add_command(scale)


@queue.command()
@click.argument("name", metavar="[QUEUE]", type=NameType(), required=False)
@click.option("--prometheus", is_flag=True, show_default=False, help="Write metrics in the text format of Prometheus.")
@json_option
def stats(name: str | None, prometheus: bool, as_json: bool) -> None:
    """Show how many jobs are in which state, how old the oldest ready one is, rates of the last minute, workers.

    The state of a queue is ok, or: paused (nothing is claimed), closed (nothing is enqueued), alarm (its backlog is
    one by alarm_size or alarm_age), no worker (jobs are ready, and nobody serves it). With --prometheus
    the figures of slots are written as well, and without a queue those of the outbox.

    \b
    Examples:
      headrace queue stats
      headrace queue stats llm --json
      headrace queue stats --prometheus
    """
    if prometheus and as_json:
        raise click.UsageError("--prometheus and --json are two formats: choose one")

    async def read(stores: Stores) -> tuple[list[QueueStats], str]:
        if name is not None:
            queues = [await operations.find_queue(stores.inspect, name)]
        else:
            queues = await stores.inspect.queue_stats()
        return queues, await _of_others(stores, name) if prometheus else ""

    queues, of_others = with_stores(read)
    if prometheus:
        click.echo(expose(queues) + of_others, nl=False)
    elif as_json:
        print_json(queues if name is None else queues[0])
    elif not queues:
        print_text("No queue has jobs, workers or a setting yet.")
    else:
        print_table(COLUMNS, [_row(item) for item in queues], _GIVE)


async def _of_others(stores: Stores, queue: str | None) -> str:
    """Return the figures of slots, and where no queue is asked for those of the outbox."""
    _, workers = await list_workers(stores)
    slots, events = expose_slots(workers, queue=queue), stores.events
    if queue is not None or events is None:
        return slots
    return slots + expose_outbox(await events.outbox.outbox_stats(), await events.log.log_groups())


def _state(item: QueueStats) -> str:
    paused = f"paused ({item.paused_reason})" if item.paused_reason else "paused" if item.paused else ""
    words = [paused, "closed" if item.closed else "", "alarm" if item.alarmed else ""]
    if not item.paused and item.ready and not item.live_workers:
        words.append("no worker")
    return ", ".join(filter(None, words)) or "ok"


def _row(item: QueueStats) -> tuple[object, ...]:
    return (
        item.name, *(_figure(item, name) for name in _COUNTED),
        age(item.oldest_ready_age), _figure(item, "rate_in"), _figure(item, "rate_out"), item.live_workers,
        _state(item),
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

    async def change(stores: Stores) -> QueueState:
        await _find(stores, name, force=force)
        await operations.set_queue_paused(stores, name, paused=True, reason=reason)
        return await _state_of(stores, name)

    _say_state(name, with_stores(change), "paused", as_json=as_json)


@queue.command()
@_QUEUE
@json_option
def resume(name: str, as_json: bool) -> None:
    """Claim jobs of a paused queue again, and let jobs into one that was drained.

    \b
    Example:
      headrace queue resume llm
    """

    async def change(stores: Stores) -> QueueState:
        await operations.find_queue(stores.inspect, name)
        await resume_queue(stores, name)
        return await _state_of(stores, name)

    _say_state(name, with_stores(change), "resumed", as_json=as_json)


@queue.command()
@_QUEUE
@click.option(
    "--timeout",
    metavar="TIME",
    type=DurationType(),
    show_default=False,
    help="Wait so long, then say what is left (exit code 1).  [default: without end]",
)
@click.option("--force", is_flag=True, show_default=False, help="Also a queue that nobody has used yet.")
@json_option
def drain(name: str, timeout: timedelta | None, force: bool, as_json: bool) -> Exit:
    """Let no more jobs into a queue, and wait until those it has are done, their retries included.

    Who enqueues is refused within a second, in every process (error queue_closed). The queue stays closed, also when
    the wait ends early or is broken off, until `headrace queue resume`.

    \b
    Examples:
      headrace queue drain llm
      headrace queue drain llm --timeout 10m --json
    """
    lines = _DrainLines(as_json=as_json)

    async def work(stores: Stores) -> Drained:
        lines.begin(await _find(stores, name, force=force))
        return await drain_queue(stores, name, timeout=timeout, on_look=lines.show)

    try:
        drained = with_stores(work)
    except KeyboardInterrupt:
        left = f"; {name} stays closed until `headrace queue resume {name}`" if lines.began else ""
        raise InterruptedByUserError(f"interrupted{left}") from None
    lines.end(drained)
    return Exit.OK if drained.done else Exit.FAILED


class _DrainLines:
    """A line whenever what is left has changed; with JSON only the end, on standard output."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._shown = ""
        #: The queue may have been closed.
        self.began = False

    def begin(self, found: QueueStats | None) -> None:
        self.began = True
        if found is not None and found.ready and not found.live_workers:
            click.echo(plain(f"no live worker serves {found.name}: nothing of it will run"), err=True)

    def show(self, drained: Drained) -> None:
        line = _left(drained)
        if not self._as_json and line != self._shown and not drained.done:
            self._shown = line
            print_text(f"{drained.queue} is closed; {line}")

    def end(self, drained: Drained) -> None:
        if self._as_json:
            print_json(drained)
        elif drained.done:
            print_text(f"{drained.queue} is drained, and stays closed until `headrace queue resume {drained.queue}`")
        else:
            until = f"it stays closed until `headrace queue resume {drained.queue}`"
            print_text(f"{drained.queue} is not drained in time: {_left(drained)}; {until}")


def _left(drained: Drained) -> str:
    """Return what a drain that is not done still waits for."""
    counts = {state: getattr(drained, state) for state in ("running", "ready", "scheduled", "parked")}
    left = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return left or f"no jobs are left, but other processes need {HEARD_SECONDS:g} s to see it closed"


async def _find(stores: Stores, name: str, *, force: bool) -> QueueStats | None:
    return None if force else await operations.find_queue(stores.inspect, name)


async def _state_of(stores: Stores, name: str) -> QueueState:
    return (await stores.control.queue_states()).get(name, QueueState())


def _say_state(name: str, state: QueueState, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"queue": name, "paused": state.paused, "closed": state.closed})
    else:
        print_text(f"{name} is {what}")


@queue.command()
@_QUEUE
@json_option
def retry(name: str, as_json: bool) -> None:
    """Run jobs of a queue again that have failed by now, each as a new job; not those retried before.

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


@queue.command()
@json_option
def adopt(as_json: bool) -> None:
    """Go on with what a Redis store holds now, after it lost its jobs (error storage_reset).

    After FLUSHALL, or when an empty server took the place of another, workers stop and nothing is enqueued: a backup
    can be put back. This command gives up what is lost. Running workers go on by themselves, restarted ones too.

    \b
    Example:
      headrace queue adopt
    """
    from headrace import wiring

    adopted = asyncio.run(wiring.adopt(load_settings()))
    if as_json:
        print_json({"adopted": adopted})
    else:
        print_text(f"in force: {adopted}")
