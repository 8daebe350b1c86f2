"""One call: quota, memo, attempt recorded, call, raw answer committed.

Guarantees: an answer is committed before anybody sees it; of equal calls in all processes one is made; what was sent
and not answered is on record. A 429 costs no attempt: it closes the pool, and the call waits with all others.
Does not guarantee: that a call in flight when its process dies is not paid for again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import uuid4

from headrace.llm import counting
from headrace.llm.ask import EMBEDDING, Ask, Asked, Manner, Watcher
from headrace.llm.bill import Bill
from headrace.llm.endpoint import Endpoint
from headrace.llm.ledger import Ledger
from headrace.llm.pace import Paces
from headrace.llm.quota import Quotas, QuotaWait, Reservation
from headrace.llm.sizes import Sizes
from headrace.llm.switches import MemoUse, OnBudget
from headrace.llm.waiting import BudgetLooks, MustWaitError, Patience
from headrace.model.calls import NewCall, Opening, Settlement, Verdict
from headrace.model.errors import HeadraceError
from headrace.model.ids import uuid7
from headrace.model.llm import Answer, CompletionRequest, FinishReason, StoredAnswer
from headrace.model.parking import waits_for_limit
from headrace.model.provider_errors import BadOutputError, OverloadedError, ProviderError, RateLimitedError
from headrace.model.quota import Estimate
from headrace.model.usage import Usage
from headrace.ports.budget_store import BudgetStore
from headrace.ports.call_observer import CallObserver
from headrace.ports.llm import Provider
from headrace.ports.memo_store import MemoStore

#: A pool's jobs are held for longer only where that adds so much.
HOLD_AGAIN_SECONDS = 0.2
#: A limit may be raised while jobs wait for it: they look again after so long at the latest.
_LONGEST_PARK = timedelta(minutes=5)
#: A limiter that says nothing for so long is away.
_HOLD_PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Means:
    """What the calls of all models go through."""

    ledger: Ledger
    quotas: Quotas
    memo: MemoStore
    budgets: BudgetStore
    observer: CallObserver
    tally: counting.Tally
    #: told that jobs of a pool need not start for a time
    hold_jobs: Callable[[str, timedelta], Awaitable[None]]
    #: how fast models are; it learns where it is one of the observers
    paces: Paces = field(default_factory=Paces)


class Caller:
    """Buys answers of one model."""

    def __init__(self, endpoint: Endpoint, provider: Provider, means: Means) -> None:
        self._endpoint, self.provider, self._means = endpoint, provider, means
        self.sizes = Sizes(endpoint.expected_tokens)
        self._held_until = 0.0
        self._has_prices = self._is_ready = False
        self._looks = BudgetLooks()

    async def buy(self, ask: Ask, watcher: Watcher) -> Asked:
        """The answer to a request, from the memo or from the provider. Raises ProviderError, MustWaitError."""
        await self._load_prices()
        waits = ask.on_budget is OnBudget.WAIT
        patience = Patience(self._looks, keeps_slot=ask.keeps_slot, waits_for_budgets=waits)
        asked_at = time.time_ns()
        while True:
            call = self._new_call(ask)
            bill = Bill(ask, call, self._endpoint.prices, self._means.observer, asked_at)
            opened = await self._open(call, patience, streamed=ask.manner is Manner.STREAM)
            if isinstance(opened, Answer):
                self._means.tally[counting.MEMO_HITS] += 1
                self._means.tally[counting.SAVED] += opened.usage.cost_nano
                bill.reused(opened)
                return Asked(opened, Usage(reused=1))
            watcher.note_sent(True)
            try:
                return await self._send(ask, bill, opened, watcher)
            except RateLimitedError as error:
                watcher.note_sent(False)
                # The pool is closed now: this call waits with all others, and spends nothing.
                self._means.tally[counting.RATE_LIMITED] += 1
                await self._hold_jobs(error.retry_after)

    async def _load_prices(self) -> None:
        """Ask for a price once in a thread: the first time a list is read, which takes a while."""
        if not self._has_prices:
            await asyncio.to_thread(self._endpoint.prices.cost, self.provider.name, self.provider.model, Usage(calls=1))
            self._has_prices = True

    def estimate(self, request: CompletionRequest) -> Estimate:
        """What a call will use at most, as far as can be told."""
        most = 0 if request.schema_name == EMBEDDING else self.sizes.max_tokens(request)
        room = Usage(self.sizes.input_tokens(request), most, calls=1)
        cost = self._endpoint.prices.cost(self.provider.name, request.model, room)
        return Estimate(room.input_tokens, room.output_tokens, None if cost is None else cost.nano)

    def _new_call(self, ask: Ask) -> NewCall:
        limits = self._endpoint.pool.limits
        return NewCall(
            id=uuid7(),
            # Without the memo every ask stands alone.
            key=uuid4().hex * 2 if ask.memo is MemoUse.BYPASS else ask.key,
            pool=self._endpoint.pool.name,
            provider=self.provider.name,
            model=ask.request.model,
            estimate=self.estimate(ask.request),
            origin=ask.origin,
            purpose=ask.purpose,
            fresh=ask.memo is MemoUse.FRESH,
            most_in_flight=limits.concurrency,
            most_per_day=limits.requests_per_day,
        )

    async def _open(self, call: NewCall, patience: Patience, *, streamed: bool) -> Reservation | Answer:
        """Record a call as sent, its quota reserved; or return what was bought before, in part if it was streamed."""
        while True:
            # Importing and connecting takes a while: what was reserved before it would arrive late, and all at once.
            reservation = self._means.quotas.try_reserve(self._endpoint.pool, call.estimate) if self._is_ready else None
            try:
                opening = await self._means.ledger.open(replace(call, send=reservation is not None))
                paid = await self._paid_before(call, opening) if streamed or opening.answer is not None else None
            except BaseException:
                if reservation is not None:
                    reservation.refund()
                raise
            if opening.verdict is Verdict.OPENED and paid is None:
                self._looks.opened()
                return reservation or await self._make_ready(call, patience)
            if reservation is not None:
                reservation.refund()
            if paid is not None:
                return paid
            await self._hold_on(opening, patience)

    async def _paid_before(self, call: NewCall, opening: Opening) -> Answer | None:
        """The stored answer, or as much as is spooled of one that was cut off: its rest is another request."""
        if opening.answer is not None:
            return opening.answer.answer
        if not opening.spooled:
            return None
        await self._means.ledger.drop(call)
        return Answer(text="".join(opening.spooled), finish_reason=FinishReason.LENGTH, model=call.model)

    async def _make_ready(self, call: NewCall, patience: Patience) -> Reservation:
        """Get for a prepared call, which holds its key meanwhile, what it lacks, and record it as sent."""
        reservation: Reservation | None = None
        try:
            await self.provider.prepare()
            self._is_ready = True
            reservation = await self._await_quota(call, patience)
            sent = await self._means.ledger.send(call)
        except BaseException:
            if reservation is not None:
                reservation.refund()
            await asyncio.shield(self._means.ledger.drop(call))
            raise
        if not sent:
            # Another session took this one for dead, and perhaps the key.
            reservation.refund()
            raise MustWaitError(timedelta(seconds=0.1), "its place in the ledger", limited=False)
        return reservation

    async def _await_quota(self, call: NewCall, patience: Patience) -> Reservation:
        started = time.monotonic()
        try:
            with waits_for_limit():
                reservation = await self._means.quotas.reserve(
                    self._endpoint.pool, call.estimate, longest=patience.left
                )
        except QuotaWait as error:
            wait = min(error.wait, _LONGEST_PARK)
            await self._hold_jobs(wait)
            raise MustWaitError(wait, error.reason) from None
        patience.spend(time.monotonic() - started)
        return reservation

    async def _hold_on(self, opening: Opening, patience: Patience) -> None:
        try:
            await patience.after(opening)
        except MustWaitError as error:
            if opening.verdict is Verdict.DAY_FULL:
                await self._hold_jobs(error.wait)
            raise

    async def _hold_jobs(self, wait: timedelta | None) -> None:
        """Let no jobs of the pool start that would only wait; told once, though many calls wait."""
        if wait is None or wait <= timedelta():
            return
        until = time.monotonic() + wait.total_seconds()
        if until <= self._held_until + HOLD_AGAIN_SECONDS:
            return
        self._held_until = until
        # Best effort: jobs that start all the same only look, and leave.
        with contextlib.suppress(HeadraceError, TimeoutError):
            async with asyncio.timeout(_HOLD_PATIENCE_SECONDS):
                await self._means.hold_jobs(self._endpoint.pool.name, wait)

    async def _send(self, ask: Ask, bill: Bill, reservation: Reservation, watcher: Watcher) -> Asked:
        bill.sent_at = time.time_ns()
        try:
            answer = await self._talk(ask, bill, watcher)
        except ProviderError as error:
            self._end(bill.call, reservation, error)
            await self._means.ledger.note(bill.failed(error))
            raise
        except (HeadraceError, UnicodeEncodeError):
            # Providers raise these of what keeps them from sending.
            reservation.refund()
            await self._means.ledger.drop(bill.call)
            raise
        except BaseException as error:
            # Given up while it was under way: nobody will hear whether it was answered, and counted.
            reservation.settle(self._most(bill.call))
            why = "unexpected" if isinstance(error, Exception) else "cancelled"
            await asyncio.shield(self._means.ledger.note(bill.orphaned(why)))
            raise
        usage = answer.usage
        # A provider that does not say what was used may have used all that was reserved.
        used = self._most(bill.call) if usage.unpriced else usage
        reservation.settle(used, answer.hint, per_token=bill.per_token(answer, time.time_ns()))
        self.sizes.learn(ask.request, usage.input_tokens, usage.output_tokens)
        settlement = bill.answered(answer)
        settling = self._means.ledger.settle(settlement)
        stands = await (self._renew(ask.renews, settlement, settling) if ask.renews else settling)
        return Asked(answer if stands is None else stands.answer, settlement.usage)

    async def _renew(
        self, key: str, settlement: Settlement, settling: Awaitable[StoredAnswer | None]
    ) -> StoredAnswer | None:
        """Settle a call, and in the same statement put its answer in the place of the one under a further key."""
        renewed = Settlement(call=replace(settlement.call, id=uuid7(), key=key), answer=settlement.answer, replace=True)
        stands, _ = await asyncio.gather(settling, self._means.ledger.settle(renewed))
        return stands

    @staticmethod
    def _most(call: NewCall) -> Usage:
        return Usage(call.estimate.input_tokens, call.estimate.max_tokens, calls=1)

    def _end(self, call: NewCall, reservation: Reservation, error: ProviderError) -> None:
        """Charge the quota of a call that ended with an error with what the provider charged."""
        used = error.usage if isinstance(error, BadOutputError) else Usage()
        if isinstance(error, RateLimitedError):
            reservation.refuse(error.retry_after, error.hint)
        elif isinstance(error, OverloadedError):
            reservation.overload(error.retry_after, error.hint)
        elif used.calls and not used.unpriced:
            reservation.settle(used, error.hint)
        elif used.calls or error.maybe_paid:
            reservation.settle(self._most(call), error.hint)
        else:
            reservation.refund(error.hint)

    async def _talk(self, ask: Ask, bill: Bill, watcher: Watcher) -> Answer:
        match ask.manner:
            case Manner.WHOLE:
                return await self.provider.complete(ask.request)
            case Manner.STREAM:
                return await self._stream(ask, bill, watcher)
            case Manner.EMBED:
                return await self._embed(ask.request)

    async def _embed(self, request: CompletionRequest) -> Answer:
        texts = tuple(message.content for message in request.messages)
        found = await self.provider.embed(texts, model=request.model)
        return Answer(
            text=json.dumps(found.vectors), usage=found.usage, model=found.model, request_id=found.request_id,
            hint=found.hint,
        )  # fmt: skip

    async def _stream(self, ask: Ask, bill: Bill, watcher: Watcher) -> Answer:
        """The whole answer, its parts spooled and told of as they come."""
        spool = self._means.ledger.spool(bill.call)
        try:
            async with aclosing(self.provider.stream(ask.request)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        return part
                    bill.first_part_at = bill.first_part_at or time.time_ns()
                    watcher.note_part(part.text)
                    spool.add(part.text)
        except BaseException:
            await asyncio.shield(spool.flush())
            raise
        finally:
            spool.close()
        raise BadOutputError("the stream ended without an answer", provider=self.provider.name)
