"""What the tasks and agents of details share in a process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.apps.details.kinds import kind_of
from headrace.apps.details.names import (
    CREATED,
    ENDED,
    FIRST_RESPONSE,
    ITEM,
    SUBTASK_TASK,
    departure_id,
    failures_name,
    feed_name,
    scope_name,
)
from headrace.model.errors import StoreUnavailableError

if TYPE_CHECKING:
    from headrace import App
    from headrace.feeds import Feed, FeedEntry
    from headrace.llm.dedupe import NameBook
    from headrace.model.batch import BatchView

#: So many books of names are kept open.
MOST_BOOKS = 500
#: Of so many batches it is known that their first response was said.
MOST_SAID = 2_000
#: Entries of one read of a feed.
PAGE = 1_000
#: The end of a batch is looked for so many entries at a time: a batch with a promise of time has fewer.
LAST = 100


@dataclass
class Delivered:
    """What stands in the feed of a batch before its end."""

    #: The items: the key of each is the place that it fills.
    entries: list[FeedEntry] = field(default_factory=list)
    #: The one that says when the first response was there, if that was said.
    first_responses: list[FeedEntry] = field(default_factory=list)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items themselves, in their order."""
        return [entry.data for entry in self.entries]


@dataclass
class Means:
    """The app, and the books of names that its coroutines share: one per scope, so that few claims clash."""

    app: App
    _books: OrderedDict[str, NameBook] = field(default_factory=OrderedDict)
    _said: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def feed(self, batch_id: str) -> Feed:
        """Return the feed of a batch."""
        return self.app.feed(feed_name(batch_id))

    def book(self, scope: str, type_: str) -> NameBook:
        """Return the book of the names of a scope."""
        name = scope_name(scope, type_)
        if name not in self._books:
            self._books[name] = self.app.names(name, kind_of(type_).rule())
            if len(self._books) > MOST_BOOKS:
                self._books.popitem(last=False)
        self._books.move_to_end(name)
        return self._books[name]

    async def items(self, batch_id: str) -> list[dict[str, Any]]:
        """Return the items that a batch has delivered so far, in their order."""
        return (await self.delivered(batch_id)).items

    async def delivered(self, batch_id: str, after: int = 0) -> Delivered:
        """Return what a batch has delivered so far; `after`: behind a number of its feed."""
        feed, found = self.feed(batch_id), Delivered()
        while True:
            page = await feed.read(after, PAGE)
            kinds = [entry.type for entry in page]
            # What comes behind the end counts no more.
            whole = page[: kinds.index(ENDED)] if ENDED in kinds else page
            found.entries += [entry for entry in whole if entry.type == ITEM]
            found.first_responses += [entry for entry in whole if entry.type == FIRST_RESPONSE]
            if len(whole) < PAGE:
                return found
            after = page[-1].seq

    async def deliver(self, batch_id: str, subtask: str, place: str, item: Mapping[str, Any], order: Order) -> int:
        """Put an item of a part into a place, unless one stands there, and return the number of what stands there.

        Whoever puts the last of the first response says so, and should it die before it does, whoever puts one behind
        it: each process once, for the feed has it once. Only the entry that the batch was accepted stands before the
        items, so that numbers tell how many there are.
        """
        feed = self.feed(batch_id)
        number = await feed.append(ITEM, {"subtask_id": subtask, **item}, key=place)
        if number > order.first_count and batch_id not in self._said:
            await self._say_first_response(feed, batch_id, order)
        return number

    async def _say_first_response(self, feed: Feed, batch_id: str, order: Order) -> None:
        self._said[batch_id] = None
        try:
            await feed.append(FIRST_RESPONSE, order.first_response(), key=FIRST_RESPONSE)
        except BaseException:
            self._said.pop(batch_id, None)
            raise
        if len(self._said) > MOST_SAID:
            self._said.popitem(last=False)

    async def ending(self, batch_id: str) -> Mapping[str, Any] | None:
        """Return what was told of the end of a batch; None: it has not ended.

        One look for a batch with a promise of time. In a longer feed the end is looked for from the last entry on
        backwards: behind it there may be what late parts delivered.
        """
        feed = self.feed(batch_id)
        page = await feed.read(0, LAST)
        if len(page) < LAST or (found := _end_in(page)) is not None:
            return _end_in(page)
        end = await feed.end()
        while page and end > LAST:
            end = max(LAST, end - LAST)
            page = await feed.read(end, LAST)
            if (found := _end_in(page)) is not None:
                return found
        return None  # or the older ones were removed

    async def note_failure(self, batch_id: str, told: Mapping[str, int]) -> None:
        """Note what a try of a part cost that came to nothing; what cannot be noted is not known then."""
        with suppress(StoreUnavailableError):
            await self.app.feed(failures_name(batch_id)).append("failure", told)

    async def failures(self, batch_id: str) -> list[Mapping[str, int]]:
        """Return what tries of parts cost that came to nothing, the oldest thousand."""
        return [entry.data for entry in await self.app.feed(failures_name(batch_id)).read(0, PAGE)]

    async def departures(self, batch_id: str) -> list[BatchView]:
        """Return the jobs of a batch's parts, those that went out together as one."""
        found: list[BatchView] = []
        inspect = self.app.runtime.stores.inspect
        while (gone := await inspect.find_batch(SUBTASK_TASK, departure_id(batch_id, len(found) + 1))) is not None:
            found.append(gone)
        return found

    async def stop_parts(self, batch_id: str) -> None:
        """Let no more parts of a batch go out; agents look for its end before they begin one that has."""
        for gone in await self.departures(batch_id):
            await self.app.batch(gone.id).cancel()

    async def answers(self, correlation: str) -> list[Mapping[str, Any]]:
        """Return what parts that went out together have answered so far, each once, whatever became of their handle.

        By the log of events, which has an answer with the end of whoever wrote it, whether or not the bus does.
        """
        events = await self.app.event_stores.outbox.list_events(correlation_id=correlation, limit=PAGE)
        return list({event.payload["task_id"]: event.payload for event in events if event.type == CREATED}.values())

    async def first_response(self, batch_id: str, delivered: Delivered, order: Order) -> float | None:
        """Return when the first response was there; say it, where who should have said it died before."""
        if len(delivered.entries) < order.first_count:
            return None
        told = delivered.first_responses
        if not told:
            feed = self.feed(batch_id)
            number = await feed.append(FIRST_RESPONSE, order.first_response(), key=FIRST_RESPONSE)
            told = await feed.read(number - 1, 1)
        return float(told[0].data["seconds"])


def _end_in(page: Sequence[FeedEntry]) -> Mapping[str, Any] | None:
    return next((dict(entry.data) for entry in page if entry.type == ENDED), None)


def plain_item(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item without what only its writers need.

    >>> plain_item({"subtask_id": "b:0", "name": "Ember"})
    {'name': 'Ember'}
    """
    return {name: value for name, value in told.items() if name != "subtask_id"}


@dataclass(frozen=True, slots=True)
class Order:
    """What the first response of a batch is reckoned with."""

    #: How many items it has.
    first_count: int
    #: When the batch was asked for, seconds since the epoch.
    asked_at: float
    #: Returns the time.
    now: Any = field(repr=False)

    @property
    def seconds(self) -> float:
        """How long ago the batch was asked for."""
        return max(0.0, round(float(self.now()) - self.asked_at, 3))

    def first_response(self) -> dict[str, Any]:
        """Return what the entry of the first response says."""
        return {"items": self.first_count, "seconds": self.seconds}
