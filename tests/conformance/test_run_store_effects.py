"""What the end of a node's job sets going: endings, arrivals, jobs, levels and the end of the run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from headrace.model.ids import uuid7s
from headrace.model.job import Claim, ClaimedJob, JobError, JobState
from headrace.model.limits import Gate
from headrace.model.run import NODE_SPEC, Arrival, Level, NodeEnding, NodeState, RunEnding, RunState
from tests.conformance.runs import Runs, arrival, is_passed_over, node_job, success, with_effects
from tests.conformance.scenario import ARGS, DAY, MINUTE, SECOND, Scenario, item

ERROR = JobError("ValueError", "no such thing", "Traceback …")


# Endings


async def test_an_ending_is_kept_as_it_is(on: Scenario, runs: Runs) -> None:
    """Every fact of it is read back, with the store's time of the end."""
    run_id, [job] = await runs.begin("a")
    started_at = on.clock.now()
    on.clock.advance(SECOND)
    failed = NodeEnding(
        "b", NodeState.FAILED, None, "error", ERROR, artifact="h2", attempts=3, reused=False, started_at=started_at
    )
    reused = success("a", '{"value": [1, null, "é"]}', artifact="h1", attempts=1, reused=True)
    await runs.done(job, endings=(reused, failed))

    expected = [replace(ending, finished_at=on.clock.now()) for ending in (reused, failed)]
    assert await runs.store.read_nodes(run_id) == expected


@pytest.mark.parametrize("state", [state for state in NodeState if state.final])
async def test_every_final_state_is_kept(runs: Runs, state: NodeState) -> None:
    """Succeeded, failed, cancelled and skipped nodes all have endings."""
    run_id, [job] = await runs.begin("a")
    await runs.done(job, endings=(NodeEnding("a", state),))

    assert [ending.state for ending in await runs.store.read_nodes(run_id)] == [state]


async def test_the_first_ending_of_a_path_stands(runs: Runs) -> None:
    """A later one of the same path is dropped, within a call as well; new paths beside it are kept."""
    run_id, [a, b, c] = await runs.begin("a", "b", "c")
    await runs.done(a, endings=(success("a", "1"),))
    await runs.complete(
        with_effects(b, endings=(success("a", "2"), success("b", "3"))), with_effects(c, endings=(success("b", "4"),))
    )

    assert [(end.path, end.output) for end in await runs.store.read_nodes(run_id)] == [("a", "1"), ("b", "3")]


async def test_paths_are_those_of_their_run(runs: Runs) -> None:
    """Endings of one path in two runs have nothing to do with each other."""
    first, [one] = await runs.begin("a")
    second, [two] = await runs.begin("a")
    await runs.complete(
        with_effects(one, endings=(success("a", "1"),)), with_effects(two, endings=(success("a", "2"),))
    )

    assert [(await runs.store.read_nodes(run_id))[0].output for run_id in (first, second)] == ["1", "2"]


# Arrivals


async def join(runs: Runs, fired: tuple[int, ...], need: int, *, together: bool) -> list[ClaimedJob]:
    """Let as many nodes as `fired` has entries arrive at j, in one call or one after the other; return what waits."""
    nodes = [f"n{number}" for number in range(len(fired))]
    run_id, jobs = await runs.begin(*nodes)
    done = [
        with_effects(job, arrivals=(arrival(run_id, "j", len(fired), need, fired=fires),))
        for job, fires in zip(jobs, fired, strict=True)
    ]
    for call in [done] if together else [[one] for one in done]:
        assert len(await runs.complete(*call)) == len(call)
    return [*await runs.claim(), *await runs.claim(queue="nodes")]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("fired", "need", "runs_it"),
    [
        ((1,), 1, True),
        ((0,), 1, False),
        ((1, 1, 1), 3, True),
        ((1, 0, 1), 3, False),
        ((0, 1, 0), 1, True),
        ((0, 0, 0), 1, False),
        ((1, 1, 1), 1, True),
        ((0, 1, 1), 2, True),
        ((0, 0, 1), 2, False),
        ((0, 0), 0, True),
    ],
)
async def test_a_join_is_decided_once(
    runs: Runs, fired: tuple[int, ...], need: int, runs_it: bool, together: bool
) -> None:
    """All, any and n of m: enough that fired make it run, too few when all have arrived make it be passed over."""
    [job] = await join(runs, fired, need, together=together)

    assert (job.node, is_passed_over(job)) == ("j", not runs_it)


