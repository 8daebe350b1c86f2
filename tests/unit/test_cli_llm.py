"""`headrace llm` on the memory store: pools, spending, calls, budgets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest

from headrace.model.calls import CallState, NewCall, Origin, Settlement
from headrace.model.quota import Estimate
from headrace.model.session import NewSession, ProcessId
from headrace.model.usage import Usage
from tests.unit.cli_runner import CommandLine, as_client, command_line


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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("budget", "set", "tenants:acme", "--dollars", "1"), "scope"),
        (("budget", "set", "day"), "must say dollars= or tokens="),
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
