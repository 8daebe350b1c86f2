"""Whether the model is away: then what is left is not asked, and the report comes without it, in time.

Retries are for a model that stumbles. One that is down would be asked by each job in turn, until all have used up
their tries, and one that hangs would hold each of them for a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace import HeadraceError

#: The model is away once so many calls in a row failed, over so many seconds.
FAILURES, PATIENCE = 5, 15.0
#: While it is away one call in so many seconds is let through, to see whether it still is.
PROBE = 5.0


class ModelAwayError(HeadraceError):
    """The model does not answer. Run `headrace report resume` when it does: only what is missing is asked."""

    code = "model_away"


@dataclass(slots=True)
class ModelWatch:
    """What the calls of one process tell of the model.

    >>> now = 0.0
    >>> watch = ModelWatch(lambda: now)
    >>> for _ in range(5): watch.failed()
    >>> now = 16.0
    >>> watch.check()      # the first is let through, and the next is not
    >>> try: watch.check()
    ... except ModelAwayError: print("away")
    away
    >>> watch.answered(); watch.check()
    """

    clock: Callable[[], float] = time.monotonic
    _failures: int = 0
    _since: float = 0.0
    _probed: float = field(default=-PROBE)

    def check(self) -> None:
        """Raise ModelAwayError where a call would only wait for a model that is away."""
        now = self.clock()
        if self._failures < FAILURES or now - self._since < PATIENCE:
            return
        if now - self._probed < PROBE:
            raise ModelAwayError
        self._probed = now

    def failed(self) -> None:
        """A call failed by no fault of its own."""
        if not self._failures:
            self._since = self.clock()
        self._failures += 1

    def answered(self) -> None:
        """A call was answered, be it rightly or not."""
        self._failures = 0


#: Of this process.
WATCH = ModelWatch()