async def test_a_join_waits_for_enough(runs: Runs) -> None:
    """Before enough have fired, and while more may, nothing is inserted."""
    run_id, [a, b, c] = await runs.begin("a", "b", "c")
    await runs.done(a, arrivals=(arrival(run_id, "j", 3, 2, fired=1),))
    await runs.done(b, arrivals=(arrival(run_id, "j", 3, 2, fired=0),))
    assert list(await runs.live(run_id)) == ["c"]
    await runs.done(c, arrivals=(arrival(run_id, "j", 3, 2, fired=1),))

    assert list(await runs.live(run_id)) == ["j"]


async def test_a_join_that_is_passed_over_waits_for_all(runs: Runs) -> None:
    """As long as some have not arrived it is not passed over, even when too few can fire."""
    run_id, [a, b] = await runs.begin("a", "b")
    await runs.done(a, arrivals=(arrival(run_id, "j", 2, 2, fired=0),))
    assert list(await runs.live(run_id)) == ["b"]
    await runs.done(b, arrivals=(arrival(run_id, "j", 2, 2, fired=1),))

    assert [job.node for job in await runs.claim(queue="nodes")] == ["j"]


async def test_arrivals_after_the_decision_only_count(on: Scenario, runs: Runs) -> None:
    """A join decided early inserts nothing more, also when its job has run and ended before the rest arrive."""
    run_id, [a, b, c] = await runs.begin("a", "b", "c")
    await runs.done(a, arrivals=(arrival(run_id, "j", 3, 1, fired=1),))
    [joined] = await runs.claim()
    await runs.done(b, arrivals=(arrival(run_id, "j", 3, 1, fired=1),))
    await runs.done(joined, endings=(success("j"),))
    await runs.done(c, arrivals=(arrival(run_id, "j", 3, 1, fired=0),))

    assert await runs.store.live_nodes(run_id) == []
    assert len(await on.stores.inspect.list_jobs()) == 4


@pytest.mark.parametrize(("count", "fired", "need"), [(1, 1, 1), (2, 1, 1), (2, 2, 2), (1, 0, 0)])
async def test_arrivals_without_a_job_only_count(runs: Runs, count: int, fired: int, need: int) -> None:
    """What they decide was decided elsewhere before: nothing is inserted, then or by those that come later."""
    run_id, [a, b, c] = await runs.begin("a", "b", "c")
    await runs.done(a, arrivals=(Arrival("j", count + 2, need, None, count, fired),))
    await runs.done(b, arrivals=(arrival(run_id, "j", count + 2, need, fired=1),))
    await runs.done(c, arrivals=(arrival(run_id, "j", count + 2, need, fired=0),))

    assert await runs.store.live_nodes(run_id) == []


async def test_one_arrival_may_stand_for_many(runs: Runs) -> None:
    """Counts and those that fired are summed, within one end and over several."""
    run_id, [a, b] = await runs.begin("a", "b")
    await runs.done(
        a,
        arrivals=(
            arrival(run_id, "j", 1_000, 700, count=400, fired=300),
            arrival(run_id, "j", 1_000, 700, count=200, fired=200),
        ),
    )
    assert list(await runs.live(run_id)) == ["b"]
    await runs.done(b, arrivals=(arrival(run_id, "j", 1_000, 700, count=400, fired=200),))

    assert [job.node for job in await runs.claim()] == ["j"]


