"""Writing the items of one part of a batch: asked for in calls side by side, named uniquely, delivered one by one, and
topped up at once.

Guaranteed: an item that is delivered has a name that nobody else has in its scope; a part that is written again after a
crash, or by two at once, delivers as many items as one writer: each of its places is filled once, and a name is claimed
for one place alone, so that no other run of the part delivers it elsewhere. A part for what is missing fills the places
that stayed empty, so that it and a late run of another part do not fill more than there are. What was bought before is
not bought again, since the same is asked. Not guaranteed: that all items come; what is missing is told.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headrace.apps.details.items import DetailItem
from headrace.apps.details.means import Means, Order, plain_item
from headrace.apps.details.names import item_key, owner_of
from headrace.apps.details.pace import Measured
from headrace.apps.details.wording import TEMPERATURE, Slice, word
from headrace.llm.dedupe import NameBook
from headrace.model.provider_errors import BadOutputError, ProviderError
from headrace.model.usage import UsageMeter, current_meter

#: Asks of one part: the first, and short ones for what is missing.
MOST_ASKS = 5
#: Passing failures of the provider that are overcome here: seconds are what is promised.
MOST_FAILURES = 4
PAUSES = (0.1, 0.5)
#: What is added up of parts.
SUMS = ("calls", "input_tokens", "output_tokens", "rejected", "duplicates", "failures")


@dataclass(frozen=True, slots=True)
class Part:
    """What is to be written."""

    batch_id: str
    subtask_id: str
    #: Made side by side; places of the part are theirs in this order.
    calls: tuple[Slice, ...]
    scope: str
    order: Order
    #: Names that were taken when the part was made.
    avoid: tuple[str, ...] = ()
    #: The places that it fills, by their keys; none: its own.
    places: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the places that it fills."""
        count = sum(call.count for call in self.calls)
        return self.places or tuple(item_key(self.subtask_id, place) for place in range(count))


@dataclass
class Written:
    """What came of a part."""

    items: list[dict[str, Any]] = field(default_factory=list)
    #: Asked for, and none: without a name, or not of the form.
    rejected: int = 0
    #: Items whose names were taken.
    duplicates: int = 0
    #: Failures that were overcome.
    failures: int = 0
    seconds: float = 0.0
    #: How fast the model was; None: nothing tells.
    measured: Measured | None = None
    #: How fast it was at its best: without what our own load added.
    base: Measured | None = None
    meter: UsageMeter = field(default_factory=UsageMeter)

    def to_json(self) -> dict[str, Any]:
        """Return it as events and figures tell it."""
        total = self.meter.total
        return {
            "items": self.items, "rejected": self.rejected, "duplicates": self.duplicates, "failures": self.failures,
            "calls": total.calls, "input_tokens": total.input_tokens, "output_tokens": total.output_tokens,
            "seconds": round(self.seconds, 3),
            "measured": None if self.measured is None else asdict(self.measured),
            "base": None if self.base is None else asdict(self.base),
        }  # fmt: skip


def read_measured(data: Mapping[str, Any], name: str = "measured") -> list[Measured]:
    """Return what the document of a part tells of the model's pace; `name`: "base" for its best.

    >>> told = {"first_token_seconds": 0.4, "writing_seconds": 3.0, "output_tokens": 300, "items": 5}
    >>> read_measured({"measured": told})[0].items, read_measured({})
    (5, [])
    """
    told = data.get(name)
    return [] if told is None else [Measured(**told)]


async def write(means: Means, part: Part) -> Written:
    """Write a part. Raises ProviderError for what did not pass where nothing came at all, StoreUnavailableError."""
    writer = _Writer(means, part)
    try:
        return await writer.write()
    except ProviderError:
        told = writer.written.to_json()
        await means.note_failure(part.batch_id, {name: told[name] for name in SUMS})
        raise


