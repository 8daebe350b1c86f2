"""Where workers and farm meet: the broker, the names of queues and keys there, and how Celery is set."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from celery import Celery
from kombu.entity import Queue

#: The one Celery task. Tasks of the app are found by their names in its registry, with the job.
CALL = "headrace.call"
#: The broker hands out again what was not acknowledged for so long beyond the longest timeout.
VISIBILITY_MARGIN = timedelta(minutes=1)
#: Seconds until a broker that does not answer is away.
PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class CelerySite:
    """A broker, and the prefix of everything that is ours there."""

    url: str = field(repr=False)
    prefix: str

    def queue_name(self, queue: str) -> str:
        """Return the Celery queue of a queue."""
        return f"{self.prefix}.{queue}"

    def key(self, name: str) -> str:
        """Return a key, or a channel, beside those of Celery."""
        return f"{self.prefix}:farm:{name}"

    def celery(self, longest: timedelta) -> Celery:
        """Return Celery set for a farm whose tasks have `longest` as their longest timeout.

        JSON only, in both directions; acknowledged when the work is done, or lost with its process; no message waits
        in a process that is busy; no retries and no results, which are ours.
        """
        celery = Celery("headrace", broker=self.url, set_as_current=False)
        celery.conf.update(
            accept_content=["json"], result_accept_content=["json"], task_serializer="json", result_serializer="json",
            event_serializer="json", task_acks_late=True, task_reject_on_worker_lost=True, task_ignore_result=True,
            worker_prefetch_multiplier=1, task_publish_retry=False, broker_connection_retry_on_startup=True,
            broker_connection_max_retries=None, worker_enable_remote_control=False, worker_send_task_events=False,
            worker_hijack_root_logger=False, worker_redirect_stdouts=False,
            broker_transport_options=self._transport_options(longest),
        )  # fmt: skip
        return celery

    def _transport_options(self, longest: timedelta) -> dict[str, Any]:
        # Keys of our own: another application on this broker has another timeout.
        return {
            "visibility_timeout": math.ceil((longest + VISIBILITY_MARGIN).total_seconds()),
            "unacked_key": self.key("unacked"),
            "unacked_index_key": self.key("unacked-index"),
            "unacked_mutex_key": self.key("unacked-mutex"),
            "socket_connect_timeout": PATIENCE,
            "socket_keepalive": True,
        }

    def celery_queue(self, queue: str) -> Queue:
        """Return the Celery queue of a queue for one who sends or takes."""
        return Queue(self.queue_name(queue), routing_key=self.queue_name(queue))  # type: ignore[no-untyped-call]


def longest_timeout(timeouts: Iterable[timedelta | None], usual: timedelta) -> timedelta:
    """Return the longest of the timeouts that tasks declare; None stands for the usual one."""
    return max((timeout or usual for timeout in timeouts), default=usual)
