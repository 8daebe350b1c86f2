"""`@app.cron` and `app.schedule`: what an app declares, and what its jobs learn of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from headrace import App, ConfigError, Context
from headrace.model.errors import InvalidInputError
from headrace.model.schedule import CatchUp
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.unit.engine_app import QUICK, quick_app
from tests.waiting import wait_until


def test_a_cron_function_is_a_task_with_a_schedule() -> None:
    """It has the options of a task, can be called and enqueued, and the schedule has its name."""
    app = App("memory://")

    @app.cron("30 2 * * 1-5", tz="Europe/Berlin", catch_up="all", name="report", queue="slow", priority="bulk")
    def make_report(region: str = "all") -> str:
        return region

    [declaration] = app.declarations()
    assert (declaration.name, declaration.spec.task) == ("report", "report")
    assert (declaration.spec.queue, declaration.spec.priority) == ("slow", 9)
    assert declaration.rule.text == "30 2 * * 1-5 Europe/Berlin"
    assert declaration.rule.catch_up is CatchUp.ALL
    assert declaration.spec == app.spec_of(make_report.definition)
    assert make_report("north") == "north"
    assert app.find_task("report").definition is make_report.definition


def test_a_task_may_have_several_schedules_with_arguments() -> None:
    """Each under a name of its own, with the options of the call."""
    app = App("memory://")

    @app.task
    async def report(region: str, *, pages: int = 1) -> None: ...

    app.schedule(report, "0 6 * * *", name="north", args=["north"])
    app.schedule(
        report.options(priority="bulk", timeout=60), "0 7 * * *", name="s", args=["south"], kwargs={"pages": 2}
    )
    north, south = app.declarations()
    assert (north.args, south.args) == (
        '{"args":["north"],"kwargs":{}}', '{"args":["south"],"kwargs":{"pages":2}}',
    )  # fmt: skip
    assert (north.spec.priority, south.spec.priority, south.spec.timeout) == (5, 9, timedelta(minutes=1))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"expression": "61 * * * *"}, "cron (minute)"),
        ({"expression": "* * * *"}, "cron"),
        ({"expression": "0 0 31 2 *"}, "cron"),
        ({"tz": "Mars/Olympus"}, "tz"),
        ({"catch_up": "most"}, "catch_up"),
        ({"name": "No Name"}, "name"),
        ({"args": ["a", "b"]}, "arguments of schedule 'report'"),
        ({"kwargs": {"nobody": 1}}, "arguments of schedule 'report'"),
        ({"args": 5}, "args"),
        ({"args": "north"}, "args"),
        ({"kwargs": [1]}, "kwargs"),
        ({"kwargs": {1: "north"}}, "kwargs"),
        ({"args": [float("nan")]}, "arguments of schedule 'report'"),
        ({"options": {"key": "k"}}, "key"),
        ({"options": {"run_at": "10m"}}, "run_at"),
        ({"task": print}, "task"),
    ],
)
def test_a_wrong_schedule_is_refused_where_it_is_written(options: dict[str, Any], field: str) -> None:
    """Not when it would fire: the error names the field."""
    app = App("memory://")

    @app.task
    async def report(region: str = "all") -> None: ...

    given = {"expression": "0 3 * * *", **options}
    task = (
        given.pop("task", report).options(**given.pop("options")) if "options" in given else given.pop("task", report)
    )
    with pytest.raises(InvalidInputError) as caught:
        app.schedule(task, **given)
    assert caught.value.field == field
    assert app.declarations() == []


def test_a_cron_function_that_needs_arguments_is_refused() -> None:
    """A schedule has none to give."""
    app = App("memory://")
    with pytest.raises(InvalidInputError, match="arguments of schedule 'needy'"):

        @app.cron("0 3 * * *")
        async def needy(region: str) -> None: ...


def test_cron_without_a_time_is_refused() -> None:
    """A bare @app.cron would swallow the function: no task, no schedule, and no word of it."""
    app = App("memory://")

    async def nightly() -> None: ...

    with pytest.raises(InvalidInputError, match=r'must say when, as in @app\.cron\("0 3 \* \* \*"\), got .nightly'):
        app.cron(nightly)  # type: ignore[arg-type]


def test_types_that_are_defined_later_are_no_mistake() -> None:
    """A task may be annotated with what stands below it: its arguments are looked at when a worker starts."""
    app = App("memory://")

    @app.cron("0 3 * * *")
    async def early(later: Later | None = None) -> None: ...

    with pytest.raises(InvalidInputError, match="Later"):
        app.declarations()


if TYPE_CHECKING:

    class Later:
        """Be defined for the type checker alone."""


def test_two_schedules_of_one_name_are_refused() -> None:
    """The name is how the cluster knows it."""
    app = App("memory://")

    @app.cron("0 3 * * *")
    async def nightly() -> None: ...

    @app.task
    async def other() -> None: ...

    app.schedule(nightly, "0 3 * * *")  # the module was read twice
    with pytest.raises(ConfigError, match="two schedules 'nightly'"):
        app.schedule(other, "0 3 * * *", name="nightly")
    with pytest.raises(ConfigError, match="two schedules 'nightly'"):
        app.schedule(nightly, "0 4 * * *")


def test_a_schedule_with_other_arguments_replaces_none() -> None:
    """The same task at the same times with other arguments or options needs another name; the same again does not."""
    app = App("memory://")

    @app.task
    async def report(region: str) -> None: ...

    for _ in range(2):  # the module was read twice
        app.schedule(report, "0 6 * * *", args=["north"])
    for call, region in ((report, "south"), (report.options(priority="bulk"), "north")):
        with pytest.raises(ConfigError, match="two schedules 'report'"):
            app.schedule(call, "0 6 * * *", args=[region])


async def test_a_worker_fires_what_its_app_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the declaration to the job: the handler learns for which time it runs; a plain job runs for none."""
    clock = FakeClock(datetime(2026, 1, 1, 2, 59, 59, 900_000, tzinfo=UTC))
    app, seen = quick_app(), []

    @app.cron("0 3 * * *")
    async def nightly(ctx: Context) -> None:
        seen.append(ctx.scheduled_at)

    async def open_stores(*_: object) -> Stores:
        return open_memory_stores(clock)

    monkeypatch.setattr("headrace.wiring.open_stores", open_stores)
    async with app.worker():
        store = app.runtime.stores.schedules
        assert store is not None

        async def planned() -> bool:
            [view] = await store.list_schedules()
            return view.next_at is not None

        await wait_until(planned)
        clock.advance(timedelta(milliseconds=100))
        await wait_until(lambda: seen)
        await (await nightly.enqueue()).result(20)
    assert seen == [datetime(2026, 1, 1, 3, tzinfo=UTC), None]


async def test_a_store_without_schedules_refuses_an_app_that_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker does not start, and says what to do; an app without schedules works."""

    async def open_stores(*_: object) -> Stores:
        return replace(open_memory_stores(), schedules=None)

    monkeypatch.setattr("headrace.wiring.open_stores", open_stores)
    app = App(settings=QUICK)

    @app.task
    async def nightly() -> int:
        return 1

    async with app.worker():
        assert await (await nightly.enqueue()).result(20) == 1
    app.schedule(nightly, "0 3 * * *")
    with pytest.raises(ConfigError, match="keeps no schedules"):
        async with app.worker():
            pass
