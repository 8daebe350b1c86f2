"""What a handler may ask of the attempt it runs in."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Unpack
from uuid import UUID

from headrace.engine.kept_lines import NOTHING_KEPT, KeepingLogger, KeptLines, LineKeeping, Logger
from headrace.model.emitting import Emission, EventOptions, check_options, stable_id
from headrace.model.errors import InvalidInputError
from headrace.model.event import Event, Outgoing
from headrace.model.job import RunInfo
from headrace.model.names import check_key, check_name
from headrace.model.payload import encode_json, hash_text

LOG = logging.getLogger("headrace.task")
#: Held while an attempt gets its lines: its handler may write the first ones from several threads.
_MAKING = threading.Lock()


class Steps(Protocol):
    """Where checkpoints of one attempt are kept; the engine fills it from the job store."""

    async def load(self) -> dict[str, str]:
        """Return what earlier attempts stored."""
        ...

    async def save(self, name: str, value: str) -> str:
        """Store a value under the attempt's fence and return what is stored."""
        ...


@dataclass(slots=True)
class GatherContext:
    """One call of a handler for several jobs (`batch_size`), injected by annotation.

    >>> async def handler(texts: list[str], ctx: GatherContext) -> list[int]:
    ...     return ctx.resources.embed(texts)
    """

    task: str
    queue: str
    #: The jobs, in the order of the list.
    job_ids: tuple[UUID, ...]
    #: When the call will be stopped (aware, UTC).
    deadline: datetime
    #: What the app's `lifespan` yielded, per worker.
    resources: Any = field(default=None, repr=False)
    on_activity: Callable[[], None] = field(default=lambda: None, repr=False)
    #: Whether this call should end; sync handlers look at it, async ones are cancelled.
    cancelled: bool = False
    #: Keeps what it logs for the attempts of all its jobs.
    keeping: LineKeeping = field(default=NOTHING_KEPT, repr=False)
    keep: Callable[[str], None] = field(default=lambda _: None, repr=False)

    @property
    def log(self) -> Logger:
        """A logger that names the task; its lines are kept with the attempts of all the jobs."""
        return KeepingLogger(LOG, {"task": self.task}, self.keeping, self.keep)

    def progress(self, message: str = "") -> None:
        """Report that the handler is active: renews the task's stall timer for all its jobs."""
        if message:
            self.log.info("%s", message)
        self.on_activity()


