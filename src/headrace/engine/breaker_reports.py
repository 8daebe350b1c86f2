"""Reports to circuit breakers: gathered while one call is under way, so that they grow with the load.

Not guaranteed: that a report arrives. A breaker then opens later, and a probe that was not heard of is followed by
another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from headrace.model.breaker import BreakerReport
from headrace.ports.admission import Admission

LOG = logging.getLogger("headrace.limits")

#: An attempt waits for its report so long: the end of a probe has to be known before its job is.
WAIT_SECONDS = 1.0
MAX_REPORTS = 500


class BreakerReports:
    """Sends the reports of one worker."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._pending: list[tuple[BreakerReport, asyncio.Future[None]]] = []
        self._sender: asyncio.Task[None] | None = None

    async def send(self, reports: Sequence[BreakerReport]) -> None:
        """Send reports with those of other attempts; return when they are stored, or after a second. Never raises."""
        sent = [asyncio.get_running_loop().create_future() for _ in reports]
        self._pending += zip(reports, sent, strict=True)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all(), name="headrace-breakers")
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(sent, timeout=WAIT_SECONDS)

    async def _send_all(self) -> None:
        try:
            while self._pending:
                part, self._pending = self._pending[:MAX_REPORTS], self._pending[MAX_REPORTS:]
                try:
                    await self._admission.report_calls([report for report, _ in part])
                except Exception as error:
                    LOG.warning("lost %d reports to circuit breakers: %s", len(part), error)
                for _, sent in part:
                    if not sent.done():
                        sent.set_result(None)
        finally:
            self._sender = None
