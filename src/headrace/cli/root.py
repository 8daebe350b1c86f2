"""The root command: global options, and the commands by name. A command's module is imported when it is called."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click

from headrace import __version__
from headrace.cli.ending import InterruptedByUserError, ReaderGoneError, run_guarded


class Entry(NamedTuple):
    """Where a command is, and its line in `headrace --help`."""

    target: str
    summary: str


#: One line registers a command: its name, where it is, and the first line of its help.
COMMANDS: dict[str, Entry] = {
    "demo": Entry(
        "headrace.apps.papers.demo.command:demo",
        "Run the main job on embedded everything and kill its worker on the way.",
    ),
    "worker": Entry("headrace.cli.worker:worker", "Work the jobs of an app until SIGTERM or Ctrl-C."),
    "dev": Entry("headrace.cli.worker:dev", "Work the jobs of an app and show what happens to each, for development."),
    "serve": Entry("headrace.cli.serve:serve", "Serve an app over HTTP: workflows, runs and webhooks of flows."),
    "agent": Entry("headrace.cli.event_processes:agent", "Run agents of an app: they handle events of the bus."),
    "relay": Entry("headrace.cli.event_processes:relay", "Take events from the outbox to the bus."),
    "callback": Entry(
        "headrace.cli.event_processes:callback", "Run the callback service: results wake what waits for them."
    ),
    "workers": Entry("headrace.cli.workers:workers", "Show the workers that are alive."),
    "enqueue": Entry("headrace.cli.enqueue:enqueue", "Make a durable job of one call and print its id."),
    "papers": Entry("headrace.apps.papers.command:papers", "Structured extraction from a folder of documents."),
    "flows": Entry(
        "headrace.apps.flows.command:flows", "JSON flows: run, validate, import, export and draw workflows of nodes."
    ),
    "batch": Entry("headrace.cli.batch:batch", "Look at batches, follow them, retry and cancel them."),
    "job": Entry("headrace.cli.job:job", "Look at one job, ask why it waits, cancel it, run it again."),
    "run": Entry(
        "headrace.cli.run:run",
        "Runs of workflows: look at them as trees, cancel them, repeat them, send them signals.",
    ),
    "workflow": Entry(
        "headrace.cli.workflow:workflow", "Definitions of workflows: list, show, switch on and off, start."
    ),
    "queue": Entry("headrace.cli.queue:queue", "Figures of queues; pause, drain, resume, retry."),
    "limits": Entry(
        "headrace.cli.limits:limits", "Caps, rate limits, breakers and shares; change them while workers run."
    ),
    "llm": Entry("headrace.cli.llm:llm", "Model calls: quotas, spending, orphaned calls and budgets."),
    "dlq": Entry("headrace.cli.dlq:dlq", "Dead letters: what failed, grouped by its error, and running it again."),
    "events": Entry(
        "headrace.cli.events:events", "Events: the outbox, their log, dead letters, and what waits for events."
    ),
    "schedule": Entry("headrace.cli.schedule:schedule", "What runs by the clock: list, pause, run now, forget."),
    "migrate": Entry("headrace.cli.migrate:migrate", "Apply the migrations that the configured database lacks."),
    "doctor": Entry("headrace.cli.doctor:doctor", "Check the store, the workers and the model, and say what to do."),
    "bench": Entry(
        "headrace.cli.bench:bench", "Measure Headrace against the raw SQL ceiling and other job systems on one server."
    ),
}


class Root(click.Group):
    """A group whose commands are imported by name, and whose errors end as exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.target.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()] or [("none", "")])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what click would end in its own way is handed on to `main`."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGoneError from error
        except KeyboardInterrupt as error:
            raise InterruptedByUserError from error

    def main(self, args: Any = None, prog_name: str | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run a command line and exit with its code; see `exits.Exit`."""
        arguments = [str(argument) for argument in (sys.argv[1:] if args is None else args)]
        extra["standalone_mode"] = False
        call = super().main
        sys.exit(run_guarded(lambda: call(arguments, "headrace", **extra), as_json=wants_json(arguments)))


def wants_json(arguments: list[str]) -> bool:
    """Whether errors are to be written as JSON, also those found before the options are read."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


@click.group(
    cls=Root, context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100}
)
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read settings from FILE rather than ./headrace.toml. Also HEADRACE_CONFIG.",
)
@click.option("--url", metavar="URL", help="Use this store, whatever the settings say. Also HEADRACE_URL.")
@click.version_option(__version__, prog_name="headrace", message="%(prog)s %(version)s")
def cli(config: Path | None, url: str | None) -> None:
    """Durable batch jobs and workflows made for LLM work.

    Without a store URL an embedded PostgreSQL in ./.headrace is used. Every command has --json. Exit codes: 0 ok,
    1 failed, 2 wrong usage or configuration, 3 the store or the bus cannot be reached, or jobs were lost, 4 not
    allowed, 5 not found, 130 interrupted.
    """
    # By environment, so that apps which are loaded later and child processes see them too.
    if config is not None:
        os.environ["HEADRACE_CONFIG"] = str(config.absolute())
    if url is not None:
        os.environ["HEADRACE_QUEUE_URL"] = url
