"""How many wrong credentials came from each address lately."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable

#: So many within so many seconds; then whoever tries on waits until those are over.
MOST, SECONDS = 100, 60.0
#: Addresses that are remembered: beyond them the one that began first is forgotten.
MOST_ADDRESSES = 10_000


class Attempts:
    """Counts wrong credentials by address, in windows of a minute each.

    >>> attempts = Attempts(most=1)
    >>> attempts.note("192.0.2.7")
    >>> attempts.wait("192.0.2.7") > 0, attempts.wait("192.0.2.8")
    (True, 0)
    """

    def __init__(self, *, most: int = MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        #: When the window of an address began, and what was counted in it; the oldest window first.
        self._windows: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._windows)

    def note(self, address: str, about: str = "") -> None:
        """Count a wrong credential; `about`: what it was for, where that is counted on its own."""
        place, now = (place_of(address), about), self._clock()
        began, count = self._windows.get(place, (now, 0))
        if now - began >= SECONDS:
            began, count = now, 0
            del self._windows[place]
        self._windows[place] = began, count + 1
        if len(self._windows) > MOST_ADDRESSES:
            self._windows.popitem(last=False)

    def wait(self, address: str, about: str = "") -> int:
        """Return for how many seconds an address may try no further; 0: it may."""
        began, count = self._windows.get((place_of(address), about), (0.0, 0))
        left = began + SECONDS - self._clock()
        return math.ceil(left) if count >= self._most and left > 0 else 0


def place_of(address: str) -> str:
    """Return what is counted together: an address, or of IPv6 what one customer of a provider is given.

    >>> place_of("192.0.2.7"), place_of("2001:db8::1:2"), place_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), 64), strict=False))
