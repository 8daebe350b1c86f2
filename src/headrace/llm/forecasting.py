"""What asks would take, before any is made: calls, tokens, money, time, and what bounds it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from pydantic import BaseModel

from headrace.llm.ask import Manner
from headrace.llm.asking import Asker
from headrace.llm.first_requests import first_request
from headrace.llm.prompts import conversation
from headrace.llm.switches import MemoUse, Switches
from headrace.model.calls import Origin, Purpose, current_origin
from headrace.model.llm import CompletionRequest
from headrace.model.money import show_money
from headrace.model.quota import Dimension, PoolLimits
from headrace.model.usage import Usage
from headrace.ports.budget_store import BudgetStore
from headrace.ports.memo_store import MemoStore

#: Answers that are looked up at the same time.
_LOOKUPS = 16
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)


class PlannedAsk(Protocol):
    """One ask as it would be made: of `extract` where `shape` is given, else of `complete`."""

    @property
    def shape(self) -> type[BaseModel] | None: ...
    @property
    def system(self) -> str | None: ...
    @property
    def prompt(self) -> str | None: ...
    @property
    def messages(self) -> Sequence[Mapping[str, str]]: ...
    @property
    def stop(self) -> str | None: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def temperature(self) -> float: ...
    @property
    def expected_output_tokens(self) -> int:
        """How long the answer will be, as far as one knows; 0: as long as answers were so far."""
        ...


@dataclass(frozen=True, slots=True)
class Forecast:
    """What asks would take. The totals leave out what is remembered, which costs nothing; repairs are not foreseen."""

    #: For each ask, in their order: whether its answer was paid before.
    remembered: tuple[bool, ...]
    input_tokens: int
    output_tokens: int
    #: in nanodollars; None: the price is not known
    cost_nano: int | None
    #: at the pace of the quota; None: no quota is configured
    duration: timedelta | None
    #: the limit that decides, in words; None: none is configured
    binding: str | None

    @property
    def calls(self) -> int:
        """Calls that would be paid for."""
        return len(self.remembered) - sum(self.remembered)


class Forecaster:
    """Foresees the asks of one model."""

    def __init__(self, asker: Asker, switches: Switches, memo: MemoStore, budgets: BudgetStore) -> None:
        self._asker, self._switches, self._memo, self._budgets = asker, switches, memo, budgets
        self._slots = asyncio.Semaphore(_LOOKUPS)

    async def foresee(self, asks: Sequence[PlannedAsk]) -> Forecast:
        """What these asks would take. Makes no call. Raises StoreUnavailableError, InvalidInputError."""
        requests = [self._request(ask) for ask in asks]
        remembered = await asyncio.gather(*(self._is_paid(request) for request in requests))
        new = [(ask, request) for ask, request, paid in zip(asks, requests, remembered, strict=True) if not paid]
        sizes = self._asker.caller.sizes
        usage = Usage(
            sum(sizes.input_tokens(request) for _, request in new),
            sum(ask.expected_output_tokens or sizes.usual_answer(request) for ask, request in new),
            calls=len(new),
        )
        cost = self._asker.endpoint.prices.cost(self._asker.provider.name, self._asker.provider.model, usage)
        nano = 0 if not new else None if cost is None else cost.nano
        duration, binding = _pace(usage, self._asker.endpoint.pool.limits, self._asker.endpoint.pool.name)
        return Forecast(
            tuple(remembered), usage.input_tokens, usage.output_tokens, nano, duration,
            await self._short_budget(usage, nano) or binding,
        )  # fmt: skip

    def _request(self, ask: PlannedAsk) -> CompletionRequest:
        request = CompletionRequest(
            model=self._asker.provider.model,
            messages=conversation(ask.prompt, ask.system, ask.messages),
            max_tokens=ask.max_tokens,
            temperature=float(ask.temperature),
            stop=() if ask.stop is None else (ask.stop,),
        )
        return request if ask.shape is None else first_request(ask.shape, request, self._asker.provider.style)

    async def _is_paid(self, request: CompletionRequest) -> bool:
        if self._switches.memo is not MemoUse.USE:
            return False
        key = self._asker.describe(request, Purpose.ASK, self._switches, Manner.WHOLE).key
        async with self._slots:
            return await self._memo.load_answer(key) is not None

    async def _short_budget(self, usage: Usage, nano: int | None) -> str | None:
        """The budget that has no room for it, in words."""
        origin = replace(current_origin.get() or Origin(), tenant=self._switches.tenant)
        for view in await self._budgets.list_budgets(origin.scopes):
            if view.budget is None:
                continue
            money, tokens = view.budget.cost_nano, view.budget.tokens
            if money is not None and nano is not None and view.cost_nano + view.reserved_nano + nano > money:
                left = max(money - view.cost_nano - view.reserved_nano, 0)
                return f"the budget of {view.scope} ({show_money(left)} left)"
            if tokens is not None and view.tokens + view.reserved_tokens + usage.tokens > tokens:
                left = max(tokens - view.tokens - view.reserved_tokens, 0)
                return f"the budget of {view.scope} ({left:,} tokens left)"
        return None


def _pace(usage: Usage, limits: PoolLimits, pool: str) -> tuple[timedelta | None, str | None]:
    """How long the quota takes for it, and which of its limits decides."""
    used = {
        Dimension.REQUESTS: usage.calls,
        Dimension.TOKENS: usage.tokens,
        Dimension.INPUT_TOKENS: usage.input_tokens,
        Dimension.OUTPUT_TOKENS: usage.output_tokens,
    }
    times = {
        f"{60 * flow:,.0f} {name.replace('_', ' ')} per minute": timedelta(seconds=used[name] / flow)
        for name, flow in limits.flows.items()
    }
    if limits.requests_per_day is not None:
        times[f"{limits.requests_per_day:,} requests per day"] = (usage.calls - 1) // limits.requests_per_day * _DAY
    if not times:
        return None, None
    words = max(times, key=lambda name: times[name])
    return max(times.values()), f"{words} of {pool}"
