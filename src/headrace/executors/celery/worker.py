"""A worker of the farm: Celery's prefork worker with one task."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol
from uuid import uuid4

from celery import bootsteps, signals
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.executors.celery.beat import Beat, Pulse
from headrace.executors.celery.site import CALL, PATIENCE, CelerySite
from headrace.model.farm import FarmWorker

LOG = logging.getLogger("headrace.celery")
#: How often a worker asks whether its server is still the one it is connected to.
PING_SECONDS = 1.0
#: They win over what Celery is told, and the settings are the only place that names a broker.
_FOREIGN = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL")


class Process(Protocol):
    """What each process of the pool does."""

    def begin(self, worker: str) -> None:
        """Begin in a new process of a worker."""
        ...

    def work(self, job: Any, attempt: Any, session: Any) -> None:
        """Work a message."""
        ...

    def end(self) -> None:
        """End in order."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker of the farm is to do."""

    queues: Collection[str]
    #: Jobs at once, each in a process.
    concurrency: int
    #: How long an attempt may take at most.
    longest: timedelta
    log_level: str = "info"


def run_worker(site: CelerySite, process: Process, options: WorkerOptions) -> int:
    """Work the queues until SIGTERM, then let what runs end; return the exit code."""
    for name in _FOREIGN:
        os.environ.pop(name, None)
    worker_id = uuid4().hex
    celery = site.celery(options.longest)
    celery.conf.task_queues = [site.celery_queue(queue) for queue in options.queues]
    celery.conf.task_create_missing_queues = False
    pulse = Pulse()
    celery.steps["consumer"].add(_notices_breaks(site, pulse))
    celery.task(name=CALL, ignore_result=True)(_task(process))
    worker: Any = celery.Worker(
        hostname=f"headrace-{worker_id[:8]}@{socket.gethostname()}",
        pool_cls="prefork",
        concurrency=options.concurrency,
        loglevel=options.log_level.upper(),
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    said = FarmWorker(worker_id, socket.gethostname(), frozenset(options.queues), options.concurrency, frozenset(), 0.0)
    beat = Beat(site, said, lambda: _pids(worker), pulse)
    _connect(beat, process)
    worker.start()
    beat.stop()
    return int(worker.exitcode or 0)


def _notices_breaks(site: CelerySite, pulse: Pulse) -> type[Any]:
    """Return a step of Celery's consumer that lets it connect anew whenever its server was away, and gives it a pulse.

    A message that cannot be acknowledged because the connection broke counts as unacknowledged from then on. When all
    slots are taken that way the consumer asks for nothing more, so that it never meets the error that would help it.
    """

    # Celery has no types.
    class NoticesBreaks(bootsteps.StartStopStep):  # type: ignore[misc]
        requires = ("celery.worker.consumer.tasks:Tasks",)
        client: Any = None
        entry: Any = None

        def start(self, parent: Any) -> None:
            # One connection that never connects again by itself: a break is an error, which the consumer then has.
            self.client = Redis.from_url(
                site.url, single_connection_client=True, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE,
                retry=Retry(NoBackoff(), 0),
            )  # fmt: skip
            self.entry = parent.timer.call_repeatedly(PING_SECONDS, self.ping)
            pulse.note()

        def ping(self) -> None:
            self.client.ping()
            pulse.note()

        def stop(self, parent: Any) -> None:
            if self.entry is not None:
                self.entry.cancel()
                self.client.close()
                self.client = self.entry = None

    return NoticesBreaks


def _task(process: Process) -> Callable[[Any, Any, Any], None]:
    # Celery wants a function that it may name.
    def call(job: Any, attempt: Any, session: Any) -> None:
        process.work(job, attempt, session)

    return call


def _connect(beat: Beat, process: Process) -> None:
    """Let the hooks and the beat follow the worker's life; Celery holds receivers weakly unless told otherwise."""
    receivers = {
        signals.worker_ready: lambda **_: beat.start(),
        signals.worker_shutting_down: lambda **_: beat.close(),
        signals.worker_process_init: lambda **_: process.begin(beat.said.id),
        signals.worker_process_shutdown: lambda **_: process.end(),
        # Its own would take the place of the logging that the command line has set up.
        signals.setup_logging: lambda **_: None,
    }
    for signal, receiver in receivers.items():
        signal.connect(receiver, weak=False)


def _pids(worker: Any) -> list[int]:
    """Return the processes of the pool; it is filled and emptied by another thread."""
    pool = getattr(getattr(worker, "pool", None), "_pool", None)
    return [process.pid for process in list(getattr(pool, "_pool", ())) if process.pid is not None]
