"""What an attempt of a run at workflow level leaves to others: what had begun, what ended, and what has not begun."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace import App, chain, group, loop, map_, pause, sub, when
from headrace.engine.attempt import Attempt, StopReason
from headrace.engine.worker import Worker
from headrace.engine.workflows.boards import RunNotes
from headrace.engine.workflows.inline import MOST_CRASHES
from headrace.engine.workflows.saving import Saver
from headrace.model.errors import FenceLostError
from headrace.model.graph.form import parse_graph
from headrace.model.graph.nodes import RetryRule
from headrace.model.job import Claim
from headrace.model.run import Level, NodeEnding, NodeState
from headrace.model.session import NewSession, ProcessId
from tests.unit.engine_app import quick_app, shift_of
from tests.waiting import wait_until

WHOLE = ("schedule:workflow_level",)
at_both_levels = pytest.mark.parametrize("level", [Level.WORKFLOW, Level.NODE])


async def kill_workers(app: App) -> None:
    """Let so many workers die of the run that it is moved on."""
    stores = app.runtime.stores
    for number in range(MOST_CRASHES):
        session = NewSession(ProcessId("elsewhere", number, 1), "elsewhere", {"workflows": 1}, timedelta(hours=1))
        await stores.sessions.register_session(session)
        assert len(await stores.jobs.claim_jobs(Claim(session.id, "workflows", 1))) == 1
        await stores.sessions.expire_sessions([session.id])
        await stores.jobs.rescue_jobs(limit=10)


class Held:
    """Counts calls by their marks; the first call with one mark holds the run there until its worker stops."""

    def __init__(self, app: App, mark: str) -> None:
        self.calls, self.reached, self._mark = Counter[str](), asyncio.Event(), mark
        #: Adds a step to its number, which is its mark.
        self.step: Any = app.task(name="step")(self._step)

    async def call(self, mark: str) -> int:
        """Count a call, and hold it where it is to be held; return how many there were."""
        self.calls[mark] += 1
        if mark == self._mark and self.calls[mark] == 1:
            self.reached.set()
            await asyncio.Event().wait()
        return self.calls[mark]

    async def _step(self, number: int) -> int:
        await self.call(str(number))
        return number + 1


async def result_after_crashes(app: App, held: Held, given: Any = None) -> Any:
    """Run the workflow "flow" to where it is held, let workers die of it, and return what it comes to."""
    async with app:
        async with app.worker(grace="10ms"):
            run = await app.start("flow", given)
            await held.reached.wait()
        await kill_workers(app)
        async with app.worker():
            result = await run.result("10s")
        assert (await run.view()).level is Level.NODE
    return result


@pytest.mark.parametrize(
    ("body", "result", "counts"),
    [
        (lambda step: sub(chain(step.si(1), step.s())), 3, [1, 2]),
        (lambda step: map_(step.s(), over=[1, 2, 3]), [2, 3, 4], [1, 2, 1]),
        (lambda step: map_(chain(step.s(), step.s()), over=[1, 5]), [3, 7], [1, 2, 0, 0, 1, 1]),
        (lambda step: loop(step.s(), start=1, again=when().lt(4), most=9), 4, [1, 2, 1]),
        (lambda step: loop(chain(step.s(), step.s()), start=1, again=when().lt(4), most=9), 5, [1, 2, 1, 1]),
        (lambda step: sub(sub(chain(step.si(1), step.s(), step.s()))), 4, [1, 2, 1]),
    ],
    ids=["sub", "map", "map of chains", "loop", "loop of chains", "sub in a sub"],
)
async def test_what_ended_in_a_container_stays_ended_when_a_run_moves_on(
    body: Callable[[Any], Any], result: Any, counts: list[int]
) -> None:
    """Of what had begun within, only the node that ran when the worker went runs again."""
    app = quick_app()
    held = Held(app, "2")
    app.workflow("flow", body(held.step), tags=WHOLE)
    assert await result_after_crashes(app, held) == result
    assert [held.calls[str(number + 1)] for number in range(len(counts))] == counts


async def test_the_output_that_is_stored_decides_the_way_when_a_run_moves_on() -> None:
    """A task that would end otherwise the next time is not asked again: way and value are of one call."""
    app = quick_app()
    held = Held(app, "one")

    @app.task
    async def count() -> int:
        return await held.call("count")

    @app.task
    async def one(number: int) -> str:
        await held.call("one")
        return f"one of {number}"

    @app.task
    async def two(number: int) -> str:
        return f"two of {number}"

    nodes = [{"id": name, "task": name} for name in ("count", "one", "two")]
    ways = [
        {"from": "count", "to": name, "when": {"op": op, "value": 1}} for name, op in [("one", "eq"), ("two", "ne")]
    ]
    inner = {"id": "inner", "kind": "workflow", "body": {"nodes": nodes, "edges": ways}}
    app.workflow("flow", parse_graph({"nodes": [inner], "edges": [], "tags": list(WHOLE)}))
    assert await result_after_crashes(app, held) == {"one": "one of 1", "two": None}
    assert held.calls == {"count": 1, "one": 2}


@asynccontextmanager
async def worker_that_ends(app: App, grace: str) -> AsyncIterator[Callable[[], Awaitable[list[Attempt]]]]:
    """Work; give a function that lets the worker end: it returns what ran, once that has been told."""
    manager = app.worker(grace=grace)
    worker: Worker = await manager.__aenter__()
    ends: list[asyncio.Task[Any]] = []

    async def end() -> list[Attempt]:
        attempts = list(shift_of(worker)._attempts.values())
        ends.append(asyncio.create_task(manager.__aexit__(None, None, None)))
        await wait_until(lambda: all(one.closing for one in attempts), message="the worker to end")
        return attempts

    yield end
    # Long before a long grace is over: nothing is left that it could wait for.
    async with asyncio.timeout(20):
        await ends[0]


@at_both_levels
async def test_a_worker_that_ends_begins_no_further_node(level: Level) -> None:
    """What runs has its time; what follows from it is another worker's."""
    app, calls, hold = quick_app(), Counter[str](), asyncio.Event()

    @app.task
    async def first() -> int:
        calls["first"] += 1
        await hold.wait()
        return 1

    @app.task
    async def second(number: int) -> int:
        calls["second"] += 1
        return number + 1

    app.workflow("flow", chain(first.s(), second.s()), tags=(f"schedule:{level}",))
    async with app:
        async with worker_that_ends(app, "60s") as end:
            run = await app.start("flow")
            await wait_until(lambda: calls["first"] == 1, message="the first node")
            await end()
            hold.set()
        assert calls == {"first": 1}
        async with app.worker():
            assert await run.result("10s") == 2
    assert calls == {"first": 1, "second": 1}


