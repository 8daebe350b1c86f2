"""Tasks that wait for events on PostgreSQL, fifty at once: results, cancels, tokens and timeouts race for each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.engine.events.callbacks import Callbacks
from headrace.engine.loops.handle_sweeper import HandleSweeper
from headrace.engine.telemetry import Telemetry
from headrace.handles import JobHandle
from headrace.model.envelopes import encode
from headrace.model.envelopes.dead_letters import dead_letter
from headrace.model.errors import ConflictError, HandleExpiredError, JobFailedError, NotFoundError
from headrace.model.event import Event, Message
from headrace.model.resume_handle import HandleState, new_token
from headrace.ports.bus import Delivery
from headrace.settings import QueueSettings, Settings
from headrace.wiring import migrate
from tests.backends.postgres import empty_schema
from tests.backends.server import shared_server

ASKED, MADE = "Shop.Order.Asked", "Shop.Order.Made"
MANY = 50


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    """An app on PostgreSQL that works, with a task that waits for two events and says what it was told."""
    async with empty_schema() as schema:
        settings = Settings(queue=QueueSettings(url=shared_server().dsn, schema=schema), directory=tmp_path)
        await migrate(settings)
        app = App(settings=settings)

        @app.task(name="wait")
        async def wait(number: int, timeout: float) -> list[Any]:
            resumed = await app.wait_for_events(
                f"c-{number}", MADE, timeout=timeout, count=2, request_types=(ASKED,), agents=("packer",)
            )
            return [sorted(event.id for event in resumed.events), [one.event.id for one in resumed.dead]]

        async with app.worker():
            yield app


def made(number: int, part: int) -> Message:
    """Return a result as it lies on the bus."""
    event = Event(MADE, "ShopOrder", f"o-{number}", part, f"c-{number}", id=f"e-{number}-{part}")
    return encode(event, "headrace", "/test", "outbox.event.ShopOrder")


def dead(number: int) -> Message:
    """Return a request that became a dead letter."""
    event = Event(ASKED, "ShopOrder", f"o-{number}", None, f"c-{number}", id=f"r-{number}")
    message = encode(event, "headrace", "/test", "outbox.event.ShopOrder")
    letter = dead_letter(
        message, partition=0, offset=0, agent="packer", kind="x", error="no", attempts=1, suffix=".dlt"
    )
    assert letter.message is not None
    return letter.message


def services(app: App) -> list[Callbacks]:
    """Return two callback services."""
    return [Callbacks(app.event_stores.handles, None, Telemetry(), ".dlt") for _ in range(2)]


async def start(app: App, number: int, timeout: float) -> JobHandle[Any]:
    """Start a task that waits."""
    return await app.find_task("wait").enqueue(number, timeout)


async def test_fifty_waits_at_once_are_told_what_came(app: App) -> None:
    """Before and after they begin, twice each, from two services at once; every second one has lost a request."""
    brought = [(n, made(n, 0)) for n in range(MANY)] + [(n, made(n, 1) if n % 2 else dead(n)) for n in range(MANY)]
    work: list[Coroutine[Any, Any, Any]] = [
        service.take(Delivery(message, 0, 0)) for service in services(app) for _, message in brought
    ]
    jobs: list[JobHandle[Any]] = []

    async def begin(number: int) -> None:
        jobs.append(await start(app, number, 60))

    work += [begin(number) for number in range(MANY)]
    random.Random(1).shuffle(work)
    await asyncio.gather(*work)
    told = sorted(await asyncio.gather(*(job.result(timeout=20) for job in jobs)))
    wanted = [
        [[f"e-{n}-0", f"e-{n}-1"], []] if n % 2 else [[f"e-{n}-0"], [f"r-{n}"]] for n in range(MANY)
    ]  # fmt: skip
    assert told == sorted(wanted)


async def test_every_end_has_one_winner_and_all_are_told(app: App) -> None:
    """The last result, a cancel, a token and the timeout at the same moment, for fifty handles."""
    seconds, tokens = 2.0, [new_token() for _ in range(MANY)]
    for number, token in enumerate(tokens):
        options: dict[str, Any] = {"count": 2, "request_types": [ASKED], "agents": ["packer"], "token": token}
        await app.handles.register(f"c-{number}", MADE, timeout=seconds, **options)
    jobs = [await start(app, number, seconds) for number in range(MANY)]
    first, second = services(app)
    await asyncio.gather(*(first.take(Delivery(made(number, 0), 0, 0)) for number in range(MANY)))
    sweeper = HandleSweeper(app.event_stores.handles, Telemetry(), interval=timedelta(milliseconds=20))
    sweeper.start()

    async def race(number: int) -> None:
        async def use_token() -> None:
            with suppress(ConflictError, HandleExpiredError, NotFoundError):
                await app.handles.resolve(tokens[number], number)

        ends = [second.take(Delivery(made(number, 1), 0, 0)), app.handles.cancel(f"c-{number}"), use_token()]
        random.Random(number).shuffle(ends)
        expires_at = (await app.handles.show(f"c-{number}")).view.expires_at
        await asyncio.sleep(max((expires_at - app.runtime.means.clock.now()).total_seconds(), 0) * (number % 3) / 2)
        await asyncio.gather(*ends)

    await asyncio.gather(*map(race, range(MANY)))
    ends = [await app.handles.show(f"c-{number}") for number in range(MANY)]
    told = [await _told(job) for job in jobs]
    await sweeper.stop()
    assert told == [_winner(end.state, number, end.view.payload) for number, end in enumerate(ends)]
    assert len({end.state for end in ends}) > 1


async def _told(job: JobHandle[Any]) -> Any:
    try:
        return await job.result(timeout=20)
    except JobFailedError as error:
        return next(state for state in HandleState if f"handle_{state}" in str(error))


def _winner(state: HandleState, number: int, payload: str | None) -> Any:
    """Return what a job is told of an end."""
    if state is not HandleState.RESOLVED:
        return state
    parts = (0,) if payload is not None else (0, 1)
    return [[f"e-{number}-{part}" for part in parts], []]
