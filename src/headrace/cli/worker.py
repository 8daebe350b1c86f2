"""`headrace worker` and `headrace dev`: work the jobs of an app in this process, or in several under a supervisor."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from headrace.cli.logs import LEVELS, DevFormatter, log_to_stderr
from headrace.cli.output import json_option
from headrace.cli.values import DurationType, QueueType, WholeType

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.argument("app", metavar="MODULE:app"),
    click.option(
        "--queue", "queues", metavar="NAME[:N]", type=QueueType(), multiple=True, show_default=False,
        help="Work this queue, with N jobs at once. Repeatable.  [default: every queue of the app's tasks]",
    ),
    click.option(
        "--concurrency", metavar="N", type=WholeType("concurrency", 1), show_default=False,
        help="Jobs at once per queue where --queue gives none.  [default: [worker] concurrency, 10]",
    ),
    click.option(
        "--grace", metavar="TIME", type=DurationType(), show_default=False,
        help="How long running jobs may go on after SIGTERM or Ctrl-C; the rest is released, uncharged.  "
        "[default: [worker] shutdown_grace, 20s]",
    ),
    json_option,
)  # fmt: skip


def worker_options(command: F) -> F:
    """Add what `worker` and `dev` have in common."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@worker_options
@click.option(
    "--processes", metavar="N", type=WholeType("processes", 1, 256), show_default=False,
    help="Worker processes; a supervisor restarts dead ones.  [default: [worker] count, 1]",
)  # fmt: skip
@click.option("--log-level", type=click.Choice(LEVELS), default="info", help="What is logged to standard error.")
@click.option("--lifeline", type=int, hidden=True, help="Read end of a pipe: the supervisor is gone when it ends.")
def worker(  # noqa: PLR0913 - click hands over one per option
    app: str, queues: tuple[tuple[str, int | None], ...], concurrency: int | None, grace: timedelta | None,
    as_json: bool, processes: int | None, log_level: str, lifeline: int | None,
) -> int:  # fmt: skip
    """Work the jobs of an app until SIGTERM or Ctrl-C.

    The first signal stops claiming and lets running jobs end within the grace time; what does not end is given back,
    uncharged. A second signal ends the process at once. --json writes a line when the worker starts and one when it
    has stopped, and logs as JSON lines.

    \b
    Examples:
      headrace worker shop.jobs:app
      headrace worker shop/jobs.py --queue llm:4 --queue mail
      headrace worker shop.jobs:app --processes 4 --grace 1m
    """
    from headrace.cli.working import WorkOptions, run_worker
    from headrace.settings import load_settings

    log_to_stderr(log_level, as_json=as_json)
    if log_level == "info":
        # A line per job is for `dev`, or for --log-level debug.
        logging.getLogger("headrace.jobs").setLevel(logging.WARNING)
    options = WorkOptions(app, _slots(queues), concurrency, grace, as_json, lifeline=lifeline)
    settings = load_settings().worker
    count = processes or settings.count
    if count == 1:
        return run_worker(options)
    from headrace.cli.supervisor import supervise

    patience = settings.shutdown_grace if grace is None else grace
    return supervise(options, count, log_level=log_level, grace=patience)


def _slots(queues: tuple[tuple[str, int | None], ...]) -> dict[str, int | None]:
    """Return slots by queue. Raises UsageError when a queue is given twice."""
    slots = dict(queues)
    if len(slots) < len(queues):
        raise click.UsageError("a --queue is given twice")
    return slots


@click.command()
@worker_options
@click.option(
    "--port", metavar="N", type=WholeType("port", 0, 65_535), show_default=False,
    help="Port of the dashboard on this machine; 0 takes any free one.  [default: that of [service], 8400, or any free "
    "one where it is in use]",
)  # fmt: skip
def dev(  # noqa: PLR0913 - click hands over one per option
    app: str, queues: tuple[tuple[str, int | None], ...], concurrency: int | None, grace: timedelta | None,
    as_json: bool, port: int | None,
) -> int:  # fmt: skip
    """Work the jobs of an app, show what happens to each, and serve its dashboard: all in one process.

    The dashboard and the API are for this machine alone. They need `headrace[service]`; without it jobs are worked all
    the same.

    \b
    Examples:
      headrace dev shop.jobs:app
      headrace dev shop/jobs.py --port 8401 --grace 0s
    """
    from headrace.cli.serving_beside import dashboard_beside
    from headrace.cli.working import WorkOptions, run_worker

    log_to_stderr("info", as_json=as_json, formatter=DevFormatter())
    logging.getLogger("headrace.jobs").setLevel(logging.INFO)
    with dashboard_beside(app, port, as_json=as_json) as beside:
        return run_worker(WorkOptions(app, _slots(queues), concurrency, grace, as_json, beside))