class _Writer:
    """One run of a part: what its calls share."""

    def __init__(self, means: Means, part: Part) -> None:
        self.means, self.part, self.places = means, part, part.keys
        self.written = Written()
        self.book: NameBook = means.book(part.scope, part.calls[0].type)
        self.keys: set[str] = set()
        #: Items that this run put into their places, and the lowest number of one in the feed.
        self.placed, self.first = 0, 0
        #: Why calls ended before all of their items were there.
        self.errors: list[ProviderError] = []

    async def write(self) -> Written:
        began, written = time.monotonic(), self.written
        outer = current_meter.get()
        token = current_meter.set(written.meter)
        try:
            await self._make_calls()
            written.items = await self._stored()
            if self.errors and not written.items:
                raise self.errors[0]  # the part has nothing to tell
        finally:
            current_meter.reset(token)
            if outer is not None:
                await outer.bill(written.meter.total)
            written.seconds = time.monotonic() - began
            self._measure()
        return written

    async def _make_calls(self) -> None:
        calls, start = [], 0
        for asked in self.part.calls:
            calls.append(_Call(self, asked, start))
            start += asked.count
        if len(calls) == 1:
            await calls[0].make()
            return
        tasks = [asyncio.create_task(call.make(), name="headrace-details-call") for call in calls]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _measure(self) -> None:
        """Note the pace of the model as this process sees it, with the length of items as this part saw it."""
        written = self.written
        tokens, count = written.meter.total.output_tokens, self.placed + written.duplicates
        pace = self.means.app.llm.pace
        if pace is None or not (written.meter.total.calls and tokens and count):
            return

        def measured(first: float, rate: float) -> Measured:
            return Measured(round(first, 3), round(tokens / rate, 3), tokens, count)

        written.measured = measured(pace.first_token_seconds, pace.tokens_per_second)
        written.base = measured(pace.first_token_seconds_p10, pace.tokens_per_second_p10)

    async def _stored(self) -> list[dict[str, Any]]:
        """Return the items that stand in the places of this part, whoever put them there."""
        delivered = await self.means.delivered(self.part.batch_id, max(0, self.first - 1))
        return [plain_item(entry.data) for entry in delivered.entries if entry.key in self.places]


class _Call:
    """One call of a part, and the asks for what is missing of it."""

    def __init__(self, writer: _Writer, asked: Slice, start: int) -> None:
        """`start`: the first of its places in the part."""
        self._writer, self._asked, self._start = writer, asked, start
        self._placed = self._failures = 0
        #: Its own alone: with names of the others, a run after a death would ask something else, and pay again.
        self._avoid: dict[str, None] = dict.fromkeys(writer.part.avoid)

    @property
    def _missing(self) -> int:
        return self._asked.count - self._placed

    async def make(self) -> None:
        """Ask until all items are there, or no more is to be had."""
        asks = 0
        while self._missing > 0 and asks < MOST_ASKS + self._failures:
            try:
                await self._ask(asks)
            except ProviderError as error:
                if not await self._overcome(error):
                    return
            asks += 1

    async def _overcome(self, error: ProviderError) -> bool:
        """Pause after a passing failure; False after what does not pass or failed too often: that is noted."""
        self._failures += 1
        self._writer.written.failures += 1
        passes = error.transient or isinstance(error, BadOutputError)
        if passes and self._failures < MOST_FAILURES:
            await asyncio.sleep(random.uniform(*PAUSES))  # noqa: S311 - spreads
            return True
        self._writer.errors.append(error)
        return False

    async def _ask(self, number: int) -> None:
        writer, asked = self._writer, replace(self._asked, count=self._missing, ask=number)
        wording = word(asked, list(self._avoid))
        answers = writer.means.app.llm.stream_items(
            DetailItem, prompt=wording.prompt, system=wording.system, expected=asked.count, temperature=TEMPERATURE
        )
        rejected: set[int] = set()
        async with aclosing(answers):
            async for result in answers:
                if result.value is None:
                    rejected.add(result.index)
                elif self._missing > 0:
                    await self._take(result.value)
        writer.written.rejected += len(rejected)

    async def _take(self, item: DetailItem) -> None:
        """Deliver an item whose name nobody has."""
        writer, part = self._writer, self._writer.part
        if item.key in writer.keys:
            writer.written.duplicates += 1
            self._avoid[item.name] = None
            return
        place = writer.places[self._start + self._placed]
        claimed = await writer.book.claim([item.name], owner=owner_of(place), only_one=True)
        if not claimed.accepted:
            writer.written.duplicates += 1
            self._avoid |= dict.fromkeys([item.name, *(each.because for each in claimed.rejected if each.because)])
            return
        writer.keys.add(item.key)
        self._avoid[item.name] = None
        number = await writer.means.deliver(part.batch_id, part.subtask_id, place, item.to_json(), part.order)
        writer.first = min(writer.first or number, number)
        writer.placed += 1
        self._placed += 1
