"""From a function and its options to a task definition."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, Literal, Protocol, TypedDict, TypeVar, overload

from headrace.engine.context import GatherContext
from headrace.engine.gather_codec import GatherCodec
from headrace.engine.registry import RunsIn, TaskDef
from headrace.gates import Breaker, task_gate
from headrace.model.backoff import Backoff
from headrace.model.errors import InvalidInputError
from headrace.model.gathering import Gather
from headrace.model.job import JobSpec
from headrace.model.limits import Limit, Rate, check_cost
from headrace.model.names import check_name
from headrace.model.priority import Priority, parse_priority
from headrace.tasks import Task, check_timeout

T = TypeVar("T")
R = TypeVar("R")

Duration = float | str | timedelta

#: Attempts of a task without a retry policy are bounded by its job (`[queue] max_retries`), not by the policy.
_DEFAULT_BACKOFF = Backoff(max_attempts=100)


class TaskOptions(TypedDict, total=False):
    """Options of `@app.task`."""

    #: The name stored with jobs; default: the function's name.
    name: str
    #: Where its jobs wait; default "default".
    queue: str
    #: A class name or 0 (earliest) to 9; default "standard".
    priority: Priority | str | int
    #: Default: `[queue] max_retries` retries, exponential with full jitter; none when delivered at most once.
    retry: Backoff
    #: Longest run of one attempt, from its start; default `[worker] max_processing_time`.
    timeout: Duration
    #: Longest time without `ctx.progress()`; default: none.
    stall_timeout: Duration
    #: How many of its jobs run at once over all workers; default: no cap.
    concurrency: int
    #: How many of its jobs start per time over all workers, such as "30/m"; default: no limit.
    rate_limit: str | Rate
    #: Rate limits that it shares with others by name, such as `[Limit("openai", "60/m")]`; default: none.
    limits: Sequence[Limit]
    #: Pools of models that it uses, such as ["openai:gpt-x"] (see `headrace llm pools`): its jobs do not start while
    #: the quota of one is used up or closed; default: none, they start and leave their slots while they wait.
    pools: Sequence[str]
    #: A circuit breaker, or the name of one that another task declares; default: none.
    breaker: Breaker | str | Sequence[Breaker | str]
    #: What one job uses of its share, and of limits with `cost=None`; default 1.
    cost: float
    #: With "at_most_once" a job whose worker died or stopped is failed, never run again; default "at_least_once".
    delivery: Literal["at_least_once", "at_most_once"]
    #: Run in a child process, killed on timeout and cancel; default False.
    cpu: bool


class GatherDecorator(Protocol):
    """What `@app.task(batch_size=…)` returns: a task of one entry of the handler's list, and of its result."""

    @overload
    def __call__(
        self, function: Callable[[list[T], GatherContext], Coroutine[Any, Any, list[R]]], /
    ) -> Task[[T], R]: ...
    @overload
    def __call__(self, function: Callable[[list[T]], Coroutine[Any, Any, list[R]]], /) -> Task[[T], R]: ...
    @overload
    def __call__(self, function: Callable[[list[T], GatherContext], list[R]], /) -> Task[[T], R]: ...
    @overload
    def __call__(self, function: Callable[[list[T]], list[R]], /) -> Task[[T], R]: ...


class GatherOptions(TaskOptions, total=False):
    """Options of `@app.task` for a handler that takes jobs together: its argument is a list, and so is its result."""

    #: Most jobs of one call.
    batch_size: int
    #: Longest wait of the first of them for the others; default 100 ms.
    max_wait: Duration


def define_task(function: Callable[..., Any], options: GatherOptions) -> TaskDef:
    """Return the checked definition of a task. Raises InvalidInputError."""
    _check_known(options)
    _check_function(function)
    name = check_name("name", options.get("name") or function.__name__)
    retry = _check_retry(options.get("retry"))
    gate, declares = task_gate(name, options)
    stall = options.get("stall_timeout")
    definition = TaskDef(
        name=name,
        function=function,
        runs_in=_place(function, cpu=options.get("cpu", False)),
        spec=JobSpec(
            task=name,
            queue=check_name("queue", options.get("queue", "default")),
            priority=parse_priority(options.get("priority", Priority.STANDARD)),
            max_attempts=retry.max_attempts if retry is not None else 0,
            timeout=check_timeout(options["timeout"]) if "timeout" in options else None,
            at_most_once=_check_delivery(options.get("delivery", "at_least_once")),
            gate=gate,
            cost=check_cost(options.get("cost", 1.0)),
        ),
        backoff=retry or _DEFAULT_BACKOFF,
        declares=declares,
        stall_timeout=None if stall is None else check_timeout(stall, field="stall_timeout"),
        gather=_check_gather(options),
    )
    if definition.runs_in is RunsIn.PROCESS and not definition.importable:
        rule = "needs a function at the top level of a module, which a child process can import"
        raise InvalidInputError("cpu=True", rule, function.__qualname__)
    _check_gathers(definition)
    return definition


def _check_known(options: GatherOptions) -> None:
    known = GatherOptions.__annotations__
    for name in options:
        if name not in known:
            raise InvalidInputError("task option", f"must be among {', '.join(known)}", name)


def _check_function(function: Any) -> None:
    if not inspect.isroutine(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        rule = (
            "must be a function made by `def` or `async def` that returns its result (no generator, no other callable)"
        )
        raise InvalidInputError("task", rule, function)


def _check_retry(value: Any) -> Backoff | None:
    if value is None or isinstance(value, Backoff):
        return value
    raise InvalidInputError("retry", "must be a Backoff, such as Backoff.exponential(max_attempts=4)", value)


def _check_gather(options: GatherOptions) -> Gather | None:
    if "batch_size" in options:
        return Gather.parse(options["batch_size"], options.get("max_wait", "100ms"))
    if "max_wait" in options:
        raise InvalidInputError("max_wait", "goes with batch_size, the most jobs of one call", options["max_wait"])
    return None


def _check_gathers(definition: TaskDef) -> None:
    if definition.gather is None or not isinstance(definition.codec, GatherCodec):
        return
    definition.codec.check()
    if definition.runs_in is RunsIn.PROCESS:
        raise InvalidInputError("cpu=True", "cannot go with batch_size: a child process runs one job", definition.name)
    if definition.stall_timeout is not None and definition.stall_timeout <= definition.gather.max_wait:
        raise InvalidInputError("stall_timeout", "must be longer than max_wait", definition.stall_timeout)


def _check_delivery(value: Any) -> bool:
    if value not in ("at_least_once", "at_most_once"):
        raise InvalidInputError("delivery", 'must be "at_least_once" or "at_most_once"', value)
    return bool(value == "at_most_once")


def _place(function: Callable[..., Any], *, cpu: Any) -> RunsIn:
    if not isinstance(cpu, bool):
        raise InvalidInputError("cpu", "must be True or False", cpu)
    if cpu:
        return RunsIn.PROCESS
    return RunsIn.LOOP if inspect.iscoroutinefunction(function) else RunsIn.THREAD
