"""What the store ends by itself of runs, and what becomes of these: they go on or end, and nothing stays unsettled.

The ends of jobs are made here by hand, as a store makes them: without a word on what they set going.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from headrace import Retry, Run, chain, group, input_, loop, map_, sub, wait_signal, when
from headrace.engine.loops import settler
from headrace.engine.loops.settler import Settler
from headrace.engine.workflows.means import Means
from headrace.engine.workflows.settling import effects_of
from headrace.model.errors import RunCancelledError, RunFailedError
from headrace.model.job import Claim, ClaimedJob, Completion, JobError, JobState
from headrace.model.run import Effects, Level, NodeState, RunState, Unsettled
from headrace.model.session import NewSession, ProcessId
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

LOST = JobError("worker_lost", "its worker died three times")


class Site:
    """An open app whose jobs are claimed and ended by hand until a worker goes on with the run."""

    def __init__(self) -> None:
        self.app = quick_app()
        self.noted: list[Any] = []
        app = self.app

        @app.task
        async def double(number: int) -> int:
            return 2 * number

        @app.task(delivery="at_most_once")
        async def once(number: int) -> int:
            return 3 * number

        @app.task
        async def note(given: Any) -> str:
            self.noted.append(given)
            return "noted"

        self.double, self.once, self.note = double, once, note
        app.workflow("after", note.s())

    async def start(self, canvas: Any, given: Any = 1, level: Level = Level.NODE, **options: Any) -> Run:
        """Start a run of a canvas."""
        self.app.workflow("flow", canvas, tags=(f"schedule:{level}",), **options)
        return await self.app.start("flow", given)

    async def take(self, node: str | None, queue: str = "default") -> tuple[NewSession, ClaimedJob]:
        """Claim the one job that waits in a queue, under a session of its own; it must be that of `node`."""
        session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {queue: 1}, timedelta(hours=1))
        await self.app.runtime.stores.sessions.register_session(session)

        async def claimed() -> list[ClaimedJob]:
            return await self.app.runtime.stores.jobs.claim_jobs(Claim(session.id, queue, 1))

        [job] = await wait_until(claimed)
        assert job.node == node
        return session, job

    async def lose(self, node: str | None, queue: str = "default") -> None:
        """Let the store fail the job of a node."""
        session, job = await self.take(node, queue)
        failed = Completion(job.id, job.attempt, JobState.FAILED, error=LOST)
        assert await self.app.runtime.stores.jobs.complete_jobs(session.id, [failed]) == [job.id]

    async def cancel(self, run: Run, node: str | None) -> None:
        """Cancel the job of a node, which waits."""
        [job] = [job for job in await self.app.runtime.stores.runs.live_nodes(run.id) if job.node == node]
        await self.app.runtime.stores.control.cancel_job(job.job_id)

    async def settle(self) -> int:
        """Let the settler look once, and return how many jobs it settled."""
        before = await self.unsettled()
        await Settler(self.app.runtime.means, timedelta(hours=1)).step()
        return len(before) - len(await self.unsettled())

    async def unsettled(self) -> list[Unsettled]:
        """Return all that is unsettled."""
        return await self.app.runtime.stores.runs.unsettled_jobs(limit=100)

    async def states(self, run: Run) -> dict[str, NodeState]:
        """Return the state of each node of a run that ended by its path, ends and inputs left out."""
        endings = await self.app.runtime.stores.runs.read_nodes(run.id)
        return {ending.path: ending.state for ending in endings if not ending.path.endswith("@")}

    async def end(self, run: Run) -> Any:
        """Let a worker go on with the run, and return its output; nothing is unsettled then."""
        async with self.app.worker():
            try:
                return await run.result("10s")
            finally:
                assert await self.unsettled() == []


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """Return a site whose app is open, without a worker."""
    site = Site()
    async with site.app:
        yield site


# Jobs of nodes


async def test_a_node_whose_job_is_cancelled_while_it_waits(site: Site) -> None:
    """It is cancelled, what is behind it is passed over, what is beside it runs, and the run fails by it."""
    first, beside = site.double.s().options(name="first"), site.double.s().options(name="beside")
    run = await site.start(group(chain(first, site.double.s().options(name="behind")), beside))
    await site.cancel(run, "first")
    assert [job.node for job in await site.unsettled()] == ["first"]
    assert await site.settle() == 1
    with pytest.raises(RunFailedError, match="node first was cancelled"):
        await site.end(run)
    assert await site.states(run) == {
        "first": NodeState.CANCELLED, "behind": NodeState.SKIPPED, "beside": NodeState.SUCCESS,
    }  # fmt: skip


async def test_a_parked_node_whose_job_is_cancelled(site: Site) -> None:
    """As any that waits: the run does not wait for its signal any more."""
    run = await site.start(chain(wait_signal("never").options(name="wait"), site.double.si(1)))
    async with site.app.worker(queues=["nodes"]):
        await wait_until(lambda: _is_parked(site, run))
        await site.cancel(run, "wait")
        with pytest.raises(RunFailedError, match="node wait was cancelled"):
            await run.result("10s")
    assert await site.unsettled() == []


async def _is_parked(site: Site, run: Run) -> bool:
    return [job.state for job in await site.app.runtime.stores.runs.live_nodes(run.id)] == [JobState.PARKED]


async def die(site: Site, node: str | None, queue: str = "default") -> None:
    """Let a worker claim the job of a node and die."""
    session, _ = await site.take(node, queue)
    stores = site.app.runtime.stores
    await stores.sessions.expire_sessions([session.id])
    await stores.jobs.rescue_jobs(limit=10)


async def test_an_at_most_once_node_whose_worker_died(site: Site) -> None:
    """It failed and is not run again; the run fails by it."""
    run = await site.start(chain(site.once.s(), site.double.s()))
    await die(site, "once")
    assert await site.settle() == 1
    with pytest.raises(RunFailedError, match="node once"):
        await site.end(run)
    assert await site.states(run) == {"once": NodeState.FAILED, "double": NodeState.SKIPPED}


async def test_what_handles_its_error_goes_on(site: Site) -> None:
    """The handler of a lost node's error is given it, and the run succeeds."""
    run = await site.start(site.once.s().on_failure(site.note.s()))
    await die(site, "once")
    await site.end(run)
    assert [given.keys() for given in site.noted] == [{"kind", "message"}]
    assert (await run.view()).state is RunState.SUCCEEDED


