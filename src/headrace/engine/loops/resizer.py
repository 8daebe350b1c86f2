"""The resizer: lets the slots of elastic queues grow and shrink in this worker; the rule is `model/elastic.py`.

Each worker decides for itself, on its part of the eligible backlog: that is divided by the live workers of the queue.
A worker that takes over after a lost lease goes on with the sizes that it had.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.engine.loops.loop import Loop
from headrace.engine.shift import Shift
from headrace.engine.telemetry import SLOTS, Telemetry
from headrace.model.elastic import ElasticSlots, Eligible, Move, judge

LOG = logging.getLogger("headrace.slots")

#: Counts what could start of a queue, no further than so much for each of its live workers.
CountEligible = Callable[[str, int], Awaitable[Eligible]]
#: What a limit is called that is seen in the slots and not at the gate.
QUOTA = "quota or budget of a model"


@dataclass(frozen=True, slots=True)
class ElasticOptions:
    """Which queues have elastic slots, and how often they are looked at."""

    rules: Mapping[str, ElasticSlots] = field(default_factory=dict)
    interval: timedelta = timedelta(seconds=30)


class Resizer(Loop):
    """Looks at each elastic queue and resizes its slots in the shift that runs."""

    name = "resizer"

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self, options: ElasticOptions, slots: Mapping[str, int], *, count: CountEligible,
        shift: Callable[[], Shift | None], want: Callable[[str, int], None], telemetry: Telemetry,
    ) -> None:  # fmt: skip
        """`slots` are those of all queues of the worker, `want` tells whoever runs the jobs how many it would use."""
        super().__init__(options.interval)
        self._count, self._shift, self._want, self._telemetry = count, shift, want, telemetry
        self._rules = {queue: rule for queue, rule in options.rules.items() if queue in slots}
        self._standings = {queue: rule.begin(slots[queue]) for queue, rule in self._rules.items()}
        #: By queue, what holds it up, as it was said last.
        self._held: dict[str, str | None] = {}
        self._fixed = dict(slots)

    @property
    def queues(self) -> list[str]:
        """Queues with elastic slots; where there are none the loop need not run."""
        return list(self._rules)

    @property
    def slots(self) -> dict[str, int]:
        """Slots by queue, those of fixed queues too."""
        return self._fixed | {queue: standing.size for queue, standing in self._standings.items()}

    def start(self) -> None:
        """Begin, and tell of the sizes to begin with."""
        for queue, standing in self._standings.items():
            self._want(queue, standing.size)
        super().start()

    async def step(self) -> None:
        """Look once at each queue."""
        figures: dict[str, Mapping[str, object]] = {}
        for queue, rule in self._rules.items() if self._shift() is not None else ():
            # One more than the mark decides already.
            eligible = await self._count(queue, rule.grow_above + 1)
            # Only now: meanwhile another one may have begun, or none may be there.
            if (shift := self._shift()) is not None:
                figures[queue] = self._judge(shift, queue, eligible)
        self._telemetry.table(SLOTS, figures)

    def _judge(self, shift: Shift, queue: str, eligible: Eligible) -> Mapping[str, object]:
        """Judge a queue, resize its slots, and return what is told of them."""
        rule, before = self._rules[queue], self._standings[queue]
        used, limited = shift.look_at_slots(queue)
        look = eligible.seen_by_one(used=used, limited=limited)
        standing, move = judge(rule, before, look)
        self._standings[queue] = standing
        held_by = QUOTA if limited else eligible.held_by
        if standing.size != before.size:
            shift.resize(queue, standing.size)
            self._want(queue, standing.size)
            self._telemetry.count(f"headrace.slots.{move.value}")
        self._say(queue, before.size, standing.size, move, look.eligible, held_by)
        return {
            "size": standing.size, "min": rule.least, "max": rule.most, "eligible": look.eligible,
            "used": used, "held_by": held_by,
        }  # fmt: skip

    def _say(  # noqa: PLR0913 - what a line of the log is made of
        self, queue: str, before: int, size: int, move: Move, eligible: int, held_by: str | None
    ) -> None:
        """Log each change, and once that a limit keeps the slots from growing."""
        facts = {"queue": queue, "slots": size, "slots_before": before, "eligible": eligible, "held_by": held_by}
        why = f"{eligible} jobs could start" + (f"; others are held by {held_by}" if held_by else "")
        if size != before:
            LOG.info("queue %s: slots %s from %d to %d (%s)", queue, move.value, before, size, why, extra=facts)
        held = (held_by or "a cap") if move is Move.HELD else None
        if held is not None and held != self._held.get(queue):
            LOG.info("queue %s: slots held at %d by %s (%d jobs wait)", queue, size, held, eligible, extra=facts)
        self._held[queue] = held
