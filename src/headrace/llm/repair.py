"""Ask, validate, and where the answer is wrong say what is wrong and ask again, twice at most.

A cut answer is never mended: it is asked for again with more room. Every answer on the way lies in the memo, so the
same extraction run again takes the same path at no cost, and ends with the same error rather than a new bill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from headrace.llm.exchange import Exchange
from headrace.llm.results import Provenance
from headrace.llm.validation import InvalidAnswerError
from headrace.model.llm import CompletionRequest, FinishReason, Message

T = TypeVar("T")

_CUT = "the answer was cut off before its end"
_LEAST_MORE_ROOM = 256
#: Of a wrong answer the model sees this much again.
_LONGEST_ECHO = 4_000


async def ask_until_valid(
    exchange: Exchange, request: CompletionRequest, parse: Callable[[str], T]
) -> tuple[T, Provenance]:
    """The parsed answer and how it came about.

    Raises BadOutputError naming the last errors when the repairs are spent, RefusedError, ProviderError.
    """
    while True:
        answer = await exchange.send(request)
        if answer.finish_reason is FinishReason.LENGTH:
            errors: Sequence[str] = [_CUT]
            following = _with_more_room(request)
        else:
            try:
                value = parse(answer.text)
            except InvalidAnswerError as error:
                errors = error.errors
                following = _with_errors(request, answer.text, errors)
            else:
                return value, Provenance.REPAIRED if exchange.repairs else Provenance.LLM
        if not exchange.may_repair():
            raise exchange.bad_output(request.schema_name, errors, answer)
        request = following


def _with_more_room(request: CompletionRequest) -> CompletionRequest:
    if request.max_tokens is not None:
        return replace(request, max_tokens=max(request.max_tokens * 2, request.max_tokens + _LEAST_MORE_ROOM))
    shorter = Message("user", "Your answer was too long and was cut off. Answer again, complete and much shorter.")
    return replace(request, messages=(*request.messages, shorter))


def _with_errors(request: CompletionRequest, text: str, errors: Sequence[str]) -> CompletionRequest:
    # The whole exchange so far: a second repair that repeats the words of the first would be the same request.
    listed = "\n".join(f"- {error}" for error in errors)
    feedback = (
        f"That answer is not valid:\n{listed}\nAnswer again with the whole corrected JSON object and nothing else."
    )
    said = Message("assistant", text[:_LONGEST_ECHO] or "(nothing)")
    return replace(request, messages=(*request.messages, said, Message("user", feedback)))
