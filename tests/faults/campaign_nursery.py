"""The processes of a campaign: forks of one that has imported everything, so that hundreds of deaths cost seconds.

Each fork is a process like any other: its own pid, session and connections, `headrace worker` as the command line
starts it, or a submitter. It dies with the nursery, and the nursery with the test.
"""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import signal
import sys
from datetime import timedelta
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, NoReturn

# Imported here so that the forks have them.
import headrace.cli.root
import headrace.cli.worker
import headrace.cli.working
import headrace.stores.postgres.foreign_runners
import headrace.stores.postgres.notifier
import headrace.wiring  # noqa: F401
from headrace.engine import batches, dead_letters
from headrace.engine.loops import aggregator, leadership
from tests.faults import campaign_clients, campaign_tasks
from tests.faults.campaign_guards import EDITS, switch_off
from tests.faults.failpoints import FIRED, POINTS, install, parse_points

_SET_DEATH_SIGNAL = 1
#: Whether a process may lead, and how long a failpoint that sleeps does so.
LEADS, SLEEP = "FAULTS_LEADS", "FAULTS_SLEEP"


@cache
def nursery() -> ForkServerContext:
    """Return the context whose processes are forks."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def work(environ: dict[str, str], output: str, arguments: list[str]) -> NoReturn:
    """Be a worker, as `headrace worker` starts it."""
    _settle(environ, output)
    sys.argv = ["headrace", "worker", *arguments, "--json"]
    from headrace.cli import main

    main()


def submit(environ: dict[str, str], output: str, arguments: list[str]) -> None:
    """Be a submitter: of one operation, or of load."""
    _settle(environ, output)
    token, name, stopping = arguments
    if name.startswith("load"):
        _, lanes, pause = name.split(":")
        asyncio.run(campaign_clients.run_load(token, int(lanes), float(pause), Path(stopping)))
    else:
        asyncio.run(campaign_clients.run_once(token, name, Path(stopping)))


def _settle(environ: dict[str, str], output: str) -> None:
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    os.environ.update(environ)
    for number, suffix in ((1, ""), (2, ".log")):
        target = os.open(output + suffix, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
        os.dup2(target, number)
        os.close(target)
    _shorten()
    if edits := environ.get(EDITS):
        switch_off(edits)
    points = parse_points(environ.get(POINTS, ""))
    if points:
        install(points, Path(environ[FIRED]), sleep=float(environ.get(SLEEP, "4.5")))


def _shorten() -> None:
    """Make the duties of a campaign come often; what they do is untouched."""
    leadership.TERM_LEASE = timedelta(seconds=1)
    leadership.Leadership.__init__.__defaults__ = (timedelta(seconds=0.3),)
    aggregator.OVERDUE_GRACE = timedelta(seconds=2)
    batches.SLICE_ITEMS = 10  # type: ignore[attr-defined]
    dead_letters.PATCHED_SLICE = 8
    if os.environ.get(LEADS) == "no":
        leadership.Leadership.step = _follow  # type: ignore[method-assign, assignment]


async def _follow(_self: Any) -> None:
    """Leave leadership to others."""


__all__ = ["campaign_tasks", "nursery", "submit", "work"]