async def test_a_plain_entry_of_a_map_that_is_lost(site: Site) -> None:
    """A map that may lose one stands with null in its place."""
    run = await site.start(map_(site.double.s(), over=input_, max_failed=1).options(name="m"), [1, 2, 3])
    await work_the_rest(site, run, "m[0]/double")
    assert await site.end(run) == [None, 4, 6]


async def work_the_rest(site: Site, run: Run, path: str) -> None:
    """Let a map start its entries, and lose the first of their jobs."""
    async with site.app.worker(queues=["nodes"]):
        await wait_until(lambda: _has_live(site, run, path))
        await site.lose(path)


async def _has_live(site: Site, run: Run, path: str) -> bool:
    return path in [job.node for job in await site.app.runtime.stores.runs.live_nodes(run.id)]


@pytest.mark.parametrize("level", list(Level))
async def test_a_job_of_ours_that_kills_its_workers(site: Site, level: Level) -> None:
    """It is convicted after ten of them, and the run fails by it."""
    run = await site.start(map_(site.double.s(), over=input_).options(name="m"), [1], level)
    node, queue = (None, "workflows") if level is Level.WORKFLOW else ("m", "nodes")
    for _ in range(10):
        await die(site, node, queue)
    with pytest.raises(RunFailedError, match="10 workers that ran the job died"):
        await site.end(run)
    assert await site.app.runtime.stores.runs.live_nodes(run.id) == []


async def test_a_job_of_ours_that_was_in_fewer_crashes(site: Site) -> None:
    """It goes on."""
    run = await site.start(map_(site.double.s(), over=input_).options(name="m"), [1])
    for _ in range(9):
        await die(site, "m", "nodes")
    assert await site.end(run) == [2]


# The jobs of whole runs


async def test_a_run_whose_own_job_is_cancelled(site: Site) -> None:
    """It is cancelled."""
    run = await site.start(chain(site.double.s(), site.double.s()), level=Level.WORKFLOW)
    await site.cancel(run, None)
    with pytest.raises(RunCancelledError):
        await site.end(run)
    assert (await run.view()).state is RunState.CANCELLED


async def test_a_run_whose_own_job_is_lost(site: Site) -> None:
    """It fails by the error of the job, and what is to follow then is started."""
    run = await site.start(site.double.s(), level=Level.WORKFLOW, on_failure="after")
    await site.lose(None, "workflows")
    with pytest.raises(RunFailedError, match="worker_lost: its worker died three times"):
        await site.end(run)
    async with site.app.worker():
        await wait_until(lambda: site.noted)
    assert site.noted[0]["run_id"] == str(run.id)
    assert site.noted[0]["error"] == {"kind": LOST.kind, "message": LOST.message}


async def test_a_running_job_of_a_whole_run_that_is_cancelled(site: Site) -> None:
    """The one that works it stops with it; the run is cancelled."""

    @site.app.task
    async def again() -> Retry:
        return Retry(delay="1h")

    run = await site.start(again.si(), level=Level.WORKFLOW)

    async def put_off() -> bool:
        return [job.state for job in await site.app.runtime.stores.runs.live_nodes(run.id)] == [JobState.SCHEDULED]

    async with site.app.worker():
        await wait_until(put_off)
        await site.cancel(run, None)
        with pytest.raises(RunCancelledError):
            await run.result("10s")
    assert await site.unsettled() == []


# The jobs of ends


async def test_the_end_of_a_run_that_is_lost(site: Site) -> None:
    """The run fails by it, though all its nodes succeeded; what is to follow is started."""
    run = await site.start(group(site.double.s(), site.double.s()), on_failure="after")
    async with site.app.worker(queues=["default"]):
        await site.lose("/", "nodes")
    with pytest.raises(RunFailedError, match="worker_lost"):
        await site.end(run)
    assert set((await site.states(run)).values()) == {NodeState.SUCCESS}


