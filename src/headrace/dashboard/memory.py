"""What pages keep in this process: figures of a while, and answers that are not asked for again at once."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
#: Things that are kept; those that nobody looked at longest go first.
MOST_KEPT = 2_000
#: An answer that took a second is asked for again after so many.
REST = 20.0


@dataclass(slots=True)
class _Answer:
    value: Any = None
    #: when it may be asked for again, by the clock of `Memory`
    until: float = 0.0
    #: when it was asked for
    began: float = -math.inf
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Memory:
    """Keeps things by key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under a key, made where nothing is."""
        found: T = self._kept[key] if key in self._kept else make()
        self._kept[key] = found
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    async def answer(self, key: Hashable, ask: Callable[[], Awaitable[T]], *, seconds: float, renew: bool = False) -> T:
        """Return the answer to a question, at most so many seconds old, or twenty times as old as it took to get.

        `renew`: an answer that was asked for from now on, which is kept.

        Whoever asks while it is being asked waits for the same answer. So a question costs the store a bounded part of
        its time, however large it is and however many look.
        """
        known, came = self.kept(("answer", key), _Answer), self._clock()
        async with known.asking:
            if known.began <= came if renew else self._clock() >= known.until:
                began = self._clock()
                known.value = await ask()
                ended = self._clock()
                known.began, known.until = began, ended + max(seconds, REST * (ended - began))
        answer: T = known.value
        return answer

    def last(self, key: Hashable) -> Any:
        """Return the last answer to a question, however old; None where none is kept."""
        known = self._kept.get(("answer", key))
        return None if known is None else known.value

    def due(self, key: Hashable) -> float:
        """Return when a question may be asked again, by the clock; 0 for one that was never answered."""
        known = self._kept.get(("answer", key))
        return 0.0 if known is None else known.until
