"""Effects of endings as the parameters of `finish_nodes`: one array per column, rows in the order of their locks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from headrace.model.job import JobSpec, NewJob
from headrace.model.priority import head_start
from headrace.model.run import NODE_SPEC, Effects, NodeEnding
from headrace.stores.postgres.rows import encode_error

#: Effects with the number of their completion, from 1 as the database counts.
Numbered = tuple[int, Effects]


def effects_values(effects: Sequence[Effects | None], order: Sequence[int]) -> dict[str, Any]:
    """Return the parameters of `finish_nodes` for the effects of its completions, by number less one.

    `order` has these numbers in the order in which the nodes ended: of two endings of a path the first one stands.
    """
    numbered = [(place + 1, each) for place in order if (each := effects[place]) is not None]
    return {
        "runs": [None if each is None else each.run_id for each in effects],
        **_node_values(numbered),
        **_arrival_values(numbered),
        **_job_values(numbered),
        **_step_values(numbered),
        **_move_values(numbered),
    }


def ending_values(endings: Sequence[NodeEnding]) -> dict[str, list[Any]]:
    """Return the columns of endings of nodes."""
    return {
        "node_paths": [ending.path for ending in endings],
        "node_states": [ending.state for ending in endings],
        "node_outputs": [ending.output for ending in endings],
        "node_ports": [ending.port for ending in endings],
        "node_errors": [encode_error(ending.error) for ending in endings],
        "node_artifacts": [ending.artifact for ending in endings],
        "node_attempts": [ending.attempts for ending in endings],
        "node_reused": [ending.reused for ending in endings],
        "node_started": [ending.started_at for ending in endings],
    }


def _node_values(numbered: Iterable[Numbered]) -> dict[str, list[Any]]:
    rows = [(number, ending) for number, effects in numbered for ending in effects.endings]
    return {"node_by": [number for number, _ in rows], **ending_values([ending for _, ending in rows])}


def _arrival_values(numbered: Iterable[Numbered]) -> dict[str, list[Any]]:
    rows = [(number, arrival) for number, effects in numbered for arrival in effects.arrivals]
    return {
        "arrival_by": [number for number, _ in rows],
        "arrival_paths": [arrival.path for _, arrival in rows],
        "totals": [arrival.total for _, arrival in rows],
        "needs": [arrival.need for _, arrival in rows],
        "counts": [arrival.count for _, arrival in rows],
        "fireds": [arrival.fired for _, arrival in rows],
    }


def _job_values(numbered: Iterable[Numbered]) -> dict[str, Any]:
    rows: list[tuple[int, str | None, NewJob]] = []
    # One of the arrivals at a path is enough to offer its job: they are alike. One that only counts says that there is
    # none to be inserted any more.
    offered: dict[tuple[UUID, str], tuple[int, NewJob | None]] = {}
    for number, effects in numbered:
        rows += [(number, None, job) for job in effects.jobs]
        for arrival in effects.arrivals:
            place = effects.run_id, arrival.path
            if place not in offered or arrival.job is None:
                offered[place] = number, arrival.job
    rows += [(number, path, job) for (_, path), (number, job) in offered.items() if job is not None]
    specs: dict[JobSpec, int] = {NODE_SPEC: 1}
    # By identity first: most jobs share their object, and comparing specifications takes longer than all else here.
    known = {id(job.spec): job.spec for _, _, job in rows}
    places = {key: specs.setdefault(spec, len(specs) + 1) for key, spec in known.items()}
    return {
        "job_by": [number for number, _, _ in rows],
        "job_paths": [path for _, path, _ in rows],
        "job_ids": [job.id for _, _, job in rows],
        "job_args": [job.args for _, _, job in rows],
        "job_runs": [job.run_id for _, _, job in rows],
        "job_nodes": [job.node for _, _, job in rows],
        "job_run_ats": [job.run_at for _, _, job in rows],
        "job_specs": [places[id(job.spec)] for _, _, job in rows],
        "passed_over": specs[NODE_SPEC],
        **_spec_values(list(specs)),
    }


def _step_values(numbered: Iterable[Numbered]) -> dict[str, list[Any]]:
    rows = [(number, *step) for number, effects in numbered for step in effects.steps]
    return {
        "step_by": [number for number, _, _, _ in rows],
        "step_jobs": [job_id for _, job_id, _, _ in rows],
        "step_names": [name for _, _, name, _ in rows],
        "step_values": [value for _, _, _, value in rows],
    }


def _spec_values(specs: Sequence[JobSpec]) -> dict[str, list[Any]]:
    return {
        "spec_queues": [spec.queue for spec in specs],
        "spec_tasks": [spec.task for spec in specs],
        "spec_priorities": [spec.priority for spec in specs],
        "spec_max_attempts": [spec.max_attempts for spec in specs],
        "spec_timeouts": [spec.timeout for spec in specs],
        "spec_at_most_once": [spec.at_most_once for spec in specs],
        "spec_lanes": [spec.gate.text if spec.gate is not None else None for spec in specs],
        "spec_costs": [spec.cost if spec.cost != 1 else None for spec in specs],
        "spec_head_starts": [head_start(spec.priority) for spec in specs],
    }


def _move_values(numbered: Iterable[Numbered]) -> dict[str, list[Any]]:
    rows = [(n, effects, effects.ending) for n, effects in numbered if effects.level or effects.ending]
    return {
        "move_by": [number for number, _, _ in rows],
        "move_levels": [effects.level for _, effects, _ in rows],
        "move_reasons": [effects.reason for _, effects, _ in rows],
        "move_states": [ending.state if ending else None for _, _, ending in rows],
        "move_outputs": [ending.output if ending else None for _, _, ending in rows],
        "move_errors": [encode_error(ending.error) if ending else None for _, _, ending in rows],
    }
