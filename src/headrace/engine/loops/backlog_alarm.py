"""The backlog alarm: says once when too many jobs of a queue wait or one waits too long, and once when that is over.

It runs on the leader, by the thresholds that are stored with the queue, whoever declared them. Guaranteed: one alarm
per crossing while one process leads, however the backlog hovers about its threshold. Not guaranteed: that a crossing
shorter than the interval is seen, and that a new leader does not say again what the last one said.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.telemetry import Telemetry
from headrace.model.backlog import Backlog, QueueState
from headrace.model.durations import format_duration
from headrace.model.queue import QueueRule
from headrace.model.stats import QueueStats
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.queues.backlog")

#: A hook that takes longer is left: the next alarm must not wait for it.
HOOK_SECONDS = 10.0

#: Called with each change; a coroutine function, or one that is called in a thread.
BacklogHook = Callable[[Backlog], Any]


class BacklogAlarm(Loop):
    """Looks at queues that have an alarm; where none has one it costs a read of a few rows."""

    name = "backlog-alarm"

    def __init__(
        self, stores: Stores, leadership: Leadership, telemetry: Telemetry, *, hooks: Sequence[BacklogHook] = (),
        interval: timedelta = timedelta(seconds=10),
    ) -> None:  # fmt: skip
        super().__init__(interval)
        self._stores = stores
        self._leadership = leadership
        self._telemetry = telemetry
        self._hooks = hooks
        #: The queues that are alarmed.
        self._ringing: set[str] = set()

    async def step(self) -> None:
        """Look once, if this process leads."""
        if self._leadership.term is None:
            if self._ringing:
                # The next leader counts them: two gauges would add up.
                self._ringing.clear()
                self._telemetry.gauge("headrace.queues.alarmed", 0)
            return
        states = await self._stores.control.queue_states()
        if not self._ringing and not any(state.alarm for state in states.values()):
            return
        for queue in await self._stores.inspect.queue_stats():
            await self._judge(queue)
        self._telemetry.gauge("headrace.queues.alarmed", len(self._ringing))

    async def _judge(self, queue: QueueStats) -> None:
        before = queue.name in self._ringing
        rings = queue.alarm.rings(queue.ready, queue.oldest_ready_age, before=before)
        if rings == before:
            return
        if rings:
            self._ringing.add(queue.name)
            self._telemetry.count("headrace.queues.backlog")
        else:
            self._ringing.remove(queue.name)
        backlog = Backlog(queue.name, queue.ready, queue.oldest_ready_age, queue.alarm, rings)
        _log(backlog)
        for hook in self._hooks:
            await _tell(hook, backlog)


async def declare_alarms(stores: Stores, rules: Iterable[QueueRule]) -> None:
    """Store the alarms that an app declares; a declared queue without one has none any more."""
    declared = {rule.name: rule.alarm for rule in rules}
    stored = await stores.control.queue_states() if declared else {}
    changed = {name: alarm for name, alarm in declared.items() if alarm != stored.get(name, QueueState()).alarm}
    if changed:
        await stores.control.set_alarms(changed)


def _log(backlog: Backlog) -> None:
    age = backlog.oldest_ready_age
    oldest = "" if age is None else f", the oldest for {format_duration(age)}"
    facts = {"queue": backlog.queue, "ready": backlog.ready, "rings": backlog.rings}
    what = f"(alarm at {backlog.alarm})" if backlog.rings else "(the backlog is no alarm any more)"
    level = logging.WARNING if backlog.rings else logging.INFO
    LOG.log(level, "queue %s: %d jobs are ready%s %s", backlog.queue, backlog.ready, oldest, what, extra=facts)


async def _tell(hook: BacklogHook, backlog: Backlog) -> None:
    try:
        async with asyncio.timeout(HOOK_SECONDS):
            told = hook(backlog) if inspect.iscoroutinefunction(hook) else asyncio.to_thread(hook, backlog)
            await told
    except Exception:
        LOG.exception("a hook for the backlog of queue %s failed", backlog.queue)
