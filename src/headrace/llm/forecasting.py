"""What asks would take, before any is made: calls, tokens, money, time, and what bounds it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from pydantic import BaseModel

from headrace.llm.ask import Manner
from headrace.llm.asking import Asker
from headrace.llm.first_requests import first_request
from headrace.llm.prompts import conversation
from headrace.llm.switches import MemoUse, Switches
from headrace.model.budget import BudgetView
from headrace.model.calls import Origin, Purpose, current_origin
from headrace.model.llm import CompletionRequest
from headrace.model.money import show_money
from headrace.model.quota import Dimension, Pool
from headrace.model.usage import Usage
from headrace.ports.budget_store import BudgetStore
from headrace.ports.memo_store import MemoStore

#: Answers that are looked up at the same time.
_LOOKUPS = 16
_DAY = timedelta(days=1)


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
class Load:
    """What asks would take of one pool."""

    pool: Pool
    usage: Usage

    def __add__(self, other: Load) -> Load:
        """Both together, of the same pool."""
        return Load(self.pool, self.usage + other.usage)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What asks would take. The totals leave out what is remembered, which costs nothing; repairs are not foreseen.

    Forecasts of one caller add up, of several models too: time, limit and budgets are those of the sum. So many asks
    can be foreseen in slices, without holding all of them.
    """

    #: For each ask, in their order: whether its answer was paid before.
    remembered: tuple[bool, ...]
    #: what they take of each pool, by its name
    pools: Mapping[str, Load]
    #: in nanodollars; None: the price is not known
    cost_nano: int | None
    #: by scope: what the asks count against
    budgets: Mapping[str, BudgetView] = field(default_factory=dict)

    def __add__(self, other: Forecast) -> Forecast:
        """The forecast of all asks of both; budgets are as the other found them, for it looked later."""
        if not isinstance(other, Forecast):
            return NotImplemented
        mine, theirs = self.pools, other.pools
        shared = {name: mine[name] + theirs[name] for name in mine.keys() & theirs.keys()}
        unknown = self.cost_nano is None or other.cost_nano is None
        return Forecast(
            self.remembered + other.remembered,
            {**mine, **theirs, **shared},
            None if unknown else (self.cost_nano or 0) + (other.cost_nano or 0),
            {**self.budgets, **other.budgets},
        )

    @property
    def calls(self) -> int:
        """Calls that would be paid for."""
        return len(self.remembered) - sum(self.remembered)

    @property
    def usage(self) -> Usage:
        """What all pools together would be used for."""
        return sum((load.usage for load in self.pools.values()), Usage())

    @property
    def input_tokens(self) -> int:
        """Tokens of the prompts."""
        return self.usage.input_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens of the answers."""
        return self.usage.output_tokens

    @property
    def duration(self) -> timedelta | None:
        """How long the quotas take for it, side by side; None: a pool that is called has no limit that tells."""
        paces = [_pace(load) for load in self.pools.values() if load.usage.calls]
        if any(pace is None for pace in paces):
            return None
        return max((pace[0] for pace in paces if pace is not None), default=timedelta())

    @property
    def binding(self) -> str | None:
        """The limit that decides, in words; None: none is configured, or nothing has to be asked."""
        if not self.calls:
            return None
        paces = [pace for load in self.pools.values() if load.usage.calls and (pace := _pace(load)) is not None]
        slowest = max(paces, key=lambda pace: pace[0], default=None)
        return self._short_budget() or (None if slowest is None else slowest[1])

    def _short_budget(self) -> str | None:
        """The budget that has no room for it, in words."""
        nano, tokens = self.cost_nano, self.usage.tokens
        for view in self.budgets.values():
            if nano is not None and view.left_nano is not None and nano > view.left_nano:
                return f"the budget of {view.scope} ({show_money(view.left_nano)} left)"
            if view.left_tokens is not None and tokens > view.left_tokens:
                return f"the budget of {view.scope} ({view.left_tokens:,} tokens left)"
        return None


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
        pool = self._asker.endpoint.pool
        origin = replace(current_origin.get() or Origin(), tenant=self._switches.tenant)
        budgets = await self._budgets.list_budgets(origin.scopes)
        return Forecast(tuple(remembered), {pool.name: Load(pool, usage)}, nano, {view.scope: view for view in budgets})

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


def _pace(load: Load) -> tuple[timedelta, str] | None:
    """How long the quota takes for a load of one call at least, and which of its limits decides; None: none does."""
    usage, limits = load.usage, load.pool.limits
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
        return None
    words = max(times, key=lambda name: times[name])
    return times[words], f"{words} of {load.pool.name}"
