"""Papers submitted by name: what the service takes, and how far it is."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from headrace import App, Batch, ConfigError, InvalidInputError, NotFoundError, Progress
from headrace.apps.papers.errors import NoDocumentsError
from headrace.apps.papers.job import TASK_NAME, payload, workspace_of
from headrace.apps.papers.named import check_documents, find_template, name_of_ref
from headrace.apps.papers.template import Template
from headrace.apps.papers.workspace import Parameters
from headrace.model.batch import BatchOutcome, BatchView
from headrace.model.ids import parse_id


@dataclass(frozen=True, slots=True)
class PapersRequest:
    """Documents to extract: either their ids or references to them."""

    project_id: str
    template_id: str
    document_ids: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    key: str | None = None


async def submit_papers(app: App, request: PapersRequest) -> Batch:
    """Store a job per document and return their batch; no document is opened for it.

    The same key of a project with the same template and documents gives the batch that was made before. Raises
    NoDocumentsError, TemplateError, InvalidInputError, ConflictError, ConfigError where a folder is not set.
    """
    if not (request.document_ids or request.refs):
        raise NoDocumentsError
    if request.document_ids and request.refs:
        raise InvalidInputError("refs", "cannot go with document_ids: give one of both", len(request.refs))
    template, documents = await asyncio.to_thread(_look, app, request)
    run_id = _run_id(request, template)
    save = workspace_of(app).save
    await asyncio.to_thread(save, run_id, template, (), parameters=Parameters())
    items = [payload(run_id, document_id) for document_id in documents]
    options: dict[str, Any] = {} if request.key is None else {"key": f"{request.project_id}/{request.key}"}
    return await app.submit(app.find_task(TASK_NAME), items, spread=True, **options)


def _look(app: App, request: PapersRequest) -> tuple[Template, list[str]]:
    """Return the template, and the ids of the documents."""
    papers = app.settings.papers
    template = find_template(_folder(papers.templates, "templates"), request.template_id)
    folder = _folder(papers.documents, "documents")
    if request.document_ids:
        return template, check_documents(folder, request.document_ids, "document_ids")
    names = [name_of_ref(ref, f"refs[{index}]") for index, ref in enumerate(request.refs)]
    return template, check_documents(folder, names, "refs")


def _folder(path: Path | None, key: str) -> Path:
    if path is None or not path.is_dir():
        raise ConfigError(f"[papers] {key} must name a folder that exists: the service takes no papers without it")
    return path


def _run_id(request: PapersRequest, template: Template) -> str:
    """Return what names the files of the run: equal requests with a key have the same, others never."""
    name = str(uuid4()) if request.key is None else request.key
    text = json.dumps([request.project_id, name, template.digest])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


async def papers_batch(app: App, task_id: str) -> tuple[Batch, BatchView]:
    """Return the batch of a submit of papers. Raises NotFoundError, InvalidInputError for what is no id."""
    batch = app.batch(parse_id("task id", task_id))
    try:
        view = await batch.view()
    except NotFoundError:
        raise NotFoundError(_no_papers(task_id)) from None
    if view.task != TASK_NAME:
        raise NotFoundError(_no_papers(task_id))
    return batch, view


def _no_papers(task_id: str) -> str:
    return f"no papers were submitted as task {task_id}; it may have been pruned, see [recovery] in the settings"


def status_document(view: BatchView, counts: Progress) -> dict[str, Any]:
    """Return how far papers are; what was cancelled counts as failed."""
    return {
        "task_id": str(view.id),
        "status": _status(view, counts),
        "progress": {
            "total": counts.total or 0,
            "success": counts.succeeded,
            "failed": counts.failed + counts.cancelled,
            "percent": counts.percent,
        },
    }


def _status(view: BatchView, counts: Progress) -> str:
    if view.closed_at is not None:
        ended = view.outcome in (BatchOutcome.SUCCEEDED, BatchOutcome.PARTIAL)
        return "completed" if ended else "error"
    return "extracting" if counts.done or counts.running else "pending"
