"""From what failed of a list to the end of it: asked for again, then the second model, then the caller's rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from headrace.llm.element_scanner import Element, ElementScanner
from headrace.llm.items import OnFail
from headrace.llm.ladder.asking import Asking
from headrace.llm.ladder.list_requests import KEY, request_again
from headrace.llm.ladder.sheet import Sheet
from headrace.llm.reasoning import without_reasoning
from headrace.llm.results import Provenance
from headrace.model.calls import Purpose
from headrace.model.llm import Answer, CompletionRequest, FinishReason
from headrace.model.provider_errors import BadOutputError, RefusedError

M = TypeVar("M", bound=BaseModel)

_DECLINED = "the model declined to answer"
_NO_ANSWER = "the model gave no answer"


async def settle(exchange: Asking, sheet: Sheet[M], asked: CompletionRequest, on_fail: OnFail) -> None:
    """Fill the sheet as far as it goes. Raises ProviderErrors other than RefusedError and BadOutputError."""
    while not sheet.is_settled and exchange.may_repair():
        again = request_again(asked, sheet, attempt=exchange.repairs)
        await _retake(exchange, sheet, again, purpose=Purpose.REASK, provenance=Provenance.REASKED)
    if not sheet.is_settled:
        above = exchange.escalation
        if above is not None:
            again = request_again(asked, sheet, attempt=1)
            await _retake(above, sheet, again, purpose=Purpose.ESCALATE, provenance=Provenance.ESCALATED)
    sheet.degrade(on_fail)


async def _retake(
    exchange: Asking, sheet: Sheet[M], again: CompletionRequest, *, purpose: Purpose, provenance: Provenance
) -> None:
    try:
        answer = await exchange.send(again, purpose=purpose)
    except RefusedError:
        sheet.note([_DECLINED])
        return
    except BadOutputError:
        sheet.note([_NO_ANSWER])
        return
    scanner = ElementScanner(KEY)
    elements = [*scanner.feed(answer.text), *scanner.finish()]
    elements = [*elements, *single_or((), scanner, sheet, answer)]
    mark_room(sheet, answer, has_closed=any(element.is_closed for element in elements))
    sheet.retake(elements, provenance, is_list_closed=is_whole(scanner, sheet))


def single_or(
    last: Sequence[Element], scanner: ElementScanner, sheet: Sheet[M], answer: Answer | None
) -> Sequence[Element]:
    """The last elements; where there is no list at all and one item is wanted, the one object of the answer."""
    if scanner.is_found or answer is None or answer.finish_reason is FinishReason.LENGTH or not _wants_one(sheet):
        return last
    text = without_reasoning(answer.text)
    begin, end = text.find("{"), text.rfind("}")
    return [Element(0, text[begin : end + 1], is_closed=True)] if 0 <= begin < end else last


def is_whole(scanner: ElementScanner, sheet: Sheet[M]) -> bool:
    """Whether the list came to its end, or was to be one object alone."""
    return scanner.is_list_closed or (not scanner.is_found and _wants_one(sheet))


def mark_room(sheet: Sheet[M], answer: Answer, *, has_closed: bool) -> None:
    """Note whether there was too little room for even one item."""
    sheet.needs_room = answer.finish_reason is FinishReason.LENGTH and not has_closed


def _wants_one(sheet: Sheet[M]) -> bool:
    return len(sheet.wanted) == 1 and not sheet.has_rest if sheet.slots else sheet.expected == 1
