"""One value's exchange with its model: what it cost, and which repairs it may still spend."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from headrace.llm.ask import Manner
from headrace.llm.asking import Asker
from headrace.llm.switches import Switches
from headrace.model.calls import Purpose
from headrace.model.llm import Answer, CompletionRequest, FinishReason, TextPart
from headrace.model.provider_errors import BadOutputError, RefusedError
from headrace.model.usage import Usage

#: Repair prompts and repeated asks within one extraction, unless the caller allows fewer.
MAX_REPAIRS = 2


class Exchange:
    """Asks on behalf of one value, adds up what that costs, and spends the repairs it may."""

    def __init__(
        self,
        asker: Asker,
        switches: Switches | None = None,
        escalate: Callable[[], Asker] | None = None,
        *,
        most_repairs: int = MAX_REPAIRS,
    ) -> None:
        """`escalate`: opens the model that is asked what this one could not answer."""
        self._asker, self._switches, self._escalate = asker, switches or Switches(), escalate
        self._most_repairs = most_repairs
        self._above: Exchange | None = None
        self._beside: list[Exchange] = []
        self._usage = Usage()
        self.repairs = 0

    @property
    def usage(self) -> Usage:
        """What the exchange cost so far, with what the second model and the exchanges beside it cost."""
        others = self._beside if self._above is None else [*self._beside, self._above]
        return sum((other.usage for other in others), self._usage)

    @property
    def escalation(self) -> Exchange | None:
        """The exchange with a second model, where one is configured; it goes on this one's bill."""
        if self._above is None and self._escalate is not None:
            self._above = Exchange(self._escalate(), self._switches, most_repairs=self._most_repairs)
        return self._above

    def another(self) -> Exchange:
        """An exchange with the same models and repairs of its own; its costs count here as well."""
        other = Exchange(self._asker, self._switches, self._escalate, most_repairs=self._most_repairs)
        self._beside.append(other)
        return other

    async def send(self, request: CompletionRequest, *, purpose: Purpose = Purpose.ASK) -> Answer:
        """The answer to this request, whole or cut.

        An answer that is none (see the adapter) is asked for again, within the repairs. Raises RefusedError where the
        model declines, at no cost where it did so before, and ProviderError.
        """
        while True:
            try:
                asked = await self._asker.ask(request, purpose, self._switches)
            except BadOutputError as error:
                self._usage += error.usage
                if not self.may_repair():
                    raise
                purpose = Purpose.REPAIR if purpose is Purpose.ASK else purpose
                continue
            self._usage += asked.usage
            return self._checked(asked.answer)

    async def stream(
        self, request: CompletionRequest, *, purpose: Purpose = Purpose.ASK
    ) -> AsyncGenerator[TextPart | Answer]:
        """The parts of the answer's text as they arrive, and at the end all of it. Raises like `send`, but repairs
        nothing."""
        async with aclosing(self._asker.stream(request, purpose, self._switches)) as parts:
            async for part in parts:
                if isinstance(part, TextPart):
                    yield part
                else:
                    self._usage += part.usage
                    yield self._checked(part.answer)

    async def embed(self, request: CompletionRequest) -> Answer:
        """The vectors of a request's messages. Raises ProviderError."""
        asked = await self._asker.ask(request, Purpose.ASK, self._switches, Manner.EMBED)
        self._usage += asked.usage
        return asked.answer

    def may_repair(self) -> bool:
        """Spend a repair; False when all are spent."""
        if self.repairs >= self._most_repairs:
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

    def _checked(self, answer: Answer) -> Answer:
        if answer.finish_reason is FinishReason.REFUSED:
            said = f" It said: {answer.text[:200]}" if answer.text else ""
            raise RefusedError(
                f"{RefusedError.__doc__}{said}", provider=self._asker.provider.name, request_id=answer.request_id
            )
        return answer
