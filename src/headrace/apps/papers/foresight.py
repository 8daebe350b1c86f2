"""What a run will take: told before anything is spent, and corrected while it is under way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from headrace import App, Batch, BatchItem, Task
from headrace.apps.papers.dual import second_of
from headrace.apps.papers.estimate import DocumentPlan, Estimate, corrected, project
from headrace.apps.papers.job import workspace_of
from headrace.apps.papers.planning import Planner
from headrace.apps.papers.result import TokenCount
from headrace.apps.papers.run import Run, RunOptions, pilot_of, run_id_of, select

#: Of documents that were done before an estimate, so many are planned once more to see how far off their plans were.
MEASURED_AT_MOST = 100


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
    planner = Planner(template, app.llm, second)
    estimate = await planner.estimate(left)
    estimate = replace(estimate, done_before=len(selection.documents) - len(left))
    # What is noted is the plan: the run corrects it by all that it measures itself.
    await asyncio.to_thread(workspace_of(app).save_estimate, run_id, estimate)
    if not estimate.calls:
        return estimate
    telling = [document for document in selection.documents if _tells(done.get(document.document_id))]
    known = [(plan, done[plan.document_id]) for plan in await planner.plans(pilot_of(telling, MEASURED_AT_MOST))]
    return corrected(estimate, known, done=len(telling))


def _tells(took: TokenCount | None) -> bool:
    """Whether all of a document was paid for, so that it tells what others will take."""
    return took is not None and took.calls > 0 and not took.reused


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
        return self._with_earlier(project(self._estimate, self._done))

    def _with_earlier(self, estimate: Estimate) -> Estimate:
        """With what documents took that were done before the estimate was made."""
        planned = {plan.document_id for plan in estimate.documents}
        ours = {one.document_id for one in self._run.selection.documents} - planned
        earlier = sum((took for id_, took in self._done.items() if id_ in ours), TokenCount())
        unknown = estimate.cost_nano is None or earlier.unpriced
        return replace(
            estimate,
            calls=estimate.calls + earlier.calls,
            reused=estimate.reused + earlier.reused,
            input_tokens=estimate.input_tokens + earlier.input_tokens,
            output_tokens=estimate.output_tokens + earlier.output_tokens,
            cost_nano=None if unknown else (estimate.cost_nano or 0) + earlier.cost_nano,
        )

    async def _plan(self) -> Estimate:
        """What was estimated before, if it covers all that is left; else each document takes as much as another."""
        noted = await asyncio.to_thread(workspace_of(self._app).estimate, self._run.id)
        every = {one.document_id: None for one in self._run.selection.documents}
        left = every.keys() - self._done.keys()
        if noted is not None and {*noted.without_text, *(plan.document_id for plan in noted.documents)}.issuperset(
            left
        ):
            # The estimate may be of all documents, and this run a pilot of them.
            return replace(noted, documents=tuple(plan for plan in noted.documents if plan.document_id in every))
        return Estimate.of_plans([DocumentPlan(document_id, 1, 0, 1, 1) for document_id in every])

    async def _id_of(self, item: BatchItem) -> str:
        if item.index not in self._ids:
            arguments = await self._run.batch.arguments()
            self._ids = {index: payload["document_id"] for index, payload in arguments.items()}
        return self._ids[item.index]
