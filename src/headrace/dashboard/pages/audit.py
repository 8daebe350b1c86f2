"""Audit: who did what, and when."""

from __future__ import annotations

from headrace.dashboard.asking import ROWS, place
from headrace.dashboard.page import Context, Page, View
from headrace.engine.audit import action_document
from headrace.model.api_token import Scope
from headrace.model.places import encode_place

#: What `who` and `operation` may be at most: longer names there are not.
MOST_NAME = 500


async def audit(view: View) -> Context:
    """Return the newest actions of those that are asked for."""
    wanted = {name: view.query.get(name, "").strip()[:MOST_NAME] for name in ("who", "operation")}
    stores = view.app.runtime.stores
    found = await stores.audit.list_actions(
        before=place(view), limit=ROWS + 1, who=wanted["who"] or None, operation=wanted["operation"] or None
    )
    shown = found[:ROWS]
    return {
        "rows": [(action, action_document(action)) for action in shown], "wanted": wanted,
        "next": encode_place(shown[-1].place) if len(found) > ROWS else None, "later": "cursor" in view.query,
        "noting": view.app.settings.service.audit,
    }  # fmt: skip


PAGES = (
    Page(
        "audit", "/audit", audit, title="Audit", group="System", scope=Scope.OPERATE, every=3.0,
        query=frozenset({"who", "operation", "cursor"}),
    ),
)  # fmt: skip
