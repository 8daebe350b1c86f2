"""`headrace relay`, `headrace agent` and `headrace callback`: the work with events in processes of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from typing import Any

import click

from headrace.app import App
from headrace.cli.event_hosting import HostOptions, run_host
from headrace.cli.loading import load_app
from headrace.cli.logs import LEVELS, log_to_stderr
from headrace.cli.opening import refuse_memory
from headrace.cli.output import json_option
from headrace.cli.supervisor import HEADRACE, keep_alive
from headrace.cli.values import DurationType, WholeType
from headrace.engine.events.parts import EventParts
from headrace.model.durations import format_duration
from headrace.model.errors import ConfigError

_GRACE = "How long handlers may go on after SIGTERM or Ctrl-C; what has not ended comes again."
_OPTIONS = (
    click.option(
        "--grace", metavar="TIME", type=DurationType(), show_default=False,
        help=f"{_GRACE}  [default: [worker] shutdown_grace, 20s]",
    ),
    click.option("--log-level", type=click.Choice(LEVELS), default="info", help="What is logged to standard error."),
    json_option,
)  # fmt: skip


def _with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


@click.command()
@_with_options
def relay(grace: timedelta | None, log_level: str, as_json: bool) -> int:
    """Take events from the outbox to the bus until SIGTERM or Ctrl-C.

    Needs no app: only the settings. Workers do it too, unless [worker] relay_enabled is false. One process of all leads
    and the others stand by, so two are for the case that one dies.

    --json writes a line when it starts and one when it has stopped, and logs as JSON lines.

    \b
    Examples:
      headrace relay
      headrace --url postgresql://app@db/app relay --json
    """
    log_to_stderr(log_level, as_json=as_json)
    return run_host(App(), HostOptions("relay", EventParts(relay=True), grace, as_json))


@click.command()
@click.argument("app", metavar="MODULE:app")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@_with_options
@click.option(
    "--processes", metavar="N", type=WholeType("processes", 1, 256), default=1,
    help="Processes; a supervisor restarts dead ones. They share the partitions of the topics.",
)  # fmt: skip
@click.option("--lifeline", type=int, hidden=True, help="Read end of a pipe: the supervisor is gone when it ends.")
def agent(  # noqa: PLR0913 - click hands over one per option
    app: str, names: tuple[str, ...], grace: timedelta | None, log_level: str, as_json: bool, processes: int,
    lifeline: int | None,
) -> int:  # fmt: skip
    """Run agents of an app: they handle events of the bus, until SIGTERM or Ctrl-C.

    NAME is an id or an alias of an agent; without one all of the app's agents run. Workers run them too, unless
    [worker] agents_enabled is false. The first signal stops receiving and lets handlers end within the grace time; a
    second one ends the process at once. What has not ended by then comes again, to whoever runs the agent.

    --json writes a line when it starts and one when it has stopped, and logs as JSON lines.

    \b
    Examples:
      headrace agent shop.events:app
      headrace agent shop.events:app character_expert world_builder
      headrace agent shop/events.py --processes 4 --grace 1m
    """
    log_to_stderr(log_level, as_json=as_json)
    found = load_app(app)
    ids = agent_ids(found, names)
    refuse_memory(found.settings, "work")
    if processes == 1:
        options = HostOptions(f"agent {', '.join(ids)}", EventParts(agents=ids), grace, as_json, lifeline)
        return run_host(found, options)
    patience = found.settings.worker.shutdown_grace if grace is None else grace
    command = [*HEADRACE, "agent", app, *ids, "--log-level", log_level, "--grace", format_duration(patience)]
    return keep_alive([*command, "--json"] if as_json else command, processes, grace=patience)


def agent_ids(app: App, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the canonical ids behind names; all of the app where none is given. Raises NotFoundError, ConfigError."""
    ids = tuple(dict.fromkeys(app.agent_ids.resolve(name) for name in names)) or tuple(app.agent_ids)
    if not ids:
        raise ConfigError("the app has no agents: write Agent(app, NAME) there, and @agent.on(TYPE) over a function")
    idle = [own for own in ids if not app.agents[own].definition.handlers]
    if idle:
        raise ConfigError(f"agent {idle[0]} handles no type of event: write @agent.on(TYPE) over a function")
    return ids


@click.command()
@_with_options
def callback(grace: timedelta | None, log_level: str, as_json: bool) -> int:
    """Run the callback service: results wake what waits for them.

    Until SIGTERM or Ctrl-C it reads [events] callback_topics, resolves resume handles, ends those whose time has come,
    and wakes suspended flow runs of Prefect. Needs no app: only the settings. Workers do it too, unless [worker]
    callback_enabled is false. Several share the work.

    --json writes a line when it starts and one when it has stopped, and logs as JSON lines.

    \b
    Examples:
      headrace callback
      headrace --url postgresql://app@db/app callback --grace 5s
    """
    log_to_stderr(log_level, as_json=as_json)
    return run_host(App(), HostOptions("callback", EventParts(callback=True, callback_at_once=True), grace, as_json))
