"""What a process keeps in mind of calls that a budget had no room for."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from headrace.engine.refusals import RECENT_SECONDS, REFUSALS, WatchedCalls
from headrace.model.budget import Budget
from headrace.model.calls import NewCall, Origin, Verdict
from headrace.model.quota import Estimate
from headrace.model.session import NewSession, ProcessId
from headrace.stores.memory import open_memory_stores


def call(tenant: str, tokens: int) -> NewCall:
    """Return a call of a tenant that may take so many tokens."""
    estimate, key = Estimate(tokens - 10, 10, tokens), uuid4().hex * 2
    return NewCall(key=key, pool="p", provider="openai", model="m", estimate=estimate, origin=Origin(tenant=tenant))


async def test_the_last_refusal_of_each_scope_is_told_until_it_is_old() -> None:
    """Calls that pass are not told; of those that do not, the last one of each budget, for a minute."""
    stores, now = open_memory_stores(), [0.0]
    session = NewSession(ProcessId("here", 1, 1), "here", {}, timedelta(minutes=5))
    await stores.sessions.register_session(session)
    calls = WatchedCalls(stores.calls, lambda: now[0])
    await stores.budgets.set_budget("tenant:a", Budget(tokens=30))
    await stores.budgets.set_budget("tenant:b", Budget(tokens=30))
    opened = await calls.open_calls(session.id, [call("a", 20), call("a", 90), call("a", 40), call("b", 50)])
    refused = Verdict.OVER_BUDGET
    assert [opening.verdict for opening in opened] == [Verdict.OPENED, refused, refused, refused]
    told = {"tenant:a": {"tokens": 40, "cost_nano": 40}, "tenant:b": {"tokens": 50, "cost_nano": 50}}
    assert calls.told() == {REFUSALS: told}
    now[0] = RECENT_SECONDS
    await calls.open_calls(session.id, [call("b", 60)])
    now[0] += 1
    assert calls.told() == {REFUSALS: {"tenant:b": {"tokens": 60, "cost_nano": 60}}}
