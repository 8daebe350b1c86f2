"""The task of papers: one document, one job. Its payload is two ids; everything else lies in the workspace."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from headrace import App, Backoff, Context, Task
from headrace.apps.papers.documents import Unreadable, read_document
from headrace.apps.papers.dual import second_of
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.named import FILE, source_of
from headrace.apps.papers.page.texts import Texts
from headrace.apps.papers.workspace import Workspace

QUEUE = "papers"
TASK_NAME = "papers_extract_single"
#: Of one document, from the start of its attempt; waiting in the queue does not count.
TIMEOUT = "30m"
RETRY = Backoff.exponential(max_attempts=4, base="1s", cap="1m")
#: A payload is two references; it never grows beyond this many bytes.
MAX_PAYLOAD_BYTES = 1024


def takes_papers(app: App) -> bool:
    """Whether an app extracts papers."""
    return app.registry.get(TASK_NAME) is not None


def workspace_of(app: App) -> Workspace:
    """Return where the runs of an app keep their templates and the places of their documents."""
    return Workspace(app.settings.directory.resolve() / "papers")


def texts_of(app: App) -> Texts:
    """Return where an app keeps the texts that it extracted from."""
    return Texts(app.settings.directory.resolve() / "papers" / "texts")


def register(app: App) -> Task[..., dict[str, Any]]:
    """Register the task of papers with an app and return it."""
    workspace, texts = workspace_of(app), texts_of(app)

    # Jobs do not start while the quota of `[llm]` has nothing to give. That of a second model is not declared: each run
    # names its own with --dual, and a task has one gate for all runs. It is met inside a job, which leaves its slot.
    pools = [app.settings.llm_settings().pool_name]

    @app.task(name=TASK_NAME, queue=QUEUE, retry=RETRY, timeout=TIMEOUT, pools=pools)
    async def papers_extract_single(result_id: str, document_id: str, ctx: Context) -> dict[str, Any]:
        """Extract one document; `result_id` is `<run id>/<document id>`. Unreadable ones are results, not failures."""
        run_id = result_id.partition("/")[0]
        template = workspace.template(run_id)
        named = document_id.startswith(FILE)
        source = (
            source_of(app.settings.papers.documents, document_id) if named else workspace.source(run_id, document_id)
        )
        document = await asyncio.to_thread(read_document, Path(source.path), name=source.name)
        if isinstance(document, Unreadable):
            return unreadable_row(document.reason.value, document.message)
        if not named and document.document_id != document_id:
            return unreadable_row("changed", "the file changed after it was selected; run the command again")
        await asyncio.to_thread(texts.keep, document)
        ctx.progress()
        second = second_of(app.llm, workspace.parameters(run_id).dual)
        result = await extract_document(document, template, app.llm, second=second)
        return {"result": result.to_json()}

    return papers_extract_single


def unreadable_row(reason: str, message: str) -> dict[str, Any]:
    """Return the result of a document that could not be read."""
    return {"unreadable": {"reason": reason, "message": message}}


def payload(run_id: str, document_id: str) -> dict[str, str]:
    """Return the arguments of one job, at most MAX_PAYLOAD_BYTES long."""
    return {"result_id": f"{run_id}/{document_id}", "document_id": document_id}
