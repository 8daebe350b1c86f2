"""The coordinator of one batch: it sends parts out, waits for them without a slot, and tops up what is missing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace import Context
from headrace.apps.details.agents import AGENTS
from headrace.apps.details.departures import MOST_TOP_UPS, Departure, places_of, top_up, waves
from headrace.apps.details.ending import tell_end
from headrace.apps.details.kinds import even_sizes
from headrace.apps.details.means import Delivered, Means, Order
from headrace.apps.details.mode import SINGLE, becomes_single, read_mode
from headrace.apps.details.names import (
    ACCEPTED,
    AGGREGATE,
    CREATED,
    REQUESTED,
    departure_id,
    subtask_id,
)
from headrace.apps.details.priorities import priority_class
from headrace.apps.details.request import DetailsRequest
from headrace.apps.details.tallying import Tally
from headrace.apps.details.wording import Slice
from headrace.apps.details.writing import Part, write
from headrace.model.errors import ConflictError, HandleCancelledError, HandleExpiredError
from headrace.model.provider_errors import ProviderError

if TYPE_CHECKING:
    from headrace.tasks import Task

#: Parts are waited for so long at most, whatever holds them up; those that are silent are given up before: `silence`.
LONGEST = "3d"
#: Items of one call in single-call mode at most; more are several calls, one after another.
LARGEST = 50
#: Characters of taken names that go along with a request.
MOST_AVOIDED = 2_000


@dataclass
class Coordinator:
    """One entry of the coordinator's handler."""

    means: Means
    subtask: Task[..., Any]
    context: Context
    batch_id: str
    request: DetailsRequest
    plan: dict[str, Any]
    tally: Tally = field(default_factory=Tally)
    #: Departures that are known to have gone, by their correlation ids.
    _gone: set[str] = field(default_factory=set, init=False)
    #: The departure that nobody waits for: what its parts have told is looked up at the end.
    _unwaited: Departure | None = field(default=None, init=False)
    #: Whether its parts said nothing for so long that nothing more is asked for.
    _is_silent: bool = field(default=False, init=False)
    #: The names that were taken when the batch began, for its first parts.
    _taken: tuple[str, ...] | None = field(default=None, init=False)
    #: What was delivered, once no place is empty: then nothing comes behind it.
    _whole: Delivered | None = field(default=None, init=False)

    @property
    def order(self) -> Order:
        """What the first response is reckoned with."""
        return Order(self.request.first_count, self.plan["asked_at"], time.time)

    async def run(self) -> dict[str, Any]:
        """Make the batch by parts over the bus; in single-call mode what these have not brought is made here."""
        departures = waves(self.request.type, self.plan["sizes"])
        last, places = departures[-1], places_of(self.batch_id, departures)
        if await self._is_made_here():
            # An entry that died before it waited for the first of them may have sent these.
            self._unwaited = departures[0]
            await self._write_rest(last, places)
            return await self._end()
        for departure in departures:
            if not self._is_silent:
                last = departure
                await self._go(departure)
        for turn in range(MOST_TOP_UPS):
            # Where parts have not answered for so long others would not either.
            missing = [] if self._is_silent else await self._missing(turn, last, places)
            if not missing:
                break
            last = top_up(self.request, missing, last)
            await self._go(last)
        if self._is_silent and await self.context.step("rest", partial(becomes_single, self.means.app)):
            await self._write_rest(last, places)
        return await self._end()

    async def _is_made_here(self) -> bool:
        """Accept the batch; whether it is made here, for the mode changed before its parts went out: said once for all.

        Names that are taken are looked for with it, since parts most likely go out.
        """
        if await self._has_gone(self.batch_id):
            return False
        # Side by side: each is a way to the store and back.
        mode, _, self._taken = await asyncio.gather(read_mode(self.means.app), self._accept(), self._avoid())
        single = mode == SINGLE
        # Nothing is stored where it did not, which is nearly always: the handle behind the parts says so then.
        return (single or self.context.attempt > 1) and bool(await self.context.step("here", lambda: single))

    async def _write_rest(self, last: Departure, places: Sequence[str]) -> None:
        """Write here what is missing, as parts behind those of `last`; parts that have not gone out do not go.

        No part here has the number of another: of two answers by one number, whoever reads events counts the first.
        """
        await self.means.stop_parts(self.batch_id)
        start = last.start + len(last.parts)
        left = await self._empty(places)
        left = await self.context.step("left", lambda: left)
        sizes, rest = even_sizes(len(left), LARGEST) if left else (), [places[number] for number in left]
        for index, size in enumerate(sizes):
            asked = Slice(
                subtask_id=subtask_id(self.batch_id, start + index), type=self.request.type, count=size,
                style=self.request.style, batch_index=index, batches=len(sizes),
            )  # fmt: skip
            # Kept, so that the same is asked after a death: what was answered is not paid for again.
            avoid = await self.context.step(f"rest-avoid-{index}", self._avoid)
            own, rest = tuple(rest[:size]), rest[size:]
            write_here = partial(self._write_here, asked, tuple(avoid), own)
            try:
                told = await self.context.step(f"rest-part-{index}", write_here)
            except ProviderError:
                if not self.context.last_try:
                    raise
                self.tally.add_dead()
            else:
                self.tally.add(told)

    async def _write_here(self, asked: Slice, avoid: tuple[str, ...], places: tuple[str, ...]) -> dict[str, Any]:
        """Write a part, let its event leave as an agent would, and return what it tells but for the items."""
        part = Part(self.batch_id, asked.subtask_id, (asked,), self.request.scope, self.order, avoid, places)
        written = await write(self.means, part)
        told = {"session_id": self.request.session_id, "task_id": asked.subtask_id, **written.to_json()}
        await self.means.app.emit(
            CREATED, told, key=f"created-{asked.batch_index}", aggregate_type=AGGREGATE,
            aggregate_id=self.request.session_id, correlation_id=departure_id(self.batch_id, 1),
        )  # fmt: skip
        return {name: value for name, value in told.items() if name != "items"}

    async def _accept(self) -> None:
        shown = {name: getattr(self.request, name) for name in ("type", "count", "priority", "session_id", "scope")}
        promise = {name: self.plan[name] for name in ("expected_seconds", "promised", "detail")}
        data = {**shown, "style": self.request.style, **promise}
        await self.means.feed(self.batch_id).append(ACCEPTED, data, key=ACCEPTED)

    async def _avoid(self) -> tuple[str, ...]:
        """Return the newest names of the scope, as many as go along."""
        names = await self.means.book(self.request.scope, self.request.type).known_names()
        chosen, room = [], MOST_AVOIDED
        for name in reversed(names):
            room -= len(name)
            if room < 0:
                break
            chosen.append(name)
        return tuple(reversed(chosen))

    async def _go(self, departure: Departure) -> None:
        """Let parts go out, and wait until each has answered or is dead."""
        app, correlation = self.means.app, departure.correlation(self.batch_id)
        if not await self._has_gone(correlation):
            await self._send(departure, correlation)
        try:
            resumed = await app.wait_for_events(
                correlation, CREATED, count=len(departure.parts), request_types=(REQUESTED,), agents=AGENTS,
                timeout=LONGEST,
            )  # fmt: skip
        except (HandleCancelledError, HandleExpiredError):
            self._unwaited, self._is_silent = departure, True
            return
        for event in resumed.events:
            self.tally.add(event.payload)
        self.tally.add_dead(len(resumed.dead))

    async def _add_unwaited(self, departure: Departure, items: Iterable[Mapping[str, Any]]) -> None:
        """Add what its parts have told; those that had their time and told nothing are done if their items are here."""
        for told in await self.means.answers(departure.correlation(self.batch_id)):
            self.tally.add(told)
        if self._is_silent:
            self.tally.add_silent(departure.answered(self.batch_id, items, self.tally.told))

    async def _has_gone(self, correlation: str) -> bool:
        """Whether an earlier entry sent these parts: it registered their handle behind that."""
        if self.context.attempt > 1 and correlation not in self._gone:
            if await self.means.app.event_stores.handles.get_handle(correlation) is None:
                return False
            self._gone.add(correlation)
        return correlation in self._gone

    async def _send(self, departure: Departure, correlation: str) -> None:
        request = self.request
        asked = {
            "session_id": request.session_id, "batch_id": self.batch_id, "type": request.type, "style": request.style,
            "priority": request.priority, "scope": request.scope, "batches": len(self.plan["sizes"]),
            "first_count": request.first_count, "asked_at": self.plan["asked_at"], "total": request.count,
        }  # fmt: skip
        known, self._taken = self._taken, None
        asked["avoid"] = await self._avoid() if known is None else known
        items = [
            {**one, "asked": asked, "correlation": correlation} for one in departure.subtasks(self.batch_id)
        ]  # fmt: skip
        priority = priority_class(request.priority)
        # Where they were sent before, with the names that were known then, those are the ones.
        with suppress(ConflictError):
            await self.means.app.submit(self.subtask, items, key=correlation, spread=True, priority=priority)

    async def _missing(self, turn: int, last: Departure, places: Sequence[str]) -> list[str]:
        """Return which of these places are empty after `last`; the same whenever it is asked in this turn."""
        following = departure_id(self.batch_id, last.number + 1)
        left, went_on = await asyncio.gather(self._empty(places), self._has_gone(following))
        if not left and not went_on:
            # Nothing is stored where all came, which is nearly always: then it stays so.
            return []
        return [places[number] for number in await self.context.step(f"missing-{turn}", lambda: left)]

    async def _empty(self, places: Sequence[str]) -> list[int]:
        """Return the numbers of these places in which no item stands."""
        delivered = await self.means.delivered(self.batch_id)
        filled = {entry.key for entry in delivered.entries}
        left = [number for number, place in enumerate(places) if place not in filled]
        self._whole = None if left else delivered
        return left

    async def _end(self) -> dict[str, Any]:
        """Tell the end.

        An entry that ended here before finds what was told then, and tells the rest the same.
        """
        request = self.request
        delivered = self._whole or await self.means.delivered(self.batch_id)
        items = delivered.items
        if self._unwaited is not None:
            await self._add_unwaited(self._unwaited, items)
        if self.tally.dead or self._unwaited is not None:
            for told in await self.means.failures(self.batch_id):
                self.tally.add_sums(told)
        first = await self.means.first_response(self.batch_id, delivered, self.order)
        ending = self.tally.ending(request, len(items), self.order.seconds, first)
        return await tell_end(
            self.means, request, self.batch_id, tally=self.tally, ending=ending, items=items
        )  # fmt: skip
