"""What a worker declares at its start and with each new session, and what it says of limits that nobody declares."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from headrace import App, Breaker, ConfigError, Limit, Rate
from headrace.engine.declaring import Declaring
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.scheduler import make_scheduler
from headrace.engine.telemetry import Telemetry
from headrace.model.breaker import BreakerRule
from headrace.model.ids import uuid7
from headrace.model.job import JobSpec
from headrace.model.limits import Declared
from headrace.model.schedule import CronRule, Declaration
from headrace.ports.stores import Stores
from headrace.testing.clock import FakeClock
from tests.unit.engine_app import quick_app, shift_of
from tests.waiting import wait_until

HOURLY = Declaration("hourly", CronRule("0 * * * *"), JobSpec("work"), '{"args":[],"kwargs":{}}')


def told(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """Return what was said at a level by the logger of limits."""
    return [record.message for record in caplog.records if (record.name, record.levelno) == ("headrace.limits", level)]


def declaring(app: App, *declarations: Declaration) -> Declaring:
    """Return what declares for a worker of an open app."""
    stores = app.runtime.stores
    leadership = Leadership(stores, uuid7())
    scheduler = make_scheduler(stores, leadership, declarations, telemetry=Telemetry(), clock=FakeClock())
    return Declaring(stores, app.registry, scheduler)


async def test_a_limit_without_a_rate_anywhere_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A misspelt name is one warning with the task, the limit, those there are and the fix, and no second one."""
    caplog.set_level(logging.DEBUG, "headrace.limits")
    app = quick_app()

    @app.task(limits=[Limit("openai", "60/m")])
    async def right() -> None: ...

    @app.task(limits=[Limit("opneai"), Limit("openai")], rate_limit="5/s")
    async def wrong() -> None: ...

    async with app.worker() as worker:
        first = shift_of(worker)
        await app.runtime.stores.sessions.expire_sessions([first.id])
        await wait_until(lambda: worker.session not in (None, first))
    [warning] = told(caplog, logging.WARNING)
    assert warning.startswith("task wrong names the rate limit 'opneai', and no rate is declared for it")
    assert "there are: openai, task:wrong" in warning
    assert 'Limit("opneai", "60/m")' in warning
    assert "headrace limits set-rate opneai 60/m --force" in warning


async def test_a_limit_whose_rate_is_elsewhere_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A rate of another app, or one that an operator set, is good enough; once it is gone that is told."""
    caplog.set_level(logging.DEBUG, "headrace.limits")
    app = quick_app()

    @app.task(limits=[Limit("openai")])
    async def ask() -> None: ...

    async with app:
        await app.limits.set_rate("openai", "60/m", force=True)
        mine = declaring(app)
        await mine.declare()
        assert told(caplog, logging.WARNING) == []
        assert "rate limit 'openai' of task ask is declared elsewhere" in told(caplog, logging.DEBUG)[0]
        await app.limits.forget("openai")
        await mine.declare(again=True)
        await mine.declare(again=True)
        assert len(told(caplog, logging.WARNING)) == 1


async def test_apps_without_such_names_ask_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every limit and breaker is declared a start costs no look at those of the store."""
    app = quick_app()

    @app.task(limits=[Limit("api", "5/s")], breaker=Breaker("api"))
    async def ask() -> None: ...

    async with app:
        for name in ("list_rates", "list_limits"):
            monkeypatch.delattr(type(app.runtime.stores.admission), name)
        await declaring(app).declare()


async def breaker_rules(stores: Stores) -> dict[str, BreakerRule]:
    """Return the breakers of a store."""
    return {view.key: view.rule for view in (await stores.admission.list_limits()).breakers}


async def test_a_breaker_that_is_only_named_has_defaults_and_says_which(caplog: pytest.LogCaptureFixture) -> None:
    """Declared nowhere it is told at INFO, once, with its rule and how to give it another."""
    caplog.set_level(logging.INFO, "headrace.limits")
    app = quick_app()

    @app.task(breaker="model")
    async def ask() -> None: ...

    async with app:
        mine = declaring(app)
        await mine.declare()
        await mine.declare(again=True)
        assert await breaker_rules(app.runtime.stores) == {"model": BreakerRule()}
    [line] = told(caplog, logging.INFO)
    assert line.startswith("breaker 'model' of task ask is declared nowhere: it has the defaults (5 failures in a row")
    assert "for 30s" in line
    assert "breaker=Breaker('model', …)" in line


async def test_a_breaker_that_is_only_named_keeps_the_rule_of_another_app(caplog: pytest.LogCaptureFixture) -> None:
    """Who names it takes nothing back from who declared it."""
    caplog.set_level(logging.INFO, "headrace.limits")
    app = quick_app()

    @app.task(breaker="model")
    async def ask() -> None: ...

    async with app:
        stores, rule = app.runtime.stores, BreakerRule(failures=2)
        await stores.admission.declare_limits(Declared(breakers={"model": rule}))
        await declaring(app).declare()
        assert await breaker_rules(stores) == {"model": rule}
    assert told(caplog, logging.INFO) == []


async def test_a_new_session_brings_back_schedules_and_undoes_none() -> None:
    """What the store lost is declared again; what a newer worker declared meanwhile stays."""
    newer = replace(HOURLY, rule=CronRule("30 * * * *"))
    app = quick_app()
    async with app:
        schedules = app.runtime.stores.schedules
        assert schedules is not None
        mine = declaring(app, HOURLY, replace(HOURLY, name="other"))
        await mine.declare()
        await schedules.declare_schedules([newer])
        await schedules.forget_schedule("other")
        await mine.declare(again=True)
        views = {view.name: view.declaration.rule.expression for view in await schedules.list_schedules()}
        assert views == {"hourly": "30 * * * *", "other": "0 * * * *"}


@pytest.mark.parametrize(
    ("one", "two", "named"),
    [
        ({"limits": [Limit("api", "5/s")]}, {"limits": [Limit("api", "5/s", burst=9)]}, "5/s, burst 5|5/s, burst 9"),
        ({"limits": [Limit("api", Rate(1 / 7, 1))]}, {"limits": [Limit("api", "1/s")]}, "8.57143/m|1/s"),
        ({"breaker": Breaker("api", cooldown="90s")}, {"breaker": Breaker("api", failures=2)},
         "failures=5, cooldown=1m30s|failures=2, cooldown=30s"),
    ],
)  # fmt: skip
def test_declarations_that_do_not_agree_are_shown_as_people_write_them(
    one: dict[str, Any], two: dict[str, Any], named: str
) -> None:
    """Both tasks are named, with what differs between them and nothing else."""
    app = quick_app()
    app.task(name="one", **one)(lambda: None)
    app.task(name="two", **two)(lambda: None)
    with pytest.raises(ConfigError) as refused:
        app.registry.declared()
    first, second = named.split("|")
    assert f"declared twice, as {first} by task one and as {second} by task two;" in str(refused.value)
