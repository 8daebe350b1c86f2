"""What submits of jobs and batches have in common: their options, their key, their task."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Header
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from headrace.app import App
from headrace.engine.operations import find_queue
from headrace.engine.registry import TaskDef
from headrace.model.durations import format_duration, parse_duration
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.model.names import MAX_KEY_LENGTH, check_key, check_name
from headrace.service.problems import RequestError
from headrace.tasks import MAX_DELAY, Task

IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", description="the same as the key of the body")]
#: Seconds, or as people write them.
Duration = StrictInt | StrictFloat | StrictStr
LEAST_TIMEOUT, LONGEST_TIMEOUT = timedelta(seconds=1), timedelta(hours=24)
#: Where the functions of our own tasks are.
_OWN = "headrace."
#: Names that are told of those there are.
_NAMES = 20
#: Characters of a key that is a part of another one.
MOST_OWN_KEY = 190
#: Options that go to the task as they are.
_PLAIN = ("queue", "priority", "timeout", "max_attempts", "fair_key", "concurrency_key", "key_limit", "cost")


class JobOptions(BaseModel):
    """Options of a job, and of every job of a batch; what is left out is the task's."""

    model_config = ConfigDict(extra="forbid")

    key: str | None = Field(None, description="idempotency key, unique per task; also as the header")
    queue: str | None = Field(None, description="name of a queue")
    priority: (
        Annotated[StrictInt, Field(ge=0, le=9)] | Literal["interactive", "high", "standard", "low", "bulk"] | None
    ) = Field(None, description="a class, or 0 (earliest) to 9")
    run_at: StrictStr | None = Field(
        None, description="not before this instant, with its offset", json_schema_extra={"format": "date-time"}
    )
    delay: Duration | None = Field(None, description="not before so long from now: seconds, or such as `10m`")
    timeout: Duration | None = Field(None, description="of one attempt, 1 s to 24 h: seconds, or such as `90s`")
    max_attempts: StrictInt | None = Field(None, ge=1, le=100)
    fair_key: str | None = Field(None, description="whose share of the queue it uses")
    concurrency_key: str | None = Field(None, description="at most `key_limit` jobs with this key run at once")
    key_limit: StrictInt | None = Field(None, ge=1, description="default 1: one after another")
    cost: StrictInt | StrictFloat | None = Field(None, description="what it uses of its share")


def options_of(body: JobOptions, header: str | None) -> dict[str, Any]:
    """Return the options that were given, as tasks take them. Raises InvalidInputError, RequestError 409."""
    options = {name: value for name in _PLAIN if (value := getattr(body, name)) is not None}
    key, run_at = key_of(body.key, header), _run_at_of(body)
    if key is not None:
        options["key"] = key
    if run_at is not None:
        options["run_at"] = run_at
    if body.timeout is not None:
        _duration("timeout", body.timeout, LEAST_TIMEOUT, LONGEST_TIMEOUT)
    return options


def key_of(given: str | None, header: str | None) -> str | None:
    """Return the key of a request, by its body or its header. Raises InvalidInputError, RequestError 409."""
    if header is not None and given not in (None, header):
        raise InvalidInputError("key", f"must be that of the header Idempotency-Key, {header!r}", given)
    key = given if header is None else header
    if key is None:
        return None
    if len(key) > MAX_KEY_LENGTH:
        # What it names beyond the limit cannot be told from another key's.
        detail = f"key must be at most {MAX_KEY_LENGTH} characters, got {len(key)}: use a shorter one, such as a digest"
        raise RequestError(409, "idempotency_conflict", detail)
    return check_key("key", key)


def own_key_of(given: str | None, header: str | None) -> str | None:
    """Return the key of a request to an application, which makes its own keys with it. Raises InvalidInputError."""
    if header is not None and given not in (None, header):
        raise InvalidInputError("idempotency_key", f"must be that of the header Idempotency-Key, {header!r}", given)
    key = given if header is None else header
    if key is not None and not (1 <= len(key) <= MOST_OWN_KEY and key.isprintable()):
        raise InvalidInputError("idempotency_key", f"must be 1 to {MOST_OWN_KEY} printable characters", key)
    return key


def _run_at_of(body: JobOptions) -> datetime | timedelta | None:
    if body.delay is not None:
        if body.run_at is not None:
            raise InvalidInputError("delay", "must not be given together with run_at", body.delay)
        return _duration("delay", body.delay, timedelta(), MAX_DELAY)
    return None if body.run_at is None else _instant("run_at", body.run_at)


def _duration(field: str, value: float | str, least: timedelta, most: timedelta) -> timedelta:
    """Return a duration within bounds, which are told whatever is wrong with another one."""
    with suppress(InvalidInputError):
        if least <= (found := parse_duration(value, field=field)) <= most:
            return found
    bounds = f"from {format_duration(least)} to {format_duration(most)}"
    raise InvalidInputError(field, f'must be {bounds}: seconds, or such as "90s" or "10m"', value)


def _instant(field: str, text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is None:
            raise ValueError
        # One of the first or the last day may be none in another zone, which is what stores have.
        instant = instant.astimezone(UTC)
    except (ValueError, OverflowError):
        rule = "must be an instant with its offset, such as 2031-01-31T12:00:00Z"
        raise InvalidInputError(field, rule, text) from None
    if instant > datetime.now(UTC) + MAX_DELAY:
        raise InvalidInputError(field, "must be at most a year ahead", text)
    return instant


def task_of(app: App, name: str, *, field: str = "task") -> Task[Any, Any]:
    """Return a task of the served app. Raises InvalidInputError naming those there are.

    Tasks of Headrace itself are none: what they are called with is made by routes of their own, which check it.
    """
    found = app.registry.get(check_name(field, name))
    if found is not None and is_own(found):
        raise InvalidInputError(field, "must not be a task of Headrace itself: those have routes of their own", name)
    if found is None:
        known = sorted(task.name for task in app.registry if not is_own(task))
        more = f" and {len(known) - _NAMES} more" if len(known) > _NAMES else ""
        there = ", ".join(known[:_NAMES]) + more if known else "none: serve the app that has it"
        raise InvalidInputError(field, f"must be a task of the app that is served ({there})", name)
    return app.find_task(name)


def is_own(task: TaskDef) -> bool:
    """Whether a task is one of Headrace: its code is, whatever app it is registered in."""
    return task.target.startswith(_OWN)


async def check_queue(app: App, name: str | None) -> None:
    """Raise InvalidInputError for a queue that neither the app nor the store knows: nobody would work its jobs."""
    if name is None or check_name("queue", name) in app.registry.queue_rules or name in app.registry.queues():
        return
    try:
        await find_queue(app.runtime.stores.inspect, name)
    except NotFoundError as error:
        raise InvalidInputError("queue", f"must be known ({error})", name) from None
