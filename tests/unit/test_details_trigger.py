"""The change to single-call mode that batches which were not whole bring about."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from headrace import App, Backoff
from headrace.apps.details import trigger
from headrace.apps.details.desk import register
from headrace.apps.details.mode import NORMAL, SINGLE, read_mode, set_mode
from headrace.apps.details.names import DONE_FEED, INTAKE_QUEUE
from headrace.apps.details.trigger import TRIGGER_FEED, TRIGGER_QUEUE, TRIGGER_TASK, batch_ended
from headrace.details_settings import DetailSettings
from headrace.model_settings import ModelSettings
from tests.unit.engine_app import QUICK

STATUS = {"c": "completed", "p": "partial", "f": "failed"}


@asynccontextmanager
async def details_app(*, worker: bool = False, at: float = 0.5, window: int = 4) -> AsyncIterator[App]:
    """Open an app whose details go over to single-call mode at a share of the last batches."""
    model = ModelSettings(model="nobody", base_url="http://127.0.0.1:9/v1", api_key="none")
    terms = DetailSettings(single_call_at=at, single_call_window=window)
    app = App(settings=replace(QUICK, llm=model, details=terms))
    register(app)
    async with app.worker() if worker else app:
        yield app


async def end(app: App, statuses: str) -> None:
    """Let batches end, `c`: completed, `p`: partial, `f`: failed, as their coordinators do."""
    for letter in statuses:
        await app.feed(DONE_FEED).append("done", {"status": STATUS[letter], "type": "skill"})
        await batch_ended(app)


async def changes(app: App) -> int:
    """Return how many changes of the mode were asked for."""
    return len(await app.runtime.stores.inspect.list_jobs(queue=TRIGGER_QUEUE))


@pytest.mark.parametrize(
    ("ended", "at", "count"),
    [
        ("ccfp", 0.5, 1),
        ("fffccccp", 0.5, 1),  # three of the first four
        ("cccp", 0.5, 0),
        ("fff", 0.5, 0),  # too few to tell
        ("cfcccfcc", 0.5, 0),  # never two of four in a row
        ("cccp", 0.25, 1),
        ("fffp", 1.0, 1),
        ("fffc", 1.0, 0),
        ("ffffffff", 0.0, 0),  # never, which is the default
        ("ffffpppp", 0.5, 1),  # every further one asks for the same
    ],
)
async def test_the_share_of_the_last_batches_decides(ended: str, at: float, count: int) -> None:
    """At the share of a whole window the change is asked for, once; below it is not."""
    async with details_app(at=at) as app:
        await end(app, ended)
        assert await changes(app) == count


async def test_told_again_it_changes_nothing() -> None:
    """A coordinator that runs again behind a crash, and others that end at once, ask for the same change."""
    async with details_app() as app:
        await end(app, "ccff")
        await batch_ended(app)
        await end(app, "f")
        assert await changes(app) == 1


async def test_the_change_says_why_and_is_not_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    """The log and a feed have the reason; good batches behind it leave the mode as it is."""
    async with details_app(worker=True) as app:
        with caplog.at_level(logging.WARNING, "headrace.details"):
            await end(app, "ccff")
            [job] = await app.runtime.stores.inspect.list_jobs(queue=TRIGGER_QUEUE)
            assert await app.job(job.id).result(timeout=10)
        assert await read_mode(app) == SINGLE
        assert not (await app.queue_state(INTAKE_QUEUE)).paused
        [entry] = await app.feed(TRIGGER_FEED).read()
        assert entry.data == {
            "mode": SINGLE,
            "reason": "2 of the last 4 batches failed or came out partial, and details.single_call_at is 0.5",
        }
        assert entry.data["reason"] in caplog.text and "headrace details mode normal" in caplog.text
        await end(app, "ccccffff")
        assert await read_mode(app) == SINGLE
        assert await changes(app) == 1


async def test_a_change_that_is_cut_off_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job runs again: requests do not wait for a change that nobody makes."""
    monkeypatch.setattr(trigger, "RETRY", Backoff.fixed("1ms", max_attempts=3))
    died = list[str]()

    async def dying(app: App, mode: str, progress: Callable[[str], None]) -> str:
        if not died:
            died.append(mode)
            await app.pause(INTAKE_QUEUE, reason="the mode of details changes to single-call", force=True)
            raise ConnectionError("as planned: cut off while nothing begins")
        return await set_mode(app, mode, progress)

    monkeypatch.setattr(trigger, "set_mode", dying)
    async with details_app(worker=True) as app:
        await end(app, "ccff")
        [job] = await app.runtime.stores.inspect.list_jobs(queue=TRIGGER_QUEUE)
        assert await app.job(job.id).result(timeout=10)
        assert died and await read_mode(app) == SINGLE
        assert not (await app.queue_state(INTAKE_QUEUE)).paused
        assert len(await app.feed(TRIGGER_FEED).read()) == 1


async def test_batches_before_a_change_by_hand_do_not_count() -> None:
    """Whoever took the mode back has a whole window before it changes again."""
    async with details_app(worker=True) as app:
        await set_mode(app, SINGLE)
        await end(app, "ffff")
        await set_mode(app, NORMAL)
        await end(app, "fff")
        assert await changes(app) == 0
        await end(app, "f")
        assert await changes(app) == 1


async def test_a_change_that_comes_late_leaves_what_was_set_by_hand() -> None:
    """The job that waited for a worker meanwhile does not undo what somebody decided since; run again, it goes on."""
    async with details_app(worker=True) as app:
        change = app.find_task(TRIGGER_TASK)
        assert await (await change.enqueue(since=0, reason="once")).result(timeout=10)
        assert await (await change.enqueue(since=0, reason="run again")).result(timeout=10)
        assert len(await app.feed(TRIGGER_FEED).read()) == 1
        await set_mode(app, NORMAL)
        assert not await (await change.enqueue(since=0, reason="late")).result(timeout=10)
        assert await read_mode(app) == NORMAL
