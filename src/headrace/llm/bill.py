"""What a call cost, as it goes into the ledger and to whoever watches."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.llm.ask import Ask
from headrace.llm.switches import MemoUse
from headrace.model.calls import CallState, NewCall, Settlement
from headrace.model.llm import Answer, StoredAnswer
from headrace.model.provider_errors import BadOutputError, ProviderError
from headrace.model.usage import Usage
from headrace.ports.call_observer import CallObserver, CallReport
from headrace.ports.prices import Prices

#: Shorter answers tell how long the wait for the first token is, not how fast the next ones come.
_TELLING_TOKENS, _TELLING_STREAMED_TOKENS = 100, 20


@dataclass(slots=True)
class Bill:
    """One call of one provider: its times, its price, its ending."""

    ask: Ask
    call: NewCall
    prices: Prices
    observer: CallObserver
    asked_at: int
    sent_at: int = 0
    first_part_at: int = 0

    def answered(self, answer: Answer) -> Settlement:
        """The call was answered; an answer of the settlement is priced."""
        usage, priced_by = self._priced(answer.usage)
        answer = replace(answer, usage=usage)
        self._report(answer)
        kept = self.ask.memo is not MemoUse.BYPASS
        return Settlement(
            call=self.call,
            answer=StoredAnswer(self.call.provider, answer) if kept else None,
            replace=self.ask.memo is MemoUse.FRESH,
            usage=usage,
            priced_by=priced_by,
            request_id=answer.request_id,
        )

    def failed(self, error: ProviderError) -> Settlement:
        """The call ended with an error; one that may have been paid is orphaned, with what it may have cost at most."""
        self._report(None, error)
        used = error.usage if isinstance(error, BadOutputError) else Usage()
        if error.maybe_paid and not used.calls:
            return self.orphaned(error.code)
        usage, priced_by = self._priced(used)
        if isinstance(error, BadOutputError):
            error.usage = usage
        return Settlement(
            call=self.call, usage=usage, priced_by=priced_by, error=error.code, request_id=error.request_id
        )

    def orphaned(self, error: str) -> Settlement:
        """Nobody knows how the call ended."""
        most = self.call.estimate
        usage, priced_by = self._priced(Usage(most.input_tokens, most.max_tokens, calls=1))
        return Settlement(call=self.call, state=CallState.ORPHANED, usage=usage, priced_by=priced_by, error=error)

    def reused(self, answer: Answer) -> None:
        """It was not made: the answer was bought before."""
        self._report(answer, reused=True)

    def per_token(self, answer: Answer, ended_at: int) -> timedelta | None:
        """The time a token of the answer took, without the wait for the first where that is known; None: it is short.

        `ended_at`: nanoseconds since the epoch.
        """
        tokens = answer.usage.output_tokens
        if tokens < (_TELLING_STREAMED_TOKENS if self.first_part_at else _TELLING_TOKENS):
            return None
        took = ended_at - (self.first_part_at or self.sent_at)
        return timedelta(microseconds=took / tokens / 1_000)

    def _priced(self, usage: Usage) -> tuple[Usage, str]:
        """A usage with its money, and the table that says so; without a known price it says that."""
        cost = None if usage.unpriced else self.prices.cost(self.call.provider, self.call.model, usage)
        if cost is None:
            return replace(usage, unpriced=usage.unpriced or usage.calls), ""
        return replace(usage, cost_nano=cost.nano), cost.source

    def _report(self, answer: Answer | None, error: ProviderError | None = None, *, reused: bool = False) -> None:
        self.observer.ended(
            CallReport(
                call=self.call, request=self.ask.request, answer=answer, error="" if error is None else error.code,
                reused=reused, asked_at=self.asked_at, sent_at=self.sent_at, first_part_at=self.first_part_at,
                ended_at=time.time_ns(),
            )
        )  # fmt: skip
