"""An exchange whose answers are written down, for tests of the ladder alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence

from headrace.model.calls import Purpose
from headrace.model.llm import Answer, CompletionRequest, FinishReason, Message, TextPart
from headrace.model.provider_errors import BadOutputError, RefusedError
from headrace.model.usage import Usage

REQUEST = CompletionRequest(model="written-1", messages=(Message("user", "Name trees."),))


def cut(text: str) -> Answer:
    """An answer that ended for want of room."""
    return Answer(text=text, finish_reason=FinishReason.LENGTH)


class WrittenExchange:
    """Gives its answers in turn; errors are raised. Streams come in parts of a few characters."""

    def __init__(
        self,
        answers: Iterable[str | Answer | Exception],
        *,
        above: WrittenExchange | None = None,
        most_repairs: int = 2,
        part: int = 5,
    ) -> None:
        self._answers = iter(answers)
        self._above, self._most_repairs, self._part = above, most_repairs, part
        self.repairs = 0
        self.asked: list[tuple[Purpose, CompletionRequest]] = []
        #: Streams that were ended before their end.
        self.broken_off = 0

    @property
    def usage(self) -> Usage:
        """A call for each ask."""
        return Usage(calls=len(self.asked) + (len(self._above.asked) if self._above else 0))

    @property
    def escalation(self) -> WrittenExchange | None:
        """The second model."""
        return self._above

    @property
    def purposes(self) -> list[Purpose]:
        """What the asks were for."""
        return [purpose for purpose, _ in self.asked]

    @property
    def last_words(self) -> list[str]:
        """The last message of each ask."""
        return [request.messages[-1].content for _, request in self.asked]

    def another(self) -> WrittenExchange:
        """The same, for the answers are in turn."""
        return self

    async def send(self, request: CompletionRequest, *, purpose: Purpose = Purpose.ASK) -> Answer:
        """The next answer."""
        self.asked.append((purpose, request))
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Answer) and answer.finish_reason is FinishReason.REFUSED:
            raise RefusedError
        return Answer(text=answer) if isinstance(answer, str) else answer

    async def stream(
        self, request: CompletionRequest, *, purpose: Purpose = Purpose.ASK
    ) -> AsyncGenerator[TextPart | Answer]:
        """The next answer in parts."""
        answer = await self.send(request, purpose=purpose)
        try:
            for begin in range(0, len(answer.text), self._part):
                yield TextPart(answer.text[begin : begin + self._part])
        except GeneratorExit:
            self.broken_off += 1
            raise
        yield answer

    def may_repair(self) -> bool:
        """Spend a repair."""
        if self.repairs >= self._most_repairs:
            return False
        self.repairs += 1
        return True

    def bad_output(self, what: str, errors: Sequence[str], answer: Answer) -> BadOutputError:
        """The error with these errors."""
        return BadOutputError(f"{what}: {'; '.join(errors)}", errors=errors)
