"""Arguments and results: what goes in comes out as the handler's annotations say, in the job's process or another."""

from __future__ import annotations

import inspect
import json
import math
from collections import namedtuple
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from headrace import App, Context, Done, Fail, JobHandle, Retry
from headrace.engine.codec import TaskCodec
from headrace.model.errors import InvalidInputError, JobFailedError, PayloadTooLargeError
from headrace.model.job import JobState
from headrace.model.payload import MAX_PAYLOAD_BYTES
from tests.unit.engine_app import quick_app, run_one, view_of


class Colour(StrEnum):
    """A text enum."""

    RED = "red"


class Level(Enum):
    """A number enum."""

    LOW = 1


@dataclass
class Point:
    """A dataclass."""

    x: int
    at: datetime


class Book(BaseModel):
    """A model with a nested model."""

    title: str
    tags: set[str] = set()
    where: Point | None = None


class Pair(NamedTuple):
    """A named tuple."""

    left: int
    right: str


class Mapping(TypedDict):
    """A typed dict."""

    day: date


NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
SOME_ID = UUID("0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b")


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with a worker: tasks may be added while it runs."""
    app = quick_app()
    app.task(name="seed")(lambda: None)
    async with app.worker():
        yield app


async def run(app: App, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Register a function, run one job of it, and return its result."""
    job: JobHandle[Any] = await app.task(name=f"t{len(app.registry)}")(function).enqueue(*args, **kwargs)
    return await job.result(20)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (str, "text \N{SNOWMAN} with\nlines"),
        (int, 2**70),
        (float, 1.5),
        (bool, True),
        (type(None), None),
        (list[int], [1, 2]),
        (dict[str, list[str]], {"a": ["b"]}),
        (dict[int, str], {1: "one"}),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2, 3}),
        (bytes, b"raw"),
        (datetime, NOW),
        (date, NOW.date()),
        (timedelta, timedelta(hours=1, milliseconds=5)),
        (UUID, SOME_ID),
        (Path, Path("a/b.txt")),
        (Colour, Colour.RED),
        (Level, Level.LOW),
        (Point, Point(1, NOW)),
        (Book, Book(title="T", tags={"a"}, where=Point(2, NOW))),
        (Pair, Pair(1, "r")),
        (Mapping, Mapping(day=NOW.date())),
        (list[Book], [Book(title="one"), Book(title="two")]),
        (dict[str, Point], {"p": Point(3, NOW)}),
        (int | None, None),
        (Optional[Book], Book(title="maybe")),  # noqa: UP045 - this form is what is tried
        (Book | int, 7),
        (Literal["a", "b"], "b"),
        (Annotated[int, Field(ge=0)], 5),
        (Any, {"free": [1, None, "x"]}),
    ],
    ids=str,
)
async def test_a_value_arrives_as_its_annotation_says_and_so_does_the_result(app: App, kind: Any, value: Any) -> None:
    """A value of the annotated type comes to the handler, and back to the caller, equal and of the same type."""
    seen: list[Any] = []

    async def echo(value):  # type: ignore[no-untyped-def]
        seen.append(value)
        return value

    echo.__annotations__ = {"value": kind, "return": kind}
    result = await run(app, echo, value)
    assert (seen, result) == ([value], value)
    assert type(result) is type(value)
    assert type(seen[0]) is type(value)


async def test_without_annotations_values_are_plain_json(app: App) -> None:
    """A handler without annotations gets, and gives, what JSON makes of the values."""
    assert await run(app, lambda value: value, Point(1, NOW)) == {"x": 1, "at": "2026-05-04T03:02:01Z"}


async def test_a_constraint_of_an_annotation_is_checked(app: App) -> None:
    """An argument that breaks a constraint ends the job at once, naming the parameter and the rule."""

    async def work(number: Annotated[int, Field(ge=10)]) -> int:
        return number

    with pytest.raises(JobFailedError, match=r"invalid_input: number .*greater than or equal to 10"):
        await run(app, work, 3)


async def test_an_argument_of_the_wrong_type_ends_the_job_at_once(app: App) -> None:
    """What does not validate is no passing trouble: the job fails without another attempt, naming the field."""

    @app.task
    async def read(book: Book) -> str:
        return book.title

    job = await read.enqueue({"titel": "misspelt"})  # type: ignore[arg-type]
    with pytest.raises(JobFailedError, match=r"book\.title"):
        await job.result(20)
    assert (await view_of(app, job)).attempt == 1


class Connection:
    """A class that JSON knows nothing of."""


