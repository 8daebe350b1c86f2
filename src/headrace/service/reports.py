"""`/reports`: test reports of workbooks that lie in the folder of `[report]`, or are sent there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request, Response

from headrace.apps.report.errors import FileTypeError, NotEndedError
from headrace.model.api_token import Scope
from headrace.model.errors import ConfigError, NotFoundError
from headrace.service.auth import needs
from headrace.service.guard import SANDBOX
from headrace.service.problems import RequestError
from headrace.service.report_feed import ReportGrower, is_ended, report_feed
from headrace.service.report_shapes import (
    BINARY,
    JOB_ID,
    AcceptedReport,
    BuildReport,
    FileName,
    ReportStatus,
    Resume,
    StoredFile,
)
from headrace.service.served import Served
from headrace.service.sse import LastSeen, Source, stream
from headrace.service.stream_shapes import REPORT, responses_of
from headrace.service.submitting import IdempotencyKey, own_key_of

_EXAMPLE = """retry: 1000

id: 1
event: stage
data: {"stage":"module_tagging","status":"running","percent":40,"message":"24/60 cases done","completed":24,"total":60}

id: 2
event: ended
data: {"status":"ok","percent":100,"message":"complete","error":""}

"""
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
#: The page runs its own script alone, as its own policy says, and has no origin: it reaches nothing.
PAGE_POLICY = f"{SANDBOX}; frame-ancestors 'none'; "

router = APIRouter(prefix="/reports", tags=["reports"])

JobId = Annotated[str, Path(pattern=JOB_ID, description="what `POST /reports` returned")]


@contextmanager
def _told() -> Iterator[None]:
    """Tell of what is wrong with a file or with options: the caller can mend it."""
    try:
        yield
    except FileTypeError as error:
        raise RequestError(415, error.code, str(error)) from None
    except ConfigError as error:
        raise RequestError(422, error.code, str(error)) from None


@router.put(
    "/files/{name:path}", dependencies=[needs(Scope.SUBMIT)], status_code=201, response_model=StoredFile,
    operation_id="send_report_file",
    response_description="the file is stored, and reports may be made of it",
    responses={200: {"description": "the same file was sent before", "model": StoredFile}},
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": BINARY}}},
)  # fmt: skip
async def send_file(app: Served, name: str, request: Request, response: Response) -> dict[str, Any]:
    """Store a workbook, at most 50 MB, that reports may be made of. Its name is taken once: others get 409.

    The body is the file itself. One that could harm who opens it is refused with 422 `unsafe_archive`, one whose
    content is not what its name says with 415.
    """
    from headrace.apps.report.sending import store_file

    data = await request.body()
    with _told():
        try:
            stored, is_new = await asyncio.to_thread(store_file, app, name, data)
        except OSError as error:
            fix = "see the folder of [report] files"
            raise RequestError(503, "not_stored", f"the file cannot be stored ({error.strerror}): {fix}") from None
    response.status_code = 201 if is_new else 200
    return stored


@router.delete(
    "/files/{name:path}", dependencies=[needs(Scope.OPERATE)], status_code=204, operation_id="remove_report_file",
    response_description="the file is gone", response_class=Response,
)  # fmt: skip
async def remove(app: Served, name: str) -> Response:
    """Remove a file that was sent. Reports that were made of it stay; they can no longer begin anew."""
    from headrace.apps.report.sending import remove_file

    await asyncio.to_thread(remove_file, app, name)
    return Response(status_code=204)


@router.post(
    "", dependencies=[needs(Scope.SUBMIT)], status_code=202, response_model=AcceptedReport,
    response_description="the report is stored; `/reports/ID` says how far it is",
)  # fmt: skip
async def build(app: Served, body: BuildReport, response: Response, key: IdempotencyKey = None) -> dict[str, Any]:
    """Store a report and return its id. The same key with the same file and options gives the same report.

    With others it is a conflict, also where the file has changed since.
    """
    from headrace.apps.report.job import ReportRequest, begin_report
    from headrace.apps.report.requests import check_gate, check_reference, check_rules, previous_of_job

    name = own_key_of(body.idempotency_key, key)
    check_reference(body.file_ref)
    previous = None if body.previous_job_id is None else await previous_of_job(body.previous_job_id)
    with _told():
        rules = _usual_rules() if body.rules is None else check_rules(body.rules)
        request = ReportRequest(
            body.file_ref, tuple(body.sheet_whitelist), body.lang, body.title,
            rules=rules, gate=check_gate(body.gate), previous=previous,
        )  # fmt: skip
        job = await begin_report(request, name=f"service/{name or uuid4().hex}", alone=True)
    response.headers["location"] = f"/api/v1/reports/{job.id}"
    return {"job_id": job.id}


def _usual_rules() -> dict[str, Any] | None:
    from headrace.apps.report.requests import usual_rules

    try:
        return usual_rules()
    except ConfigError as error:
        raise RequestError(501, error.code, f"[report] rules: {error}") from None


@router.get("/{job_id}", operation_id="get_report", response_model=ReportStatus, response_model_exclude_unset=True)
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
    """Follow a report: `stage` as its stages get on, and at last `ended`.

    A report that is resumed has a stream of its own from then on, numbered from 1: come without the last id seen.
    """
    from headrace.apps.report.job import find_report

    job = await find_report(job_id)
    name = report_feed(job)
    grows = app.runtime.growing.grown(name, partial(ReportGrower, app.runtime.feeds, job))
    return await stream(Source(name, is_ended, grows), request, after)


@router.post(
    "/{job_id}/resume", dependencies=[needs(Scope.OPERATE)], status_code=202, response_model=AcceptedReport,
    response_description="what is missing is asked again; `/reports/ID` says how far it is",
)  # fmt: skip
async def resume(app: Served, job_id: JobId, body: Resume | None = None) -> dict[str, Any]:
    """Ask the model what a report lacks, or go on with one that failed; with `from`, run again from a stage on.

    One that is complete, or that runs, stays as it is.
    """
    from headrace.apps.report.job import find_report, resume_report

    job = await resume_report(await find_report(job_id), None if body is None else body.first)
    return {"job_id": job.id}


@router.get(
    "/{job_id}/files/{name}", response_class=Response, operation_id="get_report_file",
    responses={200: {
        "description": "the file; a page is shown, and others are saved",
        "content": {"text/html": {"schema": {"type": "string"}}, _XLSX: BINARY, "application/json": {"schema": {}}},
    }},
)  # fmt: skip
async def get_file(app: Served, job_id: JobId, name: FileName, download: Annotated[bool, Query()] = False) -> Response:
    """Return a file of a report that has ended."""
    from headrace.apps.report.delivering import TYPES, file_of, policy_of
    from headrace.apps.report.job import find_report
    from headrace.model.run import RunState

    job = await find_report(job_id)
    if await job.run.status() is not RunState.SUCCEEDED:
        raise NotEndedError(f"report {job_id} has not ended, or has failed: see /reports/{job_id}")
    data = await file_of(job, (await job.run.result())["artifacts"], name)
    if data is None:
        raise NotFoundError(f"report {job_id} has no {name}: see its warnings")
    how = "attachment" if download or name != "report.html" else "inline"
    headers = {"content-disposition": f'{how}; filename="{name}"'}
    if name == "report.html":
        headers["content-security-policy"] = PAGE_POLICY + policy_of(data)
    return Response(data, media_type=TYPES[name], headers=headers)
