"""`headrace serve`: the HTTP service of an app."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.loading import load_app
from headrace.cli.logs import LEVELS, log_to_stderr
from headrace.cli.long_running import run_long, settle
from headrace.cli.output import json_option, print_json, print_text
from headrace.cli.signals import StopSignals, exit_now
from headrace.cli.values import WholeType
from headrace.model.errors import ConfigError

if TYPE_CHECKING:
    from headrace.app import App

FLOWS = "headrace.apps.flows.worker:app"
_NEEDED = ("fastapi", "jinja2", "markupsafe", "starlette", "uvicorn")


@click.command()
@click.argument("app", metavar="[MODULE:app]", default=FLOWS)
@click.option("--host", help="Listen on this address of this machine.  [default: that of [service], 127.0.0.1]")
@click.option(
    "--port", metavar="N", type=WholeType("port", 0, 65_535),
    help="0 takes any free one.  [default: that of [service], 8400]",
)  # fmt: skip
@click.option(
    "--require-token", is_flag=True, show_default=False,
    help="Ask for a token on this machine too; beyond it one is always asked for.",
)  # fmt: skip
@click.option("--read-only", is_flag=True, show_default=False, help="Refuse everything that changes something.")
@click.option("--worker/--no-worker", default=False, help="Work the jobs of the app in this process too.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", help="What is logged to standard error.")
@json_option
def serve(  # noqa: PLR0913 - click hands over one per option
    app: str, host: str | None, port: int | None, require_token: bool, read_only: bool, worker: bool, log_level: str,
    as_json: bool,
) -> int:  # fmt: skip
    """Serve an app over HTTP: a dashboard, and an API of jobs, batches, runs, webhooks, events.

    \b
    /                                           the dashboard, in a browser
    /api/v1/jobs, batches, queues, workers, schedules, dead-letters, llm/pools
    /api/v1/workflows, runs, signals, events, handles, resume
    /api/v1/batches/ID/events, runs/ID/events   server-sent events as things happen
    /api/v1/details, papers, reports, memory    of apps that have them, as below
    /api/v1/openapi.json                        all of it, exactly
    /webhook/…                                  triggers of flows
    /metrics, /healthz, /readyz                 for Prometheus, and for who watches it

    Without MODULE:app it serves JSON flows. It runs until SIGTERM or Ctrl-C, and takes and shows work: that is done by
    `headrace worker MODULE:app`, or here with --worker.

    Whoever is on this machine may do everything. A service at an address that others reach asks everybody for a token
    of `headrace token create`, and does not start while there is none; with --require-token it asks here too. Work that
    is submitted with a webhook is told of when it ends, signed by a secret of [webhooks]. Settings: [service].

    --json writes a line with the URL when it listens.

    \b
    Examples:
      headrace serve
      headrace serve shop.flows:app --port 8401 --worker
      headrace serve headrace.apps.details.worker:app --worker
      headrace serve headrace.apps.papers.worker:app --worker
      headrace serve headrace.apps.memory.worker:app --worker
      headrace serve --host 0.0.0.0
      headrace serve shop.flows:app --read-only
      curl -sN http://127.0.0.1:8400/api/v1/batches/ID/events -H 'Last-Event-ID: 12'
    """
    log_to_stderr(log_level, as_json=as_json)
    if log_level == "info":
        # A line per job is for --log-level debug.
        logging.getLogger("headrace.jobs").setLevel(logging.WARNING)
    serving = service_module()
    served = load_app(app)
    address = serving.address_of(served, host, port, require_token=require_token, read_only=read_only)
    return run_long(_serve(serving, served, address, worker=worker, as_json=as_json))


def service_module() -> Any:
    """Return the module that serves. Commands and service import one another in no other way. Raises ConfigError."""
    try:
        return import_module("headrace.service.serving")
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        raise ConfigError(f"the service needs the package {error.name}: pip install 'headrace[service]'") from None


async def _serve(serving: Any, app: App, address: Any, *, worker: bool, as_json: bool) -> int:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    signals = StopSignals(lambda: loop.call_soon_threadsafe(stopping.set), exit_now)
    signals.install()

    def announce(url: str) -> None:
        settle()
        if as_json:
            print_json({"event": "started", "url": url, "pid": os.getpid()})
        else:
            print_text(f"serving on {url}; Ctrl-C stops")
        sys.stdout.flush()

    await serving.serve(app, address, worker=worker, stopping=stopping, announce=announce)
    return signals.exit_code
