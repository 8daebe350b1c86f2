"""The ladder's one way to a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from headrace.model.calls import Purpose
from headrace.model.llm import Answer, CompletionRequest, TextPart
from headrace.model.provider_errors import BadOutputError
from headrace.model.usage import Usage


class Asking(Protocol):
    """One value's exchange with a model: it adds up what it costs, and spends the repairs it may."""

    @property
    def repairs(self) -> int:
        """Repairs that are spent."""
        ...

    @property
    def usage(self) -> Usage:
        """What it cost so far, the second model's part included."""
        ...

    @property
    def escalation(self) -> Asking | None:
        """An exchange with the second model, where one is configured."""
        ...

    def another(self) -> Asking:
        """An exchange with the same models, whose costs and repairs are counted apart."""
        ...

    async def send(self, request: CompletionRequest, *, purpose: Purpose = Purpose.ASK) -> Answer:
        """The answer, whole or cut. Raises RefusedError, BadOutputError (no answer at all), other ProviderErrors."""
        ...

    def stream(
        self, request: CompletionRequest, *, purpose: Purpose = Purpose.ASK
    ) -> AsyncGenerator[TextPart | Answer]:
        """The parts of the answer's text as they arrive, and at the end all of it. Raises like `send`."""
        ...

    def may_repair(self) -> bool:
        """Spend a repair; False when all are spent."""
        ...

    def bad_output(self, what: str, errors: Sequence[str], answer: Answer) -> BadOutputError:
        """The error for a value that never became valid."""
        ...
