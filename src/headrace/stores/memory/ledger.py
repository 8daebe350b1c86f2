"""The tables of the ledger of model calls, and the elementary moves of a call in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from uuid import UUID

from headrace.model.budget import Budget
from headrace.model.calls import DAY, LIVE, CallState, NewCall
from headrace.model.quota import Estimate
from headrace.model.usage import Usage

NOTHING = Usage()


@dataclass(slots=True)
class Call:
    """A call of the ledger. `session` is None where only its end is known."""

    new: NewCall
    session: UUID | None
    state: CallState
    opened_at: datetime
    ended_at: datetime | None = None
    usage: Usage = NOTHING
    priced_by: str = ""
    error: str = ""
    request_id: str | None = None

    @property
    def day(self) -> date:
        """The day (UTC) it counts for."""
        return day_of(self.opened_at)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended."""

    state: CallState
    usage: Usage
    priced_by: str = ""
    error: str = ""
    request_id: str | None = None


@dataclass(slots=True)
class Sums:
    """What ended calls of one scope, day and error used."""

    settled: int = 0
    orphaned: int = 0
    usage: Usage = NOTHING
    #: of the orphaned ones, at most
    lost: Usage = NOTHING

    def count(self, call: Call, sign: int) -> None:
        """Add an ended call, or take it away again."""
        used = Usage(
            input_tokens=sign * call.usage.input_tokens,
            output_tokens=sign * call.usage.output_tokens,
            calls=sign * call.usage.calls,
            cached_tokens=sign * call.usage.cached_tokens,
            cost_nano=sign * call.usage.cost_nano,
            unpriced=sign * call.usage.unpriced,
        )
        if call.state is CallState.ORPHANED:
            self.orphaned += sign
            self.lost += used
        else:
            self.settled += sign
            self.usage += used


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a streamed answer."""

    text: str
    stored_at: datetime


@dataclass(slots=True)
class Ledger:
    """Calls, budgets and what was spent. `live` and `held` are indexes: what is reserved is derived from them."""

    calls: dict[UUID, Call] = field(default_factory=dict)
    live: dict[UUID, Call] = field(default_factory=dict)
    #: live calls by key
    held: dict[str, Call] = field(default_factory=dict)
    budgets: dict[str, Budget] = field(default_factory=dict)
    #: by scope, then by day and error
    spent: dict[str, dict[tuple[date, str], Sums]] = field(default_factory=dict)
    #: by key, then by number
    spool: dict[str, dict[int, Part]] = field(default_factory=dict)

    def open(self, new: NewCall, session: UUID, now: datetime) -> None:
        """Record a call that may be made."""
        call = Call(new, session, CallState.SENT if new.send else CallState.PREPARED, now)
        self.calls[new.id] = self.live[new.id] = self.held[new.key] = call

    def remove(self, call: Call) -> None:
        """Forget a live call: it was not sent."""
        self._release(call)
        del self.calls[call.new.id]

    def end(self, call: Call, now: datetime, ending: Ending) -> None:
        """End a call, also one that was orphaned, and count what it used."""
        if call.state in LIVE:
            self._release(call)
        else:
            self._count(call, -1)
        call.state, call.usage, call.ended_at = ending.state, ending.usage, now
        call.priced_by, call.error, call.request_id = ending.priced_by, ending.error, ending.request_id
        self._count(call, 1)

    def add_ended(self, new: NewCall, now: datetime, ending: Ending) -> None:
        """Record a call of which only the end is known."""
        facts = (ending.usage, ending.priced_by, ending.error, ending.request_id)
        self.calls[new.id] = call = Call(new, None, ending.state, now, now, *facts)
        self._count(call, 1)

    def lose(self, call: Call, now: datetime) -> None:
        """End a live call of a dead session."""
        if call.state is CallState.PREPARED:
            self.remove(call)
        else:
            self.end(call, now, Ending(CallState.ORPHANED, most(call.new.estimate)))

    def _release(self, call: Call) -> None:
        del self.live[call.new.id], self.held[call.new.key]

    def _count(self, call: Call, sign: int) -> None:
        for scope in call.new.scopes:
            days = self.spent.setdefault(scope, {})
            days.setdefault((call.day, call.error), Sums()).count(call, sign)

    def sums(self, scope: str, today: date) -> Iterator[Sums]:
        """Yield what counts against a scope's budget."""
        days = self.spent.get(scope, {})
        return (sums for (day, _), sums in days.items() if scope != DAY or day == today)

    def used(self, scope: str, today: date) -> Usage:
        """Return what was spent of a scope's budget, orphaned calls included."""
        return sum((sums.usage + sums.lost for sums in self.sums(scope, today)), NOTHING)

    def reserved(self, scope: str, today: date) -> Usage:
        """Return what the live calls of a scope may use at most."""
        calls = (call for call in self.live.values() if scope in call.new.scopes)
        return sum((most(call.new.estimate) for call in calls if scope != DAY or call.day == today), NOTHING)

    def count_day(self, pool: str, today: date) -> int:
        """Return how many calls of a pool were opened on a day, those in flight included."""
        live = sum(call.new.pool == pool and call.day == today for call in self.live.values())
        days = self.spent.get(f"pool:{pool}", {})
        return live + sum(sums.settled + sums.orphaned for (day, _), sums in days.items() if day == today)

    def take_spooled(self, key: str) -> tuple[str, ...]:
        """Return the parts under a key up to the first gap, and forget those behind it."""
        parts = self.spool.get(key, {})
        count = next(number for number in range(len(parts) + 1) if number not in parts)
        for number in [number for number in parts if number >= count]:
            del parts[number]
        return tuple(parts[number].text for number in range(count))


def day_of(instant: datetime) -> date:
    """Return the day (UTC) of an instant."""
    return instant.astimezone(UTC).date()


def most(estimate: Estimate) -> Usage:
    """Return what a call may use at most, by its estimate."""
    return Usage(
        input_tokens=estimate.input_tokens,
        output_tokens=estimate.max_tokens,
        cost_nano=estimate.cost_nano or 0,
        unpriced=int(estimate.cost_nano is None),
    )
