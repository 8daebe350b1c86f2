"""`headrace celery`: workers of a Celery farm."""

from __future__ import annotations

import asyncio
import logging
import os

import click

from headrace.cli.loading import load_app
from headrace.cli.logs import LEVELS, log_to_stderr
from headrace.cli.output import json_option, print_json, print_table, print_text
from headrace.cli.values import WholeType
from headrace.model.farm import FarmWorker

#: They write lines for each job.
_LINES_PER_JOB = ("celery.app.trace", "celery.worker.strategy", "headrace.jobs")


@click.group()
def celery() -> None:
    """Run workers of a Celery farm, and see who is alive there.

    Jobs of queues with `executor = "celery"` are claimed by `headrace worker` and run by these. See
    docs/howto/celery.md.
    """


@celery.command()
@click.argument("app", metavar="MODULE:app")
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    multiple=True,
    show_default=False,
    help="Run jobs of this queue. Repeatable.  [default: every queue of the app's tasks that runs on Celery]",
)
@click.option(
    "--concurrency",
    metavar="N",
    type=WholeType("concurrency", 1, 512),
    show_default=False,
    help="Jobs at once, each in a process.  [default: one per processor]",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", help="What is logged to standard error.")
@json_option
def worker(app: str, queues: tuple[str, ...], concurrency: int | None, log_level: str, as_json: bool) -> int:
    """Run jobs for the workers of an app until SIGTERM or Ctrl-C; running ones end first, however long they take.

    It needs `pip install 'headrace[celery]'`, `[celery] broker_url`, and the store that `headrace worker` uses. It
    listens on no port. A second Ctrl-C, or SIGQUIT, ends running jobs too: they run again elsewhere, uncharged.
    --json logs as JSON lines.

    \b
    Examples:
      headrace celery worker shop.jobs:app
      headrace celery worker shop/jobs.py --queue llm --queue pdf --concurrency 8
    """
    log_to_stderr(log_level, as_json=as_json)
    for name in _LINES_PER_JOB if log_level != "debug" else ():
        logging.getLogger(name).setLevel(logging.WARNING)
    loaded = load_app(app)
    from headrace.farm import serve_farm

    return serve_farm(loaded, queues, concurrency=concurrency or os.cpu_count() or 1, level=log_level)


@celery.command()
@json_option
def workers(as_json: bool) -> None:
    """Show the workers of the farm that are alive, with their queues and slots.

    \b
    Example:
      headrace celery workers
    """
    from headrace.settings import load_settings
    from headrace.wiring.farm import farm_workers

    found = sorted(asyncio.run(farm_workers(load_settings())), key=lambda worker: (worker.host, worker.id))
    if as_json:
        print_json([_document(worker) for worker in found])
    elif found:
        rows = [[one.id[:8], one.host, ", ".join(sorted(one.queues)), one.slots, _state(one)] for one in found]
        print_table(("WORKER", "HOST", "QUEUES", "SLOTS", "STATE"), rows)
    else:
        print_text("none is alive: start one with `headrace celery worker MODULE:app`")


def _state(worker: FarmWorker) -> str:
    return "takes nothing" if worker.closing else "running"


def _document(worker: FarmWorker) -> dict[str, object]:
    facts = {"id": worker.id, "host": worker.host, "queues": sorted(worker.queues), "slots": worker.slots}
    return {**facts, "processes": sorted(worker.pids), "state": _state(worker)}