async def test_an_annotation_that_json_cannot_give_is_named(app: App) -> None:
    """A parameter of a type that cannot be read from JSON ends the job at once, naming the parameter."""

    @app.task
    async def work(connection: Connection) -> None: ...

    job = await work.enqueue({})  # type: ignore[arg-type]
    with pytest.raises(JobFailedError, match=r"invalid_input: connection .*Connection"):
        await job.result(20)
    assert (await view_of(app, job)).attempt == 1


def context_first(ctx: Context, a: int, b: int = 2) -> list[Any]:
    """Take the context first."""
    return [a, b, ctx.attempt]


def context_between(a: int, ctx: Context, b: int = 2, *rest: int) -> list[Any]:
    """Take the context in the middle."""
    return [a, b, *rest, ctx.attempt]


def context_after_defaults(a: int, b: int = 2, ctx: Context = None) -> list[Any]:  # type: ignore[assignment]
    """Take the context after a default."""
    return [a, b, ctx.attempt]


def context_by_keyword(a: int, b: int = 2, *, ctx: Context) -> list[Any]:
    """Take the context by keyword only."""
    return [a, b, ctx.attempt]


def context_after_rest(a: int, *rest: int, ctx: Context, **more: int) -> list[Any]:
    """Take the context after any number of arguments."""
    return [a, *rest, *more.values(), ctx.attempt]


def context_optional(a: int, b: int = 2, ctx: Context | None = None) -> list[Any]:
    """Take the context where it may be absent in a plain call."""
    return [a, b, ctx.attempt if ctx else None]


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (context_first, (1,), {}, [1, 2, 1]),
        (context_first, (1, 5), {}, [1, 5, 1]),
        (context_first, (), {"b": 7, "a": 1}, [1, 7, 1]),
        (context_between, (1,), {}, [1, 2, 1]),
        (context_between, (1, 5), {}, [1, 5, 1]),
        (context_between, (1, 5, 6, 7), {}, [1, 5, 6, 7, 1]),
        (context_after_defaults, (1,), {}, [1, 2, 1]),
        (context_after_defaults, (1,), {"b": 9}, [1, 9, 1]),
        (context_by_keyword, (1, 3), {}, [1, 3, 1]),
        (context_after_rest, (1, 2, 3), {"x": 4}, [1, 2, 3, 4, 1]),
        (context_optional, (1,), {}, [1, 2, 1]),
        (context_optional, (1, 8), {}, [1, 8, 1]),
    ],
)
async def test_the_context_is_injected_wherever_it_stands(
    app: App, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], expected: list[Any]
) -> None:
    """A parameter annotated as Context is filled by the engine; callers pass the others as if it were not there."""
    assert await run(app, function, *args, **kwargs) == expected


async def test_the_context_knows_its_attempt(app: App) -> None:
    """Context tells job, task, queue, attempt, deadline and a key that is the same for every attempt."""

    @app.task(queue="default", timeout=50)
    async def look(ctx: Context) -> list[Any]:
        ctx.log.debug("looking")
        return [str(ctx.job_id), ctx.task, ctx.queue, ctx.attempt, ctx.idempotency_key, ctx.deadline, ctx.cancelled]

    before = datetime.now(UTC)
    job = await look.enqueue()
    job_id, task, queue, attempt, key, deadline, cancelled = await job.result(20)
    assert (job_id, task, queue, attempt, cancelled) == (str(job.id), "look", "default", 1, False)
    assert key == str(job.id)
    left = datetime.fromisoformat(deadline) - before
    assert timedelta(seconds=50) <= left < timedelta(seconds=70)


async def test_a_call_must_fit_the_signature(app: App) -> None:
    """Missing, surplus and unknown arguments are refused before anything is stored, with the signature in the error."""

    @app.task
    async def work(a: int, ctx: Context, *, b: int = 2) -> None: ...

    wrong: list[tuple[tuple[int, ...], dict[str, int]]] = [((), {}), ((1, 2), {}), ((1,), {"c": 3})]
    for args, kwargs in wrong:
        with pytest.raises(InvalidInputError, match=r"do not fit work\(a"):
            await work.enqueue(*args, **kwargs)  # type: ignore[arg-type]
    assert await app.runtime.stores.inspect.list_jobs() == []


