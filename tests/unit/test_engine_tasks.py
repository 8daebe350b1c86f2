"""Registering tasks: names, options and their bad values."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Backoff, ClosePolicy, HeadraceError, Priority
from headrace.engine.registry import RunsIn
from headrace.model.errors import ConfigError, InvalidInputError, NotFoundError
from headrace.model.limits import Declared, Gate
from tests.unit.engine_app import QUICK, quick_app


def test_options_become_the_definition() -> None:
    """What `@app.task` is told is how the jobs of the task are stored and run."""
    app = quick_app()
    retry = Backoff.fixed("1s", max_attempts=7)

    @app.task(
        name="parse.v2", queue="cpu-bound", priority="high", retry=retry, timeout="90s", stall_timeout=5,
        concurrency=3, delivery="at_most_once",
    )  # fmt: skip
    async def parse(path: str) -> None: ...

    definition = parse.definition
    spec = app.spec_of(definition)
    assert (spec.task, spec.queue, spec.priority, spec.max_attempts) == ("parse.v2", "cpu-bound", Priority.HIGH, 7)
    assert (spec.timeout, spec.at_most_once) == (timedelta(seconds=90), True)
    assert spec.gate == Gate(caps=("task:parse.v2",))
    assert definition.backoff == retry
    assert definition.stall_timeout == timedelta(seconds=5)
    assert app.registry.declared() == Declared(caps={"task:parse.v2": 3})


def test_a_task_without_options_has_the_documented_defaults() -> None:
    """A bare `@app.task` takes its name from the function and its attempts from the settings."""
    app = quick_app()

    @app.task
    async def plain() -> None: ...

    spec = app.spec_of(plain.definition)
    assert (spec.task, spec.queue, spec.priority, spec.max_attempts) == ("plain", "default", Priority.STANDARD, 4)
    assert (spec.timeout, spec.at_most_once, spec.gate) == (QUICK.worker.max_processing_time, False, None)


def test_where_a_handler_runs_follows_from_its_kind() -> None:
    """`async def` runs on the loop, `def` in a thread, and `cpu=True` makes it a process."""
    app = quick_app()

    async def on_loop() -> None: ...
    def in_thread() -> None: ...

    assert app.task(on_loop).definition.runs_in is RunsIn.LOOP
    assert app.task(in_thread).definition.runs_in is RunsIn.THREAD
    assert app.task(cpu=True)(module_level).definition.runs_in is RunsIn.PROCESS


def module_level() -> None:
    """Be importable by a child process."""


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("name", "No Spaces", "name"),
        ("name", "x" * 65, "name"),
        ("name", "../etc", "name"),
        ("queue", "Ünicode", "queue"),
        ("queue", "a;drop", "queue"),
        ("priority", 10, "priority"),
        ("priority", -1, "priority"),
        ("priority", "urgent", "priority"),
        ("priority", True, "priority"),
        ("retry", 3, "retry"),
        ("retry", "3 times", "retry"),
        ("timeout", "soon", "timeout"),
        ("timeout", 0, "timeout"),
        ("timeout", -5, "timeout"),
        ("timeout", "25h", "timeout"),
        ("stall_timeout", 0, "stall_timeout"),
        ("stall_timeout", "x", "stall_timeout"),
        ("concurrency", 0, "concurrency"),
        ("concurrency", 1.5, "concurrency"),
        ("concurrency", True, "concurrency"),
        ("delivery", "exactly_once", "delivery"),
        ("cpu", "yes", "cpu"),
        ("retries", 3, "task option"),
    ],
)
def test_a_wrong_option_is_refused_by_name(option: str, value: Any, named: str) -> None:
    """A wrong option fails at registration, and the error names it and shows the value."""
    app = quick_app()
    options: dict[str, Any] = {option: value}
    with pytest.raises(InvalidInputError, match=f"^{named}") as caught:
        app.task(**options)(module_level)
    assert repr(value)[:10] in str(caught.value) or option in str(caught.value)


async def endless() -> AsyncIterator[int]:
    """Be no coroutine function."""
    yield 1


def counting() -> Iterator[int]:
    """Be no ordinary function."""
    yield 1


@pytest.mark.parametrize(
    "thing",
    [endless, counting, functools.partial(print, 1), 7, App],
    ids=["async-generator", "generator", "partial", "number", "class"],
)
def test_what_is_no_ordinary_function_is_refused(thing: Callable[..., Any]) -> None:
    """Generators, partials and other objects cannot be tasks, and the error says so at registration."""
    with pytest.raises(InvalidInputError, match="function"):
        quick_app().task(name="x")(thing)


def test_a_name_belongs_to_one_function() -> None:
    """Two functions cannot share a task name; registering the same function again, as a reload does, is fine."""
    app = quick_app()

    async def one() -> None: ...
    async def two() -> None: ...

    app.task(name="shared")(one)
    app.task(name="shared")(one)
    with pytest.raises(ConfigError, match="shared"):
        app.task(name="shared")(two)


def test_a_task_in_a_child_must_be_importable() -> None:
    """`cpu=True` needs a function that another process can import: a nested one is refused at registration."""
    app = quick_app()
    with pytest.raises(InvalidInputError, match="cpu"):

        @app.task(cpu=True)
        def nested() -> None: ...


async def test_a_task_is_still_its_function() -> None:
    """Calling a task is a plain call: no job, no store."""
    app = quick_app()

    @app.task
    async def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    @app.task
    def triple(number: int) -> int:
        return 3 * number

    assert (await double(4), triple(4)) == (8, 12)
    assert (double.__name__, double.__doc__, repr(double)) == ("double", "Twice as much.", "Task('double')")
    assert asyncio.iscoroutinefunction(double.__wrapped__)


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("key", "", "key"),
        ("key", "k" * 256, "key"),
        ("key", "line\nbreak", "key"),
        ("key", 5, "key"),
        ("priority", "urgent", "priority"),
        ("queue", "No", "queue"),
        ("timeout", 0, "timeout"),
        ("max_attempts", 0, "max_attempts"),
        ("max_attempts", 101, "max_attempts"),
        ("max_attempts", True, "max_attempts"),
        ("run_at", "tomorrow", "run_at"),
        ("run_at", -1, "run_at"),
        ("run_at", "400d", "run_at"),
        ("colour", "red", "options"),
    ],
)
def test_a_wrong_option_of_a_call_is_refused_by_name(option: str, value: Any, named: str) -> None:
    """`task.options` checks every value before anything is stored."""
    app = quick_app()

    @app.task
    async def work() -> None: ...

    with pytest.raises(InvalidInputError, match=f"^{named}"):
        work.options(**{option: value})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"policy": 3}, "policy"),
        ({"on_close": "report"}, "on_close"),
        ({"spread": "yes"}, "spread"),
        ({"key": ""}, "key"),
        ({"policy": ClosePolicy.always(), "colour": "red"}, "options"),
        ({"connection": None}, "options"),
    ],
)
async def test_a_wrong_option_of_submit_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    """`app.submit` checks every option before anything is stored."""
    app = quick_app()

    @app.task
    async def work(number: int) -> None: ...

    async with app:
        with pytest.raises(InvalidInputError, match=f"^{named}"):
            await app.submit(work, [1], **options)
        assert await app.runtime.stores.inspect.list_batches() == []


async def test_submit_wants_a_task() -> None:
    """Passing the undecorated function to `submit` is explained."""
    app = quick_app()
    async with app:
        with pytest.raises(InvalidInputError, match=r"@app\.task"):
            await app.submit(module_level, [1])  # type: ignore[arg-type]


def test_an_unknown_task_is_named_with_those_there_are() -> None:
    """Looking for a task by a wrong name lists the right ones."""
    app = quick_app()
    app.task(module_level)
    assert app.find_task("module_level").name == "module_level"
    with pytest.raises(NotFoundError, match="module_level"):
        app.find_task("module-level")


def test_a_closed_app_says_how_to_open_it() -> None:
    """Using an app that is not open names the three ways to open it."""
    app = quick_app()
    with pytest.raises(ConfigError, match="async with app") as caught:
        _ = app.runtime
    assert isinstance(caught.value, HeadraceError)
    assert "app.sync" in str(caught.value)


@pytest.mark.parametrize("text", ["", "17", "not-an-id", "0198-zz", 5, None], ids=repr)
def test_what_is_no_id_is_refused(text: Any) -> None:
    """A handle is made of an id; anything else is named, with the form an id has."""
    app = quick_app()
    for find, named in ((app.job, "job id"), (app.batch, "batch id")):
        with pytest.raises(InvalidInputError, match=named):
            find(text)
