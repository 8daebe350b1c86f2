"""What tests of the ledger do again and again: open calls, settle them, look at budgets and sums."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import Any
from uuid import UUID

from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import CallState, CallView, NewCall, Opening, Origin, Settlement, SpooledPart, Verdict
from headrace.model.llm import Answer, StoredAnswer
from headrace.model.quota import Estimate
from headrace.model.spend import SpendGroup, SpendRow
from headrace.model.usage import Usage
from headrace.ports.budget_store import BudgetStore
from headrace.ports.call_store import CallStore
from headrace.ports.name_store import NameStore
from tests.conformance.scenario import Scenario

#: 100 tokens of prompt, at most 50 of the answer, at most 1,000 nanodollars.
ESTIMATE = Estimate(100, 50, 1_000)
#: What such a call used: 120 tokens and 700 nanodollars.
USED = Usage(input_tokens=100, output_tokens=20, calls=1, cached_tokens=10, cost_nano=700)
UNPRICED = replace(USED, cost_nano=0, unpriced=1)


def key(word: object) -> str:
    """Return a memo key."""
    return hashlib.sha256(str(word).encode()).hexdigest()


def ask(word: object = "hello", **facts: Any) -> NewCall:
    """Return a call that asks `word`; names of an origin go there."""
    origin = {name: facts.pop(name) for name in ("job_id", "batch_id", "run_id", "tenant") if name in facts}
    chosen = {"pool": "openai:me:small", "provider": "openai", "model": "small", "estimate": ESTIMATE, **facts}
    return NewCall(key=key(word), origin=Origin(**origin), **chosen)


def answer(text: str = "world") -> StoredAnswer:
    """Return an answer as a provider gave it."""
    return StoredAnswer("openai", Answer(text=text, usage=USED, model="small-2026", request_id="req-1"))


def parts(call: UUID, start: int, *texts: str) -> list[SpooledPart]:
    """Return parts of a call's answer, numbered from `start`."""
    return [SpooledPart(call, number, text) for number, text in enumerate(texts, start)]


class Books(Scenario):
    """Stores that have a ledger, and short words for the usual acts."""

    @property
    def calls(self) -> CallStore:
        """Return the ledger."""
        return self.stores.calls

    @property
    def budgets(self) -> BudgetStore:
        """Return the budgets."""
        return self.stores.budgets

    @property
    def names(self) -> NameStore:
        """Return the names."""
        return self.stores.names

    async def try_open(self, session: UUID, call: NewCall) -> Opening:
        """Open one call and return what the store said."""
        [opening] = await self.calls.open_calls(session, [call])
        return opening

    async def verdict(self, session: UUID, call: NewCall) -> Verdict:
        """Open one call and return the verdict alone."""
        return (await self.try_open(session, call)).verdict

    async def open(self, session: UUID | None = None, word: object = "hello", **facts: Any) -> NewCall:
        """Open a call that nothing stands against."""
        call = ask(word, **facts)
        assert await self.try_open(session or await self.worker(), call) == Opening(Verdict.OPENED)
        return call

    async def race(self, session: UUID, calls: list[NewCall]) -> list[Verdict]:
        """Open calls at the same moment, each by a statement of its own."""
        return list(await asyncio.gather(*(self.verdict(session, call) for call in calls)))

    async def settle(self, call: NewCall, **facts: Any) -> StoredAnswer | None:
        """Settle one call, answered and used as usual unless told otherwise, and return what stands under its key."""
        chosen = {"answer": answer(), "usage": USED, "priced_by": "list 2026-01-01", **facts}
        [stands] = await self.calls.settle_calls([Settlement(call=call, **chosen)])
        return stands

    async def orphan(self, call: NewCall, **facts: Any) -> None:
        """Settle one call as one whose end nobody knows."""
        await self.settle(call, **{"state": CallState.ORPHANED, "answer": None, **facts})

    async def known(self, call: NewCall) -> CallView:
        """Return a call that must be in the ledger."""
        [view] = [view for view in await self.budgets.list_calls(limit=1_000) if view.id == call.id]
        return view

    async def ledger(self) -> dict[UUID, CallState]:
        """Return the state of each call of the ledger."""
        return {view.id: view.state for view in await self.budgets.list_calls(limit=1_000)}

    async def limit(self, scope: str, cost_nano: int | None = None, tokens: int | None = None) -> None:
        """Set a budget."""
        await self.budgets.set_budget(scope, Budget(cost_nano, tokens))

    async def budget(self, scope: str) -> BudgetView:
        """Return a scope as it stands."""
        [view] = await self.budgets.list_budgets([scope])
        return view

    async def spend(self, by: SpendGroup, **facts: Any) -> dict[str, SpendRow]:
        """Return the sums of each group by its name."""
        rows = await self.budgets.list_spend(by, **facts)
        assert len({row.name for row in rows}) == len(rows)
        return {row.name: row for row in rows}
