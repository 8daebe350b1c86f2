"""The ledger of model calls in memory."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headrace.model.calls import LIVE, CallState, NewCall, Opening, Settlement, SpooledPart, Verdict
from headrace.model.llm import StoredAnswer
from headrace.stores.memory.ledger import NOTHING, Call, Ending, Part, day_of
from headrace.stores.memory.memo_retention import DatedMemoStore
from headrace.stores.memory.spending import refusing_scope
from headrace.stores.memory.state import State, atomic


class MemoryCallStore:
    """`ports.call_store.CallStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State, memo: DatedMemoStore) -> None:
        self._state, self._memo = state, memo

    @atomic
    async def open_calls(self, session: UUID, calls: Sequence[NewCall]) -> list[Opening]:
        """Open calls, each as if it were alone."""
        return [self._open(session, call) for call in calls]

    def _open(self, session: UUID, new: NewCall) -> Opening:
        ledger, now = self._state.ledger, self._state.now()
        own = ledger.calls.get(new.id)
        answer = None if new.fresh else self._memo.peek(new.key)
        if answer is not None:
            if own is not None and own.state in LIVE:
                ledger.remove(own)
            return Opening(Verdict.ANSWERED, answer)
        if own is not None:
            return self._open_again(own, session, new)
        holder = ledger.held.get(new.key)
        if holder is not None and self._state.alive(holder.session):
            return Opening(Verdict.HELD)
        if holder is not None:
            ledger.lose(holder, now)
        refusal = self._refuse(new)
        if refusal is not None:
            return refusal
        ledger.open(new, session, now)
        return Opening(Verdict.OPENED, spooled=ledger.take_spooled(new.key))

    def _open_again(self, own: Call, session: UUID, new: NewCall) -> Opening:
        if own.state not in LIVE:
            return Opening(Verdict.ENDED)
        own.session = session
        if new.send and own.state is CallState.PREPARED:
            own.state = CallState.SENT
        return Opening(Verdict.OPENED, spooled=self._state.ledger.take_spooled(new.key))

    def _refuse(self, new: NewCall) -> Opening | None:
        ledger, today = self._state.ledger, day_of(self._state.now())
        in_flight = sum(call.new.pool == new.pool for call in ledger.live.values())
        if new.most_in_flight is not None and in_flight >= new.most_in_flight:
            return Opening(Verdict.POOL_FULL)
        if new.most_per_day is not None and ledger.count_day(new.pool, today) >= new.most_per_day:
            return Opening(Verdict.DAY_FULL)
        scope = refusing_scope(ledger, new, today)
        return None if scope is None else Opening(Verdict.OVER_BUDGET, scope=scope)

    @atomic
    async def send_calls(self, calls: Sequence[UUID]) -> frozenset[UUID]:
        """Record prepared calls as sent."""
        live = [call for call_id in calls if (call := self._state.ledger.live.get(call_id)) is not None]
        for call in live:
            if call.state is CallState.PREPARED:
                call.state = CallState.SENT
        return frozenset(call.new.id for call in live)

    @atomic
    async def spool_items(self, parts: Sequence[SpooledPart]) -> None:
        """Store parts of answers."""
        ledger, now = self._state.ledger, self._state.now()
        for part in parts:
            if (row := ledger.live.get(part.call)) is not None:
                row.state = CallState.RECEIVED
                ledger.spool.setdefault(row.new.key, {}).setdefault(part.number, Part(part.text, now))

    @atomic
    async def settle_calls(self, settlements: Sequence[Settlement]) -> list[StoredAnswer | None]:
        """Record how calls ended, with their answers and costs."""
        for settlement in settlements:
            self._keep(settlement)
            self._settle(settlement)
        return [self._memo.peek(settlement.call.key) for settlement in settlements]

    def _keep(self, settlement: Settlement) -> None:
        if settlement.answer is None:
            return
        known = self._state.ledger.calls.get(settlement.call.id)
        settled = known is not None and known.state is CallState.SETTLED
        self._memo.keep(settlement.call.key, settlement.answer, replace=settlement.replace and not settled)
        self._state.ledger.spool.pop(settlement.call.key, None)

    def _settle(self, settlement: Settlement) -> None:
        ledger, now, call = self._state.ledger, self._state.now(), self._state.ledger.calls.get(settlement.call.id)
        facts = (settlement.priced_by, settlement.error, settlement.request_id)
        ending = Ending(settlement.state, settlement.usage, *facts)
        if call is None:
            if settlement.usage != NOTHING:
                ledger.add_ended(settlement.call, now, ending)
        elif call.state is CallState.PREPARED:
            ledger.remove(call)
        elif call.state in LIVE or (call.state is CallState.ORPHANED and ending.state is CallState.SETTLED):
            ledger.end(call, now, ending)

    @atomic
    async def reap_calls(self, *, limit: int) -> int:
        """End live calls of sessions that are not alive."""
        ledger = self._state.ledger
        lost = [call for call in ledger.live.values() if not self._state.alive(call.session)][:limit]
        for call in lost:
            ledger.lose(call, self._state.now())
        return len(lost)