async def test_many_that_did_not_fire_may_arrive_at_once(runs: Runs) -> None:
    """The last of them passes the path over, not the first."""
    run_id, [a, b] = await runs.begin("a", "b")
    await runs.done(a, arrivals=(arrival(run_id, "j", 10, 1, count=9),))
    assert list(await runs.live(run_id)) == ["b"]
    await runs.done(b, arrivals=(arrival(run_id, "j", 10, 1),))

    assert [job.node for job in await runs.claim(queue="nodes")] == ["j"]


async def test_an_end_arrives_at_many(runs: Runs) -> None:
    """Each path has its own sum: some run, some are passed over, some wait."""
    run_id, [a, _] = await runs.begin("a", "b")
    arrivals = (
        arrival(run_id, "j", 1, 1, fired=1),
        arrival(run_id, "k", 1, 1, fired=0),
        arrival(run_id, "l", 2, 1, fired=0),
    )
    await runs.done(a, arrivals=arrivals)

    assert [job.node for job in await runs.claim()] == ["j"]
    assert [job.node for job in await runs.claim(queue="nodes")] == ["k"]
    assert set(await runs.live(run_id)) == {"b", "j", "k"}


async def test_the_job_of_an_arrival_is_inserted_as_it_is(on: Scenario, runs: Runs) -> None:
    """With its id, arguments, specification, run and node."""
    run_id, [a] = await runs.begin("a")
    new = node_job(run_id, "j", args=item(7), queue="mail", task="send", priority=2, max_attempts=9, timeout=MINUTE)
    await runs.done(a, arrivals=(Arrival("j", 1, 1, new, fired=1),))

    [job] = await runs.claim(queue="mail")
    assert (job.id, job.args, job.task, job.run_id, job.node) == (new.id, item(7), "send", run_id, "j")
    assert (job.max_attempts, job.timeout, (await on.job(job.id)).priority) == (9, MINUTE, 2)
    assert (await on.job(job.id)).created_at == on.clock.now()


async def test_what_is_passed_over_keeps_its_id(on: Scenario, runs: Runs) -> None:
    """It has the specification of nodes that are no tasks, no gate, and else what its job has."""
    run_id, [a] = await runs.begin("a")
    gate = Gate(caps=("task:send",))
    new = node_job(run_id, "j", args=item(7), queue="mail", task="send", max_attempts=2, gate=gate)
    await runs.done(a, arrivals=(Arrival("j", 1, 1, new, fired=0),))

    [job] = await runs.claim(queue="nodes")
    assert (job.id, job.args, job.run_id, job.node) == (new.id, item(7), run_id, "j")
    assert (job.task, job.queue, job.max_attempts, job.timeout) == (
        NODE_SPEC.task,
        NODE_SPEC.queue,
        NODE_SPEC.max_attempts,
        NODE_SPEC.timeout,
    )


async def test_joins_of_two_runs_are_apart(runs: Runs) -> None:
    """Ends of two runs in one call sum up each in its own."""
    first, [a1, b1] = await runs.begin("a", "b")
    second, [a2, _] = await runs.begin("a", "b")
    await runs.complete(
        with_effects(a1, arrivals=(arrival(first, "j", 2, 2, fired=1),)),
        with_effects(a2, arrivals=(arrival(second, "j", 2, 2, fired=1),)),
        with_effects(b1, arrivals=(arrival(first, "j", 2, 2, fired=1),)),
    )

    assert list(await runs.live(first)) == ["j"]
    assert list(await runs.live(second)) == ["b"]


