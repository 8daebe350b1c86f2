"""What the jobs of a queue need of buckets beside the store, as learnt from their admissions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.model.admission import Admitted
from headrace.model.limits import Level, Rate
from headrace.ports.limiter import Limiter, Taken

#: The shortest time between two looks of which the second asks for nothing that the first did not.
LEAST_SECONDS = 0.005


@dataclass(slots=True)
class Need:
    """What the jobs of a queue need of a bucket."""

    #: units of one job, rather too many where they differ
    units: float
    #: when a job used some or waited for some, by the clock of the event loop
    seen_at: float
    #: units of the job that waits for them; None: none did when one looked last
    waiting: float | None = None
    #: when they may be there: of no use to ask before that
    again_at: float = -math.inf
    #: when to look again for the sake of this need
    look_at: float = -math.inf
    #: what else the job that waits lacked when it was given all of this, which it therefore did not use
    beside: frozenset[str] = frozenset()

    def wanted(self, jobs: int, burst: float) -> float:
        """Return how much to take for so many jobs: of no use to take for more than one where none waits."""
        if self.waiting is None:
            return min(self.units, burst)
        return max(self.waiting, min(self.waiting * jobs, burst))

    def in_doubt(self, burst: float) -> bool:
        """Whether it would be left in debt for a job that probably lacks something else."""
        return bool(self.beside) and self.waiting is not None and self.waiting > burst

    def is_met(self, level: Level, rate: Rate | None) -> bool:
        """Whether a bucket at a level has what is waited for."""
        if self.waiting is None or rate is None:
            return True
        return not level.closed and level.units >= min(self.waiting, rate.burst)

    def note_asked(self, now: float, lacking: float | None, *, spared: bool) -> None:
        """Take in that it was asked for; `lacking`: seconds until there may be what was not there for who waits."""
        self.look_at = now + LEAST_SECONDS
        if lacking is not None:
            self.again_at = self.look_at = now + lacking
        if not spared:
            self.beside = frozenset()

    def learn(self, name: str, admitted: Admitted, granted: float, now: float) -> None:
        """Take in what an admission told that was granted so much."""
        waiting, used = admitted.short.get(name), name in admitted.spent
        if used or waiting is not None:
            self.seen_at = now
        if waiting is not None:
            self.units = max(waiting, 0.9 * self.units)
        elif self.waiting is not None and not used and admitted.short and granted >= self.waiting:
            # Who waits for it lacks something else as well, and will need all of both at once.
            self.beside = frozenset(admitted.short)
            return
        if waiting is None or self.waiting is None or not math.isclose(self.waiting, waiting):
            self.again_at = -math.inf
            self.look_at = min(self.look_at, now + LEAST_SECONDS)
        self.waiting = waiting


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to take of buckets: `units`, but nothing of one that has less than its `least`.

    Of those that are `spared` only what is there is taken, for jobs that need less: whoever waits for more lacks
    something else, and a debt would stop everybody else for nothing.
    """

    units: dict[str, float] = field(default_factory=dict)
    least: dict[str, float] = field(default_factory=dict)
    spared: set[str] = field(default_factory=set)

    def ask(self, name: str, need: Need, jobs: int, burst: float) -> None:
        """Want what a need says."""
        self.units[name] = need.wanted(jobs, burst)
        self.least[name] = need.waiting or 0.0

    def spare(self, name: str, level: Level | None) -> None:
        """Want no more of a bucket than is there."""
        self.spared.add(name)
        if level is not None and level.units > 0:
            self.units[name] = level.units

    async def take_from(self, limiter: Limiter) -> Taken:
        """Take it, of each bucket by itself."""
        return await limiter.take(self.units, some=True, least=self.least)

    def lacks(self, name: str, taken: Mapping[str, float]) -> bool:
        """Whether a bucket gave less than was wanted of it."""
        return name not in self.spared and taken.get(name, 0.0) < self.units.get(name, math.inf)
