"""Runs and the workers they run on: stopped in between, without a task, with more entries than one job starts."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from headrace import App, chain, map_
from headrace.engine.workflows.kinds import ENTRIES_AT_ONCE
from headrace.model.run import Level
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

LEVELS = [Level.WORKFLOW, Level.NODE]


@pytest.mark.parametrize("level", LEVELS)
async def test_a_worker_that_stops_moves_nothing_back_to_the_start(level: Level) -> None:
    """What ended stays ended: only the node that ran when the worker stopped runs again."""
    app, calls, gate = quick_app(), Counter[str](), asyncio.Event()

    @app.task
    async def step(text: str, mark: str) -> str:
        calls[mark] += 1
        if mark == "b" and calls[mark] == 1:
            gate.set()
            await asyncio.Event().wait()
        return text + mark

    app.workflow("flow", chain(step.si("", "a"), step.s("b"), step.s("c")), tags=(f"schedule:{level}",))
    async with app:
        async with app.worker(grace="10ms"):
            run = await app.start("flow")
            await gate.wait()
        async with app.worker():
            assert await run.result("10s") == "abc"
    assert calls == {"a": 1, "b": 2, "c": 1}


async def test_a_long_list_is_started_in_parts() -> None:
    """No job holds all entries, and none is lost or comes twice between the parts."""
    app, count = quick_app(), 2 * ENTRIES_AT_ONCE + 3
    seen: Counter[int] = Counter()

    @app.task
    async def note(number: int) -> int:
        seen[number] += 1
        return number

    app.workflow("flow", map_(note.s()), tags=("schedule:node_level",))
    async with app.worker(concurrency=200):
        run = await app.start("flow", list(range(count)))
        assert await run.result("30s") == list(range(count))
    assert set(seen.values()) == {1}
    assert len(seen) == count


async def test_a_task_that_the_worker_does_not_know_is_left_to_another() -> None:
    """The run is moved on, so that every worker may take the nodes that it knows."""
    starter, other = quick_app(), quick_app()
    done: list[Any] = []

    @starter.task(queue="a")
    async def known(text: str) -> str:
        return f"{text} known"

    @starter.task(queue="b")
    async def foreign(text: str) -> str:
        return f"{text} here"

    flow = starter.workflow("flow", chain(known.s(), foreign.s()), tags=("schedule:workflow_level",))

    @other.task(name="known", queue="a")
    async def known_too(text: str) -> str:
        done.append(text)
        return f"{text} known"

    other.workflow(flow.name, flow.graph)
    async with starter, other:
        _share(starter, other)
        async with other.worker(queues=["workflows", "nodes", "a"]):
            run = await starter.start(flow, "x")

            async def moved() -> bool:
                return (await run.view()).level is Level.NODE

            await wait_until(moved, message="the run to move on")
            assert "does not know task foreign" in (await run.view()).reason
            async with starter.worker(queues=["b"]):
                assert await run.result("10s") == "x known here"
    assert done == ["x"]


def _share(one: App, other: App) -> None:
    """Let two apps of one process have one memory store."""
    other.runtime.stores, other.runtime.means = one.runtime.stores, one.runtime.means