async def test_a_worker_that_ends_begins_no_further_try() -> None:
    """A try that failed counts, and the next one is another worker's; what waits for its time has it still."""
    app, calls, hold = quick_app(), Counter[str](), asyncio.Event()

    @app.task
    async def flaky() -> int:
        calls["flaky"] += 1
        await hold.wait()
        if calls["flaky"] == 1:
            raise ValueError("no")
        return calls["flaky"]

    rule = RetryRule("fixed", max_tries=2, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=1), jitter=False)
    app.workflow("flow", group(flaky.si().options(retry=rule), pause("1s")), tags=WHOLE)
    async with app:
        async with worker_that_ends(app, "60s") as end:
            run = await app.start("flow")
            await wait_until(lambda: calls["flaky"] == 1, message="the node")
            await end()
            hold.set()
        assert calls == {"flaky": 1}
        async with app.worker():
            await run.result("10s")
    assert calls == {"flaky": 2}


async def test_a_worker_that_ends_still_ends_a_run_of_which_all_has_run() -> None:
    """Where nothing is left to be begun, nobody has to take the run up again."""
    app, hold, begun = quick_app(), asyncio.Event(), asyncio.Event()

    @app.task
    async def only() -> int:
        begun.set()
        await hold.wait()
        return 1

    app.workflow("flow", sub(only.s()), tags=WHOLE)
    async with app:
        async with worker_that_ends(app, "60s") as end:
            run = await app.start("flow")
            await begun.wait()
            await end()
            hold.set()
        assert await run.result("1s") == 1


