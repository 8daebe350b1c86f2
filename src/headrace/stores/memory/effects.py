"""What the end of a job sets going in its run, in the same step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.model.run import NODE_SPEC, Arrival, Effects, NodeEnding, RunState
from headrace.stores.memory.intake import insert_job
from headrace.stores.memory.runs import Run, Sum
from headrace.stores.memory.state import State


def apply_effects(state: State, effects: Effects) -> None:
    """Keep endings; while the run is running also count arrivals, insert jobs, and move or end the run.

    Nothing is kept of a run that was removed.
    """
    run = state.runs.rows.get(effects.run_id)
    if run is None:
        return
    keep_endings(state, run, effects.endings)
    if run.state is not RunState.RUNNING:
        return
    for arrival in effects.arrivals:
        _arrive(state, run, arrival)
    for job in effects.jobs:
        insert_job(state, job)
    for job_id, name, value in effects.steps:
        state.steps.setdefault(job_id, {}).setdefault(name, value)
    if effects.level is not None:
        run.level, run.reason = effects.level, effects.reason
    if effects.ending is not None:
        run.output, run.error = effects.ending.output, effects.ending.error
        end_run(state, run, effects.ending.state)


def keep_endings(state: State, run: Run, endings: Iterable[NodeEnding]) -> list[NodeEnding]:
    """Keep how nodes ended, and return those that are new; a path that has an ending keeps it."""
    new = []
    for ending in endings:
        if ending.path not in run.endings:
            run.endings[ending.path] = replace(ending, finished_at=state.now(), events=())
            new.append(ending)
    return new


def end_run(state: State, run: Run, final: RunState) -> None:
    """Make a run final."""
    run.state, run.finished_at = final, state.now()
    run.sums.clear()


def _arrive(state: State, run: Run, arrival: Arrival) -> None:
    total = run.sums.setdefault(arrival.path, Sum(arrival.total, arrival.need))
    decided, job = total.add(arrival), arrival.job
    if decided and job is not None:
        insert_job(state, job if total.enough else replace(job, spec=NODE_SPEC))
