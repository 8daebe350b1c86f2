"""`[scheduler.hybrid]`, `[scheduler.distributed]` and which runs a worker takes: what each key does when it is set.

| keys                                                   | their tests                                  |
|--------------------------------------------------------|----------------------------------------------|
| `[scheduler.…]`, `[worker] …_processor_enabled`        | here                                         |
| `[worker]`, `[recovery] check_interval`, `max_retries` | test_settings_worker.py                      |
| `[queue]`, `[blob_storage]`                            | tests/integration/test_settings_stores.py    |
| that all are read, their rules and mistakes            | test_settings.py, test_settings_workflows.py |
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import Retry, Run, chain, group, map_, sub
from headrace.model.errors import RunFailedError
from headrace.model.job import JobState, JobView
from headrace.model.run import NODES_QUEUE, RUN_TASK, WORKFLOWS_QUEUE, Level
from tests.unit.settings_app import app_by
from tests.waiting import wait_until

MODE = "scheduler.hybrid.default_mode"
MOST_NODES = "scheduler.hybrid.workflow_level_threshold"
LONGEST = "scheduler.hybrid.node_level_threshold"
STRATEGY = "scheduler.distributed.priority_strategy"
CHECK = "scheduler.distributed.dependency_check_interval"
RETRIES = "scheduler.distributed.max_retries"
TIMEOUT = "scheduler.distributed.default_timeout"

at_both_levels = pytest.mark.parametrize("level", list(Level))


class Site:
    """An app by a headrace.toml, with a few tasks."""

    def __init__(self, folder: Path, keys: Mapping[str, object]) -> None:
        self.app = app = app_by(folder, keys)
        self.calls: Counter[str] = Counter()
        self.order: list[str] = []

        @app.task
        async def mark(given: Any, name: str = "") -> str:
            self.order.append(name)
            return name

        @app.task
        async def fail(given: Any) -> Retry:
            self.calls["fail"] += 1
            return Retry(delay=0)

        @app.task
        async def hang(given: Any) -> None:
            await asyncio.Event().wait()

        @app.task
        async def last(given: Any) -> Any:
            """Take longer than ten milliseconds."""
            began = time.monotonic()
            await wait_until(lambda: time.monotonic() > began + 0.01)
            return given

        self.mark, self.fail, self.hang, self.last = mark, fail, hang, last
        # A worker takes the queues of runs where its app has workflows when it starts.
        self.declare("seed", mark.s())

    def chain_of(self, count: int) -> Any:
        """Return a canvas of so many nodes in a row."""
        return chain(*(self.mark.si(0, str(number)) for number in range(count)))

    def declare(self, name: str, canvas: Any, level: Level | None = None) -> str:
        """Declare a workflow and return its name."""
        self.app.workflow(name, canvas, tags=() if level is None else (f"schedule:{level}",))
        return name

    async def begin(self, canvas: Any, name: str = "flow") -> Run:
        """Start a run of a canvas."""
        return await self.app.start(self.declare(name, canvas), 1)

    async def jobs(self, run: Run) -> list[JobView]:
        """Return the jobs of a run."""
        return [job for job in await self.app.runtime.stores.inspect.list_jobs(limit=1_000) if job.run_id == run.id]


# [scheduler.hybrid]


@pytest.mark.parametrize(
    ("mode", "small", "large"),
    [
        ("hybrid", Level.WORKFLOW, Level.NODE),
        ("workflow_level", Level.WORKFLOW, Level.WORKFLOW),
        ("node_level", Level.NODE, Level.NODE),
    ],
)
async def test_default_mode(tmp_path: Path, mode: str, small: Level, large: Level) -> None:
    """By the graph, or one level for all: a run is one job, or a job for each node."""
    site = Site(tmp_path, {MODE: mode})
    async with site.app.worker():
        for level, count in ((small, 2), (large, 11)):
            run = await site.begin(site.chain_of(count), f"flow{count}")
            await run.result("10s")
            tasks = [job.task for job in await site.jobs(run)]
            assert (await run.view()).level is level
            assert tasks.count(site.mark.name) == (count if level is Level.NODE else 0)
            assert tasks.count(RUN_TASK) == (0 if level is Level.NODE else 1)


async def test_default_mode_workflow_level_moves_no_run(tmp_path: Path) -> None:
    """However many entries a map has, and however long the run takes, it stays with its one job."""
    site = Site(tmp_path, {MODE: "workflow_level", LONGEST: "1ms"})
    async with site.app.worker():
        run = await site.begin(chain(site.last.s(), map_(site.mark.s("x"), over=list(range(20)))))
        assert len(await run.result("10s")) == 20
        assert [job.task for job in await site.jobs(run)] == [RUN_TASK]


async def test_workflow_level_threshold(tmp_path: Path) -> None:
    """As many nodes are worked by one job, one more by jobs of their own; so are entries of a map."""
    site = Site(tmp_path, {MOST_NODES: 3})
    async with site.app.worker():
        levels, reasons = [], []
        for name, canvas in {
            "three": site.chain_of(3),
            "four": site.chain_of(4),
            "map3": map_(site.mark.s("x"), over=[1, 2, 3]),
            "map4": map_(site.mark.s("x"), over=[1, 2, 3, 4]),
        }.items():
            run = await site.begin(canvas, name)
            await run.result("10s")
            view = await run.view()
            levels.append(view.level)
            reasons.append(view.reason)
        assert levels == [Level.WORKFLOW, Level.NODE, Level.WORKFLOW, Level.NODE]
        assert "4 nodes, more than 3" in reasons[1]
        assert "more than 3 entries" in reasons[3]


@pytest.mark.parametrize(
    ("threshold", "level", "reason"),
    [("1m", Level.NODE, "about 2 m, more than 1 m"), ("3m", Level.WORKFLOW, "about 2 m, at most 3 m")],
)
async def test_node_level_threshold_and_a_declared_time(
    tmp_path: Path, threshold: str, level: Level, reason: str
) -> None:
    """A run that is estimated longer goes node by node from its start."""
    site = Site(tmp_path, {LONGEST: threshold})
    async with site.app.worker():
        run = await site.begin(site.mark.s().options(estimate="2m"))
        await run.result("10s")
        view = await run.view()
        assert view.level is level
        assert reason in view.reason


async def test_node_level_threshold_and_a_run_that_outgrows_it(tmp_path: Path) -> None:
    """It begins as one job and goes on node by node; the next one does so from its start, by what was measured."""
    site = Site(tmp_path, {LONGEST: "5ms"})
    async with site.app.worker():
        run = await site.begin(chain(site.last.s(), site.mark.s("next")))
        await run.result("10s")
        assert (await run.view()).reason == "it ran longer than 0:00:00.005000"
        assert [job.task for job in await site.jobs(run) if job.task in (RUN_TASK, site.mark.name)] == [
            site.mark.name, RUN_TASK,
        ]  # fmt: skip
        again = await site.begin(chain(site.last.s(), site.mark.s("next")))
        await again.result("10s")
        view = await again.view()
        assert view.level is Level.NODE
        assert re.fullmatch(r"about .+, more than 0\.0 s", view.reason)
        assert RUN_TASK not in [job.task for job in await site.jobs(again)]


# [scheduler.distributed]

#: What starts first with one slot, and the priorities of the first jobs, by strategy.
ORDERS = {
    "by_dependency_depth": (["deep 1", "deep 2", "side", "deep 3"], {"side": 7, "deep 1": 3, "inner": 7}),
    "by_node_type": (["side", "deep 1", "deep 2", "deep 3"], {"side": 5, "deep 1": 5, "inner": 4}),
}


@pytest.mark.parametrize("strategy", ORDERS)
async def test_priority_strategy(tmp_path: Path, strategy: str) -> None:
    """What most lies behind starts first, or what kinds of nodes say; the jobs have the priorities of it."""
    site = Site(tmp_path, {STRATEGY: strategy, MODE: "node_level"})
    side, *deep = (site.mark.si(0, name).options(name=name.replace(" ", "-")) for name in
                   ("side", "deep 1", "deep 2", "deep 3"))  # fmt: skip
    order, priorities = ORDERS[strategy]
    async with site.app:
        run = await site.begin(group(side, chain(*deep), sub(site.chain_of(1)).options(name="inner")))
        found = {str(job.node).replace("-", " "): job.priority for job in await site.jobs(run)}
        assert found == priorities
        async with site.app.worker(queues={"default": 1}):
            await wait_until(lambda: len(site.order) == 4)
        assert site.order == order


async def test_dependency_check_interval(tmp_path: Path) -> None:
    """So often it is looked for jobs of runs that the store ended: five in turn are settled within the deadline."""
    site = Site(tmp_path, {CHECK: "20ms", MODE: "node_level"})
    async with site.app.worker(queues=["nodes"]):
        stores = site.app.runtime.stores

        async def five_in_turn() -> None:
            for number in range(5):
                run = await site.begin(site.mark.s(), f"flow{number}")
                [job] = await site.jobs(run)
                await stores.control.cancel_job(job.id)
                with pytest.raises(RunFailedError):
                    await run.result("10s")

        # With the default of a second it takes five.
        await asyncio.wait_for(five_in_turn(), 3)


@at_both_levels
async def test_max_retries_of_nodes(tmp_path: Path, level: Level) -> None:
    """A task without `retry=` has that many attempts after its first as a node; `[queue] max_retries` else."""
    site = Site(tmp_path, {RETRIES: 2, "queue.max_retries": 0, MODE: level.value})
    async with site.app.worker():
        with pytest.raises(RunFailedError):
            await (await site.begin(site.fail.s())).result("10s")
        assert site.calls["fail"] == 3
        job = await site.fail.enqueue(1)
        await wait_until(lambda: _is_final(site, job.id))
        assert site.calls["fail"] == 4


async def _is_final(site: Site, job_id: Any) -> bool:
    view = await site.app.runtime.stores.inspect.get_job(job_id)
    return view is not None and view.state.final


@at_both_levels
async def test_default_timeout_of_nodes(tmp_path: Path, level: Level) -> None:
    """A task without `timeout=` may run that long as a node, whatever `[worker] max_processing_time` is."""
    site = Site(tmp_path, {TIMEOUT: "100ms", RETRIES: 0, "worker.max_processing_time": "1h", MODE: level.value})
    async with site.app.worker():
        with pytest.raises(RunFailedError, match=r"node hang: .*ran longer than 0\.1 s"):
            await (await site.begin(site.hang.s())).result("10s")


# [worker]


@pytest.mark.parametrize(
    ("key", "left", "level"),
    [
        ("worker.workflow_processor_enabled", WORKFLOWS_QUEUE, Level.WORKFLOW),
        ("worker.node_processor_enabled", NODES_QUEUE, Level.NODE),
    ],
)
async def test_processors_enabled(tmp_path: Path, key: str, left: str, level: Level) -> None:
    """A worker takes what is enabled alone: a run at the other level waits for one that takes that, others go on."""
    site = Site(tmp_path, {key: False})
    other = Level.NODE if level is Level.WORKFLOW else Level.WORKFLOW
    waiting, going = site.declare("waiting", site.chain_of(2), level), site.declare("going", site.chain_of(2), other)
    async with site.app.worker() as worker:
        assert worker.session is not None
        assert set(worker.session.queues) == {"default", WORKFLOWS_QUEUE, NODES_QUEUE} - {left}
        run = await site.app.start(waiting, 1)
        for _ in range(3):
            await (await site.app.start(going, 1)).result("10s")

        async def waits() -> list[JobView]:
            jobs = await site.app.runtime.stores.inspect.list_jobs(queue=left)
            return [job for job in jobs if job.run_id == run.id]

        [job] = await wait_until(waits)
        assert (job.state, (await run.view()).state.final) == (JobState.READY, False)
        async with site.app.worker(queues=[left]):
            assert await run.result(timedelta(seconds=10)) == "1"
