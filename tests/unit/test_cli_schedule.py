"""`headrace schedule` on the memory store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Context
from headrace.model.schedule import DECLARED_FOR
from tests.unit.cli_runner import CommandLine, as_client, command_line


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def with_schedules(headrace: CommandLine) -> App:
    """Declare two schedules, as a worker does when it starts."""
    app = headrace.app()

    @app.cron("0 3 * * *", tz="Europe/Berlin", catch_up="one", queue="slow")
    async def nightly(ctx: Context) -> str:
        return "" if ctx.scheduled_at is None else ctx.scheduled_at.isoformat()

    app.schedule(nightly, "*/5 * * * *", name="often")

    async def declare() -> None:
        assert app.runtime.stores.schedules is not None
        await app.runtime.stores.schedules.declare_schedules(app.declarations())

    as_client(app, declare)
    return app


def state_of(headrace: CommandLine, name: str) -> str:
    """Return what the list says of a schedule."""
    found: dict[str, Any] = {item["name"]: item["state"] for item in headrace.json("schedule", "list")}
    return str(found[name])


def test_a_list_of_nothing_says_how_to_begin(headrace: CommandLine) -> None:
    """An empty store has no schedule."""
    assert headrace.json("schedule", "list") == []
    assert "@app.cron" in headrace.text("schedule", "list")


def test_the_list_shows_when_everything_fires(headrace: CommandLine) -> None:
    """Rule, zone, policy, task and queue, and the next times on the clocks of the zone."""
    with_schedules(headrace)
    nightly, often = headrace.json("schedule", "list")
    assert nightly == {
        "name": "nightly", "state": "active", "cron": "0 3 * * *", "tz": "Europe/Berlin", "catch_up": "one",
        "task": "nightly", "queue": "slow", "last": None,
        "declared_at": nightly["declared_at"], "upcoming": nightly["upcoming"],
    }  # fmt: skip
    upcoming = [datetime.fromisoformat(text) for text in often["upcoming"]]
    assert [second - first for first, second in itertools.pairwise(upcoming)] == [timedelta(minutes=5)] * 2
    assert timedelta() < upcoming[0] - datetime.now(UTC) <= timedelta(minutes=5)
    [line] = [line for line in headrace.text("schedule", "list").splitlines() if line.startswith("nightly")]
    assert " 03:00+0" in line
    assert "0 3 * * *" in line


def test_a_paused_schedule_has_no_next_time(headrace: CommandLine) -> None:
    """A pause is seen until it is lifted."""
    with_schedules(headrace)
    assert headrace.json("schedule", "pause", "nightly") == {"schedule": "nightly", "paused": True}
    assert state_of(headrace, "nightly") == "paused"
    assert headrace.json("schedule", "list")[0]["upcoming"] == []
    assert headrace.text("schedule", "resume", "nightly") == "nightly is resumed\n"
    assert state_of(headrace, "nightly") == "active"


def test_run_now_makes_a_job_that_the_history_names(headrace: CommandLine) -> None:
    """Its id is printed, the history says that somebody asked, and the handler gets the time as its scheduled one."""
    app = with_schedules(headrace)
    assert "has not fired" in headrace.text("schedule", "history", "nightly")
    made = headrace.json("schedule", "run-now", "nightly")
    printed = headrace.text("schedule", "run-now", "nightly").strip()
    newest, first = headrace.json("schedule", "history", "nightly")
    assert (first["job_id"], newest["job_id"]) == (made["job_id"], printed)
    assert (first["manual"], newest["manual"]) == (True, True)
    assert headrace.json("schedule", "list")[0]["last"] == newest
    assert headrace.text("schedule", "history", "nightly", "--limit", 1).count("run-now") == 1
    headrace.finish(app, UUID(printed))
    assert headrace.json("job", "show", printed)["result"] == newest["fire_at"]


def test_only_what_no_worker_declares_is_forgotten(headrace: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is still in the code would come back: it is refused, unless forced; after ten minutes it is not."""
    with_schedules(headrace)
    code, error = headrace.refusal("schedule", "forget", "nightly")
    assert (code, error["field"]) == (2, "schedule")
    assert "--force" in error["message"]
    assert headrace.json("schedule", "forget", "nightly", "--force") == {"schedule": "nightly", "forgotten": True}

    now = datetime.now(UTC) + DECLARED_FOR
    monkeypatch.setattr("headrace.clock.SystemClock.now", lambda _: now)
    assert state_of(headrace, "often") == "undeclared"
    assert "undeclared" in headrace.text("schedule", "list")
    assert headrace.text("schedule", "forget", "often") == "often is forgotten\n"
    assert headrace.json("schedule", "list") == []


@pytest.mark.parametrize("verb", ["pause", "resume", "run-now", "forget", "history"])
def test_an_unknown_schedule_is_not_found(headrace: CommandLine, verb: str) -> None:
    """Exit code 5, with the names there are."""
    with_schedules(headrace)
    code, error = headrace.refusal("schedule", verb, "nihgtly")
    assert (code, error["code"]) == (5, "not_found")
    assert "nightly, often" in error["message"]
