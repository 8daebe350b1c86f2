"""Agents as the engine knows them, and what a handler may ask of the message it handles."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Unpack
from uuid import UUID

from headrace.model.backoff import Backoff
from headrace.model.emitting import Emission, EventOptions, check_options
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.event import Event
from headrace.model.gathering import Gather
from headrace.model.inbox import Effect
from headrace.model.job import NewJob
from headrace.model.names import check_key
from headrace.model.payload import encode_json

LOG = logging.getLogger("headrace.agent")


class OnError(StrEnum):
    """What becomes of an event whose handler raised."""

    #: tried again after a while; its key waits, others go on
    RETRY = "retry"
    #: put into the topic's dead letters, with the cause
    DEAD_LETTER = "dead_letter"
    #: counted and passed over
    DROP = "drop"


#: Of one event, or of several where the agent has a `batch_size`.
Handler = Callable[[Event, "AgentContext"], Any] | Callable[[list[Event], "EventsContext"], Any]
#: Says whether an agent handles an event of a type it has a handler for.
Where = Callable[[Event], bool]
#: Says what becomes of an event whose handler raised; asked in each attempt.
Classify = Callable[[Event, Exception], OnError]


@dataclass(slots=True)
class AgentDef:
    """One agent."""

    id: str
    group: str
    concurrency: int
    backoff: Backoff
    timeout: timedelta | None
    classify: Classify | None
    handlers: dict[str, Handler] = field(default_factory=dict)
    #: Of the types that it does not handle every event of.
    filters: dict[str, Where] = field(default_factory=dict)
    #: Beside those that follow from the types of its handlers.
    topics: tuple[str, ...] = ()
    #: Whether events of one key wait for each other.
    ordered: bool = True
    #: A handler takes several events at once; None: one.
    gather: Gather | None = None

    def handler_for(self, event: Event) -> Handler | None:
        """Return what handles an event; None: it is passed over. Raises what the filter of its type raises."""
        wanted = self.filters.get(event.type)
        return self.handlers.get(event.type) if wanted is None or wanted(event) else None


@dataclass(slots=True)
class AgentContext:
    """The handling of one event, in one attempt. What it collects is stored together with the note that the event was
    handled, in one transaction, once the handler has returned; nothing of it if the handler raises.

    >>> async def handler(event: Event, ctx: AgentContext) -> None:
    ...     ctx.emit("Genesis.Session.DetailBatchCreated", {"items": []})
    """

    event: Event
    #: Canonical id of the agent.
    agent: str
    #: 1 for the first try since this process received the event.
    attempt: int
    emission: Emission = field(repr=False)
    #: Makes the job of a task call: task or call with options, arguments.
    new_job: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], NewJob] = field(repr=False)
    #: Whether the store can take the user's own writes.
    can_write: bool = field(repr=False)
    #: What the app's `lifespan` yielded, per process.
    resources: Any = field(default=None, repr=False)
    effect: Effect = field(default_factory=Effect, repr=False)

    @property
    def idempotency_key(self) -> str:
        """A key that is the same whenever this agent handles this event: send it to systems that take one."""
        return f"{self.agent}:{self.event.id}"

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that names agent, event and correlation."""
        facts = {"agent": self.agent, "event_id": self.event.id, "correlation_id": self.event.correlation_id}
        return logging.LoggerAdapter(LOG, facts)

    def emit(self, type: str, payload: Any = None, **options: Unpack[EventOptions]) -> Event:
        """Let an event follow: of the same aggregate and correlation, caused by the one handled, with its retries.

        Raises InvalidInputError naming field and rule, PayloadTooLargeError.
        """
        check_options(options)
        event = self.event
        follows: EventOptions = {
            "aggregate_id": event.aggregate_id, "aggregate_type": event.aggregate_type,
            "correlation_id": event.correlation_id, "causation_id": event.id,
            "retries": event.retries + self.attempt - 1,
        }  # fmt: skip
        made = self.emission.make(type, payload, {**follows, **options})
        self.effect.events.append(made)
        assert made.event is not None
        return made.event

    def enqueue(self, task: Any, *args: Any, **kwargs: Any) -> UUID:
        """Let a job be enqueued: of a task, or of one with options; return its id. Raises as `Task.enqueue`."""
        job = self.new_job(task, args, kwargs)
        self.effect.jobs.append(job)
        return job.id

    def signal(self, key: str, payload: Any = None) -> None:
        """Let a signal be sent, as `App.signal` does."""
        self.effect.signals.append((check_key("signal key", key), encode_json(payload, field="signal payload")))

    def in_transaction(self, write: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any) -> None:
        """Let `await write(connection, …)` be called within the transaction, with its asyncpg connection.

        It may be called again when the transaction meets a deadlock. What it says to this context meanwhile, such as
        `enqueue` for what it found, is stored as well; it must not ask the app, which needs a connection more. What it
        raises is an error of the handler. Raises ConfigError where the store is no database.
        """
        if not self.can_write:
            raise ConfigError("ctx.in_transaction writes on the connection of a PostgreSQL store; this one has none")
        if not asyncio.iscoroutinefunction(write):
            raise InvalidInputError("write", "must be an async function that takes a connection first", repr(write))

        async def run(connection: Any) -> None:
            await write(connection, *args, **kwargs)

        self.effect.writes.append(run)


@dataclass(frozen=True, slots=True)
class EventsContext:
    """The handling of several events in one call. What it collects, for one of them or for all, is stored together with
    the notes that they were handled, in one transaction, once the handler has returned; nothing of it if that raises.

    >>> async def handler(events: list[Event], ctx: EventsContext) -> None:
    ...     for event in events:
    ...         ctx.of(event).emit("Genesis.Session.DetailBatchCreated", {"items": []})
    """

    #: Those of the call, in the order of each key.
    events: tuple[Event, ...]
    _first: AgentContext = field(repr=False)

    @property
    def agent(self) -> str:
        """Canonical id of the agent."""
        return self._first.agent

    @property
    def attempt(self) -> int:
        """1, or more for an event that is tried again alone."""
        return self._first.attempt

    @property
    def resources(self) -> Any:
        """What the app's `lifespan` yielded, per process."""
        return self._first.resources

    def of(self, event: Event) -> AgentContext:
        """Return the context of one of the events: for what follows from it, its key and its log."""
        return replace(self._first, event=event)

    def enqueue(self, task: Any, *args: Any, **kwargs: Any) -> UUID:
        """Let a job be enqueued, as `AgentContext.enqueue` does."""
        return self._first.enqueue(task, *args, **kwargs)

    def signal(self, key: str, payload: Any = None) -> None:
        """Let a signal be sent, as `App.signal` does."""
        self._first.signal(key, payload)

    def in_transaction(self, write: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any) -> None:
        """Let `await write(connection, …)` be called within the transaction, as `AgentContext.in_transaction` does."""
        self._first.in_transaction(write, *args, **kwargs)
