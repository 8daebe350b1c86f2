"""One model, asked so that nothing is bought twice."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from headrace.llm import counting
from headrace.llm.ask import Ask, Asked, Manner
from headrace.llm.calling import Caller, Means
from headrace.llm.endpoint import Endpoint
from headrace.llm.flights import Flight, Flights
from headrace.llm.switches import MemoUse, OnBudget, Switches
from headrace.llm.waiting import BudgetWaitError, MustWaitError
from headrace.model.calls import Origin, Purpose, current_origin
from headrace.model.errors import BudgetUsedUpError
from headrace.model.llm import CompletionRequest, TextPart
from headrace.model.parking import ParkRequested
from headrace.model.provider_errors import BadOutputError
from headrace.model.usage import Usage, current_meter


class Asker:
    """Asks one model. Safe for any number of coroutines, and for several event loops.

    Equal asks of this process at one time are one call. One whose asker was cancelled or timed out goes on once it was
    sent, and its answer is kept; one that still waits ends with its last asker.
    """

    def __init__(self, endpoint: Endpoint, means: Means) -> None:
        self.endpoint, self._means = endpoint, means
        self.provider = endpoint.open()
        self.caller = Caller(endpoint, self.provider, means)
        self._flights = Flights()

    async def ask(
        self, request: CompletionRequest, purpose: Purpose, switches: Switches, manner: Manner = Manner.WHOLE
    ) -> Asked:
        """The answer to this request, bought only if nobody bought it yet.

        Raises ProviderError; inside a job's handler ParkRequested where it would wait longer than a slot is kept.
        """
        ask = self.describe(request, purpose, switches, manner)
        while True:
            flight, is_mine = self._flight(ask)
            try:
                return self._count(await flight.join(), is_mine=is_mine)
            except MustWaitError as error:
                await self._wait_or_park(ask, error)

    async def stream(
        self, request: CompletionRequest, purpose: Purpose, switches: Switches
    ) -> AsyncGenerator[TextPart | Asked]:
        """The parts of the answer's text as they arrive, and at the end all of it.

        What is on disk comes as one part. An answer that an earlier process received in part is given like one that was
        cut (`FinishReason.LENGTH`): ask for the rest. Raises like `ask`.
        """
        ask = self.describe(request, purpose, switches, Manner.STREAM)
        while True:
            flight, is_mine = self._flight(ask)
            async with aclosing(flight.follow()) as texts:
                async for text in texts:
                    yield TextPart(text)
            try:
                asked = self._count(await flight.join(), is_mine=is_mine)
            except MustWaitError as error:
                await self._wait_or_park(ask, error)
                continue
            if not flight.parts:
                yield TextPart(asked.answer.text)
            yield asked
            return

    def describe(self, request: CompletionRequest, purpose: Purpose, switches: Switches, manner: Manner) -> Ask:
        """A request with everything that its call needs to know of who asks."""
        request = replace(request, model=self.provider.model)
        origin = current_origin.get() or Origin()
        if switches.tenant is not None:
            origin = replace(origin, tenant=switches.tenant)
        key = request.memo_key(self.provider.name, tenant=switches.tenant, endpoint=self.endpoint.memo_endpoint)
        memo, renews = switches.memo, ""
        if memo is not MemoUse.USE and (asker := origin.identity) is not None:
            # A job that left its slot asks all over again: what it bought anew is its own, and is not bought twice.
            renews = key if memo is MemoUse.FRESH else ""
            key, memo = _key_in_job(key, asker), MemoUse.USE
        return Ask(
            request=request, key=key, purpose=purpose, origin=origin, memo=memo,
            keeps_slot=origin.job_id is not None, renews=renews, manner=manner, on_budget=switches.on_budget,
        )  # fmt: skip

    def _flight(self, ask: Ask) -> tuple[Flight, bool]:
        """A flight that asks this, and whether it was begun here."""
        # Whoever wants an answer of their own does not share one.
        shared = ask.memo is MemoUse.USE
        # Nor does who is not to wait share the wait of somebody else: of the two calls the ledger lets one be made.
        key = ask.key if ask.on_budget is OnBudget.WAIT else f"{ask.key} {ask.on_budget}"
        if shared and (flight := self._flights.find(key)) is not None:
            return flight, False
        return self._flights.begin(key, lambda flight: self._buy(ask, flight), shared=shared), True

    async def _buy(self, ask: Ask, flight: Flight) -> Asked:
        # In the context of who asked first: the call is on that attempt's bill, also where the attempt was cancelled.
        meter = current_meter.get()
        try:
            asked = await self.caller.buy(ask, flight)
        except BadOutputError as error:
            if meter is not None:
                await meter.bill(error.usage)
            raise
        if meter is not None:
            await meter.bill(asked.usage)
        return asked

    def _count(self, asked: Asked, *, is_mine: bool) -> Asked:
        if is_mine:
            return asked
        self._means.tally[counting.SHARED] += 1
        self._means.tally[counting.SAVED] += asked.answer.usage.cost_nano
        shared = Usage(reused=1)
        if (meter := current_meter.get()) is not None:
            meter.add(shared)
        return Asked(asked.answer, shared)

    async def _wait_or_park(self, ask: Ask, error: MustWaitError) -> None:
        if isinstance(error, BudgetWaitError) and ask.on_budget is OnBudget.FAIL:
            fix = "raise it with `headrace llm budget`, then run the work again"
            raise BudgetUsedUpError(f"the budget of {error.scope} has no room for the call: {fix}") from None
        if ask.keeps_slot:
            self._means.tally[counting.PARKED] += 1
            raise ParkRequested(error.wait, error.reason, limited=error.limited) from None
        await asyncio.sleep(error.wait.total_seconds())

    async def aclose(self, linger: timedelta) -> None:
        """Let calls in flight on this loop end and be stored, for `linger` at most; then give them up."""
        await self._flights.aclose(linger)
        await self.provider.aclose()


def _key_in_job(key: str, identity: UUID) -> str:
    """The key of an answer that is a job's own, or a node's of a run."""
    return hashlib.sha256(f"{key}:{identity}".encode("ascii")).hexdigest()
