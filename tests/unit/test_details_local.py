"""`headrace details generate --webhook` in this process: the message is tried before the process ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.apps.details.commands import local
from headrace.apps.details.commands.local import LocalDesk
from headrace.apps.details.desk import register
from headrace.webhooks import delivery
from tests.unit.webhook_site import OK, receiver, sending_app, status


@pytest.mark.parametrize(
    ("answer", "works", "is_told"), [(OK, True, True), (status(500), True, False), (OK, False, False)]
)
async def test_the_first_try_of_a_webhook_is_waited_for(
    answer: bytes, works: bool, is_told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[Any]
) -> None:
    """It ends well, or it is said that others go on with it; a message of another batch is none of this one's."""
    monkeypatch.setattr(local, "TELL_SECONDS", 20.0 if works else 0.0)
    monkeypatch.setattr(local, "LOOK_SECONDS", 0.01)
    app = sending_app()
    desk = LocalDesk(register(app))
    async with receiver(answer) as site, app.worker(queues=["webhooks"]) if works else app:
        for batch in ("other", "mine"):
            await delivery(app, site.url, "details.completed", {}, key=f"details/{batch}")
        await desk.until_told("mine")
        assert bool(site.came) == works
    written = capsys.readouterr()
    assert written.out == ""
    assert ("the webhook was not told; a worker tries again: `headrace worker" in written.err) != is_told


async def test_a_batch_that_is_cancelled_ends_for_who_watches_it() -> None:
    """Here as over HTTP: what there is of it stays, and nothing more is waited for."""
    app = sending_app()
    desk = LocalDesk(register(app))
    async with app, asyncio.timeout(10):
        batch = (await desk.submit({"type": "skill", "count": 3}, "k"))["batch_id"]
        assert (await desk.cancel(batch))["status"] == "cancelled"
        assert [told.type async for told in desk.follow(batch)] == ["completed"]
