"""Agents as people write them: a name, and handlers by type of event."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from headrace.engine.events.agents import AgentContext, AgentDef, Classify, Handler, Where
from headrace.model.agent_ids import canonical_id
from headrace.model.backoff import Backoff
from headrace.model.durations import parse_duration
from headrace.model.emitting import Emission
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.event import Event, check_topics, check_type
from headrace.model.gathering import Gather
from headrace.model.job import NewJob
from headrace.model.names import check_key
from headrace.model.numbers import check_whole
from headrace.tasks import Task, TaskCall

if TYPE_CHECKING:
    from headrace.app import App

H = TypeVar("H", bound=Handler)

#: Tried again for about a minute.
DEFAULT_RETRY = Backoff.exponential(max_attempts=6, base="500ms", cap="30s")


class AgentOptions(TypedDict, total=False):
    """Options of `Agent`."""

    #: Other names it is known by.
    aliases: tuple[str, ...] | list[str]
    #: What it reads; default: the topics of the types it has handlers for. One that ends with "*" stands for all that
    #: begin so.
    topics: tuple[str, ...] | list[str]
    #: The group its members share the work in; default "headrace.agent.ID".
    group: str
    #: Handlers that run at once in each process, one per key at most unless `ordered` is off; default 10.
    concurrency: int
    #: Whether events of one key wait for each other, and behind one that is tried again; default True. False: each goes
    #: by itself. What was handled is committed in order either way.
    ordered: bool
    #: When a handler that raised is tried again; default: 5 times within about a minute, then it is a dead letter.
    retry: Backoff
    #: Longest run of a handler; default `[worker] max_processing_time`. A sync one goes on in its thread.
    timeout: float | str | timedelta
    #: A handler takes up to so many events at once, as a list, with an `EventsContext`; default: one, with an
    #: `AgentContext`.
    batch_size: int
    #: With `batch_size`: while other calls run, an event waits for company so long at most; default "100ms", at most
    #: 5 s. When none runs it is handled at once.
    max_wait: float | str | timedelta
    #: Called with the event and what its handler raised, says what becomes of it; default: tried again by `retry`.
    classify: Classify


class Agent:
    """Handles events of a bus, each one's effect once: see docs/explanation/events.md.

    Workers run it, or `headrace agent MODULE:app`. Raises InvalidInputError for a wrong option, ConfigError for a name
    in use.

    >>> from headrace import App
    >>> from headrace.events import Agent, AgentContext, Event
    >>> app = App("memory://")
    >>> namer = Agent(app, "character_expert")
    >>> @namer.on("Genesis.Session.DetailBatchGenerationRequested")
    ... async def name_them(event: Event, ctx: AgentContext) -> None:
    ...     items = [{"name": "Ada"}] * event.payload["count"]
    ...     ctx.emit("Genesis.Session.DetailBatchCreated", {"items": items})
    >>> namer.id
    'characterexpert'
    """

    def __init__(self, app: App, name: str, **options: Unpack[AgentOptions]) -> None:
        unknown = sorted(set(options) - set(AgentOptions.__annotations__))
        if unknown:
            rule = f"must be among {', '.join(AgentOptions.__annotations__)}"
            raise InvalidInputError("options of an agent", rule, unknown[0])
        own, timeout = canonical_id(name), options.get("timeout")
        made = AgentDef(
            own,
            group=check_key("group", options.get("group", f"headrace.agent.{own}")),
            concurrency=check_whole("concurrency", options.get("concurrency", 10), most=1_000),
            backoff=_policy(options.get("retry", DEFAULT_RETRY)),
            timeout=None if timeout is None else parse_duration(timeout, field="timeout"),
            classify=_hook(options.get("classify")),
            topics=check_topics("topics", _texts("topics", options.get("topics", ()))),
            ordered=_flag("ordered", options.get("ordered", True)),
            gather=_gather(options),
        )
        app.agent_ids.add(name, aliases=_texts("aliases", options.get("aliases", ())))
        app.agents[own] = self
        self.app, self.definition = app, made

    def __repr__(self) -> str:
        return f"Agent({self.id!r})"

    @property
    def id(self) -> str:
        """The canonical id."""
        return self.definition.id

    @property
    def topics(self) -> tuple[str, ...]:
        """What it reads."""
        if self.definition.topics:
            return self.definition.topics
        template = self.app.settings.events.topic
        types = sorted(self.definition.handlers)
        return tuple(dict.fromkeys(template.replace("{aggregate_type}", "".join(one.split(".")[:2])) for one in types))

    def on(self, *types: str, where: Where | None = None) -> Callable[[H], H]:
        """Register a function of an event and an `AgentContext` for types of events; async, or sync in a thread.

        Where the agent has a `batch_size`, of a list of events and an `EventsContext`.

        `where`: a quick function of an event that says whether this agent handles it; the others are passed over, as
        events of types without a handler are. It must say the same each time: an event that it raises for is a dead
        letter. Raises InvalidInputError, ConfigError for a type that has a handler.

        >>> from headrace import App
        >>> from headrace.events import Agent, AgentContext, Event
        >>> namer = Agent(App("memory://"), "character_expert")
        >>> @namer.on("Shop.Name.Asked", where=lambda event: event.payload["type"] == "character_name")
        ... async def name_them(event: Event, ctx: AgentContext) -> None: ...
        """
        if not types or callable(types[0]):
            raise InvalidInputError("types", 'must name one, as in @agent.on("Genesis.Session.Started")', types)
        for one in types:
            check_type(one)
        if where is not None:
            _check_where(where)

        def decorate(function: H) -> H:
            _check_handler(function, self.definition.gather)
            for one in types:
                if self.definition.handlers.setdefault(one, function) is not function:
                    raise ConfigError(f"agent {self.id} has two handlers for {one}; let one function do both")
                if where is not None:
                    self.definition.filters[one] = where
            return function

        return decorate

    def context(
        self, event: Event, attempt: int, *, emission: Emission, can_write: bool, resources: Any
    ) -> AgentContext:
        """Return the context of an attempt; for workers and tests."""
        return AgentContext(
            event, self.id, attempt, emission, new_job=_new_job, can_write=can_write, resources=resources
        )


def _gather(options: AgentOptions) -> Gather | None:
    if "batch_size" in options:
        return Gather.parse(options["batch_size"], options.get("max_wait", "100ms"))
    if "max_wait" in options:
        raise InvalidInputError("max_wait", "must come with batch_size", options["max_wait"])
    return None


def _check_handler(function: Any, gather: Gather | None) -> None:
    try:
        inspect.signature(function).bind(object(), object())
    except (TypeError, ValueError):
        given = "an event and an AgentContext" if gather is None else "a list of events and an EventsContext"
        rule = f"must be a function of {given}"
        raise InvalidInputError("handler", rule, getattr(function, "__qualname__", repr(function))) from None


def _check_where(where: Any) -> None:
    if inspect.iscoroutinefunction(where):
        raise InvalidInputError("where", "must be a plain function of an event, not an async one", repr(where))
    try:
        inspect.signature(where).bind(object())
    except (TypeError, ValueError):
        raise InvalidInputError("where", "must be a function of an event that returns True or False", where) from None


def _flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInputError(field, "must be True or False", value)
    return value


def _new_job(task: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJob:
    call = TaskCall(task) if isinstance(task, Task) else task
    if not isinstance(call, TaskCall):
        raise InvalidInputError("task", "must be a function registered with @app.task, or one with options", task)
    if call.connection is not None:
        raise InvalidInputError("connection", "must not be given here: the job is stored with the effect", "connection")
    return call.new_job(args, kwargs)


def _texts(field: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(one, str) and one for one in value):
        raise InvalidInputError(field, "must be a list of texts", value)
    return tuple(value)


def _policy(value: Any) -> Backoff:
    if not isinstance(value, Backoff):
        raise InvalidInputError("retry", "must be a Backoff, such as Backoff.exponential(max_attempts=5)", value)
    return value


def _hook(value: Any) -> Classify | None:
    if value is not None and not callable(value):
        raise InvalidInputError("classify", "must be a function of an event and an error that returns OnError", value)
    hook: Classify | None = value
    return hook
