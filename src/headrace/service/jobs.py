"""`/jobs`: making jobs of calls, looking at them, asking why they wait, cancelling and repeating them."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from headrace.engine.operations import cancel_job, retry_once
from headrace.engine.queries import explain_job, explain_view, logs_document, show_job, show_logs, to_json
from headrace.model.api_token import Scope
from headrace.model.ids import parse_id
from headrace.model.job import JobState, JobView
from headrace.model.names import check_name
from headrace.model.places import decode_place, encode_place
from headrace.service.auth import needs
from headrace.service.documents import Cancelled, ExplainedJob, JobDocument, JobLogs, JobPage, Retried, SubmittedJob
from headrace.service.paging import Page
from headrace.service.served import Served
from headrace.service.submitting import IdempotencyKey, JobOptions, check_queue, options_of, task_of
from headrace.wiring.farm_explaining import with_farm

LOCATION = "/api/v1/jobs/"
#: What lists leave out: each may be 256 KiB.
LARGE = ("args", "result", "error", "usage")

router = APIRouter(prefix="/jobs", tags=["jobs"])


class SubmitJob(JobOptions):
    """A call of a task to make a job of."""

    task: str = Field(description="name of a task of the app that is served", examples=["summarise"])
    args: list[Any] = Field(default_factory=list, description="positional arguments")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="keyword arguments", examples=[{"text": "…"}])


class JobQuery(Page):
    """Which jobs are listed."""

    queue: str | None = Field(None, max_length=64)
    state: JobState | None = None
    task: str | None = Field(None, max_length=64)
    batch: UUID | None = None


class LogQuery(BaseModel):
    """Of which attempt lines are wanted."""

    model_config = ConfigDict(extra="forbid")

    attempt: int | None = Field(None, ge=1, le=2**31 - 1, description="its number; without it of all of them")


@router.post(
    "", dependencies=[needs(Scope.SUBMIT)], status_code=201, response_model=SubmittedJob,
    responses={200: {"model": SubmittedJob, "description": "the key was used before for the same: its job"}},
)  # fmt: skip
async def submit_job(app: Served, body: SubmitJob, key: IdempotencyKey = None) -> Response:
    """Make a durable job of one call and return its id once it is stored.

    The same key with the same task and arguments gives the job that was made before, with 200 rather than 201; with
    other arguments it is a conflict.
    """
    task = task_of(app, body.task)
    if body.queue is not None:
        await check_queue(app, body.queue)
    job = task.options(**options_of(body, key)).new_job(body.args, body.kwargs)
    stored = await app.runtime.client.enqueue(job)
    location = f"{LOCATION}{stored}"
    content = {"job": str(stored), "location": location}
    return JSONResponse(content, 201 if stored == job.id else 200, headers={"location": location})


@router.get("", response_model=JobPage)
async def list_jobs(app: Served, page: Annotated[JobQuery, Query()]) -> dict[str, Any]:
    """List jobs, newest first, without their arguments and results.

    A big store looks for those of a state, a queue or a task within bounds: what waits, runs or did not succeed is
    found, old successes that others outnumber may not be.
    """
    for field, name in (("queue", page.queue), ("task", page.task)):
        if name is not None:
            check_name(field, name)
    # One more tells whether another page follows.
    found = await app.runtime.stores.inspect.list_jobs(
        state=page.state, queue=page.queue, task=page.task, batch_id=page.batch,
        before=None if page.cursor is None else decode_place(page.cursor), limit=page.limit + 1, brief=True,
    )  # fmt: skip
    shown = found[: page.limit]
    last = encode_place((shown[-1].created_at, shown[-1].id)) if len(found) > len(shown) else None
    return {"jobs": [_row(view) for view in shown], "next_cursor": last}


def _row(view: JobView) -> dict[str, Any]:
    document: dict[str, Any] = to_json(view)
    return {name: value for name, value in document.items() if name not in LARGE}


@router.get("/{job_id}", response_model=JobDocument)
async def get_job(app: Served, job_id: str) -> dict[str, Any]:
    """Return a job: its state and why it waits, its arguments, its result or error, its attempts that ended."""
    stores, limiter = app.runtime.stores, app.runtime.limiter
    view, attempts = await show_job(stores.inspect, parse_id("job id", job_id))
    explained = None if view.state.final else await explain_view(stores, limiter, view)
    why = None if explained is None else explained.sentence
    document: dict[str, Any] = to_json(view)
    return document | {"why": why, "attempts": to_json(attempts)}


@router.get("/{job_id}/explain", response_model=ExplainedJob)
async def explain(app: Served, job_id: str) -> dict[str, Any]:
    """Say the one reason why a job is not running, or what became of it."""
    found = await explain_job(app.runtime.stores, app.runtime.limiter, parse_id("job id", job_id))
    explained = await with_farm(app.settings, found)
    document: dict[str, Any] = to_json(explained.explanation)
    return {"job": document.pop("job_id"), **document, "sentence": explained.sentence}


@router.get("/{job_id}/logs", response_model=JobLogs)
async def get_logs(app: Served, job_id: str, query: Annotated[LogQuery, Query()]) -> dict[str, Any]:
    """Return what the handler logged in each attempt, oldest first: the last lines, and how many before were dropped.

    An attempt that logged nothing is not among them, nor is one whose worker died.
    """
    job = parse_id("job id", job_id)
    return logs_document(job, await show_logs(app.runtime.stores.inspect, job, query.attempt))


@router.post("/{job_id}/cancel", dependencies=[needs(Scope.OPERATE)], response_model=Cancelled)
async def cancel(app: Served, job_id: str) -> dict[str, Any]:
    """Cancel a job: at once when it has not started, else by asking its worker."""
    answer = await cancel_job(app.runtime.stores, parse_id("job id", job_id))
    return {"job": job_id, "answer": answer}


@router.post(
    "/{job_id}/retry", dependencies=[needs(Scope.OPERATE)], status_code=201, response_model=Retried,
    responses={200: {"model": Retried, "description": "it was retried before: that retry"}},
)  # fmt: skip
async def retry(app: Served, job_id: str, response: Response) -> dict[str, Any]:
    """Run a failed or cancelled job again, as a new job; of one that was retried before that retry, with 200."""
    new_id, made = await retry_once(app.runtime.stores, parse_id("job id", job_id))
    response.status_code = 201 if made else 200
    response.headers["location"] = f"{LOCATION}{new_id}"
    return {"job": str(new_id), "retry_of": job_id}
