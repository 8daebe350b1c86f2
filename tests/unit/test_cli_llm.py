"""`headrace llm` on the memory store: pools, spending, calls, budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headrace import App
from headrace.engine.llm_session import CallerSession
from headrace.model.calls import CallState, NewCall, Origin, Settlement
from headrace.model.quota import Estimate
from headrace.model.session import NewSession, ProcessId
from headrace.model.usage import Usage
from headrace.settings import load_settings
from headrace.testing.provider import ScriptedProvider
from tests.unit.cli_runner import CommandLine, as_client, command_line
from tests.unit.engine_app import QUICK


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


def call(**facts: object) -> NewCall:
    """Return a call of a pool."""
    plain = {"key": uuid4().hex * 2, "pool": "openai:small", "provider": "openai", "model": "small"}
    return NewCall(**{**plain, "estimate": Estimate(100, 200, 5_000_000), **facts})  # type: ignore[arg-type]


@pytest.fixture
def calls(headrace: CommandLine) -> CommandLine:
    """A store with three calls: one paid, one of unknown price, one orphaned."""

    async def make() -> None:
        stores = headrace.stores
        session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {}, timedelta(minutes=5))
        await stores.sessions.register_session(session)
        paid, unknown, lost = call(origin=Origin(tenant="acme")), call(model="other"), call()
        await stores.calls.open_calls(session.id, [paid, unknown, lost])
        await stores.calls.settle_calls(
            [
                Settlement(call=paid, usage=Usage(100, 50, 1, cost_nano=2_500_000), priced_by="headrace.toml"),
                Settlement(call=unknown, usage=Usage(100, 50, 1, unpriced=1)),
                Settlement(
                    call=lost, state=CallState.ORPHANED, usage=Usage(100, 200, 1, cost_nano=5_000_000),
                    priced_by="headrace.toml", error="provider_timeout",
                ),
            ]
        )  # fmt: skip

    as_client(headrace.app(), make)
    return headrace


def test_nothing_is_on_record_at_first(headrace: CommandLine) -> None:
    """An empty store says so."""
    for command in ("pools", "spend", "calls"):
        assert headrace.json("llm", command) == []
    assert headrace.json("llm", "budget", "list") == []
    assert "Nothing was spent" in headrace.text("llm", "spend")
    assert "No budget is set" in headrace.text("llm", "budget", "list")


def test_spending_tells_what_is_known_and_what_is_not(calls: CommandLine) -> None:
    """Money by model, an unknown price as unknown, and the upper bound of what may have been paid for nothing."""
    text = calls.text("llm", "spend")
    assert "$0.0025" in text
    assert "unknown" in text
    assert "$0.0050" in text
    assert "headrace llm calls --state orphaned" in text
    rows = {row["name"]: row for row in calls.json("llm", "spend", "--by", "tenant")}
    assert rows["acme"]["usage"]["cost_nano"] == 2_500_000


def test_pools_show_what_was_spent_today(calls: CommandLine) -> None:
    """One line per pool, with the part of unknown price told apart; for Prometheus too."""
    text = calls.text("llm", "pools")
    assert "openai:small" in text
    assert "$0.0025 + unknown" in text
    exposed = calls.text("llm", "pools", "--prometheus")
    assert 'headrace_llm_pool_spent_usd_today{pool="openai:small"} 0.0025' in exposed
    assert 'headrace_llm_pool_orphaned_calls_today{pool="openai:small"} 1' in exposed
    assert 'headrace_llm_calls_by_purpose_today{purpose="ask"} 2' in exposed


LIMITS = {
    "HEADRACE_LLM_MODEL": "small", "HEADRACE_LLM_REQUESTS_PER_MINUTE": "300",
    "HEADRACE_LLM_TOKENS_PER_MINUTE": "200000", "HEADRACE_LLM_REQUESTS_PER_DAY": "5000",
    "HEADRACE_LLM_CONCURRENCY": "8",
}  # fmt: skip


def test_a_pool_that_no_process_uses_shows_its_configured_limits(
    calls: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not said to be unlimited; one that is configured and was not used yet is listed too."""
    assert "no limit configured" in calls.text("llm", "pools")
    for name, value in LIMITS.items():
        monkeypatch.setenv(name, value)
    text = calls.text("llm", "pools")
    assert "limit 300 requests, 200,000 tokens, 5,000 requests/day, 8 at once" in text
    assert "not limited" not in text
    [pool] = calls.json("llm", "pools")
    assert (pool["limits"]["requests_per_minute"], pool["limits"]["concurrency"], pool["processes"]) == (300, 8, 0)
    monkeypatch.setenv("HEADRACE_LLM_POOL", "other")
    assert [pool["name"] for pool in calls.json("llm", "pools")] == ["openai:small", "other"]


