"""A list of items: read one by one, kept where valid, asked for again where not.

Guarantees: a valid item is never asked for again nor changed; an item is valid by its model's rules, or it is
labelled; at most two asks for what failed, one more to the second model, then the caller's rule.
Does not guarantee that an item which was asked for again fits its neighbours: rules between items are the caller's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from pydantic import BaseModel

from headrace.llm.element_scanner import Element, ElementScanner
from headrace.llm.items import ItemResult, Items, OnFail, check_on_fail
from headrace.llm.ladder.asking import Asking
from headrace.llm.ladder.list_requests import KEY, list_request
from headrace.llm.ladder.plain_lists import each_plainly
from headrace.llm.ladder.settling import is_whole, mark_room, settle, single_or
from headrace.llm.ladder.sheet import Sheet
from headrace.llm.schema import plain_schema
from headrace.model.calls import Purpose
from headrace.model.errors import InvalidInputError
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, TextPart
from headrace.model.provider_errors import BadOutputError, RefusedError

M = TypeVar("M", bound=BaseModel)


async def extract_items(  # noqa: PLR0913 # each is one thing users set
    exchange: Asking,
    item: type[M],
    request: CompletionRequest,
    *,
    style: AnswerStyle = AnswerStyle.STRICT_SCHEMA,
    expected: int | None = None,
    on_fail: OnFail = "needs_review",
) -> Items[M]:
    """All items of one answer, each valid or labelled.

    `expected`: how many there are to be; missing ones are asked for, what is too much is dropped; None: as many as the
    model gives. `on_fail`: see `OnFail`. A model that answers only plainly is asked item by item, `expected` times.

    Raises RefusedError where the first ask is declined, other ProviderErrors, InvalidInputError.
    """
    _check(item, expected, on_fail)
    if style is AnswerStyle.PLAIN:
        results = [one async for one in each_plainly(exchange, item, request, expected=expected, on_fail=on_fail)]
        return Items(tuple(results), exchange.usage)
    asked = list_request(item, request, style)
    sheet = Sheet(item, expected)
    answer = await exchange.send(asked)
    reading = _Reading(sheet, ElementScanner(KEY))
    reading.results(answer)
    reading.end()
    sheet.number()
    await settle(exchange, sheet, asked, on_fail)
    sheet.number()
    return Items(tuple(slot.result() for slot in sheet.slots), exchange.usage, is_complete=not sheet.has_rest)


async def stream_items(  # noqa: PLR0913 # see extract_items
    exchange: Asking,
    item: type[M],
    request: CompletionRequest,
    *,
    style: AnswerStyle = AnswerStyle.STRICT_SCHEMA,
    expected: int | None = None,
    on_fail: OnFail = "needs_review",
) -> AsyncGenerator[ItemResult[M]]:
    """Each item the moment it closes in the stream; parameters and errors as with `extract_items`.

    An item that is not valid comes at once with its errors and `is_final` False, and once more, with the same index,
    when it was asked for again after the stream. Of a broken item the pieces may come so too; a piece does not come
    again. Closing the iterator ends the call.
    """
    _check(item, expected, on_fail)
    if style is AnswerStyle.PLAIN:
        async for one in each_plainly(exchange, item, request, expected=expected, on_fail=on_fail):
            yield one
        return
    asked = list_request(item, request, style)
    sheet = Sheet(item, expected)
    reading = _Reading(sheet, ElementScanner(KEY))
    async with aclosing(_parts(exchange, asked, sheet)) as parts:
        async for part in parts:
            for result in reading.results(part):
                yield result
    for result in reading.end():
        yield result
    told = {slot.index for slot in sheet.slots if slot.value is not None}
    await settle(exchange, sheet, asked, on_fail)
    for slot in sheet.slots:
        if slot.index not in told:
            yield slot.result()


def _check(item: type[BaseModel], expected: int | None, on_fail: OnFail) -> None:
    if expected is not None and (isinstance(expected, bool) or not isinstance(expected, int) or expected < 1):
        raise InvalidInputError("expected", "must be a number of items from 1, or None", expected)
    plain_schema(item)
    check_on_fail(item, on_fail)


class _Reading(Generic[M]):
    """One streamed answer on its way into the sheet."""

    def __init__(self, sheet: Sheet[M], scanner: ElementScanner) -> None:
        self._sheet, self._scanner = sheet, scanner
        self._read = 0
        self._has_closed = False
        #: the whole answer; None while it arrives, and where it broke off
        self.answer: Answer | None = None

    def results(self, part: TextPart | Answer) -> list[ItemResult[M]]:
        """The items that this part closes."""
        if isinstance(part, TextPart):
            self._read += len(part.text)
            return self._take(self._scanner.feed(part.text))
        self.answer = part
        return self._take(self._scanner.feed(part.text[self._read :]))

    def end(self) -> list[ItemResult[M]]:
        """What is left at the end of the answer; the sheet has its end then."""
        last = self._take(single_or(self._scanner.finish(), self._scanner, self._sheet, self.answer))
        self._sheet.end(is_list_closed=is_whole(self._scanner, self._sheet))
        if self.answer is not None:
            mark_room(self._sheet, self.answer, has_closed=self._has_closed)
        return last

    def _take(self, elements: Sequence[Element]) -> list[ItemResult[M]]:
        results = []
        for element in elements:
            self._has_closed = self._has_closed or element.is_closed
            slot = self._sheet.take(element)
            if slot.value is None or not self._sheet.has_too_many:
                results.append(slot.result(is_final=slot.value is not None))
        return results


async def _parts(exchange: Asking, asked: CompletionRequest, sheet: Sheet[M]) -> AsyncGenerator[TextPart | Answer]:
    """The stream; where it gives nothing at all the ask is made again, and where it is declined midway it ends."""
    try:
        async with aclosing(exchange.stream(asked)) as parts:
            async for part in parts:
                yield part
    except RefusedError:
        if not sheet.slots:
            raise
    except BadOutputError:
        if not sheet.slots:
            if not exchange.may_repair():
                raise
            yield await exchange.send(asked, purpose=Purpose.REPAIR)
