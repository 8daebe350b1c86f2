"""The memory store: every port over dicts, for tests, the simulation and `App("memory://")` in one process.

It passes the conformance suite of the durable stores, so what holds here holds there; only durability is missing.
"""

from __future__ import annotations

from headrace.clock import SystemClock
from headrace.ports.clock import Clock
from headrace.ports.notifier import Notifier
from headrace.ports.stores import EventStores, Stores
from headrace.stores.memory.admission import MemoryAdmission
from headrace.stores.memory.audit_store import MemoryAuditStore
from headrace.stores.memory.batch_store import MemoryBatchStore
from headrace.stores.memory.budget_store import MemoryBudgetStore
from headrace.stores.memory.call_store import MemoryCallStore
from headrace.stores.memory.control_store import MemoryControlStore
from headrace.stores.memory.feed_store import MemoryFeedStore
from headrace.stores.memory.handle_store import MemoryHandleStore
from headrace.stores.memory.inbox import MemoryInbox
from headrace.stores.memory.inspect import MemoryInspect
from headrace.stores.memory.job_store import MemoryJobStore
from headrace.stores.memory.limiter import MemoryLimiter
from headrace.stores.memory.memo_retention import DatedMemoStore
from headrace.stores.memory.message_log import MemoryMessageLog
from headrace.stores.memory.name_store import MemoryNameStore
from headrace.stores.memory.notifier import MemoryNotifier
from headrace.stores.memory.outbox import MemoryOutbox
from headrace.stores.memory.run_store import MemoryRunStore
from headrace.stores.memory.schedule_store import MemoryScheduleStore
from headrace.stores.memory.session_store import MemorySessionStore
from headrace.stores.memory.signal_store import MemorySignalStore
from headrace.stores.memory.state import State
from headrace.stores.memory.token_store import MemoryTokenStore
from headrace.stores.memory.workflow_store import MemoryWorkflowStore


def open_memory_stores(clock: Clock | None = None) -> Stores:
    """Return empty stores that share one memory; `clock` is their time (default: this machine's).

    >>> stores = open_memory_stores()
    >>> stores.foreign is None
    True
    """
    return stores_over(State(clock or SystemClock()), MemoryNotifier())


def stores_over(state: State, notifier: Notifier) -> Stores:
    """Return the stores over tables that the caller may look at, with a notifier of the caller's."""
    memo = DatedMemoStore(state)
    return Stores(
        jobs=MemoryJobStore(state, notifier),
        batches=MemoryBatchStore(state),
        sessions=MemorySessionStore(state),
        control=MemoryControlStore(state),
        inspect=MemoryInspect(state),
        memo=memo,
        schedules=MemoryScheduleStore(state),
        notifier=notifier,
        private_sessions=None,
        foreign=None,
        close=notifier.close,
        admission=MemoryAdmission(state),
        limiter=MemoryLimiter(state),
        calls=MemoryCallStore(state, memo),
        budgets=MemoryBudgetStore(state),
        names=MemoryNameStore(state),
        runs=MemoryRunStore(state, notifier),
        workflows=MemoryWorkflowStore(state),
        signals=MemorySignalStore(state, notifier),
        feeds=MemoryFeedStore(state, notifier),
        tokens=MemoryTokenStore(state),
        audit=MemoryAuditStore(state),
        events=_event_stores(state, notifier),
    )


def _event_stores(state: State, notifier: Notifier) -> EventStores:
    return EventStores(
        outbox=MemoryOutbox(state, notifier),
        inbox=MemoryInbox(state, notifier),
        log=MemoryMessageLog(state, notifier),
        handles=MemoryHandleStore(state, notifier),
    )
