"""The bundle of ports that one backend fills."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from headrace.ports.admission import Admission
from headrace.ports.audit_store import AuditStore
from headrace.ports.batch_store import BatchStore
from headrace.ports.budget_store import BudgetStore
from headrace.ports.call_store import CallStore
from headrace.ports.control_store import ControlStore
from headrace.ports.feed_store import FeedStore
from headrace.ports.foreign_intake import ForeignIntake
from headrace.ports.handle_store import HandleStore
from headrace.ports.inbox import Inbox
from headrace.ports.inspect import Inspect
from headrace.ports.job_store import JobStore
from headrace.ports.limiter import Limiter
from headrace.ports.memo_store import MemoStore
from headrace.ports.message_log import MessageLog
from headrace.ports.name_store import NameStore
from headrace.ports.notifier import Notifier
from headrace.ports.outbox import Outbox
from headrace.ports.own_tables import OwnTables
from headrace.ports.run_store import RunStore
from headrace.ports.schedule_store import ScheduleStore
from headrace.ports.session_store import SessionStore
from headrace.ports.signal_store import SignalStore
from headrace.ports.token_store import TokenStore
from headrace.ports.workflow_store import WorkflowStore


@dataclass(frozen=True, slots=True)
class EventStores:
    """What a store has for events: all of it commits with jobs, or it is absent."""

    outbox: Outbox
    inbox: Inbox
    log: MessageLog
    handles: HandleStore


@dataclass(frozen=True, slots=True)
class Stores:
    """One backend, opened. `close` ends its connections."""

    jobs: JobStore
    batches: BatchStore
    sessions: SessionStore
    control: ControlStore
    inspect: Inspect
    memo: MemoStore
    notifier: Notifier
    #: Opens a session store with a connection of its own, on the event loop and thread that calls it: the heartbeat
    #: must not wait for the pool. None where the store lives in this process.
    private_sessions: Callable[[], AbstractAsyncContextManager[SessionStore]] | None
    #: None where the store is not the caller's database.
    foreign: ForeignIntake | None
    close: Callable[[], Awaitable[None]]
    admission: Admission
    #: Buckets in the store itself; one beside it (Redis) is opened apart and takes its place.
    limiter: Limiter
    calls: CallStore
    budgets: BudgetStore
    names: NameStore
    runs: RunStore
    workflows: WorkflowStore
    signals: SignalStore
    feeds: FeedStore
    tokens: TokenStore
    audit: AuditStore
    #: None: the store keeps no schedules.
    schedules: ScheduleStore | None = None
    #: What is for events; None: the store has no outbox, so that events need another one.
    events: EventStores | None = None
    #: None: the store is no database that tables of the user's may lie in.
    own_tables: OwnTables | None = None
