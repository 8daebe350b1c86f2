"""Asking the store again for about four seconds before a caller hears that it does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.model.errors import StoreUnavailableError

LOG = logging.getLogger("headrace.client")

RETRY_DELAYS = (0.05, 0.2, 0.5, 1.0, 2.0)

T = TypeVar("T")


async def with_retries(attempt: Callable[[bool], Awaitable[T]]) -> T:
    """Call `attempt(retrying)` until the store answers, for about four seconds; the first call is not a retry.

    Safe only for calls that recognise themselves when repeated. Raises StoreUnavailableError in the end.
    """
    for number, delay in enumerate(RETRY_DELAYS):
        try:
            return await attempt(number > 0)
        except StoreUnavailableError as error:
            if not error.transient:
                raise
            LOG.warning("the store did not answer, trying again in %.2f s: %s", delay, error)
            await asyncio.sleep(delay)
    return await attempt(True)
