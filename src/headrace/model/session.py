"""Sessions: one start of a worker, its lease, and where its process lives."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from headrace.model.errors import HeadraceError

#: How long a session that ended is still listed.
SESSION_RETENTION = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that can be told apart from any other: `host` names one kernel boot and pid namespace."""

    host: str
    pid: int
    start_time: int


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to register; its lease runs from the store's clock."""

    process: ProcessId
    hostname: str
    queues: dict[str, int]
    lease: timedelta
    id: UUID = field(default_factory=uuid4)


@dataclass(frozen=True, slots=True)
class Renewal:
    """The answer to a heartbeat: whether the session still lives, and which of its jobs are to be cancelled."""

    alive: bool
    cancel_jobs: tuple[UUID, ...] = ()


class Role(StrEnum):
    """What there is one leader of."""

    #: the duties of workers: sweeps, schedules, history
    ENGINE = "engine"
    #: taking events from the outbox to the bus
    RELAY = "relay"


@dataclass(frozen=True, slots=True)
class LeaderTerm:
    """Proof of leadership: every write of the leader names it and is refused once another term began."""

    session: UUID
    term: int
    role: Role = Role.ENGINE


class TermOverError(HeadraceError):
    """The leader's term is over: another process may lead. Nothing was written; lead again and do it then."""

    code = "term_over"


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session, for reading. `stats` is what its worker reported with its last heartbeat."""

    id: UUID
    hostname: str
    process: ProcessId
    queues: dict[str, int]
    started_at: datetime
    expires_at: datetime
    alive: bool
    running: int
    stats: dict[str, Any]
