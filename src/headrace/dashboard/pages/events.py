"""Events: what has not left yet and what never will, who is behind, and what waits for events.

Only the store is asked: how far groups of Kafka are is known to Kafka alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headrace.dashboard.page import Context, Page, View
from headrace.engine.events.redriving import GROUP
from headrace.model.message_log import GroupView
from headrace.ports.message_log import MessageLog

#: Rows of each table.
MOST = 50


async def events(view: View) -> Context:
    """Return the outbox, what is parked in it, groups, and handles that wait."""
    stores, bus = view.app.runtime.stores, view.app.settings.events.bus
    if stores.events is None:
        return {"kept": False}
    info, stats, parked, groups, handles = await asyncio.gather(
        stores.inspect.store_info(),
        stores.events.outbox.outbox_stats(),
        stores.events.outbox.list_parked(limit=MOST + 1),
        _groups(stores.events.log, bus),
        stores.events.handles.list_handles(waiting=True, limit=MOST + 1),
    )
    return {
        "kept": True, "now": info.now or view.now, "bus": bus, "stats": stats, "groups": groups[:MOST],
        "more_groups": len(groups) - MOST,
        "parked": parked[:MOST], "more_parked": len(parked) > MOST, "handles": handles[:MOST],
        "more_handles": len(handles) > MOST, "redrive": GROUP,
    }  # fmt: skip


async def _groups(log: MessageLog, bus: str) -> Sequence[GroupView]:
    """Return the groups that read the store's bus; those furthest behind first."""
    if bus != "store":
        return []
    return sorted(await log.log_groups(), key=lambda group: (-group.backlog, group.name))


PAGES = (Page("events", "/events", events, title="Events", group="System", every=2.0),)
