"""Tasks as people hold them: call them plainly, or enqueue them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypedDict, TypeVar

from headrace.engine.registry import TaskDef
from headrace.gates import gate_change, with_changes
from headrace.handles import JobHandle
from headrace.model.batch import ClosePolicy, NewBatch
from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.ids import uuid7s
from headrace.model.job import JobSpec, NewJob
from headrace.model.names import check_key, check_name
from headrace.model.numbers import check_whole
from headrace.model.payload import encode_json, hash_text
from headrace.model.priority import Priority, parse_priority
from headrace.model.webhook import WEBHOOK_SPEC, batch_order

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.canvas import Signature

P = ParamSpec("P")
R = TypeVar("R")

MAX_DELAY = timedelta(days=366)


class Task(Generic[P, R]):
    """A registered function.

    >>> from headrace import App
    >>> app = App("memory://")
    >>> @app.task
    ... async def double(number: int) -> int:
    ...     return 2 * number
    >>> double.name
    'double'
    """

    def __init__(self, app: App, definition: TaskDef) -> None:
        self.app = app
        self.definition = definition
        self.__doc__ = definition.function.__doc__
        self.__name__ = definition.function.__name__
        self.__wrapped__: Callable[P, R] = definition.function

    @property
    def name(self) -> str:
        """The name under which jobs find the task."""
        return self.definition.name

    def __repr__(self) -> str:
        return f"Task({self.name!r})"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function plainly: no job, no queue. Async tasks are awaited as usual."""
        return self.definition.function(*args, **kwargs)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Make a durable job of this call and return its handle once it is stored.

        Raises InvalidInputError for arguments that do not fit or are not JSON, PayloadTooLargeError above 256 KiB,
        StoreUnavailableError.
        """
        app, definition = self.app, self.definition
        job = NewJob(app.spec_of(definition), definition.codec.encode(args, kwargs))
        return JobHandle(app, await app.runtime.client.enqueue(job), definition)

    async def enqueue_many(
        self, items: Iterable[Any] | AsyncIterable[Any], *, spread: bool = False
    ) -> list[JobHandle[R]]:
        """Make one durable job per item, all or none, and return their handles in order once they are stored.

        Each item is the one argument, or, with `spread`, a mapping of keyword arguments. Jobs of one call have
        nothing in common afterwards; for progress, streamed results or a callback at the end use `App.submit`.
        Raises as `enqueue`; an error about one item names its position.

        >>> from headrace import App
        >>> app = App("memory://")
        >>> @app.task
        ... async def double(number: int) -> int:
        ...     return 2 * number
        >>> async def main() -> None:
        ...     async with app:
        ...         print(len(await double.enqueue_many([1, 2, 3])))
        >>> import asyncio; asyncio.run(main())
        3
        """
        return await TaskCall(self).enqueue_many(items, spread=spread)

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """Return a call of this task as a part of a workflow; what stands before it gives its first argument.

        >>> from headrace import App, chain
        >>> app = App("memory://")
        >>> @app.task
        ... async def add(number: int, more: int) -> int:
        ...     return number + more
        >>> flow = app.workflow("sums", chain(add.si(1, 2), add.s(3)))
        """
        from headrace.canvas import signature

        return signature(self.name).s(*args, **kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """Return a call as a part of a workflow that has these arguments only, whatever stands before it."""
        from headrace.canvas import signature

        return signature(self.name).si(*args, **kwargs)

    def options(self, **options: Any) -> TaskCall[P, R]:
        """Return this task with options for the next enqueue.

        `key`: idempotency key, unique per task for 7 days; the same key and arguments give the same job, in whichever
        order keywords are written, and other arguments raise ConflictError. `priority`: a class name or 0–9.
        `run_at`: an aware datetime, or a delay such as "10m". `queue`, `timeout`, `max_attempts`: instead of the
        task's. `connection`: the caller's asyncpg, psycopg or SQLAlchemy connection; the job then exists iff its
        transaction commits. `fair_key`: whose share of the queue the job uses, such as a tenant. `concurrency_key`: of
        the jobs with this key in the queue at most `key_limit` run at once; with 1, the default, one after another in
        their order. `cost`: what the job uses of its share, and of limits that take the job's cost, such as its tokens.
        """
        return TaskCall(self).options(**options)


@dataclass(frozen=True)
class TaskCall(Generic[P, R]):
    """A task with options, ready to be enqueued."""

    task: Task[P, R]
    key: str | None = None
    run_at: datetime | None = None
    connection: Any = None
    changes: tuple[tuple[str, Any], ...] = ()

    def options(self, **options: Any) -> TaskCall[P, R]:
        """Return a copy with more options; see `Task.options`. Raises InvalidInputError naming a wrong one."""
        call = self
        for name, value in options.items():
            call = call._with(name, value)
        return call

    def _with(self, name: str, value: Any) -> TaskCall[P, R]:
        match name:
            case "key":
                return replace(self, key=check_key("key", value))
            case "run_at":
                return replace(self, run_at=parse_run_at(value))
            case "connection":
                return replace(self, connection=value)
            case _:
                return replace(self, changes=(*self.changes, spec_change(name, value)))

    def spec(self) -> JobSpec:
        """Return how the job will be stored."""
        spec = self.task.app.spec_of(self.task.definition)
        return with_changes(spec, dict(self.changes)) if self.changes else spec

    def new_job(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewJob:
        """Return the job of this call, not stored yet. Raises InvalidInputError, PayloadTooLargeError."""
        definition = self.task.definition
        text = definition.codec.encode(args, kwargs)
        job = NewJob(self.spec(), text, run_at=self.run_at, key=self.key)
        if self.key:
            job.body_hash, job.former_hash = _body_hashes(definition, text, args, kwargs)
        return job

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Make a durable job of this call; see `Task.enqueue`."""
        return await _enqueue(self, args, kwargs)

    async def enqueue_many(
        self, items: Iterable[Any] | AsyncIterable[Any], *, spread: bool = False
    ) -> list[JobHandle[R]]:
        """Make one durable job per item; see `Task.enqueue_many`. All options but `key` are for every one of them."""
        app, definition = self.task.app, self.task.definition
        if self.key is not None:
            rule = (
                "names one job, so it cannot go with enqueue_many; use app.submit(key=…), or enqueue each with its own"
            )
            raise InvalidInputError("key", rule, self.key)
        texts = definition.codec.encode_items(items, spread=spread)
        texts = [text async for text in texts] if isinstance(texts, AsyncIterable) else list(texts)
        spec, run_at = self.spec(), self.run_at
        ids = zip(texts, uuid7s(len(texts)), strict=True)
        jobs = [NewJob(spec, text, job_id, run_at=run_at) for text, job_id in ids]
        if not jobs:
            stored = []
        elif self.connection is not None:
            stored = await app.enqueue_on(self.connection, jobs)
        else:
            stored = await app.runtime.client.enqueue_many(jobs)
        return [JobHandle(app, job_id, definition) for job_id in stored]


