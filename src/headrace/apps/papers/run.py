"""One run of `papers extract`: select, submit what is new, work and follow, and collect one row per document."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from headrace import App, Batch, BatchItem, ConflictError, Progress, Task
from headrace.apps.papers.documents import FoundDocument, Selection, scan_folder
from headrace.apps.papers.dual import second_of
from headrace.apps.papers.job import QUEUE, payload, workspace_of
from headrace.apps.papers.template import Template, load_template
from headrace.apps.papers.workspace import Parameters

#: Another command that is adding documents to the same run is waited for this long; then its round is sealed as it is.
PATIENCE_SECONDS = 3.0
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command was asked for."""

    folder: Path
    template: Path
    out: Path
    #: Names the run; default: the output. A changed template is always another run.
    key: str | None = None
    #: Documents extracted at once in this process; None leaves the work to workers elsewhere.
    concurrency: int | None = 10
    #: Extract twice and compare: `prompts` for two wordings, or the name of a second configured model.
    dual: str | None = None
    #: Only so many documents, always the same ones; None: all.
    pilot: int | None = None
    #: A sheet of known values to compare the results with.
    gold: Path | None = None

    @property
    def parameters(self) -> Parameters:
        """What of it decides what is asked."""
        return Parameters(dual=self.dual)


@dataclass(frozen=True, slots=True)
class Run:
    """A selection and the batch that extracts it."""

    id: str
    template: Template
    selection: Selection
    batch: Batch
    out: Path
    options: RunOptions


async def open_run(app: App, task: Task[..., Any], options: RunOptions) -> Run:
    """Submit the documents of a folder that the run does not have yet; equal commands share one batch.

    Raises TemplateError, FolderError, NoDocumentsError, DualError, ConfigError before anything is stored.
    """
    template, selection = await select(options)
    # A model that is not configured rightly would fail each document by itself.
    app.llm.check()
    if options.dual is not None:
        second_of(app.llm, options.dual)
    run_id = run_id_of(options, template)
    save = partial(workspace_of(app).save, parameters=options.parameters)
    await asyncio.to_thread(save, run_id, template, selection.documents)
    batch = await app.submit(task, [], key=run_id, spread=True)
    await _add_new(batch, run_id, selection.documents)
    if (await batch.view()).closed_at is not None and (await batch.progress()).failed:
        with suppress(ConflictError):  # an equal command was quicker
            await batch.retry_failed()
    return Run(run_id, template, selection, batch, options.out, options)


async def select(options: RunOptions) -> tuple[Template, Selection]:
    """The template of a run and its documents. Raises TemplateError, FolderError, NoDocumentsError."""
    template = load_template(options.template)
    selection = await asyncio.to_thread(scan_folder, options.folder)
    if options.pilot is None:
        return template, selection
    chosen = {document.document_id for document in pilot_of(selection.documents, options.pilot)}
    documents = tuple(document for document in selection.documents if document.document_id in chosen)
    return template, replace(selection, documents=documents)


def pilot_of(documents: Sequence[FoundDocument], count: int) -> list[FoundDocument]:
    """So many documents, chosen by their content: the same ones whatever they are called."""
    return sorted(documents, key=lambda document: _digest(["pilot", document.document_id]))[:count]


def run_id_of(options: RunOptions, template: Template) -> str:
    """The id of a run: its name, its template, and what else decides what is asked."""
    name = options.key if options.key is not None else str(options.out.resolve())
    dual = "" if options.dual is None else f"\ndual: {options.dual}"
    return hashlib.sha256(f"{name}\n{template.digest}{dual}".encode()).hexdigest()[:32]


async def _add_new(batch: Batch, run_id: str, documents: tuple[FoundDocument, ...]) -> None:
    """Append the documents the batch does not have, as one round named by what it holds.

    Two commands with the same new documents name the same round and so append once. With others, one waits.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + PATIENCE_SECONDS
    while True:
        known = {item["document_id"] for item in (await batch.arguments()).values()}
        new = sorted(document.document_id for document in documents if document.document_id not in known)
        if not new:
            await batch.seal()
            return
        try:
            await batch.extend([payload(run_id, document_id) for document_id in new], key=_digest(new), spread=True)
        except ConflictError:
            pass
        else:
            return
        if loop.time() > give_up_at:
            await batch.seal()
            give_up_at = loop.time() + PATIENCE_SECONDS
        await asyncio.sleep(PAUSE_SECONDS)


def _digest(document_ids: list[str]) -> str:
    return hashlib.sha256("\n".join(document_ids).encode()).hexdigest()


async def follow(app: App, run: Run, *, concurrency: int | None) -> AsyncIterator[Progress]:
    """Work on the run in this process, unless `concurrency` is None, and yield its progress until it is closed."""
    worker: AbstractAsyncContextManager[Any] = nullcontext()
    if concurrency is not None:
        worker = app.worker(queues={QUEUE: concurrency})
    async with worker:
        while (await run.batch.view()).closed_at is None:
            yield await run.batch.progress()
            await asyncio.sleep(PAUSE_SECONDS)
        yield await run.batch.progress()


async def collect(run: Run) -> dict[str, BatchItem]:
    """Return the latest ending of each document by its id."""
    arguments = await run.batch.arguments()
    latest: dict[str, BatchItem] = {}
    async for item in run.batch.results(follow=False):
        latest[arguments[item.index]["document_id"]] = item
    return latest
