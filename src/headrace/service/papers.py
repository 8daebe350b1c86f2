"""`/papers`: extraction from documents that lie in the folders of `[papers]`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from headrace.apps.papers.errors import NoDocumentsError, TemplateError
from headrace.apps.papers.named import name_of
from headrace.apps.papers.submitting import PapersRequest, papers_batch, status_document, submit_papers
from headrace.model.api_token import Scope
from headrace.model.batch import MAX_ATOMIC_ITEMS
from headrace.model.errors import ConfigError
from headrace.service import batches
from headrace.service.auth import needs
from headrace.service.batches import ResultQuery
from headrace.service.problems import RequestError
from headrace.service.served import Served
from headrace.service.submitting import IdempotencyKey, own_key_of

router = APIRouter(prefix="/papers", tags=["papers"])


class SubmitPapers(BaseModel):
    """Documents to extract by a template: `document_ids` or `refs`."""

    model_config = ConfigDict(extra="forbid")

    project_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", examples=["review-7"])
    template_id: str = Field(description="a file of `[papers] templates`; `trial` means `trial.yaml`")
    document_ids: list[str] = Field(
        [], description="names of files of `[papers] documents`", examples=[["a.pdf"]],
        json_schema_extra={"maxItems": MAX_ATOMIC_ITEMS},
    )  # fmt: skip
    refs: list[str] = Field(
        [], description="the same as references, such as `file:a.pdf`", json_schema_extra={"maxItems": MAX_ATOMIC_ITEMS}
    )
    idempotency_key: str | None = Field(None, min_length=1, description="unique per project; also as the header")


class AcceptedPapers(BaseModel):
    """Papers that are stored."""

    task_id: UUID


class PapersProgress(BaseModel):
    """Documents by what became of them."""

    total: int
    success: int
    failed: int
    percent: int = Field(description="of those that have ended, rounded")


class PapersStatus(BaseModel):
    """How far papers are."""

    task_id: UUID
    status: Literal["pending", "extracting", "completed", "error"]
    progress: PapersProgress


@router.post(
    "", dependencies=[needs(Scope.SUBMIT)], status_code=202, response_model=AcceptedPapers,
    response_description="a job per document is stored, and none is read yet; `/papers/ID/status` says how far it is",
)  # fmt: skip
async def submit(app: Served, body: SubmitPapers, key: IdempotencyKey = None) -> dict[str, Any]:
    """Store a job per document and return the task; nothing is read before a worker does.

    The same key of a project with the same template and documents gives the same task; with others it is a conflict.
    """
    if len(body.document_ids) + len(body.refs) > MAX_ATOMIC_ITEMS:
        detail = f"a task has at most {MAX_ATOMIC_ITEMS:,} documents: submit several"
        raise RequestError(413, "payload_too_large", detail)
    request = PapersRequest(
        body.project_id,
        body.template_id,
        tuple(body.document_ids),
        tuple(body.refs),
        own_key_of(body.idempotency_key, key),
    )
    try:
        batch = await submit_papers(app, request)
    except (NoDocumentsError, TemplateError) as error:
        raise RequestError(422, error.code, str(error)) from None
    except ConfigError as error:
        raise RequestError(501, error.code, str(error)) from None
    return {"task_id": batch.id}


@router.get("/{task_id}/status", response_model=PapersStatus, operation_id="get_papers_status")
async def status(app: Served, task_id: str) -> dict[str, Any]:
    """Return how many documents have ended; one that cannot be read has a result that says why."""
    batch, view = await papers_batch(app, task_id)
    return status_document(view, await batch.progress())


@router.get("/{task_id}/results", operation_id="read_papers_results")
async def results(app: Served, task_id: str, page: Annotated[ResultQuery, Query()]) -> dict[str, Any]:
    """Read what came of documents in the order they ended, each with its `document_id`; else as of batches.

    It is the name that was submitted; of one in `refs` without `file:`.
    """
    await papers_batch(app, task_id)
    document = await batches.results(app, task_id, page)
    jobs = [UUID(str(item["job"])) for item in document["items"]]
    views = await app.runtime.stores.inspect.final_jobs(jobs)
    for item, job in zip(document["items"], jobs, strict=True):
        item["document_id"] = name_of(views[job].args["kwargs"]["document_id"]) if job in views else None
    return document