@dataclass(slots=True)
class Context:
    """The attempt, injected into a handler by annotation.

    >>> async def handler(path: str, ctx: Context) -> int:
    ...     pages = await ctx.step("pages", lambda: [1, 2, 3])
    ...     return len(pages)
    """

    #: At workflow level all nodes of a run share the run's job; `idempotency_key` tells them apart.
    job_id: UUID
    task: str
    queue: str
    #: 1 for the first run; it counts every claim, also after a snooze or a release, unlike `max_attempts`.
    attempt: int
    #: When the attempt will be stopped (aware, UTC).
    deadline: datetime
    steps: Steps = field(repr=False)
    #: What the app's `lifespan` yielded, per worker.
    resources: Any = field(default=None, repr=False)
    batch_id: UUID | None = None
    #: Position of the item in its batch.
    index: int | None = None
    #: The time of a schedule that this job was made for (aware, UTC); None for a job of none.
    scheduled_at: datetime | None = None
    on_activity: Callable[[], None] = field(default=lambda: None, repr=False)
    #: Whether the handler is a sync function: its steps run in threads too.
    in_thread: bool = field(default=False, repr=False)
    #: The run of a workflow that this call is a node of; None for a job by itself.
    run: RunInfo | None = None
    #: Whether this is the last of the tries: a failure now is the end, so what is better than none is to be returned.
    last_try: bool = False
    #: Whether this attempt should end; sync handlers look at it, async ones are cancelled.
    cancelled: bool = False
    #: How events of the app are made.
    emission: Emission = field(default_factory=Emission, repr=False)
    #: What leaves with its success.
    emitted: list[Outgoing] = field(default_factory=list, repr=False)
    #: How its lines are kept.
    keeping: LineKeeping = field(default=NOTHING_KEPT, repr=False)
    _stored: dict[str, str] | None = field(default=None, repr=False)
    _sent: Counter[str] = field(default_factory=Counter, repr=False)
    _used: set[str] = field(default_factory=set, repr=False)
    _lines: KeptLines | None = field(default=None, repr=False)

    @property
    def idempotency_key(self) -> str:
        """A key that is the same for every attempt of this call: send it to systems that take one.

        Of a job by itself it is the job's id. Each node of a run has its own, whether one job or many run the graph,
        and keeps it when the run is handed over; so has each entry of a map and each round of a loop.
        """
        return str(self.identity)

    @property
    def identity(self) -> UUID:
        """The id behind `idempotency_key`."""
        return self.job_id if self.run is None else self.run.identity

    def emit(self, type: str, payload: Any = None, **options: Unpack[EventOptions]) -> Event:
        """Let an event leave with the success of this call, in the same transaction; if it fails, none leaves.

        `type`: "Domain.Aggregate.Event"; `payload`: any JSON. Needs `aggregate_id`; see `EventOptions`. Raises
        InvalidInputError naming field and rule, PayloadTooLargeError, ConfigError where the store has no outbox. For an
        event that has to leave before the call ends, such as a request whose answer it waits for: `await app.emit(…)`.

        >>> def handler(order: str, ctx: Context) -> None:
        ...     ctx.emit("Shop.Order.Packed", {"parcels": 2}, aggregate_id=order)
        """
        made = self.emission.make(type, payload, self.event_options(options))
        self.emitted.append(made)
        assert made.event is not None
        return made.event

    def event_options(self, options: EventOptions) -> EventOptions:
        """Return the options of an event with what follows from this call. Raises InvalidInputError."""
        check_options(options)
        correlation = None if self.run is None else self.run.correlation_id
        return {"correlation_id": correlation, "causation_id": str(self.identity), **options}

    def event_id(self, type: str, payload: Any, options: EventOptions, key: str | None) -> str:
        """Return the id of an event that leaves before the call ends: the same when the handler runs again.

        By its key, or by what it says and how often this attempt has said it.
        """
        if key is not None:
            return stable_id(self.identity, f"event {type} key {check_key('key', key)}")
        said = hash_text(type, encode_json([payload, dict(options)], field="event payload", most=sys.maxsize))
        self._sent[said] += 1
        return stable_id(self.identity, f"event {said} {self._sent[said]}")

    @property
    def log(self) -> Logger:
        """A logger that names job, task and attempt.

        Its last lines are kept with the attempt (`[worker] keep_log_lines`) and shown by `headrace job logs`.

        >>> def handler(path: str, ctx: Context) -> None:
        ...     ctx.log.info("read %s", path)
        """
        return KeepingLogger(LOG, _facts(self), self.keeping, self.keep)

    def keep(self, line: str) -> None:
        """Keep a line of `keeping` with the attempt; for the engine."""
        if self.keeping.most:
            self._kept_lines().add(line)

    def keep_of_node(self, path: str, log: str) -> None:
        """Keep what was kept of a node that ran within the attempt; for the engine."""
        if self.keeping.most:
            self._kept_lines().add_log(log, path)

    def _kept_lines(self) -> KeptLines:
        with _MAKING:
            if self._lines is None:
                self._lines = KeptLines(self.keeping.most)
            return self._lines

    @property
    def kept_log(self) -> str | None:
        """What was kept so far, as it is stored; None: nothing was logged."""
        return None if self._lines is None else self._lines.text

    def progress(self, message: str = "") -> None:
        """Report that the handler is active: renews the task's stall timer."""
        if message:
            self.log.info("%s", message)
        self.on_activity()

    async def step(self, name: str, run: Callable[[], Any | Awaitable[Any]]) -> Any:
        """Run `run` once per job and return its value; later attempts get the stored value without running it.

        `name` is unique within the handler; the value must be JSON. Raises InvalidInputError for a name used twice
        in one attempt, FenceLostError when the job runs elsewhere by now. In a sync handler:
        `app.sync(ctx.step("name", run))`; `run` is then called in a thread as well.
        """
        check_name("step", name)
        if name in self._used:
            raise InvalidInputError("step", "must be used once per handler; number the names of a loop", name)
        self._used.add(name)
        if self._stored is None:
            self._stored = await self.steps.load()
        if name not in self._stored:
            value = await asyncio.to_thread(run) if self.in_thread else run()
            if isinstance(value, Awaitable):
                value = await value
            self._stored[name] = await self.steps.save(name, encode_json(value, field=f"step {name}"))
            self.on_activity()
        return json.loads(self._stored[name])


def _facts(context: Context) -> dict[str, object]:
    return {"job_id": str(context.job_id), "task": context.task, "attempt": context.attempt}


def engine_log(context: Context) -> Logger:
    """Return the logger of an attempt for what the engine says of it: that is not kept as its handler's.

    It would be written for every job that waits for a limit, which says nothing of its own.
    """
    return logging.LoggerAdapter(LOG, _facts(context))


#: The context of the handler that runs here, if one does.
CURRENT: ContextVar[Context | None] = ContextVar("headrace_context", default=None)
