"""A task's node where a farm runs it: its arguments are read there, and its output is stored there."""

from __future__ import annotations

from headrace.engine.attempt import RunPart
from headrace.engine.workflows.inline_calls import InlinePart
from headrace.engine.workflows.means import Means
from headrace.engine.workflows.retries import backoff_of
from headrace.engine.workflows.task_part import bind_call
from headrace.model.backoff import Backoff
from headrace.model.job import ClaimedJob


async def join_run(means: Means, job: ClaimedJob) -> tuple[RunPart | None, Backoff | None]:
    """Give the job of a node its arguments and what it is told of its run; return its part and its node's retries.

    What its end sets going is worked out by the worker that claimed it.
    """
    if job.run_id is None or job.node is None:
        return None, None
    facts = await means.known.get(job.run_id)
    job.args = (await bind_call(means, facts, job.node, job.args)).text
    job.run = facts.info(job.node)
    retry = facts.place(job.node).node.options.retry
    part = InlinePart(means.values, job.run_id, job.node, set())
    return part, None if retry is None else backoff_of(retry)
