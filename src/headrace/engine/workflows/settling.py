"""What it sets going when the store ended a job of a run by itself: cancelled, or with its worker or its time lost."""

from __future__ import annotations

from headrace.engine.workflows.endings import node_ending
from headrace.engine.workflows.kinds import Kinds, end_failed_run
from headrace.engine.workflows.means import Means
from headrace.engine.workflows.moving import Moved
from headrace.model.errors import NotFoundError
from headrace.model.graph.layout import Place
from headrace.model.graph.nodes import MapNode
from headrace.model.job import JobState
from headrace.model.run import Effects, RunEnding, RunState, Unsettled


async def effects_of(means: Means, job: Unsettled) -> Effects:
    """Return what the end of an unsettled job sets going."""
    try:
        facts = await means.known.get(job.run_id)
    except NotFoundError:
        return Effects(job.run_id)
    kinds = means.kinds(facts, _keep_nothing)
    if job.node is not None and job.node != "/":
        return (await _move(means, kinds, job, job.node)).effects(facts)
    if job.state is JobState.CANCELLED:
        return Moved(ending=RunEnding(RunState.CANCELLED, None, job.error)).effects(facts)
    return end_failed_run(facts, job.error).effects(facts)


async def _move(means: Means, kinds: Kinds, job: Unsettled, path: str) -> Moved:
    if path.endswith("/"):
        return await kinds.fail(path, job.error)
    ending = node_ending(kinds.facts, path, job.state, job.error, job.attempt)
    return await kinds.end_job(ending, await _first_entry(means, job, kinds.facts.place(path)))


async def _first_entry(means: Means, job: Unsettled, place: Place) -> int:
    """Return with which entry of a map its job was to go on; 0 for any other node."""
    if not isinstance(place.node, MapNode):
        return 0
    view = await means.stores.inspect.get_job(job.job_id)
    assert view is not None, "a job is kept until it is settled"
    args = view.args["args"]
    return int(args[0]) if args else 0


async def _keep_nothing(name: str, value: str) -> str:
    raise AssertionError(f"the end of a job keeps nothing, {name} = {value}")
