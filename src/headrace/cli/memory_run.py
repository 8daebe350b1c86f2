"""`headrace memory run`: all work of memory in one process."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.logs import LEVELS, log_to_stderr
from headrace.cli.output import json_option
from headrace.cli.values import DurationType, QueueType
from headrace.model.durations import format_duration

if TYPE_CHECKING:
    from headrace.settings import Settings

LOG = logging.getLogger("headrace.memory")
APP = "headrace.apps.memory.worker:app"


@click.command()
@click.option(
    "--config", metavar="FILE", type=click.Path(path_type=Path), show_default=False,
    help="YAML of resources, concurrency, batching, cache and monitoring; variables of the environment win.",
)  # fmt: skip
@click.option(
    "--executor", type=click.Choice(["local", "ray"]), show_default=False,
    help="Where handlers run.  [default: [worker] executor, local]",
)  # fmt: skip
@click.option(
    "--queue", "queues", metavar="NAME[:N]", type=QueueType(), multiple=True, show_default=False,
    help="Work this queue, with N jobs at once. Repeatable.  [default: all of memory]",
)  # fmt: skip
@click.option(
    "--grace", metavar="TIME", type=DurationType(), show_default=False,
    help="How long jobs may go on after the first signal.  [default: [worker] shutdown_grace, 20s]",
)  # fmt: skip
@click.option("--log-level", type=click.Choice(LEVELS), default="info", help="What is logged to standard error.")
@json_option
def run(  # noqa: PLR0913 - click hands over one per option
    config: Path | None, executor: str | None, queues: tuple[tuple[str, int | None], ...], grace: timedelta | None,
    log_level: str, as_json: bool,
) -> int:  # fmt: skip
    """Do all work of memory until SIGTERM or Ctrl-C: read changes, look at buffers, flush them, store what it came to.

    In one process: a worker of the queues of memory, the agent that reads changes of the buffer table, the relay of
    the outbox, and the sweep. Several share the work. The first signal stops claiming and lets running jobs end within
    the grace time; a second one ends the process at once. Tables that are missing are made.

    --json writes a line when it starts and one when it has stopped, and logs as JSON lines.

    \b
    Examples:
      headrace memory run
      headrace memory run --config ray_task_config.yaml --executor ray
      headrace memory run --queue memory_process:50 --queue nodes --grace 1m --json
    """
    slots = dict(queues)
    if len(slots) < len(queues):
        raise click.UsageError("a --queue is given twice")
    log_to_stderr(log_level, as_json=as_json)
    if log_level == "info":
        # A line per job is for --log-level debug.
        logging.getLogger("headrace.jobs").setLevel(logging.WARNING)
    set_environment(config, executor)
    return _work(slots, grace, as_json=as_json)


def set_environment(config: Path | None, executor: str | None) -> None:
    """Let this process, and those that it starts, have the settings of a file. Raises ConfigError."""
    if config is not None:
        from headrace.apps.memory.config import read_config, to_environment

        for name, value in to_environment(read_config(config)).items():
            os.environ.setdefault(name, value)
    if executor is not None:
        os.environ["HEADRACE_WORKER_EXECUTOR"] = executor


def _tell(settings: Settings) -> None:
    given = settings.memory
    LOG.info(
        "memory in schema %s; changes by %s; flushed above %d tokens, or idle for %s; executor %s; model %s",
        given.schema, given.source, given.buffer_tokens, format_duration(given.idle_flush), settings.worker.executor,
        settings.llm.model or "of this machine: name a real one in [llm]",
    )  # fmt: skip


def _work(slots: dict[str, int | None], grace: timedelta | None, *, as_json: bool) -> int:
    # Late: what is declared there is by the settings. The worker makes the tables when it starts.
    from headrace.apps.memory.slots import slots_of
    from headrace.apps.memory.worker import app
    from headrace.cli.working import WorkOptions, run_worker

    _tell(app.settings)
    usual = slots_of(app)
    chosen = {queue: count or usual.get(queue) for queue, count in slots.items()} or dict(usual)
    return run_worker(WorkOptions(APP, chosen, None, grace, as_json))
