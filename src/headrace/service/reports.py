"""`/reports`: test reports of workbooks that lie in the folder of `[report]`, or are sent there."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.app import App
from headrace.apps.report.errors import FileTypeError
from headrace.apps.report.stages import INGEST
from headrace.model.api_token import Scope
from headrace.model.errors import ConfigError, ConflictError, NotFoundError
from headrace.service.auth import needs
from headrace.service.problems import RequestError
from headrace.service.report_feed import ReportGrower, is_ended, report_feed
from headrace.service.served import Served
from headrace.service.sse import LastSeen, Source, stream
from headrace.service.stream_shapes import REPORT, responses_of
from headrace.service.submitting import IdempotencyKey

_EXAMPLE = """retry: 1000

id: 1
event: stage
data: {"stage":"module_tagging","status":"running","percent":40,"message":"24/60 cases asked","completed":24,"total":60}

id: 2
event: ended
data: {"status":"ok","percent":100,"message":"complete"}

"""

router = APIRouter(prefix="/reports", tags=["reports"])

JobId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="what `POST /reports` returned")]
FileName = Literal["report.html", "report.xlsx", "report.json"]


class BuildReport(BaseModel):
    """A report to make."""

    model_config = ConfigDict(extra="forbid")

    file_ref: str = Field(
        min_length=1, max_length=1024, examples=["file:cases.xlsx"],
        description="`file:NAME` in the folder of `[report] files`, or `s3://BUCKET/KEY` in the bucket of the store",
    )  # fmt: skip
    sheet_whitelist: list[str] = Field([], max_length=100, description="only these sheets; none: all that are shown")
    lang: Literal["en", "zh"] = "en"
    title: str = Field("", max_length=200, description="empty: the name of the file")
    rules: dict[str, Any] | None = Field(None, description="rules of modules, as in docs/reference/report-rules.md")
    gate: dict[str, Any] = Field({}, description="exit criteria that differ from the usual ones")
    previous_job_id: str | None = Field(None, pattern="^[0-9a-f]{32}$", description="the report to compare with")
    idempotency_key: str | None = Field(None, min_length=1, max_length=190, description="also as the header")


class AcceptedReport(BaseModel):
    """A report that is stored."""

    job_id: str


class Resume(BaseModel):
    """How a report goes on."""

    model_config = ConfigDict(extra="forbid")

    first: str | None = Field(None, alias="from", description="run again from this stage on")


class StoredFile(BaseModel):
    """A file that was sent."""

    file_ref: str
    sha256: str
    size: int


def makes_reports(app: App) -> bool:
    """Whether an app is that of reports."""
    return app.registry.get(INGEST) is not None


@router.put(
    "/files/{name}", dependencies=[needs(Scope.SUBMIT)], status_code=201, response_model=StoredFile,
    responses={200: {"description": "the same file was sent before"}},
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {
        "schema": {"type": "string", "format": "binary"}}}}},
)  # fmt: skip
async def send_file(app: Served, name: str, request: Request, response: Response) -> dict[str, Any]:
    """Store a workbook, at most 50 MB, that reports may be made of. Its name is taken once: others get 409.

    A file that could harm who opens it is refused with 422 `unsafe_archive`, one whose content is not what its name
    says with 415.
    """
    from headrace.apps.report.sending import store_file

    try:
        stored, is_new = await asyncio.to_thread(store_file, app, name, await request.body())
    except FileTypeError as error:
        raise RequestError(415, error.code, str(error)) from None
    except ConfigError as error:
        raise RequestError(422, error.code, str(error)) from None
    response.status_code = 201 if is_new else 200
    return stored


@router.post(
    "", dependencies=[needs(Scope.SUBMIT)], status_code=202, response_model=AcceptedReport,
    response_description="the report is stored; `/reports/ID` says how far it is",
)  # fmt: skip
async def build(app: Served, body: BuildReport, key: IdempotencyKey = None) -> dict[str, Any]:
    """Store a report and return its id. The same key with the same file and options gives the same report."""
    from headrace.apps.report.job import ReportRequest, begin_report
    from headrace.apps.report.requests import check_gate, check_reference, check_rules, previous_of_job

    name = body.idempotency_key or key or uuid4().hex
    if key is not None and body.idempotency_key not in (None, key):
        raise RequestError(422, "invalid_input", "idempotency_key must be that of the header Idempotency-Key")
    try:
        check_reference(body.file_ref)
        previous = None if body.previous_job_id is None else await previous_of_job(body.previous_job_id)
        request = ReportRequest(
            body.file_ref, tuple(body.sheet_whitelist), body.lang, body.title,
            rules=check_rules(body.rules), gate=check_gate(body.gate), previous=previous,
        )  # fmt: skip
        job = await begin_report(request, name=f"service/{name}")
    except ConfigError as error:
        raise RequestError(422, error.code, str(error)) from None
    return {"job_id": job.id}


@router.get("/{job_id}", operation_id="get_report")
async def get(app: Served, job_id: JobId) -> dict[str, Any]:
    """Return how far a report is, stage by stage, and what it came to."""
    from headrace.apps.report.job import find_report
    from headrace.apps.report.progress import look_at, progress_document, stage_results

    job = await find_report(job_id)
    found = progress_document(await look_at(job)) | {"run_id": str(job.run.id)}
    results = {one.pop("stage"): one for one in await stage_results(job)}
    for one in found["stages"]:
        one |= results[one["stage"]]
    return found


@router.get(
    "/{job_id}/events", response_class=Response, operation_id="follow_report",
    responses=responses_of(REPORT, _EXAMPLE),
)  # fmt: skip
async def events(app: Served, request: Request, job_id: JobId, after: LastSeen) -> Response:
    """Follow a report: `stage` as its stages get on, and at last `ended`. A resume tells its own."""
    from headrace.apps.report.job import find_report

    job = await find_report(job_id)
    name = report_feed(job)
    grows = app.runtime.growing.grown(name, partial(ReportGrower, app.runtime.feeds, job))
    return await stream(Source(name, is_ended, grows), request, after)


@router.post("/{job_id}/resume", dependencies=[needs(Scope.OPERATE)], status_code=202, response_model=AcceptedReport)
async def resume(app: Served, job_id: JobId, body: Resume | None = None) -> dict[str, Any]:
    """Ask the model what a report lacks, or go on with one that failed; with `from`, run again from a stage on."""
    from headrace.apps.report.job import find_report, resume_report

    job = await resume_report(await find_report(job_id), None if body is None else body.first)
    return {"job_id": job.id}


@router.get("/{job_id}/files/{name}", response_class=Response, operation_id="get_report_file")
async def get_file(app: Served, job_id: JobId, name: FileName, download: Annotated[bool, Query()] = False) -> Response:
    """Return a file of a report that has ended."""
    from headrace.apps.report.delivering import TYPES, file_of
    from headrace.apps.report.job import find_report
    from headrace.model.run import RunState

    job = await find_report(job_id)
    if await job.run.status() is not RunState.SUCCEEDED:
        raise ConflictError(f"report {job_id} has not ended, or has failed: see /reports/{job_id}")
    data = await file_of(job, (await job.run.result())["artifacts"], name)
    if data is None:
        raise NotFoundError(f"report {job_id} has no {name}: see its warnings")
    how = "attachment" if download or name != "report.html" else "inline"
    headers = {"content-disposition": f'{how}; filename="{name}"', "content-security-policy": PAGE_POLICY}
    return Response(data, media_type=TYPES[name], headers=headers)


#: The page runs its own script alone, and reaches nothing; its own policy says which script.
PAGE_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:"
)
