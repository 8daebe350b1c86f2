"""What a run at workflow level owes to those at node level: the same tries, waits, checkpoints and stops."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Backoff, Context, Snooze, chain, group, pause, signature, wait_signal
from headrace.model.errors import BlobStoreError, InvalidInputError, RunFailedError
from headrace.model.graph.form import parse_graph
from headrace.model.graph.nodes import NodeOptions, RetryRule, SubNode
from headrace.model.run import Level, NodeState, RunState
from tests.unit.engine_app import quick_app, view_of
from tests.unit.engine_tasks import die
from tests.waiting import wait_until

WHOLE = ("schedule:workflow_level",)
at_both_levels = pytest.mark.parametrize("level", [Level.WORKFLOW, Level.NODE])


async def test_checkpoints_and_tries_go_along_when_a_run_moves_on() -> None:
    """What a handler has kept, and how often a node was tried, is not forgotten with the run's own job."""
    app, calls = quick_app(), Counter[str]()

    @app.task
    async def pay(ctx: Context) -> Any:
        calls["entered"] += 1

        def charge() -> int:
            calls["paid"] += 1
            return 3

        paid = await ctx.step("pay", charge)
        return [paid, await app.wait_for("go")]

    @app.task
    async def flaky() -> None:
        calls["tried"] += 1
        if calls["tried"] == 2:
            await app.signal("tried twice")
        raise ValueError("no")

    rule = RetryRule("fixed", max_tries=3, base=timedelta(seconds=1.5), cap=timedelta(seconds=1.5), jitter=False)
    bad = flaky.si().options(retry=rule, on_error="continue")
    app.workflow("paying", pay.s(), tags=WHOLE)
    app.workflow("trying", group(bad, wait_signal("tried twice")), tags=WHOLE)
    async with app.worker():
        run = await app.start("paying")

        async def moved() -> bool:
            return (await run.view()).level is Level.NODE

        await wait_until(moved, message="the run to move on")
        await app.signal("go", "yes")
        assert await run.result("10s") == [3, "yes"]
        assert calls["paid"] == 1
        trying = await app.start("trying")
        await trying.result("20s")
        assert calls["tried"] == 3


async def test_a_deadline_goes_along_when_a_run_moves_on() -> None:
    """A wait that began before the move ends when it would have."""
    app = quick_app()
    app.task(name="noop")(lambda value=None: value)
    app.workflow("flow", group(pause("3s"), wait_signal("now")), tags=WHOLE)
    async with app.worker():
        began = time.monotonic()
        run = await app.start("flow")
        await app.signal("now")
        await run.result("20s")
    assert 2.9 <= time.monotonic() - began < 5.5


async def test_what_waits_for_its_time_does_not_wait_for_other_branches() -> None:
    """A retry and a snooze come when they are due, while another branch goes on."""
    app, at, hold = quick_app(), Counter[str](), asyncio.Event()
    began = time.monotonic()

    @app.task
    async def long() -> None:
        await hold.wait()

    @app.task
    async def again() -> Any:
        at["again"] += 1
        if at["again"] == 1:
            return Snooze("2.2s")
        return round(time.monotonic() - began, 1)

    app.workflow("flow", group(long.si(), again.si()), tags=WHOLE)
    async with app.worker():
        run = await app.start("flow")
        await wait_until(lambda: at["again"] == 2, message="the snooze to be over")
        hold.set()
        [_, seconds] = await run.result("10s")
        assert seconds >= 2.1


@at_both_levels
async def test_a_node_whose_child_dies_again_and_again_is_poison(level: Level, tmp_path: Path) -> None:
    """Three deaths alone are enough, as for any job; the run comes to its end."""
    app, log = quick_app(), tmp_path / "deaths"
    app.registry.add(die.definition)
    app.workflow("flow", signature("die").si(str(log)), tags=(f"schedule:{level}",))
    async with app.worker():
        run = await app.start("flow")
        with pytest.raises(RunFailedError, match="poison"):
            await run.result("60s")
    assert len(log.read_text().splitlines()) == 3


@at_both_levels
async def test_a_stopped_worker_begins_no_handler_again(level: Level) -> None:
    """The handler that ran is told to stop, and begins again only where another worker takes the run."""
    app, begun = quick_app(), Counter[str]()

    @app.task
    async def slow() -> str:
        begun["slow"] += 1
        if begun["slow"] == 1:
            await asyncio.Event().wait()
        return "done"

    app.workflow("flow", slow.s(), tags=(f"schedule:{level}",))
    async with app:
        async with app.worker(grace="10ms"):
            run = await app.start("flow")
            await wait_until(lambda: begun["slow"] == 1, message="the handler")
        assert begun["slow"] == 1
        async with app.worker():
            assert await run.result("10s") == "done"


