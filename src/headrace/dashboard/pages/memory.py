"""Memory: how its work goes and who was remembered of late; of one user the profile, events, search and context."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.app import App
from headrace.apps.memory.opening import makes_memory
from headrace.dashboard.page import Context, Page, View
from headrace.dashboard.words import word
from headrace.model.errors import ConfigError, InvalidInputError, NotAllowedError, NotFoundError

if TYPE_CHECKING:
    from headrace.apps.memory.data.flushes import Flush
    from headrace.apps.memory.memory import Memory

#: Flushes from which it is known who was remembered of late, and users of them that are shown.
LOOKED_AT, USERS = 100, 50
#: Of one user: entries of the profile, events of a page, lines that are found, flushes.
ENTRIES, EVENTS, FOUND, FLUSHES = 100, 15, 20, 10
#: Tokens of a context unless told, and at most on a page.
BUDGET, MOST_BUDGET = 500, 4_000


#: Why a buffer is flushed.
REASONS = {
    "full": word("the buffer was full"), "idle": word("nothing came for long"),
    "explicit": word("somebody asked for it"),
}  # fmt: skip


def _memory() -> Memory:
    """Return memory: its app is opened by whoever imports it, so only those do who need it."""
    from headrace.apps.memory.memory import Memory

    return Memory()


@dataclass(frozen=True, slots=True)
class Recent:
    """A user of whom something was flushed of late."""

    user_id: str
    newest: Flush
    #: of the flushes that were looked at
    flushes: int
    failed: int


async def memory(view: View) -> Context:
    """Return figures of memory, and the users of its newest flushes."""
    wanted = view.query.get("user", "").strip()
    try:
        figures, flushes, found = await asyncio.gather(
            view.answer("memory figures", partial(_figures, view.app), seconds=5),
            _memory().flushes(limit=LOOKED_AT),
            _known("" if view.live else wanted),
        )
    except (ConfigError, NotAllowedError) as error:
        return {"trouble": str(error), "wanted": wanted, "found": None, "figures": None, "recent": []}
    return {
        "trouble": "", "wanted": wanted, "found": found, "figures": figures, "recent": recent_of(flushes)[:USERS],
        "now": figures.at,
    }  # fmt: skip


async def _figures(app: App) -> Any:
    from headrace.apps.memory.figures import memory_figures
    from headrace.apps.memory.means import TABLES

    return await memory_figures(app, TABLES)


async def _known(user_id: str) -> str | None:
    """Return the id of a user who is known."""
    try:
        return (await _memory().user(user_id)).id if user_id else None
    except (NotFoundError, InvalidInputError):
        return None


def recent_of(flushes: Sequence[Flush]) -> list[Recent]:
    """Return who has these flushes, which are newest first, in their order."""
    by_user: dict[str, list[Flush]] = {}
    for flush in flushes:
        by_user.setdefault(flush.user_id, []).append(flush)
    return [
        Recent(user_id, own[0], len(own), sum(flush.state == "failed" for flush in own))
        for user_id, own in by_user.items()
    ]


async def memory_user(view: View) -> Context:
    """Return what is known of a user. Raises NotFoundError."""
    lent, user_id = _memory(), view.params["user_id"]
    query, budget, before = view.query.get("q", "").strip(), _budget(view), _before(view)
    user = await lent.user(user_id)
    profile, events, buffer, flushes = await asyncio.gather(
        lent.profile(user_id),
        lent.events(user_id, limit=EVENTS + 1, before=before),
        lent.buffer(user_id),
        lent.flushes(user_id, limit=FLUSHES),
    )
    found, context = await _asked(view, query, budget)
    return {
        "user": user, "reasons": REASONS, "profile": profile[:ENTRIES], "left_out": len(profile) - ENTRIES,
        "events": events[:EVENTS], "older": events[EVENTS - 1].created_at if len(events) > EVENTS else None,
        "later": before is not None, "buffer": buffer, "flushes": flushes,
        "failed": sum(flush.state == "failed" for flush in flushes),
        "query": query, "found": found, "budget": budget, "context": context,
    }  # fmt: skip


async def _asked(view: View, query: str, budget: int) -> tuple[Sequence[Any], str]:
    """Return what is found and what a prompt is told; nothing of it is live."""
    if view.live:
        return (), ""
    lent, user_id = _memory(), view.params["user_id"]
    found = await lent.search(user_id, query, limit=FOUND) if query else ()
    return found, await lent.context(user_id, budget=budget, query=query or None)


def _budget(view: View) -> int:
    text = view.query.get("budget", "") or str(BUDGET)
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MOST_BUDGET):
        raise InvalidInputError("budget", f"must be a number of tokens from 1 to {MOST_BUDGET:,}", text)
    return int(text)


def _before(view: View) -> datetime | None:
    """Return the instant before which events are shown. Raises InvalidInputError."""
    text = view.query.get("before", "")
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        moment = datetime.min
    if moment is not None and moment.tzinfo is None:
        raise InvalidInputError("before", "must be an instant with its offset", text)
    return moment


PAGES = (
    Page(
        "memory", "/memory", memory, title="Memory", group="Applications", query=frozenset({"user"}), every=5.0,
        belongs=makes_memory,
    ),
    Page(
        "memory_user", "/memory/{user_id}", memory_user, every=5.0, belongs=makes_memory,
        query=frozenset({"q", "budget", "before"}),
    ),
)  # fmt: skip
