"""The calls in flight of a pool, over all processes: each slot is a bucket that its holder keeps empty.

A slot that is held fills again by itself: its holder takes out what flows in, and after the holder's death it is full,
and so free, within LEASE_SECONDS. Nobody has to count, and nothing leaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from headrace.model.limits import Level, Rate

#: A slot of a dead process is free after so long.
LEASE_SECONDS = 30.0
#: So often a holder takes out what has flowed in.
RENEW_SECONDS = 5.0
#: A slot that was held for so long goes back before its next call: other processes have their turn.
HOLD_SECONDS = 1.0
#: More slots than this are leased in bundles.
MOST_BUCKETS = 64


class Slots:
    """Slots that this process holds; without a limit there is always room."""

    def __init__(self, limit: int | None, random: Random) -> None:
        self.limit, self._random = limit, random
        self._sizes = _bundles(limit) if limit is not None else {}
        #: bundle → time of the loop at which it was leased
        self._held: dict[str, float] = {}
        self._used = 0
        self._renewed_at = 0.0

    @property
    def rates(self) -> Mapping[str, Rate]:
        """Return the buckets, by name."""
        return {name: Rate(size / LEASE_SECONDS, float(size)) for name, size in self._sizes.items()}

    @property
    def held(self) -> int:
        """For how many calls there is room, used or not."""
        return sum(self._sizes.get(name, 0) for name in self._held)

    @property
    def free(self) -> bool:
        """Whether one more call may be sent."""
        return self.limit is None or self._used < self.held

    def use(self) -> None:
        """Send a call."""
        self._used += 1

    def end(self) -> None:
        """End a call."""
        self._used -= 1

    def lack(self, waiting: int) -> int:
        """Return how many more calls could be sent if there was room."""
        return 0 if self.limit is None else max(0, waiting - (self.held - self._used))

    def choose(self, levels: Mapping[str, Level], calls: int) -> dict[str, float]:
        """Return buckets to take, of those that are free, for so many calls."""
        free = [
            name
            for name, size in self._sizes.items()
            if name not in self._held and name in levels and levels[name].units >= size - 1e-6
        ]
        self._random.shuffle(free)
        chosen: dict[str, float] = {}
        for name in free:
            if sum(chosen.values()) >= calls:
                break
            chosen[name] = float(self._sizes[name])
        return chosen

    def lease(self, taken: Mapping[str, float], now: float) -> None:
        """Hold what the limiter gave."""
        if not self._held:
            self._renewed_at = now
        self._held.update({name: now for name, units in taken.items() if units > 0})

    def spare(self, now: float, *, idle: bool) -> dict[str, float]:
        """Return what goes back: everything unused when `idle`, else what was held for long."""
        spare: dict[str, float] = {}
        for name, since in sorted(self._held.items(), key=lambda one: one[1]):
            size = self._sizes.get(name, 0)
            if self.held - self._used >= size and (idle or now - since > HOLD_SECONDS):
                del self._held[name]
                spare[name] = float(size)
        return spare

    def rent(self, now: float) -> dict[str, float]:
        """Return what has to be taken out of the slots that are held; nothing if that was done lately."""
        # By the same sum as `renews_in`: by another one it may be due there and not here, and be looked at without end.
        if self.renews_in(now) != 0.0:
            return {}
        elapsed, self._renewed_at = now - self._renewed_at, now
        return {name: -elapsed * self._sizes[name] / LEASE_SECONDS for name in self._held if name in self._sizes}

    def renews_in(self, now: float) -> float | None:
        """Return the seconds until rent is due; None: nothing is held."""
        return max(0.0, self._renewed_at + RENEW_SECONDS - now) if self._held else None

    def relimit(self, limit: int | None) -> dict[str, float]:
        """Heed another limit; return what was held under the old one. Calls in flight go on."""
        dropped = {name: float(self._sizes[name]) for name in self._held}
        self.limit, self._held = limit, {}
        self._sizes = _bundles(limit) if limit is not None else {}
        return dropped


def _bundles(limit: int) -> dict[str, int]:
    """Return the size of each bundle, by a name that says how many there are: another limit has other bundles."""
    count = min(limit, MOST_BUCKETS)
    return {f"slot:{limit}:{number}": (limit + number) // count for number in range(count)}
