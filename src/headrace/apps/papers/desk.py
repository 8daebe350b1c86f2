"""Documents of a batch of papers as people look at them: every value with its evidence and what is decided of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from headrace import App, NotFoundError
from headrace.apps.papers.errors import MissingSourceError
from headrace.apps.papers.job import TASK_NAME, texts_of, workspace_of
from headrace.apps.papers.named import name_of
from headrace.apps.papers.output.lines import Place, ValueLine, lines_of
from headrace.apps.papers.output.model import Row
from headrace.apps.papers.page.texts import DocumentText
from headrace.apps.papers.result import DocumentResult
from headrace.apps.papers.review.deciding import Verdict, decide
from headrace.apps.papers.review.decisions import Decision
from headrace.apps.papers.review.log import ReviewLog
from headrace.model.ids import parse_id
from headrace.model.job import JobState, JobView

EXTRACTED, UNREADABLE, FAILED, UNSEEN = "extracted", "unreadable", "failed", "unseen"


@dataclass(frozen=True, slots=True)
class LookedValue:
    """One value, and what is decided of it."""

    line: ValueLine
    decision: Decision

    @property
    def name(self) -> str:
        """What it is called within its document."""
        return value_name(self.line.place)


@dataclass(frozen=True, slots=True)
class LookedDocument:
    """A document that has ended: its values, or why it has none."""

    job: UUID
    name: str
    #: `extracted`, `unreadable`, `failed`, or `unseen`: its template is on another machine
    state: str
    problem: str = ""
    result: DocumentResult | None = None
    values: tuple[LookedValue, ...] = ()
    #: that the values were extracted from; None where it is not at hand
    text: DocumentText | None = None

    def value(self, name: str) -> LookedValue:
        """Return a value by its name. Raises NotFoundError."""
        for value in self.values:
            if value.name == name:
                return value
        raise NotFoundError(f"document {self.job} has no value {name[:100]!r}")


@dataclass(frozen=True, slots=True)
class LookedPage:
    """Documents in the order they ended, and where the next begin; None: no more have ended."""

    documents: tuple[LookedDocument, ...]
    next: str | None


def value_name(place: Place) -> str:
    """Return what a value is called within its document.

    >>> value_name(Place("d", "", 0, "size")), value_name(Place("d", "arm", 2, "dose"))
    ('size', 'arm.2.dose')
    """
    return f"{place.group}.{place.row}.{place.field}" if place.group else place.field


async def look_at(app: App, batch_id: UUID, *, cursor: str = "", limit: int = 20) -> LookedPage:
    """Return documents of a batch that have ended. Raises InvalidInputError for what is no cursor."""
    page = await app.runtime.stores.inspect.read_items(batch_id, cursor=cursor, limit=limit)
    ended = [item for item in page.items if not item.retried]
    jobs = await app.runtime.stores.inspect.final_jobs([item.job_id for item in ended])
    views = [jobs[item.job_id] for item in ended if item.job_id in jobs]
    documents = await asyncio.to_thread(_looked, app, views)
    return LookedPage(documents, page.cursor if len(page.items) == limit else None)


async def document_of(app: App, task_id: str, job_id: str) -> tuple[JobView, LookedDocument]:
    """Return a document of a batch by its job, and the job. Raises NotFoundError, InvalidInputError."""
    batch, job = parse_id("task id", task_id), parse_id("job id", job_id)
    view = await app.runtime.stores.inspect.get_job(job)
    if view is None or view.batch_id != batch or view.task != TASK_NAME:
        raise NotFoundError(f"papers {batch} have no document of job {job}; it may have been pruned")
    if not view.state.final:
        raise NotFoundError(f"the document of job {job} has not ended yet")
    [found] = await asyncio.to_thread(_looked, app, [view])
    return view, found


async def decide_value(app: App, place: tuple[str, str, str], verdict: Verdict) -> LookedValue:
    """Decide a value: `place` is its batch, the job of its document, and its name. Raises as `decide` does."""
    task_id, job_id, name = place
    job, document = await document_of(app, task_id, job_id)
    if document.state == UNSEEN:
        raise MissingSourceError(document.problem)
    line = document.value(name).line
    run_id, now = run_of(job), datetime.now(UTC)
    decision = await asyncio.to_thread(decide, workspace_of(app), run_id, line, verdict, now=now)
    return LookedValue(line, decision)


def run_of(job: JobView) -> str:
    """Return the run that a job belongs to."""
    return str(_given(job)["result_id"]).partition("/")[0]


def _given(job: JobView) -> Any:
    return job.args["kwargs"]


def _looked(app: App, jobs: Sequence[JobView]) -> tuple[LookedDocument, ...]:
    return tuple(_document(app, job) for job in jobs)


def _document(app: App, job: JobView) -> LookedDocument:
    name = name_of(_given(job)["document_id"])
    if job.state is not JobState.SUCCEEDED:
        problem = f"{job.error.kind}: {job.error.message}" if job.error else job.state.value
        return LookedDocument(job.id, name, FAILED, problem)
    if "unreadable" in job.result:
        unreadable = job.result["unreadable"]
        return LookedDocument(job.id, name, UNREADABLE, f"{unreadable['reason']}: {unreadable['message']}")
    result = DocumentResult.from_json(job.result["result"])
    workspace, run_id = workspace_of(app), run_of(job)
    try:
        template = workspace.template(run_id)
    except MissingSourceError as error:
        return LookedDocument(job.id, result.name, UNSEEN, str(error), result)
    lines = list(lines_of(template, [Row(result.document_id, result.name).extracted(result)]))
    decisions = ReviewLog(workspace.review_folder(run_id)).decisions(lines)
    values = tuple(LookedValue(line, decisions[line.place]) for line in lines)
    text = texts_of(app).find(result.document_id, result.reader, None)
    return LookedDocument(job.id, result.name, EXTRACTED, "", result, values, text)
