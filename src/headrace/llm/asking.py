"""Asking so that nothing is bought twice: the memo first, equal asks in flight together, every paid answer kept.

Guarantees: an answer is committed to the memo before anybody sees it; equal asks of this process at one time are one
call; a call whose asker was cancelled or timed out goes on and its answer is kept, for it is paid either way.
Does not guarantee: equal asks of two processes at one time are two calls (the first answer stored stands for both).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headrace.model.errors import HeadraceError
from headrace.model.llm import Answer, CompletionRequest, FinishReason, StoredAnswer
from headrace.model.provider_errors import BadOutputError, RefusedError
from headrace.model.usage import Usage, UsageMeter, current_meter
from headrace.ports.llm import Provider
from headrace.ports.memo_store import MemoStore

#: Repair prompts and repeated asks within one extraction.
MAX_REPAIRS = 2
#: A paid answer is worth waiting for a store that restarts.
_STORE_AGAIN_AFTER: Sequence[timedelta] = (timedelta(seconds=0.2), timedelta(seconds=1), timedelta(seconds=4))


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer and what it cost this asker."""

    answer: Answer
    usage: Usage


class Asker:
    """Asks one provider through one memo. Safe for any number of coroutines, and for several event loops."""

    def __init__(self, provider: Provider, memo: MemoStore) -> None:
        self._provider, self._memo = provider, memo
        self._flights: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Task[Asked]] = {}

    @property
    def provider(self) -> Provider:
        """The provider that is asked."""
        return self._provider

    async def ask(self, request: CompletionRequest) -> Asked:
        """The answer to this request, bought only if nobody bought it yet. Raises ProviderError."""
        key = request.memo_key(self._provider.name)
        flight_key = (asyncio.get_running_loop(), key)
        flight = self._flights.get(flight_key)
        if flight is not None:
            # Shielded: the flight is everybody's, and an asker that is cancelled must not end it.
            shared = await asyncio.shield(flight)
            return Asked(shared.answer, _count(Usage(reused=1), current_meter.get()))
        flight = asyncio.create_task(self._fly(key, request, current_meter.get()))
        self._flights[flight_key] = flight
        flight.add_done_callback(lambda _: self._land(flight_key))
        return await asyncio.shield(flight)

    def _land(self, flight_key: tuple[asyncio.AbstractEventLoop, str]) -> None:
        flight = self._flights.pop(flight_key)
        if not flight.cancelled():
            flight.exception()  # seen, even where every asker is gone

    async def _fly(self, key: str, request: CompletionRequest, meter: UsageMeter | None) -> Asked:
        stored = await self._memo.load_answer(key)
        if stored is not None:
            return Asked(stored.answer, _count(Usage(reused=1), meter))
        try:
            answer = await self._provider.complete(request)
        except BadOutputError as error:
            _count(error.usage, meter)
            raise
        _count(answer.usage, meter)
        stands = await self._store(key, StoredAnswer(self._provider.name, answer))
        return Asked(stands.answer, answer.usage)

    async def _store(self, key: str, answer: StoredAnswer) -> StoredAnswer:
        for pause in _STORE_AGAIN_AFTER:
            try:
                return await self._memo.store_answer(key, answer)
            except HeadraceError as error:
                if not error.transient:
                    raise
            await asyncio.sleep(pause.total_seconds())
        return await self._memo.store_answer(key, answer)

    async def aclose(self, linger: timedelta) -> None:
        """Let calls in flight on this loop end and be stored, for `linger` at most; then give them up."""
        loop = asyncio.get_running_loop()
        flights = [flight for (home, _), flight in self._flights.items() if home is loop]
        if not flights:
            return
        _, late = await asyncio.wait(flights, timeout=linger.total_seconds())
        for flight in late:
            flight.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def _count(usage: Usage, meter: UsageMeter | None) -> Usage:
    if meter is not None:
        meter.add(usage)
    return usage


class Exchange:
    """One value's exchange with the model: it adds up what it costs and spends the repairs it may."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self.usage = Usage()
        self.repairs = 0

    async def send(self, request: CompletionRequest) -> Answer:
        """The answer to this request, whole or cut.

        An answer that is none (see the adapter) is asked for again, within the repairs. Raises RefusedError where the
        model declines, at no cost where it did so before, and ProviderError.
        """
        while True:
            try:
                asked = await self._asker.ask(request)
            except BadOutputError as error:
                self.usage += error.usage
                if not self.may_repair():
                    raise
                continue
            self.usage += asked.usage
            if asked.answer.finish_reason is FinishReason.REFUSED:
                raise self._refused(asked.answer)
            return asked.answer

    def may_repair(self) -> bool:
        """Spend a repair; False when all are spent."""
        if self.repairs >= MAX_REPAIRS:
            return False
        self.repairs += 1
        return True

    def bad_output(self, what: str, errors: Sequence[str], answer: Answer) -> BadOutputError:
        """The error for a value that never became valid."""
        return BadOutputError(
            f"{BadOutputError.__doc__} ({what}: {'; '.join(errors)})",
            errors=errors,
            provider=self._asker.provider.name,
            request_id=answer.request_id,
        )

    def _refused(self, answer: Answer) -> RefusedError:
        said = f" It said: {answer.text[:200]}" if answer.text else ""
        return RefusedError(
            f"{RefusedError.__doc__}{said}", provider=self._asker.provider.name, request_id=answer.request_id
        )