async def test_ends_at_once_decide_a_join_once(on: Scenario, runs: Runs) -> None:
    """Ends that come over many connections at the same moment insert one job, with all of them counted."""
    nodes = [f"n{number}" for number in range(24)]
    run_id, jobs = await runs.begin(*nodes)
    await asyncio.gather(
        *(
            runs.done(job, arrivals=(arrival(run_id, "all", 24, 24, fired=1), arrival(run_id, "any", 24, 1, fired=1)))
            for job in jobs
        )
    )

    assert sorted(str(job.node) for job in await runs.claim()) == ["all", "any"]
    assert len(await on.stores.inspect.list_jobs(limit=100)) == 26


async def test_ends_at_once_at_many_joins_do_not_lock_each_other_out(runs: Runs) -> None:
    """Ends that arrive at the same paths in different orders all go in."""
    nodes = [f"n{number}" for number in range(12)]
    paths = [f"j{number}" for number in range(6)]
    run_id, jobs = await runs.begin(*nodes)
    await asyncio.gather(
        *(
            runs.done(
                job, arrivals=tuple(arrival(run_id, path, 12, 12, fired=1) for path in paths[:: 1 - number % 2 * 2])
            )
            for number, job in enumerate(jobs)
        )
    )

    assert sorted(str(job.node) for job in await runs.claim()) == paths


# Jobs


async def test_jobs_are_inserted_with_the_end(on: Scenario, runs: Runs) -> None:
    """Direct jobs wait in their queues at once, those with a time ahead are scheduled."""
    run_id, [a] = await runs.begin("a")
    later = node_job(run_id, "c", run_at=on.clock.now() + MINUTE)
    await runs.done(a, jobs=(node_job(run_id, "b"), later))

    assert [job.node for job in await runs.claim()] == ["b"]
    assert (await runs.live(run_id))["c"].state is JobState.SCHEDULED
    on.clock.advance(MINUTE)
    assert await on.stores.jobs.stage_jobs(limit=10) == {"default"}
    assert [job.node for job in await runs.claim()] == ["c"]


async def test_the_job_of_an_arrival_may_have_its_time(on: Scenario, runs: Runs) -> None:
    """A join whose job has a time ahead is scheduled."""
    run_id, [a] = await runs.begin("a")
    await runs.done(a, arrivals=(arrival(run_id, "j", 1, 1, fired=1, run_at=on.clock.now() + MINUTE),))

    assert (await runs.live(run_id))["j"].state is JobState.SCHEDULED


@pytest.mark.parametrize("way", ["jobs", "arrivals"])
async def test_a_gate_of_what_is_inserted_holds(on: Scenario, runs: Runs, way: str) -> None:
    """The first job with a gate makes its queue gated, also when the end of a node inserts it."""
    run_id, [a] = await runs.begin("a")
    gate = Gate(caps=("task:work",))
    await on.gate.set_cap("task:work", 1)
    effects: dict[str, Any] = {
        "jobs": tuple(node_job(run_id, node, gate=gate, queue="mail") for node in "bc"),
        "arrivals": tuple(arrival(run_id, node, 1, 1, fired=1, gate=gate, queue="mail") for node in "bc"),
    }
    await runs.done(a, **{way: effects[way]})

    assert await runs.claim(queue="mail") == []
    [job] = await on.admit(await runs.session(), queue="mail")
    assert (job.run_id, job.gated) == (run_id, True)
    await runs.done(job)
    [other] = await on.admit(await runs.session(), queue="mail")
    assert {job.node, other.node} == {"b", "c"}


async def test_jobs_of_an_end_are_claimed_in_their_order(runs: Runs) -> None:
    """Jobs that one end inserts run in the order of their ids."""
    run_id, [a] = await runs.begin("a")
    await runs.done(a, jobs=tuple(node_job(run_id, f"b{number}", id=new) for number, new in enumerate(uuid7s(5))))

    claimed = await runs.claim()
    assert [job.node for job in claimed] == [f"b{number}" for number in range(5)]


# The run


