"""`headrace workflow start`: start a run, and perhaps wait for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from headrace.cli.output import json_option, print_json, print_text
from headrace.cli.values import DurationType, JsonType
from headrace.model.errors import ConfigError, HeadraceError

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.engine.workflows.service import StartOptions


@click.command()
@click.argument("app", metavar="MODULE:app")
@click.argument("name")
@click.argument("given", metavar="[JSON]", type=JsonType(), default="null")
@click.option("--key", metavar="TEXT", show_default=False, help="Idempotency key: the same key starts one run only.")
@click.option("--user-id", metavar="TEXT", show_default=False, help="For whom it runs; every node is told.")
@click.option("--correlation-id", metavar="TEXT", show_default=False, help="What it belongs to; every node is told.")
@click.option(
    "--metadata", metavar="JSON", type=JsonType(), show_default=False, help="An object of what else it is told."
)
@click.option("--wait", is_flag=True, show_default=False, help="Wait for the run and print its output.")
@click.option(
    "--timeout",
    metavar="TIME",
    type=DurationType(),
    show_default=False,
    help="How long --wait waits; the run goes on.  [default: without end]",
)
@json_option
def start(  # noqa: PLR0913 - click hands over one per option
    app: str, name: str, given: Any, key: str | None, user_id: str | None, correlation_id: str | None,
    metadata: Any, wait: bool, timeout: timedelta | None, as_json: bool,
) -> None:  # fmt: skip
    """Start a run of a workflow and print its id; with --wait print its output instead.

    NAME is a workflow that the app declares, or one that is stored and whose tasks the app has. JSON is its input: for
    one that is a function its arguments, as for `enqueue`, for any other any value; `-` reads it from standard input.

    \b
    Examples:
      headrace workflow start shop.flows:app digest '{"url": "https://example.org"}'
      headrace workflow start shop.flows:app nightly --key 2031-01-31 --wait --timeout 10m
    """
    from headrace.cli.loading import load_app
    from headrace.runs import start_options

    if timeout is not None and not wait:
        raise click.UsageError("--timeout needs --wait")
    loaded = load_app(app)
    if loaded.settings.queue.type == "memory":
        raise ConfigError("the memory store ends with this process, and the run with it; use a durable store")
    options = start_options(key, user_id, correlation_id, metadata)
    asyncio.run(_start(loaded, Asked(name, given, options), Waiting(wait, timeout, as_json)))


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be started."""

    name: str
    given: Any
    options: StartOptions


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is done after the run is stored."""

    wait: bool
    timeout: timedelta | None
    as_json: bool


async def _start(app: App, asked: Asked, waiting: Waiting) -> None:
    async with app:
        run = await app.start_json(asked.name, asked.given, asked.options)
        if not waiting.wait:
            _print_id(run.id, as_json=waiting.as_json)
            return
        if not waiting.as_json:
            # Standard output is for the output alone.
            click.echo(f"run {run.id}", err=True)
        try:
            output = await run.result(waiting.timeout)
        except HeadraceError as error:
            error.run_id = run.id  # type: ignore[attr-defined]
            raise
    print_json({"run": run.id, "state": "succeeded", "output": output} if waiting.as_json else output)


def _print_id(run_id: UUID, *, as_json: bool) -> None:
    if as_json:
        print_json({"run": run_id})
    else:
        print_text(str(run_id))
