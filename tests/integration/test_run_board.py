"""Hot state of runs on a Redis server beside PostgreSQL: dropped at any time, and built anew from the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from headrace import App, chain, map_, wait_signal
from headrace.engine.workflows.boards import run_status, stored_status
from headrace.model.ids import uuid7
from headrace.model.run import NodeState, RunChange, RunState, RunStatus
from headrace.queue_settings import LimitsSettings
from headrace.settings import QueueSettings, Settings
from headrace.stores.redis import make_run_board
from headrace.stores.redis.run_board import RedisRunBoard
from headrace.wiring import migrate
from tests.backends.postgres import empty_schema
from tests.backends.server import shared_server
from tests.backends.valkey import ValkeyServer
from tests.waiting import wait_until

RUNNING, PARKED, SUCCESS = NodeState.RUNNING, NodeState.PARKED, NodeState.SUCCESS


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """A server that keeps nothing on disk."""
    made = ValkeyServer(port=True, appendonly="no")
    yield made
    made.remove()


@pytest.fixture
async def board(server: ValkeyServer) -> AsyncIterator[RedisRunBoard]:
    """An empty board."""
    made = make_run_board(server.url, prefix=f"t{uuid7().hex}")
    yield made
    await made.close()


async def test_a_status_comes_back_as_it_was_put(board: RedisRunBoard) -> None:
    """With its counts, and who waits for a signal."""
    run, status = uuid7(), RunStatus(RunState.RUNNING, {"a": SUCCESS, "b": PARKED}, {"b": "go"})
    assert await board.read_status(run) is None
    assert await board.read_counts(run) is None
    await board.put_status(run, status)
    assert await board.read_status(run) == status
    assert await board.read_counts(run) == status.counts
    assert await board.waiting_for("go") == {run: ["b"]}


async def test_changes_are_noted_of_runs_that_the_board_has_and_final_states_stay(board: RedisRunBoard) -> None:
    """What comes late changes nothing that is final."""
    run, other = uuid7(), uuid7()
    await board.put_status(run, RunStatus(RunState.RUNNING, {"a": PARKED}, {"a": "go"}))
    await board.note_changes([RunChange(run, {"a": RUNNING}), RunChange(other, {"a": RUNNING})])
    assert await board.waiting_for("go") == {}
    await board.note_changes([RunChange(run, {"a": SUCCESS, "b": RUNNING}, state=RunState.SUCCEEDED)])
    await board.note_changes([RunChange(run, {"a": RUNNING}, state=RunState.RUNNING)])
    await board.put_status(run, RunStatus(RunState.RUNNING, {"a": RUNNING}, {}))
    assert await board.read_status(run) == RunStatus(RunState.SUCCEEDED, {"a": SUCCESS, "b": RUNNING}, {})
    assert await board.read_counts(run) == {SUCCESS: 1, RUNNING: 1}
    assert await board.read_status(other) is None


@pytest.fixture
async def app(server: ValkeyServer, tmp_path: Path) -> AsyncIterator[App]:
    """An app on PostgreSQL with hot state beside it, that works."""
    async with empty_schema() as schema:
        queue = QueueSettings(url=shared_server().dsn, schema=schema, stream_prefix=f"t{uuid7().hex}")
        settings = Settings(queue=queue, limits=LimitsSettings(url=server.url), directory=tmp_path)
        await migrate(settings)
        app = App(settings=settings)

        @app.task
        async def double(number: int) -> int:
            return 2 * number

        tags = ("schedule:node_level",)
        app.workflow("flow", chain(map_(double.s()), wait_signal("go"), double.si(4)), tags=tags)
        async with app.worker():
            yield app


async def test_what_is_dropped_is_built_anew_and_says_what_the_store_says(app: App, server: ValkeyServer) -> None:
    """All of the server is emptied in the middle of a run."""
    means = app.runtime.means
    assert means.board is not None
    run = await app.start("flow", list(range(20)))
    await run.progress()  # from here on the board has the run

    async def waits() -> bool:
        return (await run.progress()).counts.get(PARKED) == 1

    await wait_until(waits, message="the run to wait")
    assert await means.board.waiting_for("go") == {run.id: ["wait-go"]} or await _waiting(app, run.id)
    await _both_agree(app, run.id)
    assert await run.counts() == (await run.progress()).counts
    server.call("FLUSHALL")
    assert (await run.counts())[PARKED] == 1
    server.call("FLUSHALL")
    assert await means.board.read_status(run.id) is None
    await _both_agree(app, run.id)
    assert (await run.progress()).counts[PARKED] == 1
    await app.signal("go")
    assert await run.result("20s") == 8

    async def over() -> bool:
        return (await run.progress()).state is RunState.SUCCEEDED

    await wait_until(over, message="the board to know of the end")
    await _both_agree(app, run.id)


async def _waiting(app: App, run_id: UUID) -> bool:
    board = app.runtime.means.board
    assert board is not None
    return run_id in await board.waiting_for("go")


async def _both_agree(app: App, run_id: UUID) -> None:
    means = app.runtime.means
    view = await means.stores.runs.get_run(run_id)
    assert view is not None

    async def agree() -> bool:
        status = await run_status(means.stores.runs, means.board, view)
        stored = await stored_status(means.stores.runs, view)
        return (status.nodes, status.waits) == (stored.nodes, stored.waits)

    await wait_until(agree, message="board and store to agree")


async def test_a_server_that_is_away_leaves_the_store_to_answer(app: App) -> None:
    """Nothing rests on the board."""
    from headrace.engine.workflows.boards import run_status as ask

    gone = make_run_board("redis://127.0.0.1:1/0")
    run = await app.start("flow", [])
    view = await run.view()
    async with asyncio.timeout(20):
        status = await ask(app.runtime.stores.runs, gone, view)
    assert status.state is view.state
    await gone.close()
