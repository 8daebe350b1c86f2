"""What the tasks and agents of details share in a process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.apps.details.kinds import kind_of
from headrace.apps.details.names import ENDED, FIRST_RESPONSE, ITEM, feed_name, item_key, scope_name

if TYPE_CHECKING:
    from headrace import App
    from headrace.feeds import Feed
    from headrace.llm.dedupe import NameBook

#: So many books of names are kept open.
MOST_BOOKS = 500
#: Entries of one read of a feed.
PAGE = 1_000
#: Behind the end of a batch there may be what late parts delivered, as many as are written at once.
LAST = 100


@dataclass
class Means:
    """The app, and the books of names that its coroutines share: one per scope, so that few claims clash."""

    app: App
    _books: OrderedDict[str, NameBook] = field(default_factory=OrderedDict)

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

    async def items(self, batch_id: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the items that a batch has delivered so far, in their order; `after`: behind a number of its feed."""
        feed, found = self.feed(batch_id), []
        while True:
            page = await feed.read(after, PAGE)
            kinds = [entry.type for entry in page]
            # What comes behind the end counts no more.
            whole = page[: kinds.index(ENDED)] if ENDED in kinds else page
            found += [entry.data for entry in whole if entry.type == ITEM]
            if len(whole) < PAGE:
                return found
            after = page[-1].seq

    async def deliver(self, batch_id: str, subtask: str, place: int, item: Mapping[str, Any], order: Order) -> int:
        """Put an item into a place of its part, unless one stands there, and return the number of what stands there.

        Whoever puts the last of the first response says so. Only the entry that the batch was accepted stands before
        the items, so that numbers tell how many there are.
        """
        feed = self.feed(batch_id)
        number = await feed.append(ITEM, {"subtask_id": subtask, **item}, key=item_key(subtask, place))
        if number == order.first_count + 1:
            await feed.append(FIRST_RESPONSE, order.first_response(), key=FIRST_RESPONSE)
        return number

    async def ending(self, batch_id: str) -> Mapping[str, Any] | None:
        """Return what was told of the end of a batch; None: it has not ended."""
        feed = self.feed(batch_id)
        end = await feed.end()
        last = await feed.read(max(0, end - LAST), LAST) if end else []
        return next((entry.data for entry in last if entry.type == ENDED), None)


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
