"""The account that calls are charged to: its quotas, the prompts it has sent before, and what it has used."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

from headrace.testing.provider.asked import Asked
from headrace.testing.provider.buckets import Lease, QuotaGate, Refusal
from headrace.testing.provider.calls import CallLog
from headrace.testing.provider.chat import CHARACTERS_PER_TOKEN
from headrace.testing.provider.quota import Quota, QuotaChange
from headrace.testing.provider.tally import Stats, Tally

_BLOCK_TOKENS = 128
_BLOCK_SIZE = _BLOCK_TOKENS * CHARACTERS_PER_TOKEN


class Charge:
    """What one call is charged, from when it is let in."""

    def __init__(self, account: Account, lease: Lease, request: Asked, cached_tokens: int) -> None:
        self._account, self._lease, self._request = account, lease, request
        self.cached_tokens = cached_tokens
        self._written = 0
        self._is_settled = False

    def expect_end(self, seconds: float) -> None:
        """Its answer will be whole in so many seconds."""
        self._lease.ends_at = self._account.gate.clock() + seconds

    def wrote(self, output_tokens: int) -> None:
        """So many tokens of the answer are written."""
        self._written = output_tokens
        self._account.gate.wrote(self._lease, output_tokens)

    def settle(self, *, is_paid: bool = True) -> None:
        """Charge what was written; with `is_paid=False` no tokens at all. Only the first settlement counts."""
        if self._is_settled:
            return
        self._is_settled = True
        prompt = self._request.input_tokens - self.cached_tokens if is_paid else 0
        self._account.settle(self._lease, prompt, self._written if is_paid else 0)
        if is_paid:
            self._account.remember(self._request, self.cached_tokens)

    def end(self) -> None:
        """The call is over."""
        self._account.gate.end(self._lease)


class Account:
    """Lets calls in and charges them."""

    def __init__(self, quota: Quota, changes: Iterable[QuotaChange]) -> None:
        self.gate = QuotaGate(quota, changes)
        self.tally = Tally(self.gate)
        self._seen: set[bytes] = set()

    def enter(self, request: Asked) -> Charge | Refusal:
        """Let the call in, or say why not."""
        self.gate.catch_up()
        cached = self._cached_tokens(request) if self.gate.quota.cached_prefix else 0
        admitted = self.gate.admit(request.input_tokens - cached, request.max_tokens)
        if isinstance(admitted, Refusal):
            self.tally.refused()
            return admitted
        self.tally.accepted(admitted)
        return Charge(self, admitted, request, cached)

    def settle(self, lease: Lease, input_tokens: int, output_tokens: int) -> None:
        """Charge a call what it used, once."""
        before = lease.charged_input, lease.charged_output
        self.gate.settle(lease, input_tokens, output_tokens)
        self.tally.recharged(lease, before)
        self.tally.tokens.update(input=input_tokens, output=output_tokens)

    def remember(self, request: Asked, cached_tokens: int) -> None:
        """The prompt of this request is in the cache from now on."""
        if self.gate.quota.cached_prefix:
            self.tally.tokens["cached"] += cached_tokens
            self._seen.update(_blocks(request))

    def stats(self, log: CallLog) -> Stats:
        """The counts as they are now."""
        return self.tally.look(log)

    def _cached_tokens(self, request: Asked) -> int:
        known = 0
        for block in _blocks(request):
            if block not in self._seen:
                break
            known += _BLOCK_TOKENS
        return known


def _blocks(request: Asked) -> Iterable[bytes]:
    """A key for each whole block of the prompt and all that comes before it."""
    text = request.text
    running = hashlib.sha256()
    for number in range(math.floor(len(text) / _BLOCK_SIZE)):
        running.update(text[number * _BLOCK_SIZE : (number + 1) * _BLOCK_SIZE].encode("utf-8", "replace"))
        yield running.digest()[:12]
