"""The clock of this machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime

#: Unlike CLOCK_MONOTONIC it runs on while the machine is suspended, and so does a lease. Linux only.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """Answers `ports.clock.Clock` from the operating system.

    >>> SystemClock().now().tzinfo is UTC
    True
    """

    def now(self) -> datetime:
        """Return the wall clock, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back and that count a suspended machine."""
        return time.clock_gettime(_BOOT_CLOCK)