@pytest.mark.parametrize("ends_well", [True, False])
async def test_what_ended_before_a_stop_is_stored(ends_well: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that ended is not called again because its worker had no more time to store how."""
    app, calls, saving, may_save = quick_app(), Counter[str](), asyncio.Event(), asyncio.Event()

    @app.task
    async def pay() -> int:
        calls["pay"] += 1
        if not ends_well and calls["pay"] == 1:
            raise ValueError("no")
        return calls["pay"]

    rule = RetryRule("fixed", max_tries=2, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=1), jitter=False)
    app.workflow("flow", pay.s().options(retry=rule), tags=WHOLE)
    async with app:
        owner, verb = (app.runtime.stores.runs, "save_nodes") if ends_well else (app.runtime.stores.jobs, "save_step")
        save = getattr(owner, verb)

        async def slow(*args: Any, **more: Any) -> Any:
            saving.set()
            await may_save.wait()
            return await save(*args, **more)

        monkeypatch.setattr(owner, verb, slow)
        async with worker_that_ends(app, "10ms") as end:
            run = await app.start("flow")
            await saving.wait()
            [attempt] = await end()
            await wait_until(lambda: attempt.stop_reason is StopReason.RELEASED, message="the stop")
            may_save.set()
        assert calls["pay"] == 1
        async with app.worker():
            assert await run.result("10s") == (1 if ends_well else 2)
    assert calls["pay"] == (1 if ends_well else 2)


class Written:
    """Notes what is written of a run; holds each call, and fails it where an error is set."""

    def __init__(self) -> None:
        self.parts: list[list[str]] = []
        self.may_write = asyncio.Event()
        self.error: Exception | None = None

    async def save_nodes(self, _run_id: UUID, endings: Sequence[NodeEnding], **_fence: Any) -> None:
        """Write ends of nodes."""
        self.parts.append([ending.path for ending in endings])
        await self.may_write.wait()
        if self.error is not None:
            raise self.error


def saver_of(written: Any) -> Saver:
    """Return a saver of some run."""
    return Saver(written, uuid4(), uuid4(), 1, uuid4(), RunNotes(None))


def ended(path: str) -> list[NodeEnding]:
    """Return the end of a node."""
    return [NodeEnding(path, NodeState.SUCCESS)]


async def test_what_a_stopped_statement_was_to_write_goes_with_the_next() -> None:
    """Nothing is stored of a container without what it was given."""
    written = Written()
    saver = saver_of(written)
    saver.keep(ended("s@"))
    first = asyncio.create_task(saver.save(ended("s/a")))
    await wait_until(lambda: written.parts, message="the first statement")
    second = asyncio.create_task(saver.save(ended("s/b")))
    first.cancel()
    written.may_write.set()
    await second
    assert written.parts == [["s@", "s/a"], ["s@", "s/a", "s/b"]]


async def test_after_a_statement_that_failed_nothing_is_written() -> None:
    """What waited behind it fails as it did: it is stored neither with a hole before it nor in words alone."""
    written = Written()
    written.error = FenceLostError("the job runs elsewhere")
    written.may_write.set()
    saver = saver_of(written)
    first, second = await asyncio.gather(saver.save(ended("a")), saver.save(ended("b")), return_exceptions=True)
    assert isinstance(first, FenceLostError)
    assert second is first
    assert written.parts == [["a"]]
