"""The change to single-call mode that nobody has to ask for: once too many of the last batches were not whole.

Off unless `[details] single_call_at` says otherwise. The change is a job of its own, since it waits until all batches
under way have ended, the one that told of it included. It is made once after each change of the mode by hand, and it
is never taken back here: whoever has mended the cause does that, with `headrace details mode normal`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace import Context
from headrace.apps.details.mode import SINGLE, read_mode, set_mode
from headrace.apps.details.names import DONE_FEED, MODE_FEED
from headrace.feeds import FeedEntry
from headrace.model.backoff import Backoff
from headrace.model.errors import ConflictError

if TYPE_CHECKING:
    from headrace import App
    from headrace.details_settings import DetailSettings

LOG = logging.getLogger("headrace.details")

TRIGGER_TASK, TRIGGER_QUEUE = "details_single_call", "details.trigger"
#: Where it is told that the mode was changed by itself, and why.
TRIGGER_FEED, TRIGGERED = "details.trigger", "triggered"
#: How batches end that were not whole.
MISSED = ("partial", "failed")
#: A change waits for the batches under way, and for a change by hand that is under way.
RETRY = Backoff.exponential(max_attempts=50, base="1s", cap="1m")
TIMEOUT = "1h"
#: Entries of the feed of changes that are looked at for the last one.
_NEWEST = 20


def register_trigger(app: App) -> None:
    """Add the task that changes the mode."""

    @app.task(name=TRIGGER_TASK, queue=TRIGGER_QUEUE, retry=RETRY, timeout=TIMEOUT)
    async def details_single_call(since: int, reason: str, ctx: Context) -> bool:
        """Change the mode to single-call, unless somebody has changed it since; return whether it was changed.

        `since`: number of the change of the mode that was the last one when this was asked for. Run again after a
        death it goes on where it was.
        """
        last = await _last_change(app)
        if last is not None and last.seq > since and last.data["mode"] != SINGLE:
            ctx.log.info("the mode of details was changed by hand meanwhile, so it stays as it is")
            return False
        LOG.warning("details go over to single-call mode: %s; `headrace details mode normal` takes it back", reason)
        await app.feed(TRIGGER_FEED).append(TRIGGERED, {"mode": SINGLE, "reason": reason}, key=str(since))
        await set_mode(app, SINGLE, ctx.progress)
        return True


async def batch_ended(app: App) -> None:
    """Have the mode changed, where the last batches say so; called once a batch is in the feed of those that ended.

    Called again it changes nothing. Raises StoreUnavailableError.
    """
    terms = app.settings.details
    if terms.single_call_at <= 0:
        return
    ended = await _newest(app, terms.single_call_window)
    if not _reason(ended, terms):
        return
    last = await _last_change(app)
    reason = _reason(_behind(ended, last), terms)
    if not reason or await read_mode(app) == SINGLE:
        return
    since = 0 if last is None else last.seq
    try:
        await app.find_task(TRIGGER_TASK).options(key=f"since/{since}").enqueue(since=since, reason=reason)
    except ConflictError:  # another batch asked for it, for a reason of its own
        LOG.debug("the change to single-call mode is under way already")


def _reason(ended: Sequence[FeedEntry], terms: DetailSettings) -> str:
    """Return why the mode is to change, by the entries of the last batches; "" where it is not."""
    missed = sum(entry.data.get("status") in MISSED for entry in ended)
    if len(ended) < terms.single_call_window or missed < terms.single_call_at * len(ended):
        return ""
    limit = f"details.single_call_at is {terms.single_call_at:g}"
    return f"{missed} of the last {len(ended)} batches failed or came out partial, and {limit}"


async def _newest(app: App, count: int) -> list[FeedEntry]:
    feed = app.feed(DONE_FEED)
    return await feed.read(max(0, await feed.end() - count), count)


def _behind(ended: Sequence[FeedEntry], change: FeedEntry | None) -> list[FeedEntry]:
    """Return the batches that ended behind the last change: those before it say nothing of how it is now."""
    return [entry for entry in ended if change is None or entry.time > change.time]


async def _last_change(app: App) -> FeedEntry | None:
    """Return the entry of the last change of the mode, None where there was none."""
    feed = app.feed(MODE_FEED)
    entries = await feed.read(max(0, await feed.end() - _NEWEST), _NEWEST)
    return next((entry for entry in reversed(entries) if entry.type == "mode"), None)
