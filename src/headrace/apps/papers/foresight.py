"""What a run will take: told before anything is spent, and corrected while it is under way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from headrace import App, Batch, BatchItem, Task
from headrace.apps.papers.dual import second_of
from headrace.apps.papers.estimate import DocumentPlan, Estimate, project
from headrace.apps.papers.job import workspace_of
from headrace.apps.papers.planning import Planner
from headrace.apps.papers.result import TokenCount
from headrace.apps.papers.run import Run, RunOptions, run_id_of, select


async def estimate_run(app: App, task: Task[..., Any], options: RunOptions) -> Estimate:
    """What the same options would take now; documents that the run has done cost nothing any more.

    Nothing is asked and nothing submitted; the estimate is noted, so that the run can correct it later. Raises
    TemplateError, FolderError, NoDocumentsError, DualError, ConfigError.
    """
    template, selection = await select(options)
    second = second_of(app.llm, options.dual) if options.dual is not None else None
    run_id = run_id_of(options, template)
    batch = await app.find_batch(task, run_id)
    done = await _done(batch) if batch is not None else {}
    left = [document for document in selection.documents if document.document_id not in done]
    estimate = await Planner(template, app.llm, second).estimate(left)
    estimate = replace(estimate, done_before=len(selection.documents) - len(left))
    await asyncio.to_thread(workspace_of(app).save_estimate, run_id, estimate)
    return estimate


async def _done(batch: Batch) -> dict[str, TokenCount]:
    """What each document took that needs no further asking, by its id."""
    arguments = await batch.arguments()
    ended = [(arguments[item.index]["document_id"], item) async for item in batch.results(follow=False)]
    return {document_id: took for document_id, item in ended if (took := _took(item)) is not None}


def _took(item: BatchItem) -> TokenCount | None:
    if item.error is not None or item.result is None:
        return None
    return TokenCount.model_validate(item.result.get("result", {}).get("usage", {}))


class Meter:
    """Follows what a run takes, and corrects what it was estimated to take in all."""

    def __init__(self, app: App, run: Run) -> None:
        self._app, self._run = app, run
        self._done: dict[str, TokenCount] = {}
        self._ids: dict[int, str] = {}
        self._cursor = ""
        self._estimate: Estimate | None = None

    async def look(self) -> Estimate:
        """Read what has ended since the last look; the corrected estimate, or what is known without one."""
        async for item in self._run.batch.results(self._cursor, follow=False):
            self._cursor = item.cursor
            took = _took(item)
            if took is not None:
                self._done[await self._id_of(item)] = took
        if self._estimate is None:
            self._estimate = await self._plan()
        return project(self._estimate, self._done)

    async def _plan(self) -> Estimate:
        """What was estimated before, if it covers all that is left; else each document takes as much as another."""
        noted = await asyncio.to_thread(workspace_of(self._app).estimate, self._run.id)
        left = [one.document_id for one in self._run.selection.documents if one.document_id not in self._done]
        if noted is not None and {plan.document_id for plan in noted.documents}.issuperset(left):
            return noted
        return Estimate.of_plans([DocumentPlan(document_id, 1, 0, 1, 1) for document_id in left])

    async def _id_of(self, item: BatchItem) -> str:
        if item.index not in self._ids:
            arguments = await self._run.batch.arguments()
            self._ids = {index: payload["document_id"] for index, payload in arguments.items()}
        return self._ids[item.index]
