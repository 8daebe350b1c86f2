"""Who calls: the key that a handler sends along, and the answers that it buys for itself, are one node's of one run."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Literal

import pytest

from headrace import App, Context, group, input_, loop, map_, signature, when
from headrace.model.ids import node_identity
from headrace.model.run import Level
from headrace.runs import Run
from tests.unit.engine_app import crash_with, quick_app, run_one
from tests.unit.engine_tasks import key_of
from tests.unit.llm_answers import WrittenProvider, llm_of
from tests.waiting import wait_until

at_both_levels = pytest.mark.parametrize("level", [Level.WORKFLOW, Level.NODE])


def note_keys(app: App) -> list[str]:
    """Give an app a task that notes its key; return the notes."""
    keys: list[str] = []

    @app.task(name="charge")
    async def charge(number: int, ctx: Context) -> int:
        keys.append(ctx.idempotency_key)
        return number + 1

    return keys


async def until_moved(run: Run) -> None:
    """Wait until a run goes on at node level."""

    async def moved() -> bool:
        return (await run.view()).level is Level.NODE

    await wait_until(moved, message="the run to move on")


@at_both_levels
async def test_each_node_entry_and_round_has_a_key_of_its_own(level: Level) -> None:
    """The key is made of the run and the path, so that both levels give the same."""
    app = quick_app()
    keys, charge = note_keys(app), signature("charge")
    entries = map_(charge.s(), over=input_)
    rounds = loop(charge.s(), start=0, again=when().lt(3), most=5)
    app.workflow("flow", group(entries, rounds), tags=(f"schedule:{level}",))
    async with app.worker():
        run = await app.start("flow", [7, 7, 7])
        await run.result("10s")
        ended = await app.runtime.stores.runs.read_nodes(run.id)
    paths = [one.path for one in ended if one.path.endswith("/charge")]
    assert len(paths) == len(set(keys)) == 6
    assert set(keys) == {str(node_identity(run.id, path)) for path in paths}


async def test_a_job_without_a_run_stands_for_itself() -> None:
    """Its id is the key, and what its answers are kept for."""
    app, keys = quick_app(), list[str]()

    @app.task
    async def pay(ctx: Context) -> None:
        keys.append(ctx.idempotency_key)

    async with app:
        job = await pay.enqueue()
        await crash_with(app, job)
        await run_one(app, job)
    assert keys == [str(job.id)]


@at_both_levels
async def test_a_child_process_is_given_the_same_key(level: Level) -> None:
    """Where a handler runs makes no difference to who it is."""
    app = quick_app()
    app.registry.add(key_of.definition)
    app.workflow("flow", signature("key_of").si(), tags=(f"schedule:{level}",))
    async with app.worker():
        run = await app.start("flow")
        assert await run.result("30s") == str(node_identity(run.id, "key_of"))


async def test_a_key_stays_when_a_run_moves_on() -> None:
    """What was sent with it at workflow level is recognised when it is sent again at node level."""
    app, keys = quick_app(), list[str]()

    @app.task
    async def pay(ctx: Context) -> Any:
        keys.append(ctx.idempotency_key)
        return await app.wait_for("go")

    app.workflow("flow", pay.s(), tags=(f"schedule:{Level.WORKFLOW}",))
    async with app.worker():
        run = await app.start("flow")
        await until_moved(run)
        await app.signal("go", "yes")
        assert await run.result("10s") == "yes"
    assert len(keys) >= 2
    assert set(keys) == {str(node_identity(run.id, "pay"))}


@at_both_levels
@pytest.mark.parametrize("memo", ["fresh", "bypass"])
async def test_each_entry_buys_an_answer_of_its_own(level: Level, memo: Literal["fresh", "bypass"]) -> None:
    """Votes on one prompt are as many answers as there are votes."""
    app, answers = quick_app(), ["one", "two", "three"]
    llm = llm_of(WrittenProvider(answers))

    @app.task
    async def vote(number: int) -> str:
        del number
        return await llm.using(memo=memo).complete("Oslo or Bergen?")

    app.workflow("flow", map_(vote.s(), over=input_), tags=(f"schedule:{level}",))
    async with app.worker():
        assert sorted(await (await app.start("flow", [1, 2, 3])).result("10s")) == sorted(answers)


@pytest.mark.parametrize("memo", ["fresh", "bypass"])
async def test_an_answer_is_found_again_after_a_stop_and_when_a_run_moves_on(memo: Literal["fresh", "bypass"]) -> None:
    """What a node has bought for itself it does not buy again: not in the next attempt, not as a job of its own."""
    app, entered, provider = quick_app(), Counter[str](), WrittenProvider(["one", "two"])
    llm, bought = llm_of(provider), asyncio.Event()

    @app.task
    async def ask() -> Any:
        answer = await llm.using(memo=memo).complete("?")
        entered["ask"] += 1
        if entered["ask"] == 1:
            bought.set()
            await asyncio.Event().wait()
        return [answer, await app.wait_for("go")]

    app.workflow("flow", ask.s(), tags=(f"schedule:{Level.WORKFLOW}",))
    async with app:
        async with app.worker(grace="10ms"):
            run = await app.start("flow")
            await bought.wait()
        async with app.worker():
            await until_moved(run)
            await app.signal("go", "yes")
            assert await run.result("10s") == ["one", "yes"]
    assert entered["ask"] >= 3
    assert len(provider.requests) == 1


@at_both_levels
@pytest.mark.parametrize("tries", [1, 3])
async def test_a_handler_knows_its_last_try(level: Level, tries: int) -> None:
    """A handler that gives what is better than a failure does so when no other try comes."""
    app, said = quick_app(), []

    @app.task(name="ask")
    async def ask(ctx: Context) -> str:
        said.append(ctx.last_try)
        if ctx.last_try:
            return "the best we have"
        raise ValueError("not yet")

    retry = {"strategy": "fixed", "max_tries": tries, "base": 0, "jitter": False}
    app.workflow("flow", signature("ask").s().options(retry=retry), tags=(f"schedule:{level}",))
    async with app.worker():
        assert await (await app.start("flow")).result("10s") == "the best we have"
    assert said == [False] * (tries - 1) + [True]
