"""Events of nodes and of child processes: they leave with the end of a node, once, and runs wait for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace import App, Backoff, Context, chain
from headrace.events import Agent, AgentContext, Event

ASKED, ANSWERED, TOLD = "Test.Thing.Asked", "Test.Thing.Answered", "Test.Thing.Told"
LEVELS = ("schedule:workflow_level", "schedule:node_level")
QUICK = Backoff.fixed("1ms", max_attempts=3)

#: In this module, so that a child process finds its task.
children = App("memory://")


@children.task(cpu=True)
def tell_from_afar(number: int, ctx: Context) -> int:
    """Emit in a child process."""
    ctx.emit(TOLD, {"number": number}, aggregate_id="t-1", correlation_id="c-1", schema_version=2)
    return number


async def told(app: App) -> list[Any]:
    """Return the payloads of the log."""
    return [event.payload for event in await app.event_stores.outbox.list_events(aggregate_id="t-1")]


@pytest.mark.parametrize("level", LEVELS)
async def test_events_of_nodes_leave_once_with_their_success(level: str) -> None:
    """At either level a node that fails first emits once, and one that fails for good nothing."""
    app = App("memory://")

    @app.task(retry=QUICK)
    async def tell(number: int, ctx: Context) -> int:
        ctx.emit(TOLD, {"number": number, "attempt": ctx.attempt}, aggregate_id="t-1")
        seen.append(number)
        if seen.count(number) < 2:
            raise RuntimeError("as planned")
        return number + 1

    @app.task(retry=Backoff.none())
    async def fail(number: int, ctx: Context) -> int:
        ctx.emit(TOLD, "never", aggregate_id="t-1")
        raise RuntimeError("as planned")

    seen: list[int] = []
    app.workflow("telling", chain(tell.si(1), tell.s(), fail.s()), tags=[level])
    async with app.worker(grace="1s"):
        run = await app.start("telling", None)
        with pytest.raises(Exception, match="as planned"):
            await run.result(timeout=20)
        payloads = await told(app)
        events = await app.event_stores.outbox.list_events(aggregate_id="t-1")
    assert [payload["number"] for payload in payloads] == [1, 2]
    assert len({event.causation_id for event in events}) == 2


@pytest.mark.parametrize("level", LEVELS)
async def test_a_run_that_waits_for_an_event_goes_on(level: str) -> None:
    """A node asks an agent and waits; what stands behind it gets the answer."""
    app = App("memory://")
    answerer = Agent(app, "answerer")

    @answerer.on(ASKED)
    async def answer(event: Event, ctx: AgentContext) -> None:
        ctx.emit(ANSWERED, 2 * event.payload)

    @app.task
    async def ask(number: int, ctx: Context) -> int:
        correlation = f"ask-{ctx.idempotency_key}"
        await app.emit(ASKED, number, aggregate_id="t-1", correlation_id=correlation)
        came = await app.wait_for_events(correlation, ANSWERED, timeout="20s")
        return int(came.events[0].payload)

    @app.task
    async def add_one(number: int) -> int:
        return number + 1

    app.workflow("asking", chain(ask.si(20), add_one.s()), tags=[level])
    async with app.worker(grace="1s"):
        runs = [await app.start("asking", None) for _ in range(3)]
        assert await asyncio.gather(*(run.result(timeout=20) for run in runs)) == [41, 41, 41]
        events = await app.event_stores.outbox.list_events(aggregate_id="t-1")
    assert sorted(event.type for event in events) == [ANSWERED] * 3 + [ASKED] * 3


async def test_events_of_a_child_process_leave_with_its_success() -> None:
    """What a handler emits elsewhere comes back with its result."""
    async with children.worker(grace="1s"):
        handle = await tell_from_afar.enqueue(7)
        assert await handle.result(timeout=20) == 7
        [event] = await children.event_stores.outbox.list_events()
    assert (event.payload, event.correlation_id, event.schema_version) == ({"number": 7}, "c-1", 2)
    assert event.causation_id == str(handle.id)