def test_a_pool_of_two_models_shows_the_limits_that_hold(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whichever table says them; and two that differ are a mistake in the configuration, with its exit code."""
    file = tmp_path / "headrace.toml"
    monkeypatch.setenv("HEADRACE_CONFIG", str(file))
    tables = '[llm]\npool = "p"\nconcurrency = 8\n[llm.models.b]\npool = "p"\n'
    file.write_text(f"{tables}requests_per_minute = 120\n")
    assert "limit 120 requests, 8 at once" in headrace.text("llm", "pools")
    file.write_text(f"{tables}concurrency = 9\n")
    code, error = headrace.refusal("llm", "pools")
    assert (code, error["code"]) == (2, "config")
    assert "[llm] and [llm.models.b] share the pool 'p'" in error["message"]


def test_what_flows_is_told_by_the_processes_that_are_alive(
    calls: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where less was learnt than is configured, that is shown."""
    for name, value in LIMITS.items():
        monkeypatch.setenv(name, value)
    tell_of_pool(calls, flows={"requests": 2.0})
    text = calls.text("llm", "pools")
    assert "120 requests, 5,000 requests/day, 8 at once" in text
    assert "limit 300" not in text


def test_a_pool_in_use_without_limits_is_not_limited(calls: CommandLine) -> None:
    """Neither configured nor learnt."""
    tell_of_pool(calls, flows={})
    assert "not limited" in calls.text("llm", "pools")


def tell_of_pool(headrace: CommandLine, flows: dict[str, float]) -> None:
    """Let a live process tell of the pool."""
    told = {
        "name": "openai:small", "waiting": 0, "waits": 0, "waited_seconds": 0.0, "refused": 0, "overloaded": 0,
        "closed_seconds": 0.0, "used": {}, "flows": flows, "learnt": 1.0,
    }  # fmt: skip
    tell(headrace, {"headrace.llm.pools": [told]})


def tell(headrace: CommandLine, stats: dict[str, Any]) -> None:
    """Let a live process tell something with its session."""

    async def make() -> None:
        sessions = headrace.stores.sessions
        session = NewSession(ProcessId("elsewhere", 2, 2), "elsewhere", {}, timedelta(minutes=5))
        await sessions.register_session(session)
        await sessions.renew_session(session.id, lease=timedelta(minutes=5), stats=stats)

    as_client(headrace.app(), make)


def test_orphaned_calls_are_listed_with_what_they_may_have_cost(calls: CommandLine) -> None:
    """Each with its error and its upper bound."""
    [orphan] = calls.json("llm", "calls", "--state", "orphaned")
    assert (orphan["error"], orphan["usage"]["cost_nano"]) == ("provider_timeout", 5_000_000)
    assert "≤ $0.0050" in calls.text("llm", "calls", "--state", "orphaned")
    assert len(calls.json("llm", "calls", "--limit", "2")) == 2


def test_a_budget_is_set_shown_and_removed(calls: CommandLine) -> None:
    """What was spent before counts; a used-up budget says so."""
    set_now = calls.json("llm", "budget", "set", "tenant:acme", "--dollars", "0.0025")
    assert set_now["budget"] == {"cost_nano": 2_500_000, "tokens": None}
    assert "used up" in calls.text("llm", "budget", "list")
    assert calls.json("llm", "budget", "remove", "tenant:acme")["budget"] is None


def test_a_budget_without_an_amount_is_told_by_the_options(headrace: CommandLine) -> None:
    """The words are those of the command line, not of the Python interface."""
    code, error = headrace.refusal("llm", "budget", "set", "day")
    assert (code, error["code"]) == (2, "usage")
    assert "Give --dollars, --tokens or both" in error["message"]
    assert "headrace llm budget remove day" in error["message"]
    assert "dollars=" not in error["message"]


def budget_of_acme(headrace: CommandLine) -> Any:
    """Return the budget of the tenant as `budget list` shows it, and check that people read the same state."""
    [found] = headrace.json("llm", "budget", "list")
    assert f"tenant:acme  {found['state']}  " in headrace.text("llm", "budget", "list")
    return found


def test_a_budget_with_no_room_for_what_waits_is_full(calls: CommandLine) -> None:
    """Its limit is not reached, and yet calls wait: that is told, with what they ask for, until it is raised."""
    calls.json("llm", "budget", "set", "tenant:acme", "--tokens", "180", "--dollars", "1")
    found = budget_of_acme(calls)
    assert (found["state"], found["refused"], found["left_tokens"], found["left_nano"]) == (
        "open",
        None,
        30,
        997_500_000,
    )
    tell(calls, {"headrace.llm.over_budget": {"tenant:acme": {"tokens": 40, "cost_nano": 5_000_000}}})
    found = budget_of_acme(calls)
    assert (found["state"], found["refused"]) == ("full", {"tokens": 40, "cost_nano": 5_000_000})
    assert "a call that may take 40 tokens and $0.0050 waits" in " ".join(calls.text("llm", "budget", "list").split())
    calls.json("llm", "budget", "set", "tenant:acme", "--tokens", "200")
    assert budget_of_acme(calls)["state"] == "open"
    calls.json("llm", "budget", "set", "tenant:acme", "--dollars", "0.005")
    assert budget_of_acme(calls)["state"] == "full"
    calls.json("llm", "budget", "set", "tenant:acme", "--tokens", "150")
    assert budget_of_acme(calls)["state"] == "used up"


def test_a_budget_whose_rest_is_reserved_is_full(headrace: CommandLine) -> None:
    """What is spent has not reached the limit, and what calls in flight may use leaves nothing."""

    async def make() -> None:
        session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {}, timedelta(minutes=5))
        await headrace.stores.sessions.register_session(session)
        await headrace.stores.calls.open_calls(session.id, [call(origin=Origin(tenant="acme"))])

    as_client(headrace.app(), make)
    headrace.json("llm", "budget", "set", "tenant:acme", "--tokens", "300")
    found = budget_of_acme(headrace)
    assert (found["state"], found["tokens"], found["reserved_tokens"], found["left_tokens"]) == ("full", 0, 300, 0)


