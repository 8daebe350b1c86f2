"""One object: read, mended, asked for again in its wrong parts or whole, given to the second model, or the rule.

A cut answer is never mended: it is asked for again with more room. Every answer on the way lies in the memo, so the
same extraction run again takes the same path at no cost, and ends with the same error rather than a new bill.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel

from headrace.llm.items import OnFail, degrade
from headrace.llm.ladder.asking import Asking
from headrace.llm.ladder.object_requests import for_parts, with_errors, with_more_room
from headrace.llm.ladder.patches import Patch
from headrace.llm.results import Extraction, Provenance
from headrace.llm.validation import InvalidAnswerError, read_data, read_object
from headrace.model.calls import Purpose
from headrace.model.llm import Answer, CompletionRequest, FinishReason
from headrace.model.provider_errors import BadOutputError, RefusedError

M = TypeVar("M", bound=BaseModel)

_CUT = "the answer was cut off before its end"


async def extract_object(
    exchange: Asking, model: type[M], request: CompletionRequest, *, on_fail: OnFail | None = None
) -> Extraction[M]:
    """A valid object and how it came about. `on_fail`: see `OnFail`; None and "needs_review" raise.

    Raises BadOutputError naming the last errors when all is spent, RefusedError, other ProviderErrors.
    """
    climb = _Climb(model, request)
    while True:
        answer = await exchange.send(climb.request, purpose=climb.purpose)
        if climb.reads(answer):
            return climb.extraction(exchange, Provenance.REASKED if exchange.repairs else climb.provenance)
        if not exchange.may_repair():
            break
        climb.go_on(exchange.repairs)
    if await _escalated(exchange, climb):
        return climb.extraction(exchange, Provenance.ESCALATED)
    value, provenance = degrade(model, on_fail or "needs_review", climb.raw, climb.errors)
    if value is None or provenance is None:
        raise exchange.bad_output(request.schema_name, climb.errors, answer)
    return Extraction(value, exchange.usage, provenance, climb.errors, climb.raw)


async def _escalated(exchange: Asking, climb: _Climb[M]) -> bool:
    above = exchange.escalation
    if above is None:
        return False
    climb.start_anew()
    try:
        return climb.reads(await above.send(climb.request, purpose=Purpose.ESCALATE))
    except (RefusedError, BadOutputError):
        return False


class _Climb(Generic[M]):
    """Where one object stands: what is asked next, and what was wrong last."""

    def __init__(self, model: type[M], request: CompletionRequest) -> None:
        self._model, self._first = model, request
        self.request, self.purpose = request, Purpose.ASK
        self.provenance = Provenance.LLM
        self.errors: tuple[str, ...] = ()
        self.raw = ""
        self._value: M | None = None
        self._patch: Patch | None = None
        self._wrong: InvalidAnswerError | None = None  # None: it was cut

    def reads(self, answer: Answer) -> bool:
        """Whether the answer makes the object valid."""
        self._wrong = None
        if answer.finish_reason is FinishReason.LENGTH:
            self.errors, self.raw = (_CUT,), answer.text
            return False
        try:
            text = answer.text if self._patch is None else self._patched(answer.text, self._patch)
            self.raw = text
            self._value, self.provenance = read_object(self._model, text)
        except InvalidAnswerError as wrong:
            self._wrong, self.errors = wrong, wrong.errors
            return False
        return True

    def go_on(self, attempt: int) -> None:
        """Make the next request of what was wrong."""
        if self._wrong is None:
            self.request, self.purpose = with_more_room(self.request), Purpose.REPAIR
            return
        asked_whole = self._patch is None
        self._patch = Patch.of(self._model, self._wrong)
        if self._patch is not None:
            self.request = for_parts(self._first, self._model, self._patch, attempt=attempt)
            self.purpose = Purpose.REASK
        else:
            self.request = with_errors(self.request if asked_whole else self._first, self.raw, self.errors)
            self.purpose = Purpose.REPAIR

    def start_anew(self) -> None:
        """Ask for the whole as in the beginning."""
        self.request, self._patch = self._first, None

    def extraction(self, exchange: Asking, provenance: Provenance) -> Extraction[M]:
        """The valid object."""
        if self._value is None:
            raise ValueError("nothing was read yet")
        return Extraction(self._value, exchange.usage, provenance)

    def _patched(self, text: str, patch: Patch) -> str:
        parts = read_data(text)
        if set(parts) >= set(self._model.model_fields):
            return text  # all of it was given again
        return patch.applied(parts)
