"""Long listings, read by threads in slices: neither the event loop nor the memory bears the whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

_SLICE = 500


async def in_slices(begin: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
    """Yield what `begin()` does, which is called and read in threads, never in two at once."""
    items = await asyncio.to_thread(begin)
    while some := await asyncio.to_thread(lambda: list(islice(items, _SLICE))):
        for item in some:
            yield item