async def test_jobs_begin_with_the_steps_that_go_along(on: Scenario, runs: Runs) -> None:
    """What was kept for a node before it had a job of its own is there when that begins."""
    run_id, [job] = await runs.begin("a")
    new = node_job(run_id, "b")
    await runs.done(job, jobs=(new,), steps=((new.id, "pay", "1"), (new.id, "until b", '"x"')))

    assert await on.stores.jobs.load_steps(new.id) == {"pay": "1", "until b": '"x"'}


async def test_a_run_goes_on_at_another_level(runs: Runs) -> None:
    """Its record says the level and why."""
    run_id, [job] = await runs.begin(None, level=Level.WORKFLOW)
    await runs.done(job, level=Level.NODE, reason="it parks", jobs=(node_job(run_id, "a"),))

    view = await runs.run(run_id)
    assert (view.level, view.reason, view.state) == (Level.NODE, "it parks", RunState.RUNNING)
    assert list(await runs.live(run_id)) == ["a"]


@pytest.mark.parametrize(
    "ending",
    [
        RunEnding(RunState.SUCCEEDED, '{"x": 1}'),
        RunEnding(RunState.FAILED, None, ERROR),
        RunEnding(RunState.CANCELLED),
    ],
)
async def test_a_run_ends(on: Scenario, runs: Runs, ending: RunEnding) -> None:
    """State, output, error and the store's time are kept; the level stays."""
    run_id, [job] = await runs.begin("a")
    on.clock.advance(SECOND)
    await runs.done(job, endings=(success("a"),), ending=ending)

    view = await runs.run(run_id)
    assert (view.state, view.output, view.error) == (ending.state, ending.output, ending.error)
    assert (view.finished_at, view.level) == (on.clock.now(), Level.NODE)
    assert await runs.paths(run_id) == ["a"]


@pytest.mark.parametrize("over", ["ended", "cancelling"])
async def test_nothing_but_endings_reaches_a_run_that_does_not_run(on: Scenario, runs: Runs, over: str) -> None:
    """Of ends after that, endings are kept; nothing is inserted, and neither level nor state changes."""
    run_id, [a, b] = await runs.begin("a", "b")
    if over == "ended":
        await runs.done(b, ending=RunEnding(RunState.FAILED, None, ERROR))
    else:
        await runs.store.cancel_run(run_id)
    before = await runs.run(run_id)
    on.clock.advance(SECOND)
    effects: dict[str, Any] = {
        "endings": (success("a"),),
        "arrivals": (arrival(run_id, "j", 1, 1, fired=1), arrival(run_id, "k", 1, 1, fired=0)),
        "jobs": (node_job(run_id, "c"),),
        "level": Level.WORKFLOW,
        "reason": "late",
        "ending": RunEnding(RunState.SUCCEEDED, "1"),
    }

    assert await runs.done(a, **effects) == [a.id]
    assert await runs.paths(run_id) == ["a"]
    assert await runs.run(run_id) == before
    assert set(await runs.live(run_id)) <= {"b"}


async def test_a_refused_end_sets_nothing_going(runs: Runs) -> None:
    """An attempt that lost its job applies none of its effects; others of the same call go in."""
    run_id, [a, b] = await runs.begin("a", "b")
    late = replace(a, attempt=7)
    effects: dict[str, Any] = {
        "endings": (success("a"),),
        "arrivals": (arrival(run_id, "j", 2, 1, fired=1),),
        "jobs": (node_job(run_id, "c"),),
        "level": Level.WORKFLOW,
        "reason": "late",
        "ending": RunEnding(RunState.SUCCEEDED, "1"),
    }
    before = await runs.run(run_id)

    accepted = await runs.complete(with_effects(late, **effects), with_effects(b, endings=(success("b"),)))
    assert accepted == [b.id]
    assert await runs.run(run_id) == before
    assert await runs.paths(run_id) == ["b"]
    assert list(await runs.live(run_id)) == ["a"]