async def test_a_process_tells_what_its_budgets_have_no_room_for(
    headrace: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that waits for a budget shows in the list within a heartbeat of its process, also where none was made."""
    quick = partial(CallerSession, interval=timedelta(seconds=0.05))
    monkeypatch.setattr("headrace.wiring.gateway.CallerSession", quick)
    async with ScriptedProvider() as provider:
        settings = replace(QUICK, llm=load_settings(environ=provider.environment).llm)
        async with App(settings=settings) as app, asyncio.timeout(20):
            await app.budgets.set("tenant:acme", tokens=30)
            waiting = asyncio.create_task(app.llm.using(tenant="acme").complete("Hello?", max_tokens=1_000))
            while (found := (await asyncio.to_thread(headrace.json, "llm", "budget", "list"))[0])["state"] == "open":
                await asyncio.sleep(0.02)
            waiting.cancel()
    assert (found["state"], found["left_tokens"], provider.count()) == ("full", 30, 0)
    assert found["refused"]["tokens"] > 1_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("budget", "set", "tenants:acme", "--dollars", "1"), "scope"),
        (("budget", "set", "day"), "Give --dollars, --tokens or both"),
        (("budget", "set", "day", "--dollars", "many"), "dollars must be US dollars"),
        (("budget", "set", "day", "--tokens", "-1"), "-1"),
        (("spend", "--by", "weather"), "weather"),
        (("calls", "--limit", "0"), "0"),
        (("pools", "--json", "--prometheus"), "exclude each other"),
    ],
)
def test_mistakes_are_named(headrace: CommandLine, arguments: tuple[str, ...], says: str) -> None:
    """A wrong scope, amount or group is refused with its rule; exit code 2."""
    code, error = headrace.refusal("llm", *arguments)
    assert code == 2
    assert says in str(error)
