"""Failpoints: places at the boundary of a commit where a process of a campaign kills itself, freezes or fails.

Nothing of this is in the product. `install` wraps the verbs of the PostgreSQL stores, the statements under them, and
the scripts of the Redis store in the process that calls it, and only there. The boundaries are derived: every method of
a port that may write, every `.sql` file that writes or locks, and every `.lua` file that writes, each `before` it is
sent and `after` its answer came, before anybody used it. After a single statement or a script that is after its commit;
after a statement inside a transaction it is between two statements, or between the last one and COMMIT; after a verb
everything of it is committed.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import Any

from headrace.model.errors import StoreUnavailableError
from headrace.ports.admission import Admission
from headrace.ports.batch_store import BatchStore
from headrace.ports.control_store import ControlStore
from headrace.ports.foreign_intake import ForeignIntake
from headrace.ports.inbox import Inbox
from headrace.ports.job_store import JobStore
from headrace.ports.limiter import Limiter
from headrace.ports.memo_store import MemoStore
from headrace.ports.outbox import Outbox
from headrace.ports.schedule_store import ScheduleStore
from headrace.ports.session_store import SessionStore
from headrace.stores.postgres.admission import PostgresAdmission
from headrace.stores.postgres.batch_store import PostgresBatchStore
from headrace.stores.postgres.control_store import PostgresControlStore
from headrace.stores.postgres.database import Transaction
from headrace.stores.postgres.foreign import PostgresForeignIntake
from headrace.stores.postgres.foreign_runners import AsyncpgRunner
from headrace.stores.postgres.inbox import PostgresInbox
from headrace.stores.postgres.job_store import PostgresJobStore
from headrace.stores.postgres.limiter import PostgresLimiter
from headrace.stores.postgres.memo_store import PostgresMemoStore
from headrace.stores.postgres.outbox import PostgresOutbox
from headrace.stores.postgres.schedule_store import PostgresScheduleStore
from headrace.stores.postgres.session_store import PostgresSessionStore
from headrace.stores.redis.namespace import Namespace

#: The points of a process, as `format_points` writes them, and the file where what fired is noted.
POINTS, FIRED = "FAULTS_POINTS", "FAULTS_FIRED"
PORTS = {
    JobStore: PostgresJobStore, BatchStore: PostgresBatchStore, SessionStore: PostgresSessionStore,
    ControlStore: PostgresControlStore, MemoStore: PostgresMemoStore, ForeignIntake: PostgresForeignIntake,
    ScheduleStore: PostgresScheduleStore, Admission: PostgresAdmission, Limiter: PostgresLimiter,
    Outbox: PostgresOutbox, Inbox: PostgresInbox,
}  # fmt: skip
#: `admit_jobs` and `insert_events` write inside functions of the schema.
_WRITES = re.compile(
    r"\b(INSERT INTO|UPDATE|DELETE FROM|FOR SHARE|pg_notify|CREATE|LOCK|CALL|admit_jobs|insert_events)\b", re.IGNORECASE
)


class Action(StrEnum):
    """What happens at a point."""

    #: SIGKILL to itself
    KILL = "kill"
    #: SIGSTOP to itself; whoever watches sends SIGCONT
    STOP = "stop"
    #: the call fails as if the store were away; after the call: its answer is lost
    RAISE = "raise"
    #: the answer comes, or the call is sent, long after the lease has ended
    SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class Failpoint:
    """Do `action` at the `hit`-th pass of `boundary`, once."""

    boundary: str
    action: Action = Action.KILL
    hit: int = 1


def format_points(points: list[Failpoint]) -> str:
    """Return points as text for the environment of a process."""
    return ";".join(f"{point.boundary}={point.action}@{point.hit}" for point in points)


def parse_points(text: str) -> list[Failpoint]:
    """Read what `format_points` wrote."""
    points = []
    for part in filter(None, text.split(";")):
        boundary, _, rest = part.partition("=")
        action, _, hit = rest.partition("@")
        points.append(Failpoint(boundary, Action(action), int(hit)))
    return points


def port_verbs() -> list[str]:
    """Name every method of the ports that may write, as `Port.method`."""
    return [
        f"{port.__name__}.{name}"
        for port in PORTS
        for name, _ in inspect.getmembers(port, inspect.isfunction)
        if not name.startswith("_")
    ]


def writing_statements() -> list[str]:
    """Name every `.sql` file of the store that writes or takes row locks."""
    folder = files("headrace.stores.postgres") / "queries"
    texts = {entry.name: re.sub(r"--[^\n]*", "", entry.read_text("utf-8")) for entry in folder.iterdir()}
    return sorted(name for name, text in texts.items() if name.endswith(".sql") and _WRITES.search(text))


def writing_scripts() -> list[str]:
    """Name every `.lua` file of the Redis store that writes, by what it tells the server."""
    folder = files("headrace.stores.redis") / "scripts"
    texts = {entry.name: entry.read_text("utf-8") for entry in folder.iterdir() if entry.name.endswith(".lua")}
    return sorted(name for name, text in texts.items() if "no-writes" not in text.partition("\n")[0])


def sides(place: str) -> tuple[str, str]:
    """Return the two boundaries of a verb or statement."""
    return f"{place}:before", f"{place}:after"


class Failpoints:
    """The armed points of this process."""

    def __init__(self, points: list[Failpoint], fired: Path | None, *, sleep: float) -> None:
        self._points = {(point.boundary, point.hit): point for point in points}
        self._boundaries = {point.boundary for point in points}
        self._fired, self._sleep = fired, sleep
        self._passes: Counter[str] = Counter()
        self._lock = threading.Lock()

    async def reach(self, boundary: str) -> None:
        """Do what is due at a boundary."""
        if boundary not in self._boundaries:
            return
        with self._lock:  # the heartbeat has a thread of its own
            self._passes[boundary] += 1
            point = self._points.get((boundary, self._passes[boundary]))
        if point is not None:
            self._note(point)
            await self._act(point)

    async def _act(self, point: Failpoint) -> None:
        match point.action:
            case Action.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Action.STOP:
                os.kill(os.getpid(), signal.SIGSTOP)
            case Action.SLEEP:
                await asyncio.sleep(self._sleep)
            case Action.RAISE:
                raise StoreUnavailableError(f"a failpoint at {point.boundary}")

    def _note(self, point: Failpoint) -> None:
        if self._fired is None:
            return
        line = {"boundary": point.boundary, "action": point.action, "hit": point.hit, "pid": os.getpid()}
        with self._fired.open("ab", buffering=0) as log:
            log.write(json.dumps(line).encode() + b"\n")

    def around(self, place: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Wrap a verb."""
        before, after = sides(place)

        @wraps(call)
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            await self.reach(before)
            answer = await call(*args, **kwargs)
            await self.reach(after)
            return answer

        return wrapped

    def around_scripts(self, run: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Wrap what runs scripts by name."""

        @wraps(run)
        async def wrapped(runner: Any, name: str, /, *words: Any) -> Any:
            before, after = sides(f"{name}.lua")
            await self.reach(before)
            answer = await run(runner, name, *words)
            await self.reach(after)
            return answer

        return wrapped

    def around_statements(self, fetch: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """Wrap what runs statements by name."""

        @wraps(fetch)
        async def wrapped(runner: Any, name: str, /, **values: Any) -> Any:
            before, after = sides(f"{name}.sql")
            await self.reach(before)
            rows = await fetch(runner, name, **values)
            await self.reach(after)
            return rows

        return wrapped


def install(points: list[Failpoint], fired: Path | None = None, *, sleep: float = 1.0) -> None:
    """Arm points in this process, for good: call it only in a process made for it."""
    armed = Failpoints(points, fired, sleep=sleep)
    for runner in (Transaction, AsyncpgRunner):
        runner.fetch = armed.around_statements(runner.fetch)  # type: ignore[method-assign, assignment]
    Namespace.run = armed.around_scripts(Namespace.run)  # type: ignore[method-assign]
    adapters = {port.__name__: adapter for port, adapter in PORTS.items()}
    for verb in {point.boundary.rpartition(":")[0] for point in points} & set(port_verbs()):
        port, _, name = verb.partition(".")
        adapter = adapters[port]
        setattr(adapter, name, armed.around(verb, getattr(adapter, name)))