async def test_an_end_under_another_session_sets_nothing_going(on: Scenario, runs: Runs) -> None:
    """Who does not hold the job ends nothing of it, whatever attempt is named."""
    run_id, [a] = await runs.begin("a")
    done = with_effects(a, endings=(success("a"),), jobs=(node_job(run_id, "b"),))

    assert await on.stores.jobs.complete_jobs(await on.worker(), [done]) == []
    assert await runs.paths(run_id) == []
    assert list(await runs.live(run_id)) == ["a"]


async def test_an_end_reported_twice_counts_once(runs: Runs) -> None:
    """A completion repeated after a lost answer, or twice in one call, is refused and arrives no second time."""
    run_id, [a, b] = await runs.begin("a", "b")
    done = with_effects(a, arrivals=(arrival(run_id, "j", 3, 2, fired=1),))
    assert await runs.complete(done) == [a.id]
    assert await runs.complete(done) == []
    assert list(await runs.live(run_id)) == ["b"]
    await runs.done(b, arrivals=(arrival(run_id, "j", 3, 2, fired=1),))

    assert list(await runs.live(run_id)) == ["j"]


async def test_ends_without_runs_go_in_beside(on: Scenario, runs: Runs) -> None:
    """One call ends jobs of runs and of none, with effects and without."""
    session = await runs.session()
    await on.enqueue()
    [plain] = await runs.claim()
    run_id, [a, b] = await runs.begin("a", "b")

    ended = [replace(with_effects(a), job_id=plain.id, effects=None), with_effects(a, endings=(success("a"),))]
    sent_back = replace(with_effects(b), state=JobState.READY, effects=None)
    accepted = await on.stores.jobs.complete_jobs(session, [*ended, sent_back])
    assert sorted(accepted) == sorted([plain.id, a.id, b.id])
    assert await runs.paths(run_id) == ["a"]
    assert list(await runs.live(run_id)) == ["b"]


async def test_an_exchange_applies_effects_too(on: Scenario, runs: Runs) -> None:
    """What an end sets going is there with the answer, claimed already or ready to be."""
    run_id, [a] = await runs.begin("a")
    session = await runs.session()
    done = with_effects(a, endings=(success("a"),), arrivals=(arrival(run_id, "j", 1, 1, fired=1),))
    accepted, claimed = await on.stores.jobs.exchange_jobs(session, [done], Claim(session, "default", 10))

    assert accepted == [a.id]
    assert await runs.paths(run_id) == ["a"]
    [job] = [*claimed, *await runs.claim()]
    assert (job.run_id, job.node, job.args) == (run_id, "j", ARGS)


async def test_a_thousand_nodes_end_in_one_call(on: Scenario, runs: Runs) -> None:
    """Many endings, arrivals and jobs of one call go in whole."""
    nodes = [f"m[{number}]/a" for number in range(200)]
    run_id, jobs = await runs.begin(*nodes)
    on.clock.advance(DAY)
    done = [
        with_effects(
            job,
            endings=(success(str(job.node)),),
            arrivals=(arrival(run_id, f"m[{number}]/b", 1, 1, fired=1), arrival(run_id, "m/", 200, 200, fired=1)),
            jobs=(node_job(run_id, f"m[{number}]/c"),),
        )
        for number, job in enumerate(jobs)
    ]

    assert len(await runs.complete(*done)) == 200
    assert len(await runs.paths(run_id)) == 200
    assert len(await runs.live(run_id)) == 401


async def test_sums_of_a_run_that_ended_are_no_ones(runs: Runs) -> None:
    """Another run of the same workflow counts its own from the start."""
    first, [a] = await runs.begin("a")
    await runs.done(a, arrivals=(arrival(first, "j", 2, 2, fired=1),), ending=RunEnding(RunState.FAILED, None, ERROR))
    second, [b] = await runs.begin("a")
    await runs.done(b, arrivals=(arrival(second, "j", 2, 2, fired=1),))

    ids: list[UUID] = [first, second]
    assert [await runs.store.live_nodes(run_id) for run_id in ids] == [[], []]