async def test_the_end_of_a_run_that_is_cancelled(site: Site) -> None:
    """So is the run."""
    run = await site.start(group(site.double.s(), site.double.s()))
    async with site.app.worker(queues=["default"]):
        await wait_until(lambda: _has_live(site, run, "/"))
    await site.cancel(run, "/")
    with pytest.raises(RunCancelledError):
        await site.end(run)


ENDS = {
    "of all entries of a map": ("m/", "fails"),
    "of one entry of a map": ("m[0]/", [None]),
    "of a round of a loop": ("l[0]/", "fails"),
    "of a graph within": ("s/", "fails"),
}


def canvas_of(site: Site, path: str) -> Any:
    """Return a part with a graph within, whose end is at `path`."""
    body = chain(site.double.s(), site.double.s())
    if path.startswith("m"):
        entries = body if path == "m[0]/" else site.double.s()
        return map_(entries, over=[1], max_failed=1).options(name="m")
    if path.startswith("l"):
        return loop(body, again=when().lt(0), most=3).options(name="l")
    return sub(body).options(name="s")


@pytest.mark.parametrize(("path", "comes_to"), ENDS.values(), ids=list(ENDS))
async def test_the_end_of_a_graph_within_that_is_lost(site: Site, path: str, comes_to: Any) -> None:
    """The node fails that the graph is of; of a map, the entry, which it may be allowed to lose."""
    run = await site.start(canvas_of(site, path))
    await drive_to(site, run, path)
    if comes_to != "fails":
        assert await site.end(run) == comes_to
        return
    node = path[0]
    with pytest.raises(RunFailedError, match=f"node {node}: its worker died"):
        await site.end(run)
    assert (await site.states(run))[node] is NodeState.FAILED


async def drive_to(site: Site, run: Run, path: str) -> None:
    """Work tasks by a worker and nodes one by one, until the job of `path` is claimed; that is lost."""
    node = path[0]
    async with site.app.worker(queues=["nodes"]):
        await wait_until(lambda: _has_started(site, run, node))
    async with site.app.worker(queues=["default"]):
        await site.lose(path, "nodes")


async def _has_started(site: Site, run: Run, node: str) -> bool:
    live = await site.app.runtime.stores.runs.live_nodes(run.id)
    return any(str(job.node).startswith((f"{node}/", f"{node}[")) for job in live)


# The settler itself


async def test_what_cannot_be_settled_holds_up_nothing_else(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are settled; it is tried again."""
    run, other = await site.start(site.double.s()), await site.app.start("flow", 2)
    await site.cancel(run, "double")
    await site.cancel(other, "double")

    async def refuse_one(means: Means, job: Unsettled) -> Effects:
        if job.run_id == run.id:
            raise ValueError("no way")
        return await effects_of(means, job)

    monkeypatch.setattr(settler, "effects_of", refuse_one)
    assert await site.settle() == 1
    assert [job.run_id for job in await site.unsettled()] == [run.id]
    monkeypatch.undo()
    assert await site.settle() == 1
    for one in (run, other):
        with pytest.raises(RunFailedError):
            await site.end(one)


async def test_jobs_of_a_cancelled_run_are_settled_too(site: Site) -> None:
    """What ends between the cancel of its run and the sweep is noted and sets nothing going."""
    run = await site.start(chain(site.once.s(), site.double.s()))
    session, job = await site.take("once")
    await site.app.runtime.stores.runs.cancel_run(run.id)
    failed = Completion(job.id, job.attempt, JobState.FAILED, error=LOST)
    await site.app.runtime.stores.jobs.complete_jobs(session.id, [failed])
    assert await site.settle() == 1
    assert await site.states(run) == {"once": NodeState.FAILED, "double": NodeState.SKIPPED}
    with pytest.raises(RunCancelledError):
        await site.end(run)
    assert await site.app.runtime.stores.runs.live_nodes(run.id) == []


async def test_a_large_run_that_is_cancelled_ends_without_waiting_for_the_interval(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settler comes back at once while more waits than one sweep cancels."""
    monkeypatch.setattr(settler, "CANCEL_SLICE", 2)
    run = await site.start(group(*(site.double.si(number) for number in range(7))))
    await site.app.runtime.stores.runs.cancel_run(run.id)
    loop = Settler(site.app.runtime.means, timedelta(hours=1))
    loop.start()

    async def over() -> bool:
        return await run.status() is RunState.CANCELLED

    await wait_until(over)
    await loop.stop()


async def test_settling_twice_changes_nothing(site: Site) -> None:
    """Two workers that see the same job settle it once."""
    run = await site.start(chain(site.double.s().options(on_error="continue"), site.note.s()))
    await site.lose("double")
    stores, means = site.app.runtime.stores, site.app.runtime.means
    [job] = await site.unsettled()
    effects = await effects_of(means, job)
    assert await stores.runs.settle_jobs([(job.job_id, effects)]) == [job.job_id]
    assert await stores.runs.settle_jobs([(job.job_id, await effects_of(means, job))]) == []
    assert await site.end(run) == "noted"
    assert site.noted == [None]
