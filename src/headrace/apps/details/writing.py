"""Writing the items of one part of a batch: asked for, named uniquely, delivered one by one, and topped up at once.

Guaranteed: an item that is delivered has a name that nobody else has in its scope; a part that is written again after a
crash, or by two at once, delivers as many items as one writer: each of its places is filled once, and a name is claimed
for one place alone, so that no other run of the part delivers it elsewhere. What was bought before is not bought again,
since the same is asked. Not guaranteed: that all items come; what is missing is told.
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
from headrace.apps.details.names import owner_of
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
    slice: Slice
    scope: str
    order: Order
    #: Names that were taken when the part was made.
    avoid: tuple[str, ...] = ()


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
    def __init__(self, means: Means, part: Part) -> None:
        self._means, self._part = means, part
        self.written = self._written = Written()
        self._book: NameBook = means.book(part.scope, part.slice.type)
        self._avoid: dict[str, None] = dict.fromkeys(part.avoid)
        self._keys: set[str] = set()
        #: Items in their places, and the lowest number of one in the feed.
        self._placed, self._first = 0, 0

    @property
    def _missing(self) -> int:
        return self._part.slice.count - self._placed

    async def write(self) -> Written:
        began, written = time.monotonic(), self._written
        outer = current_meter.get()
        token = current_meter.set(written.meter)
        try:
            await self._ask_until_whole()
            written.items = await self._stored()
        finally:
            current_meter.reset(token)
            if outer is not None:
                outer.add(written.meter.total)
            written.seconds = time.monotonic() - began
            self._measure()
        return written

    def _measure(self) -> None:
        """Note the pace of the model as this process sees it, with the length of items as this part saw it."""
        written = self._written
        tokens, count = written.meter.total.output_tokens, self._placed + written.duplicates
        pace = self._means.app.llm.pace
        if pace is None or not (written.meter.total.calls and tokens and count):
            return

        def measured(first: float, rate: float) -> Measured:
            return Measured(round(first, 3), round(tokens / rate, 3), tokens, count)

        written.measured = measured(pace.first_token_seconds, pace.tokens_per_second)
        written.base = measured(pace.first_token_seconds_p10, pace.tokens_per_second_p10)

    async def _ask_until_whole(self) -> None:
        asks = 0
        while self._missing > 0 and asks < MOST_ASKS + self._written.failures:
            try:
                await self._ask(asks)
            except ProviderError as error:
                if not await self._overcome(error):
                    return
            asks += 1

    async def _overcome(self, error: ProviderError) -> bool:
        """Pause after a passing failure; False after what does not pass or failed too often, where some items came.

        Raises that where there are none, from an earlier run neither: then the part has nothing to tell.
        """
        self._written.failures += 1
        passes = error.transient or isinstance(error, BadOutputError)
        if passes and self._written.failures < MOST_FAILURES:
            await asyncio.sleep(random.uniform(*PAUSES))  # noqa: S311 - spreads
            return True
        if not self._placed and not await self._stored():
            raise error
        return False

    async def _stored(self) -> list[dict[str, Any]]:
        """Return the items that stand in the places of this part, whoever put them there."""
        items = await self._means.items(self._part.batch_id, max(0, self._first - 1))
        return [plain_item(item) for item in items if item["subtask_id"] == self._part.slice.subtask_id]

    async def _ask(self, number: int) -> None:
        asked = replace(self._part.slice, count=self._missing, ask=number)
        wording = word(asked, list(self._avoid))
        answers = self._means.app.llm.stream_items(
            DetailItem, prompt=wording.prompt, system=wording.system, expected=asked.count, temperature=TEMPERATURE
        )
        rejected: set[int] = set()
        async with aclosing(answers):
            async for result in answers:
                if result.value is None:
                    rejected.add(result.index)
                elif self._missing > 0:
                    await self._take(result.value)
        self._written.rejected += len(rejected)

    async def _take(self, item: DetailItem) -> None:
        """Deliver an item whose name nobody has."""
        part = self._part
        if item.key in self._keys:
            self._written.duplicates += 1
            return
        owner = owner_of(part.slice.subtask_id, self._placed)
        claimed = await self._book.claim([item.name], owner=owner, only_one=True)
        if not claimed.accepted:
            self._written.duplicates += 1
            self._avoid |= dict.fromkeys([item.name, *(each.because for each in claimed.rejected if each.because)])
            return
        self._keys.add(item.key)
        self._avoid[item.name] = None
        number = await self._means.deliver(
            part.batch_id, part.slice.subtask_id, self._placed, item.to_json(), part.order
        )  # fmt: skip
        self._first = min(self._first or number, number)
        self._placed += 1
