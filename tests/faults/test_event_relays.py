"""Relays that freeze beyond their term or die between sending and marking: order at first sight, and effects once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import App
from headrace.wiring import migrate
from tests.backends.server import PostgresServer
from tests.faults.event_app import TABLES
from tests.faults.event_line import APP
from tests.faults.event_relays import BATCH, Relays
from tests.faults.failpoints import Action, Failpoint
from tests.freezing import until_frozen
from tests.waiting import wait_until

pytestmark = pytest.mark.faults

KEYS = 10
#: A batch was read and not sent, or sent and not marked.
READ, SENT = "Outbox.waiting_events:after", "Outbox.mark_published:before"


@pytest.fixture
def relays(tmp_path: Path) -> Iterator[Relays]:
    """A store of its own, without a process yet."""
    with ExitStack() as stack:
        server = PostgresServer()
        stack.callback(server.remove)
        environment = {
            "HEADRACE_URL": server.dsn, "HEADRACE_DIRECTORY": str(tmp_path), "HEADRACE_EVENTS_RELAY_BATCH": str(BATCH),
        }  # fmt: skip
        relays = Relays(server, tmp_path, environment)
        stack.callback(relays.end)
        yield relays


async def prepared(relays: Relays) -> App:
    """Return an app on a store that is ready, and start what has the effects."""
    await migrate(relays.settings)
    for statement in filter(str.strip, TABLES.split(";")):
        await relays.ask(statement)
    relays.start("agent", APP, "world_builder")
    return App(settings=relays.settings)


async def check(relays: Relays, per_key: int) -> int:
    """Wait until every event had its effect; check order and effects; return how many messages came again."""
    events = KEYS * per_key

    async def all_there() -> bool:
        [[done]] = await relays.ask("SELECT count(DISTINCT event_id) FROM effects")
        [[waiting]] = await relays.ask("SELECT count(*) FROM headrace.event_outbox WHERE topic LIKE '%CampaignOrder'")
        return bool(done >= events and not waiting)

    await wait_until(all_there, timedelta(seconds=60), message="every effect")
    came = await relays.came()
    for key, wanted in relays.written.items():
        # The answers of the agent lie between them.
        assert [one for one in dict.fromkeys(came[key]) if one in set(wanted)] == wanted, key
        rows = await relays.ask(f"SELECT seq FROM effects WHERE key = '{key}' ORDER BY n")
        assert [row["seq"] for row in rows] == list(range(per_key)), key
    return sum(len(ids) - len(set(ids)) for ids in came.values())


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "place", [pytest.param(READ, id="with a batch in hand", marks=pytest.mark.slow), pytest.param(SENT, id="sent")]
)
@pytest.mark.parametrize("waits", [False, pytest.param(True, marks=pytest.mark.slow, id="for ten seconds")])
async def test_a_relay_that_was_frozen_beyond_its_term_brings_nothing_into_disorder(
    relays: Relays, place: str, waits: bool
) -> None:
    """Another one leads and sends on; what the first sends again, when it goes on, came before."""
    async with await prepared(relays) as app:
        await relays.emit(app, KEYS, range(20))
        frozen = relays.start("relay", point=Failpoint(place, Action.STOP, 3))
        until_frozen(frozen.pid)
        await relays.emit(app, KEYS, range(20, 40))
        if not waits:
            await relays.end_term()
        relays.start("relay")

        async def is_ahead() -> bool:
            return sum(map(len, (await relays.came()).values())) >= KEYS * 30

        await wait_until(is_ahead, timedelta(seconds=40), message="the other relay to send")
        frozen.send_signal(signal.SIGCONT)
        await relays.emit(app, KEYS, range(40, 60))
        again = await check(relays, 60)
    assert frozen.poll() is None
    # What was sent and not marked came again; under a term that is over nothing is sent, so of a batch in hand nothing.
    assert (0 < again <= 3 * BATCH) if place == SENT else again == 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
async def test_a_relay_that_dies_between_sending_and_marking_sends_at_most_its_batch_again(
    relays: Relays, kills: int
) -> None:
    """Every death costs one batch that comes twice; its effects are there once."""
    per_key = 5 * kills + 10
    async with await prepared(relays) as app:
        await relays.emit(app, KEYS, range(per_key))
        for turn in range(kills):
            dying = relays.start("relay", point=Failpoint(SENT, Action.KILL, 1 + turn % 2))
            await wait_until(lambda dying=dying: dying.poll() is not None, message="a relay that dies")
            assert dying.poll() == -signal.SIGKILL
            await relays.end_term()
        relays.start("relay")
        again = await check(relays, per_key)
    assert again == kills * BATCH
