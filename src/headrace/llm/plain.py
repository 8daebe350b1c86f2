"""The strategy for weak models: field by field, worked examples first, one short plain answer each.

Asked for a JSON object a small model copies one value everywhere. Asked one question at a time, after examples, it is
mostly right; code then turns its words into values. The text stands before the question, so that all questions on one
text share their beginning and the provider reads it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, create_model

from headrace.llm.coercion import Value, coerce
from headrace.llm.fields import Kind, Question, questions
from headrace.llm.items import OnFail, degrade
from headrace.llm.ladder.asking import Asking
from headrace.llm.ladder.objects import extract_object
from headrace.llm.reasoning import without_reasoning
from headrace.llm.results import Extraction, Provenance
from headrace.llm.validation import InvalidAnswerError, error_lines
from headrace.model.calls import Purpose
from headrace.model.llm import Answer, CompletionRequest, FinishReason, Message
from headrace.model.usage import Usage

M = TypeVar("M", bound=BaseModel)

_INSTRUCTION = "Answer the question about the text with a few words from the text."
_EXAMPLES = (
    (
        "The trial took place in Kenya in 2019. It enrolled 75 children with malaria. They were given artesunate for "
        "three days. The fever ended after 31 hours on average. Two children had a rash. The work was paid for by a "
        "foundation.",
        "How many children were enrolled?",
        "75",
    ),
    (
        "The survey was done in Peru in the spring of 2015. Its 1,250 farmers grew potatoes. They lost 12 percent of "
        "the harvest to blight. A spray with copper halved the loss. It was used for six weeks. The spray cost 40 "
        "dollars per hectare.",
        "What did the farmers grow?",
        "potatoes",
    ),
)
#: Room for one answer. What is longer than this is rambling.
_ANSWER_TOKENS = {Kind.YES_NO: 8, Kind.NUMBER: 24, Kind.CHOICE: 24, Kind.TEXT: 48, Kind.LIST: 160}


@dataclass(slots=True)
class _Field:
    """One question on its way to a value."""

    question: Question
    exchange: Asking
    value: Any = None
    errors: list[str] = field(default_factory=list)
    said: str = ""
    is_escalated: bool = False


async def extract_plain(
    exchange: Asking, model: type[M], request: CompletionRequest, *, on_fail: OnFail | None = None
) -> Extraction[M]:
    """One ask for each field; a field whose value is not valid is asked for again, twice, then of the second model.

    `on_fail`: see `OnFail`; None and "needs_review" raise. Raises BadOutputError naming the fields, RefusedError,
    ProviderError.
    """
    fields = [_Field(question, exchange.another()) for question in questions(model)]
    for one in fields:
        await _ask(one, request, one.exchange, Purpose.ASK)
    while True:
        try:
            return Extraction(_validate(model, fields), _usage(fields), _provenance(fields))
        except InvalidAnswerError as error:
            if await _asked_again(fields, request):
                continue
            wrong = [one for one in fields if one.errors]
            errors = [f"{'.'.join(one.question.path)}: {error}" for one in wrong for error in one.errors]
            return _given_up(model, fields, errors or error.errors, on_fail)


async def _ask(one: _Field, request: CompletionRequest, exchange: Asking, purpose: Purpose) -> None:
    if one.question.kind is Kind.JSON:
        one.value = await _ask_for_json(one, request)
        return
    answer = await exchange.send(_single(request, one.question, *_reminder(one)), purpose=purpose)
    one.said, one.errors = answer.text, []
    try:
        one.value = coerce(one.question, _whole_words(answer, one.question))
    except InvalidAnswerError as error:
        one.errors = list(error.errors)


async def _asked_again(fields: list[_Field], request: CompletionRequest) -> bool:
    """Ask for the wrong fields again; False where all is spent, or no field is to blame."""
    wrong = [one for one in fields if one.errors]
    if wrong and all(one.exchange.may_repair() for one in wrong):
        for one in wrong:
            await _ask(one, request, one.exchange, Purpose.REASK)
        return True
    if not wrong or any(one.is_escalated for one in fields):
        return False
    for one in wrong:
        above = one.exchange.escalation
        if above is None:
            return False
        one.is_escalated = True
        await _ask(one, request, above, Purpose.ESCALATE)
    return True


def _given_up(model: type[M], fields: list[_Field], errors: Sequence[str], on_fail: OnFail | None) -> Extraction[M]:
    said = "\n".join(f"{'.'.join(one.question.path)}: {one.said}" for one in fields)
    value, provenance = degrade(model, on_fail or "needs_review", said, errors)
    if value is None or provenance is None:
        last = next((one for one in fields if one.errors), fields[0])
        raise last.exchange.bad_output("plain answers", errors, Answer(text=last.said))
    return Extraction(value, _usage(fields), provenance, tuple(errors), said)


async def _ask_for_json(one: _Field, request: CompletionRequest) -> Any:
    """A list of objects, a mapping, a union: no short answer says it, so ask for JSON and hope."""
    name = one.question.path[-1]
    holder: type[BaseModel] = create_model("Answer", **{name: (one.question.annotation, ...)})  # type: ignore[call-overload]
    schema = holder.model_json_schema(by_alias=True)
    messages = (*request.messages[:-1], _with_question(request.messages[-1], one.question.text))
    asked = replace(request, messages=messages, schema=schema, schema_name=name)
    extraction = await extract_object(one.exchange, holder, asked)
    one.is_escalated = extraction.provenance is Provenance.ESCALATED
    return extraction.value.model_dump(mode="json", by_alias=True)[name]


def _single(request: CompletionRequest, question: Question, *reminder: Message) -> CompletionRequest:
    """The request for one field: system, examples, text and question, and what was wrong with an earlier answer."""
    given = [message.content for message in request.messages if message.role == "system"]
    system = Message("system", "\n".join([*given, _INSTRUCTION]))
    examples: list[Message] = []
    for text, asked, answer in _EXAMPLES:
        examples += [_with_question(Message("user", text), asked), Message("assistant", answer)]
    return replace(
        request,
        messages=(system, *examples, _with_question(request.messages[-1], question.text), *reminder),
        stop=("\n",),
        max_tokens=request.max_tokens or _ANSWER_TOKENS[question.kind],
    )


def _with_question(text: Message, question: str) -> Message:
    return Message("user", f"Text: {text.content}\n\nQuestion: {question}")


def _reminder(one: _Field) -> tuple[Message, ...]:
    if not one.errors:
        return ()
    wrong = f"That is not valid: {'; '.join(one.errors)}. {one.question.text}"
    # The number keeps the second repair from being the first one over again.
    return Message("assistant", one.said or "(nothing)"), Message("user", f"{wrong} (try {one.exchange.repairs + 1})")


def _whole_words(answer: Answer, question: Question) -> str:
    """The answer's words without its reasoning; of a cut answer only what surely ended."""
    text = without_reasoning(answer.text)
    if answer.text and not text:
        raise InvalidAnswerError(["the answer holds reasoning alone; a few words are enough"])
    if answer.finish_reason is not FinishReason.LENGTH:
        return text
    sentences = text.rpartition(". ")[0]
    if question.kind is not Kind.TEXT:
        return sentences or text.rpartition(" ")[0]
    if not sentences:
        raise InvalidAnswerError(["the answer is too long; a few words are enough"])
    return sentences


def _validate(model: type[M], fields: list[_Field]) -> M:
    data: dict[str, Any] = {}
    for one in fields:
        if not one.errors:
            _put(data, one.question.path, one.value)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        for item in error.errors(include_url=False, include_context=False, include_input=False):
            place = tuple(str(part) for part in item["loc"])
            for one in fields:
                if place and not one.errors and place[: len(one.question.path)] == one.question.path:
                    one.errors = [item["msg"]]
        raise InvalidAnswerError(error_lines(error)) from None


def _put(data: dict[str, Any], path: tuple[str, ...], value: Value) -> None:
    for name in path[:-1]:
        data = data.setdefault(name, {})
    data[path[-1]] = value


def _usage(fields: list[_Field]) -> Usage:
    return sum((one.exchange.usage for one in fields), Usage())


def _provenance(fields: list[_Field]) -> Provenance:
    if any(one.is_escalated for one in fields):
        return Provenance.ESCALATED
    return Provenance.REASKED if any(one.exchange.repairs for one in fields) else Provenance.LLM
