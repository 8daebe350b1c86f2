"""A report as a job: what it is asked for, its id, and the runs that work on it.

A job is one workbook with one set of options. Its first run has the key `JOB/0`; each that goes on with it, after a
resume, repeats the one before and has the next number. The last one counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace import ConflictError, InvalidInputError, NotFoundError, Run, RunState
from headrace.apps.report.data.document import Lang
from headrace.apps.report.graph import WORKFLOW, report
from headrace.apps.report.opening import app
from headrace.apps.report.prompts import PROMPT_VERSION
from headrace.apps.report.sources import find_source
from headrace.apps.report.stages import STAGES, VERSIONS
from headrace.model.payload import hash_text

#: Runs that one job may have had: a bound for the search of the last one.
MOST_RUNS = 1_000
#: Signs of what is looked up as an id.
MOST_ID = 64


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """What a report is asked for."""

    #: a path, `file:NAME` below `[report] files`, or `s3://BUCKET/KEY`
    file_ref: str
    sheets: tuple[str, ...] = ()
    lang: Lang = "en"
    #: empty: the name of the file
    title: str = ""
    #: rules of modules, as JSON; None: those that the sheet teaches
    rules: Mapping[str, Any] | None = None
    #: exit criteria that differ from the usual ones
    gate: Mapping[str, Any] = field(default_factory=dict)
    #: the report before, as JSON
    previous: Mapping[str, Any] | None = None

    def options(self, name: str) -> dict[str, Any]:
        """Return what the workflow is given beside the file, whose name is the title where none is given."""
        return {
            "sheets": list(self.sheets), "lang": self.lang, "title": self.title or name,
            "rules": None if self.rules is None else dict(self.rules), "gate": dict(self.gate),
            "previous": None if self.previous is None else dict(self.previous),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """A report and its last run."""

    id: str
    run: Run
    #: How many runs there were before this one.
    number: int = 0


def job_id_of(name: str, source: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Return the id of a job: equal requests under one name are one job, while code, questions and model are the same.

    `name`: such as where it is written to.
    """
    made_by = [VERSIONS, PROMPT_VERSION, app.settings.llm_settings().model]
    text = json.dumps([name, source["ref"], source["sha256"], options, made_by], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


async def begin_report(request: ReportRequest, *, name: str, alone: bool = False) -> Job:
    """Store the first run of a report, or return the job that was begun by an equal request under that name.

    `alone`: the name is that of one job, so that another request under it is a conflict. Nothing of the file is read
    but its bytes. Raises ConfigError, ConflictError, InvalidInputError.
    """
    source = await find_source(request.file_ref)
    options = request.options(source["name"])
    job_id = hash_text(name)[:32] if alone else job_id_of(name, source, options)
    run = await app.start(report, job_id=job_id, source=source, options=options, key=_key(job_id, 0))
    return await _last(job_id, run)


async def is_begun(request: ReportRequest, *, name: str) -> bool:
    """Whether an equal request was made under that name before."""
    source = await find_source(request.file_ref)
    job_id = job_id_of(name, source, request.options(source["name"]))
    return await app.find_run_by_key(WORKFLOW, _key(job_id, 0)) is not None


async def find_report(job_id: str) -> Job:
    """Return a job. Raises NotFoundError."""
    is_id = job_id.isascii() and job_id.isalnum() and len(job_id) <= MOST_ID
    run = await app.find_run_by_key(WORKFLOW, _key(job_id, 0)) if is_id else None
    if run is None:
        raise NotFoundError(f"no report {job_id[:MOST_ID]}; it may have been pruned, see [recovery] keep_runs")
    return await _last(job_id, run)


async def _last(job_id: str, run: Run) -> Job:
    for number in range(MOST_RUNS):
        found = await app.find_run_by_key(WORKFLOW, _key(job_id, number + 1))
        if found is None:
            return Job(job_id, run, number)
        run = found
    raise InvalidInputError("report", f"must have at most {MOST_RUNS} runs", job_id)


async def resume_report(job: Job, stage: str | None = None) -> Job:
    """Run what is missing once more, or everything from a stage on where its input has changed; return the job.

    A run that goes on is returned as it is. Raises InvalidInputError for an unknown stage, or one with a run that goes
    on.
    """
    if stage is not None and stage not in STAGES:
        raise InvalidInputError("from", f"must be one of {', '.join(STAGES)}", stage)
    state = await job.run.status()
    if not state.final:
        if stage is not None:
            raise InvalidInputError("from", "goes with a report that has ended; wait for it, or cancel its run", stage)
        return job
    if stage is None and state is RunState.SUCCEEDED and not await is_degraded(job):
        return job
    try:
        again = await job.run.rerun(stage, key=_key(job.id, job.number + 1))
    except ConflictError:
        raise ConflictError(f"report {job.id} is being run again by somebody else: wait until that has ended") from None
    return Job(job.id, again, job.number + 1)


async def is_degraded(job: Job) -> bool:
    """Whether a report that has ended lacks something."""
    return bool((await job.run.result())["status"] != "ok")


def _key(job_id: str, number: int) -> str:
    return f"{job_id}/{number}"