deep: list[Any] = []
for _ in range(70):
    deep = [deep]


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (math.nan, "JSON"),
        (math.inf, "JSON"),
        (object(), "JSON"),
        ("nul\x00", "NUL"),
        ("\ud800", "surrogates"),
        ({(1, 2): 3}, "JSON"),
        (deep, "nested"),
        (b"\xff\xfe", "JSON"),
    ],
    ids=["nan", "inf", "object", "nul", "surrogate", "tuple key", "deep", "bytes"],
)
async def test_what_json_cannot_hold_is_refused(app: App, value: Any, rule: str) -> None:
    """An argument that no store could keep is refused at the call; as a result it fails the job at once."""

    @app.task
    async def take(value: Any) -> None: ...

    with pytest.raises(InvalidInputError, match=rule):
        await take.enqueue(value)
    with pytest.raises(InvalidInputError, match=rule):
        await app.submit(take, [1, value])

    @app.task
    async def give() -> Any:
        return value

    job = await give.enqueue()
    with pytest.raises(JobFailedError, match=rf"invalid_input: result .*{rule}"):
        await job.result(20)
    assert (await view_of(app, job)).attempt == 1


async def test_the_payload_limit_names_size_and_way_out(app: App) -> None:
    """256 KiB pass; one byte more is refused with the limit, the size and what to do instead."""

    @app.task
    async def measure(text: str) -> int:
        return len(text)

    frame = len('{"args":[""],"kwargs":{}}')
    largest = "x" * (MAX_PAYLOAD_BYTES - frame)
    assert await (await measure.enqueue(largest)).result(20) == len(largest)
    with pytest.raises(PayloadTooLargeError, match=r"256 KiB.*reference.*262145 bytes"):
        await measure.enqueue(largest + "x")
    with pytest.raises(PayloadTooLargeError):
        await measure.enqueue("é" * (MAX_PAYLOAD_BYTES // 2))


async def test_a_result_over_the_limit_fails_the_job(app: App) -> None:
    """A result that is too large fails at once with the limit: running again would give the same."""

    @app.task
    async def swell() -> str:
        return "x" * MAX_PAYLOAD_BYTES

    job = await swell.enqueue()
    with pytest.raises(JobFailedError, match="payload_too_large"):
        await job.result(20)
    assert (await view_of(app, job)).attempt == 1


Late = namedtuple("Late", "value")


async def test_names_may_be_defined_after_the_task(app: App) -> None:
    """Annotations are resolved when a job first needs them; one that never resolves is named."""

    @app.task
    async def work(value: NotThere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidInputError, match="NotThere"):
        await work.enqueue(1)
    assert await run(app, lambda value: list(value), Late(3)) == [3]


async def test_outcomes_in_a_return_annotation_do_not_disturb_the_result(app: App) -> None:
    """`-> Book | Retry` gives a Book, and `-> Done` gives what it holds."""

    async def read() -> Book | Retry | Fail:
        return Book(title="T")

    async def done() -> Done:
        return Done(Book(title="D"))

    assert await run(app, read) == Book(title="T")
    assert await run(app, done) == {"title": "D", "tags": [], "where": None}


async def test_a_handle_by_id_gives_the_same_result() -> None:
    """`app.job(id)` knows the task of the job, so its result has the same type as that of the first handle."""
    app = quick_app()

    @app.task
    async def read() -> Book:
        return Book(title="T")

    async with app:
        job: JobHandle[Any] = await read.enqueue()
        assert (await run_one(app, job)).state is JobState.SUCCEEDED
        assert await job.result(20) == await app.job(str(job.id)).result(20) == Book(title="T")


async def _context_first(ctx: Context, left: int, right: int = 0) -> None: ...
async def _any_number(*values: int) -> None: ...
async def _keyword_needed(value: int, *, name: str) -> None: ...
async def _keywords(value: int = 0, **others: int) -> None: ...
async def _nothing() -> None: ...
async def _positional(left: int, /, right: int) -> None: ...


@pytest.mark.parametrize(
    "function",
    [_context_first, _any_number, _keyword_needed, _keywords, _nothing, _positional],
    ids=lambda f: f.__name__,
)
def test_a_call_is_accepted_exactly_when_python_would(function: Callable[..., Any]) -> None:
    """Positional calls fit or do not, as binding them says, and the short check never disagrees with it."""
    codec = TaskCodec(function)
    signature = inspect.signature(function)
    taken = [one for name, one in signature.parameters.items() if name != "ctx"]
    for count in range(5):
        args = list(range(count))
        try:
            signature.replace(parameters=taken).bind(*args)
        except TypeError:
            with pytest.raises(InvalidInputError, match="do not fit"):
                codec.encode(args, {})
        else:
            assert codec.encode(args, {}) == json.dumps({"args": args, "kwargs": {}}, separators=(",", ":"))
