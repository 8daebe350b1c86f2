"""Where calls arrive: each is counted, let in or refused, failed or answered, and charged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from headrace.testing.provider.account import Account, Charge
from headrace.testing.provider.asked import Asked
from headrace.testing.provider.buckets import Refusal
from headrace.testing.provider.calls import CallLog
from headrace.testing.provider.faults import FaultKind, FaultScript, Strike
from headrace.testing.provider.limit_headers import limit_headers, refusal_response
from headrace.testing.provider.refusals import JSON_HEADERS, error_body, fail
from headrace.testing.provider.wire import HttpConnection

#: Sends the answer with these headers, spoiled as the fault wants it; whether all of it went out.
AnswerSender = Callable[[Mapping[str, str], Strike | None, Charge], Awaitable[bool]]


class Desk:
    """Takes calls for one account."""

    def __init__(self, account: Account, calls: CallLog, script: FaultScript, context_tokens: int | None) -> None:
        self._account, self._calls, self._script = account, calls, script
        self._context_tokens = context_tokens

    async def take(self, connection: HttpConnection, asked: Asked, answer: AnswerSender) -> None:
        """See one call through."""
        admitted = self._account.enter(asked)
        if isinstance(admitted, Refusal):
            record = self._calls.open(asked, None)
            self._calls.close(record, "refused")
            await connection.respond(429, *refusal_response(self._account.gate, admitted, asked.model))
            return
        strike = self._script.pick(self._calls.admit(asked))
        record = self._calls.open(asked, strike)
        outcome = "aborted"
        try:
            if await self._fails(connection, asked, strike, admitted):
                outcome = "failed"
            elif await answer(limit_headers(self._account.gate), strike, admitted):
                outcome = "answered"
        finally:
            admitted.settle()
            admitted.end()
            self._calls.close(record, outcome)

    async def _fails(self, connection: HttpConnection, asked: Asked, strike: Strike | None, charge: Charge) -> bool:
        """Send an error where there is to be one. What fails at once costs a request and no tokens."""
        if self._context_tokens is not None and asked.input_tokens > self._context_tokens:
            charge.settle(is_paid=False)
            body = error_body("the prompt is too long", code="context_length_exceeded", param="messages")
            await connection.respond(400, {**JSON_HEADERS, **limit_headers(self._account.gate)}, body)
            return True
        if strike is None:
            return False
        if strike.kind in _CHARGED_NOTHING:
            charge.settle(is_paid=False)
        status = await fail(connection, strike.fault, limit_headers(self._account.gate))
        self._account.tally.rate_limited += status == 429
        return status is not None


_CHARGED_NOTHING = (FaultKind.RATE_LIMIT, FaultKind.SERVER_ERROR, FaultKind.ERROR_BODY)