def _body_hashes(definition: TaskDef, text: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, str]:
    """Return the hash of a call, whatever the order of its keyword arguments, and the one of the order they have.

    The second is what the release before stored; it is empty where both are the same.
    """
    ordered, given = definition.codec.in_order(kwargs), hash_text(definition.name, text)
    if list(ordered) == list(kwargs):
        return given, ""
    return hash_text(definition.name, definition.codec.encode(args, ordered)), given


async def _enqueue(call: TaskCall[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobHandle[Any]:
    app, definition, job = call.task.app, call.task.definition, call.new_job(args, kwargs)
    if call.connection is not None:
        [job_id] = await app.enqueue_on(call.connection, [job])
    else:
        job_id = await app.runtime.client.enqueue(job)
    return JobHandle(app, job_id, definition)


class SubmitOptions(TypedDict, total=False):
    """Options of `App.submit`."""

    #: Idempotency key, unique per task while the batch exists.
    key: str
    #: A task called with the batch id as text, once per round, when the batch closes.
    on_close: Task[Any, Any]
    #: A URL that is sent a signed message, `batch.closed`, when the batch closes; needs `[webhooks] secrets`.
    webhook: str
    #: What failed items do to the batch; default `ClosePolicy.always()`: nothing.
    policy: ClosePolicy
    #: Items are mappings of keyword arguments rather than the one argument; default False.
    spread: bool
    #: Not before: an aware datetime, or a delay such as "10m".
    run_at: datetime | float | str | timedelta
    #: Instead of the task's own.
    queue: str
    priority: Priority | str | int
    timeout: float | str | timedelta
    max_attempts: int
    #: Whose share of the queue its jobs use; default: what the queue's `fair` says.
    fair_key: str
    #: At most `key_limit` (default 1: in order) of the jobs with this key run at once in the queue.
    concurrency_key: str
    key_limit: int
    #: What each job uses of its share, and of limits with `cost=None`; default: the task's.
    cost: float


def new_batch(task: Task[Any, Any], options: SubmitOptions) -> NewBatch:
    """Return the batch to create for checked options; its hash covers all but the items. Raises InvalidInputError."""
    _check_submit(options)
    spec_of = task.app.spec_of
    own = {"key", "on_close", "webhook", "policy", "spread", "run_at"}
    changes = dict(spec_change(name, value) for name, value in options.items() if name not in own)
    key, run_at, on_close = options.get("key"), options.get("run_at"), options.get("on_close")
    policy = options.get("policy", ClosePolicy.always())
    shown = {name: str(value) for name, value in sorted(changes.items())}
    spread = options.get("spread", False)
    webhook = options.get("webhook")
    body = [task.name, spread, shown, policy.max_failed, None if on_close is None else on_close.name]
    body += [] if webhook is None else [webhook]
    batch = NewBatch(
        spec=with_changes(spec_of(task.definition), changes),
        key=None if key is None else check_key("key", key),
        body_hash=hash_text(encode_json(body, field="options")),
        policy=policy,
        on_close=WEBHOOK_SPEC if webhook is not None else None if on_close is None else spec_of(on_close.definition),
        on_close_more="" if webhook is None else batch_order(webhook),
        run_at=None if run_at is None else parse_run_at(run_at),
    )
    rule = task.app.registry.queue_rules.get(batch.spec.queue)
    if rule is None or (gate := rule.fair_gate(batch.spec.gate, batch.id)) is batch.spec.gate:
        return batch
    return replace(batch, spec=replace(batch.spec, gate=gate))


def _check_submit(options: SubmitOptions) -> None:
    checks: dict[str, tuple[type, str]] = {
        "policy": (ClosePolicy, "must be a ClosePolicy, such as ClosePolicy.fail_fast()"),
        "on_close": (Task, "must be a function registered with @app.task"),
        "spread": (bool, "must be True or False"),
        "webhook": (str, "must be a URL such as https://example.com/hook"),
    }
    for name, (kind, rule) in checks.items():
        value: Any = options.get(name)
        if value is not None and not isinstance(value, kind):
            raise InvalidInputError(name, rule, value)
    if options.get("webhook") is not None and options.get("on_close") is not None:
        rule = "cannot go with on_close: let that task send it, with headrace.webhooks.delivery"
        raise InvalidInputError("webhook", rule, options.get("webhook"))


def spec_change(name: str, value: Any) -> tuple[str, Any]:
    """Return a checked change of a JobSpec. Raises InvalidInputError for an unknown option or a wrong value."""
    match name:
        case "queue":
            return name, check_name("queue", value)
        case "priority":
            return name, parse_priority(value)
        case "timeout":
            return name, check_timeout(value)
        case "max_attempts":
            return name, check_whole("max_attempts", value, most=100)
        case _ if (change := gate_change(name, value)) is not None:
            return change
        case _:
            known = (
                "key, priority, run_at, queue, timeout, max_attempts, connection, fair_key, concurrency_key, "
                "key_limit, cost"
            )
            raise InvalidInputError("options", f"must be among {known}", name)


def check_timeout(value: float | str | timedelta, *, field: str = "timeout") -> timedelta:
    """Return an execution timeout from 0.1 s to 24 h. Raises InvalidInputError."""
    timeout = parse_duration(value, field=field)
    if not timedelta(seconds=0.1) <= timeout <= timedelta(hours=24):
        raise InvalidInputError(field, "must be from 0.1 s to 24 h", value)
    return timeout


def parse_run_at(value: datetime | float | str | timedelta) -> datetime:
    """Return the instant of an aware datetime or of a delay from now; at most a year ahead."""
    now = datetime.now(UTC)
    if not isinstance(value, datetime):
        value = now + parse_duration(value, field="run_at")
    if value.tzinfo is None:
        raise InvalidInputError("run_at", "must be an aware datetime (give it a tzinfo) or a delay", value)
    if value > now + MAX_DELAY:
        raise InvalidInputError("run_at", "must be at most a year ahead", value)
    return value
