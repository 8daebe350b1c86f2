"""Limits: caps, rates, breakers and fair shares as they stand, and changing them while workers run."""

from __future__ import annotations

from headrace.dashboard.page import Context, Page, View
from headrace.limit_changes import free_in, read_limits
from headrace.model.admission import RateView

#: Rows of each table, and fair keys that are looked through.
MOST, MOST_SHARES = 100, 1_000


async def limits(view: View) -> Context:
    """Return the limits, or those whose name holds what is asked for."""
    wanted = view.query.get("name", "").strip()
    # Of very many fair keys the first are looked through; whoever knows a name can set its weight all the same.
    found, now = await view.answer("limits", lambda: read_limits(view.app, most_shares=MOST_SHARES), seconds=0.5)
    caps = [cap for cap in found.caps if wanted in cap.key]
    rates = [rate for rate in found.rates if wanted in rate.name]
    breakers = [one for one in found.breakers if wanted in one.key]
    shares = [one for one in found.shares if wanted in one.fair_key or wanted in one.queue]
    return {
        "now": now, "wanted": wanted, "caps": caps[:MOST], "breakers": breakers[:MOST], "shares": shares[:MOST],
        "rates": [(rate, free_in(rate, now)) for rate in rates[:MOST]], "away": any(_away(rate) for rate in rates),
        "left_out": sum(max(len(rows) - MOST, 0) for rows in (caps, rates, breakers, shares)),
    }  # fmt: skip


def _away(rate: RateView) -> bool:
    """Whether the server that counts a rate does not answer."""
    return rate.level is None


PAGES = (Page("limits", "/limits", limits, title="Limits", group="System", query=frozenset({"name"})),)
