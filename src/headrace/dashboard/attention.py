"""What needs somebody's attention, the worst first: pure rules over what the store tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Any

from headrace.dashboard.words import word
from headrace.model.admission import BreakerView
from headrace.model.breaker import BreakerState
from headrace.model.budget import BudgetView
from headrace.model.event import OutboxStats
from headrace.model.stats import QueueStats

#: A ready job that is older than this while nothing leaves its queue is stuck.
STUCK = timedelta(minutes=5)


class Weight(IntEnum):
    """How bad it is."""

    BAD = 0
    WARN = 1


@dataclass(frozen=True, slots=True)
class Note:
    """One thing: what it is, as a text with places for values, and the page that shows more."""

    weight: Weight
    text: str
    values: dict[str, Any]
    #: parts of the address of the page
    place: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """Dead letters of the last day that were found: those of poison, and the others."""

    poison: int = 0
    others: int = 0
    #: False: only the newest failed jobs were looked at, and there may be more of both among the older ones
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at."""

    queues: Sequence[QueueStats] = ()
    failed: Failed = Failed()
    breakers: Sequence[BreakerView] = ()
    #: pools that let nothing pass, with how much longer
    closed_pools: Sequence[tuple[str, timedelta]] = ()
    budgets: Sequence[BudgetView] = ()
    outbox: OutboxStats | None = None


def notes_of(facts: Facts) -> list[Note]:
    """Return what needs attention, the worst first."""
    found = [*_queues(facts.queues), *_letters(facts.failed), *_limits(facts), *_outbox(facts.outbox)]
    return sorted(found, key=lambda note: note.weight)


def _queues(queues: Iterable[QueueStats]) -> Iterable[Note]:
    for queue in queues:
        place = ("queues", queue.name)
        if queue.paused and queue.ready:
            yield Note(Weight.WARN, word("Queue {queue} is paused; {count} jobs wait."), _counted(queue), place)
        elif queue.ready and not queue.live_workers:
            yield Note(
                Weight.BAD, word("No live worker serves queue {queue}; {count} jobs wait."), _counted(queue), place
            )
        elif queue.oldest_ready_age and queue.oldest_ready_age > STUCK and not queue.rate_out:
            yield Note(
                Weight.BAD, word("Queue {queue} is stuck: {count} jobs wait and none ends."), _counted(queue), place
            )
        if queue.alarmed:
            yield Note(Weight.BAD, word("Queue {queue} has an alarm: {count} jobs wait."), _counted(queue), place)


def _counted(queue: QueueStats) -> dict[str, Any]:
    return {"queue": queue.name, "count": f"{queue.ready:,}"}


def _letters(failed: Failed) -> Iterable[Note]:
    exact, place = failed.complete, ("dead-letters",)
    if failed.poison:
        text = word("{count} jobs of the last day killed their workers and were given up.")
        more = word("At least {count} jobs of the last day killed their workers and were given up.")
        yield Note(Weight.BAD, text if exact else more, {"count": f"{failed.poison:,}"}, place)
    if failed.others:
        text = word("{count} jobs of the last day failed for good.")
        more = word("At least {count} jobs of the last day failed for good.")
        yield Note(Weight.WARN, text if exact else more, {"count": f"{failed.others:,}"}, place)


def _limits(facts: Facts) -> Iterable[Note]:
    for breaker in facts.breakers:
        if breaker.record.state is not BreakerState.CLOSED:
            yield Note(Weight.BAD, word("Breaker {name} is open."), {"name": breaker.key}, ("limits",))
    for name, wait in facts.closed_pools:
        values = {"name": name, "seconds": f"{wait.total_seconds():.0f}"}
        yield Note(Weight.WARN, word("Pool {name} is closed for {seconds} s more."), values, ("models",))
    for budget in facts.budgets:
        if budget.is_used_up:
            yield Note(Weight.BAD, word("Budget {name} is used up."), {"name": budget.scope}, ("models",))


def _outbox(outbox: OutboxStats | None) -> Iterable[Note]:
    if outbox is not None and outbox.parked:
        text = word("{count} events could not be published and are parked.")
        yield Note(Weight.BAD, text, {"count": f"{outbox.parked:,}"}, ("events",))