async def test_a_workflow_that_follows_its_own_failure_does_so_once() -> None:
    """A failure that follows a failure is followed by nothing."""
    app = quick_app()

    @app.task(name="fails")
    async def fails(given: Any = None) -> None:
        raise ValueError("no")

    bad = fails.s().options(retry=RetryRule("fixed", max_tries=1))
    app.workflow("flow", bad, on_failure="flow")
    async with app.worker():
        run = await app.start("flow")
        with pytest.raises(RunFailedError):
            await run.result("10s")

        async def followed() -> bool:
            runs = await app.runtime.stores.runs.list_runs(state=RunState.FAILED)
            return len(runs) == 2

        await wait_until(followed, message="the run that follows")
        jobs = await app.runtime.stores.inspect.list_jobs(queue="nodes")
        assert [job.task for job in jobs if job.task == "headrace.start"] == ["headrace.start"]


async def test_storage_that_is_away_costs_a_node_none_of_its_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arguments cannot be read: it begins later, and the handler is called once."""
    app, calls = quick_app(), Counter[str]()

    @app.task
    async def double(number: int) -> int:
        calls["double"] += 1
        return 2 * number

    monkeypatch.setattr("headrace.engine.workflows.task_part.AGAIN", timedelta(milliseconds=20))
    app.workflow("flow", double.s().options(retry=RetryRule("fixed", max_tries=1)), tags=("schedule:node_level",))
    async with app.worker():
        load, failures = app.runtime.means.values.load, iter([True])

        async def away(text: str) -> Any:
            if next(failures, False):
                raise BlobStoreError
            return await load(text)

        monkeypatch.setattr(app.runtime.means.values, "load", away)
        assert await (await app.start("flow", 4)).result("10s") == 8
    assert calls["double"] == 1


def test_options_that_would_do_nothing_are_refused() -> None:
    """What is no task makes no call that could be tried again."""
    app = quick_app()
    inner = app.workflow("inner", chain(app.task(name="noop")(lambda value=None: value).s()))
    assert SubNode("a", inner.graph).options == NodeOptions()
    with pytest.raises(InvalidInputError, match=r"retry goes with nodes that call a task"):
        app.workflow("flow", inner.s().options(retry=RetryRule("fixed")))


async def test_a_failure_within_the_job_of_a_run_is_kept_whole(caplog: pytest.LogCaptureFixture) -> None:
    """There is no job of the node: its end and the run's dead letter have the trace, and the log has each try."""
    app = quick_app()

    @app.task(retry=Backoff.fixed("1s", max_attempts=1))
    async def broken() -> None:
        raise ValueError("no such account")

    app.workflow("flow", broken.si(), tags=WHOLE)
    with caplog.at_level(logging.INFO, "headrace.jobs"):
        async with app.worker():
            run = await app.start("flow")
            with pytest.raises(RunFailedError, match="no such account"):
                await run.result("10s")
            stores = app.runtime.stores
            [ending] = [one for one in await stores.runs.read_nodes(run.id) if one.state is NodeState.FAILED]
            [letter] = (await stores.inspect.dead_letters()).letters
            dead = await view_of(app, letter.id)
    for error in (ending.error, dead.error):
        assert error is not None
        assert "raise ValueError" in error.trace
    assert any("failed in" in record.message and getattr(record, "task", "") == "broken" for record in caplog.records)


@at_both_levels
async def test_a_wait_waits_for_the_key_it_began_with(level: Level) -> None:
    """A reference in the key that gives something else once another node has ended changes nothing."""
    app, gate = quick_app(), asyncio.Event()
    app.task(name="early")(lambda: "early")

    @app.task
    async def late() -> str:
        await gate.wait()
        return "late"

    key = {"$text": ["go-", {"$first": [{"$node": "late"}, {"$node": "early"}]}]}
    nodes = [
        {"id": "early", "task": "early"},
        {"id": "late", "task": "late"},
        {"id": "w", "kind": "wait", "signal": key, "join": "any"},
    ]
    edges = [{"from": "early", "to": "w"}, {"from": "late", "to": "w"}]
    graph = {"nodes": nodes, "edges": edges, "output": {"$node": "w"}, "tags": [f"schedule:{level}"]}
    app.workflow("flow", parse_graph(graph))
    async with app.worker():
        run = await app.start("flow")

        stores = app.runtime.stores

        async def begun() -> bool:
            jobs = await stores.runs.live_nodes(run.id)
            return "key w" in {name for job in jobs for name in await stores.jobs.load_steps(job.job_id)}

        await wait_until(begun, message="the wait to begin")
        gate.set()

        async def ended() -> bool:
            endings = await stores.runs.read_nodes(run.id)
            return "late" in {one.path for one in endings if one.state is NodeState.SUCCESS}

        await wait_until(ended, message="the other node to end")
        await app.signal("go-early", "yes")
        assert await run.result("10s") == "yes"
