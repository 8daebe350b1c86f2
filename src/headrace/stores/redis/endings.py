"""Ends of attempts and their effects in runs, as scripts take them: see `lib/completing.lua`, `lib/effects.lua`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from headrace.model.job import Completion, JobSpec, NewJob
from headrace.model.run import Arrival, Effects, NodeEnding
from headrace.stores.redis.rows import encode_error, micros, span, spec_fields, to_json

Item = TypeVar("Item")

#: Attempts that one script ends at most: more would hold up everybody else.
COMPLETED_PART = 200
#: So many endings, arrivals and jobs of effects count as one attempt more.
EFFECTS_PER_ATTEMPT = 10


def completion_parts(completions: Sequence[Completion]) -> list[Sequence[Completion]]:
    """Return completions in parts that are for one script each."""
    return in_parts(completions, lambda done: 0 if done.effects is None else size_of(done.effects))


def in_parts(items: Sequence[Item], size: Callable[[Item], int]) -> list[Sequence[Item]]:
    """Return items in parts, each of what one script may take; `size` says what the effects of one hold.

    >>> in_parts("abcde", lambda letter: 1_000)
    ['a', 'b', 'c', 'd', 'e']
    """
    parts: list[Sequence[Item]] = []
    start = weight = 0
    for place, item in enumerate(items):
        more = 1 + size(item) // EFFECTS_PER_ATTEMPT
        if weight and weight + more > COMPLETED_PART:
            parts.append(items[start:place])
            start, weight = place, 0
        weight += more
    return [*parts, items[start:]] if items else []


def size_of(effects: Effects) -> int:
    """Return how much effects hold."""
    return len(effects.endings) + len(effects.arrivals) + len(effects.jobs) + len(effects.steps)


def encode_completions(completions: Sequence[Completion]) -> str:
    """Return completions as the JSON list of `lib/completing.lua`."""
    rows: list[list[Any]] = [[done.job_id.hex, done.attempt, done.result or "", _ending(done)] for done in completions]
    for row, done in zip(rows, completions, strict=True):
        if done.effects is not None:
            row.append(effects_words(done.effects))
    return to_json(rows)


def _ending(done: Completion) -> str | dict[str, Any]:
    """Return what a script has to know of an ending; nothing of a plain success."""
    error, usage = encode_error(done.error), done.usage
    if done.state == "succeeded" and not (error or usage or done.charged or done.lone_crash or done.log):
        return ""
    park = done.park
    facts = {
        "state": done.state.value,
        "final": done.state.final,
        "error": error,
        "usage": usage,
        "charged": done.charged,
        "lone": done.lone_crash,
        "progressed": done.progressed,
        "released": done.released,
        "park": None if park is None else [park.key or "", -1 if park.wait is None else span(park.wait)],
        "delay": span(done.delay),
        "log": done.log,
    }
    return {name: value for name, value in facts.items() if value or name == "delay"}


def effects_words(effects: Effects) -> dict[str, Any]:
    """Return effects as `lib/effects.lua` takes them."""
    specs: dict[JobSpec, int] = {}
    words: dict[str, Any] = {
        "run": effects.run_id.hex,
        "endings": node_words(effects.endings),
        "arrivals": [_arrival(specs, arrival) for arrival in effects.arrivals],
        "jobs": [_job(specs, job) for job in effects.jobs],
        "steps": [(job_id.hex, name, value) for job_id, name, value in effects.steps],
        "level": effects.level or "",
        "reason": effects.reason,
    }
    words["specs"] = [spec_fields(spec) for spec in specs]
    if (ending := effects.ending) is not None:
        facts = {"output": ending.output, "error": encode_error(ending.error)}
        words["ending"] = [ending.state, [word for pair in facts.items() if pair[1] is not None for word in pair]]
    return words


def job_words(jobs: Sequence[NewJob]) -> dict[str, Any]:
    """Return jobs as `lib/effects.lua` takes them, with what they share."""
    specs: dict[JobSpec, int] = {}
    words = [_job(specs, job) for job in jobs]
    return {"jobs": words, "specs": [spec_fields(spec) for spec in specs]}


def _arrival(specs: dict[JobSpec, int], arrival: Arrival) -> list[Any]:
    job = False if arrival.job is None else _job(specs, arrival.job)
    return [arrival.path, arrival.total, arrival.need, arrival.count, arrival.fired, job]


def _job(specs: dict[JobSpec, int], job: NewJob) -> list[Any]:
    """Return a job by the number of its specification, counted from one."""
    number = specs.setdefault(job.spec, len(specs) + 1)
    run = False if job.run_id is None else job.run_id.hex
    return [number, job.id.hex, job.args, 0 if job.run_at is None else micros(job.run_at), run, job.node or ""]


def node_words(endings: Sequence[NodeEnding]) -> list[tuple[str, str]]:
    """Return the path of each ending, and its text; see `run_rows.node_ending`."""
    return [(ending.path, _node_text(ending)) for ending in endings]


def _node_text(ending: NodeEnding) -> str:
    facts = {
        "state": ending.state.value,
        "output": ending.output,
        "port": ending.port,
        "error": encode_error(ending.error),
        "artifact": ending.artifact,
        "attempts": ending.attempts,
        "reused": ending.reused,
        "started_at": None if ending.started_at is None else micros(ending.started_at),
    }
    return to_json({name: value for name, value in facts.items() if value is not None and value != ""})
