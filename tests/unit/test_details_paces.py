"""The pace of a model as ended batches told it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace import App
from headrace.apps.details.names import DONE_FEED
from headrace.apps.details.pace import Pace
from headrace.apps.details.paces import Paces


async def tell(app: App, *paces: Pace) -> None:
    """Let batches end that measured these paces."""
    for number, pace in enumerate(paces):
        told = {"pace": pace.to_json(), "base": pace.to_json()}
        await app.feed(DONE_FEED).append("done", told, key=f"{pace.first_token_seconds}/{number}")


async def test_ended_batches_tell_the_pace_also_once_their_feed_has_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes learn what came since they looked; a feed whose entries were all pruned begins with 1 again."""
    monkeypatch.setattr("headrace.apps.details.paces.LOOK_SECONDS", 0.0)
    async with App("memory://") as app:
        paces = Paces(app)
        assert (await paces.current()).now.samples == 0
        await tell(app, *[Pace(0.4, 100.0, 60.0, 3)] * 5)
        assert (await paces.current()).now.first_token_seconds == 0.4
        assert await app.runtime.stores.feeds.prune_feeds(older_than=timedelta(0), limit=100) == 5
        await tell(app, *[Pace(2.0, 100.0, 60.0, 3)] * 2)
        assert (await paces.current()).now.first_token_seconds > 1.0
