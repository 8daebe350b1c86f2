"""`headrace enqueue`: make a job of one call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from headrace.cli.output import json_option, print_json, print_text
from headrace.cli.values import DurationType, InstantType, JsonType, NameType, PriorityType
from headrace.model.errors import ConfigError, HeadraceError

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.handles import JobHandle
    from headrace.tasks import TaskCall


@click.command()
@click.argument("app", metavar="MODULE:app")
@click.argument("task")
@click.argument("arguments", metavar="[JSON]", type=JsonType(), default="[]")
@click.option("--key", metavar="TEXT", show_default=False, help="Idempotency key: the same key makes one job only.")
@click.option(
    "--priority",
    metavar="CLASS",
    type=PriorityType(),
    show_default=False,
    help="interactive, high, standard, low, bulk, or 0 (earliest) to 9.  [default: the task's]",
)
@click.option(
    "--run-at",
    metavar="TIME",
    type=InstantType(),
    show_default=False,
    help="Not before: a delay such as 10m, or an instant such as 2031-01-31T12:00:00Z.  [default: now]",
)
@click.option("--queue", metavar="NAME", type=NameType(), show_default=False, help="Queue.  [default: the task's]")
@click.option("--wait", is_flag=True, show_default=False, help="Wait for the job and print its result.")
@click.option(
    "--timeout",
    metavar="TIME",
    type=DurationType(),
    show_default=False,
    help="How long --wait waits; the job goes on.  [default: without end]",
)
@json_option
def enqueue(  # noqa: PLR0913 - click hands over one per option
    app: str, task: str, arguments: Any, key: str | None, priority: int | None,
    run_at: datetime | timedelta | None, queue: str | None, wait: bool, timeout: timedelta | None, as_json: bool,
) -> None:  # fmt: skip
    """Make a durable job of one call and print its id; with --wait print its result instead.

    JSON: a list holds positional arguments, an object keyword arguments, anything else is the one argument; `-`
    reads it from standard input. A list as the one argument is written [[1, 2]].

    \b
    Examples:
      headrace enqueue shop.jobs:app summarise '"a text"'
      headrace enqueue shop.jobs:app send '{"to": "a@example.org"}' --key mail-7 --run-at 10m
      headrace enqueue shop.jobs:app add '[1, 2]' --wait --timeout 30s
    """
    from headrace.cli.loading import load_app

    if timeout is not None and not wait:
        raise click.UsageError("--timeout needs --wait")
    loaded = load_app(app)
    given = {"key": key, "priority": priority, "run_at": run_at, "queue": queue}
    call = loaded.find_task(task).options(**{name: value for name, value in given.items() if value is not None})
    if loaded.settings.queue.type == "memory":
        raise ConfigError("the memory store ends with this process, and the job with it; use a durable store")
    asyncio.run(_enqueue(loaded, call, arguments, Waiting(wait, timeout, as_json)))


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is done after the job is stored."""

    wait: bool
    timeout: timedelta | None
    as_json: bool


async def _enqueue(app: App, call: TaskCall[..., Any], arguments: Any, waiting: Waiting) -> None:
    async with app:
        args, kwargs = _split(arguments)
        handle = await call.enqueue(*args, **kwargs)
        if not waiting.wait:
            _print_id(handle.id, as_json=waiting.as_json)
            return
        if not waiting.as_json:
            # Standard output is for the result alone.
            click.echo(f"job {handle.id}", err=True)
        await _print_result(app, handle, waiting)


def _split(arguments: Any) -> tuple[list[Any], dict[str, Any]]:
    match arguments:
        case list():
            return arguments, {}
        case dict():
            return [], arguments
        case _:
            return [arguments], {}


def _print_id(job_id: UUID, *, as_json: bool) -> None:
    if as_json:
        print_json({"job": job_id})
    else:
        print_text(str(job_id))


async def _print_result(app: App, handle: JobHandle[Any], waiting: Waiting) -> None:
    try:
        # By id alone: the result as it is stored, whatever type the task gives it.
        result = await app.job(handle.id).result(waiting.timeout)
    except HeadraceError as error:
        error.job_id = handle.id  # type: ignore[attr-defined]
        raise
    print_json({"job": handle.id, "state": "succeeded", "result": result} if waiting.as_json else result)
