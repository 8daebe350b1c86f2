"""Papers: batches of documents that are extracted, and the values of one beside their places, to accept or correct."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from headrace.apps.papers.desk import EXTRACTED, LookedDocument, LookedValue, document_of, look_at, run_of
from headrace.apps.papers.errors import MissingSourceError
from headrace.apps.papers.job import TASK_NAME, takes_papers, workspace_of
from headrace.apps.papers.result import Status
from headrace.apps.papers.review.decisions import Answer
from headrace.apps.papers.submitting import papers_batch
from headrace.dashboard import batch_look
from headrace.dashboard.asking import choice, place, rows_of
from headrace.dashboard.page import Context, Page, View
from headrace.dashboard.paper_values import told_value
from headrace.dashboard.words import word
from headrace.model.batch import BatchView
from headrace.model.errors import InvalidInputError
from headrace.model.places import encode_place

#: Batches of the list, and batches of every kind that are looked through for them.
ROWS, LOOKED_AT = 20, 200
#: Documents that are looked through for one page of values, and values of it.
DOCUMENTS, VALUES = 20, 30
#: Seconds for which it is kept what template a batch has: a file has it.
KEPT = 30.0


class Wanted(StrEnum):
    """Which values are shown."""

    OPEN = "open"
    DISAGREEMENTS = "disagreements"
    UNCLEAR = "unclear"
    DECIDED = "decided"

    def fits(self, value: LookedValue) -> bool:
        """Whether a value is one of these."""
        match self:
            case Wanted.OPEN:
                return value.decision.answer is Answer.OPEN
            case Wanted.DISAGREEMENTS:
                return value.line.candidates is not None
            case Wanted.UNCLEAR:
                return value.line.found.status is Status.UNCLEAR
            case Wanted.DECIDED:
                return value.decision.answer is not Answer.OPEN


FILTERS = {
    Wanted.OPEN: word("not decided"), Wanted.DISAGREEMENTS: word("two extractions differ"),
    Wanted.UNCLEAR: word("unclear"), Wanted.DECIDED: word("decided"),
}  # fmt: skip


async def papers(view: View) -> Context:
    """Return the newest batches of papers, each with how far it is and by which template."""
    looked = await view.app.runtime.stores.inspect.list_batches(before=place(view), limit=LOOKED_AT)
    rows = rows_of(view, [batch for batch in looked if batch.task == TASK_NAME], ROWS)
    if rows.next is None and len(looked) == LOOKED_AT:
        # There may be more behind what was looked through.
        rows = replace(rows, next=encode_place((looked[-1].created_at, looked[-1].id)))
    return {"list": rows, "batches": await asyncio.gather(*(_outline(view, batch) for batch in rows.rows))}


async def _outline(view: View, batch: BatchView) -> dict[str, Any]:
    progress, template = await asyncio.gather(
        batch_look.asked_progress(view, batch),
        view.answer(("template", batch.id), lambda: _template_name(view, batch.id), seconds=KEPT, dear=True),
    )
    return {"batch": batch, "progress": progress, "template": template}


async def _template_name(view: View, batch_id: UUID) -> str:
    """Return what a batch extracts by, empty where its files are on another machine."""
    jobs = await view.app.runtime.stores.inspect.list_jobs(batch_id=batch_id, limit=1)
    try:
        found = [await asyncio.to_thread(workspace_of(view.app).template, run_of(job)) for job in jobs]
    except MissingSourceError:
        return ""
    return f"{found[0].name} {found[0].version}" if found else ""


@dataclass(frozen=True, slots=True)
class Section:
    """A document, and those of its values that are shown."""

    document: LookedDocument
    values: tuple[dict[str, Any], ...]


async def values(view: View) -> Context:
    """Return the values of a batch that are asked for, a part at a time, by documents in the order they ended."""
    batch, found = await papers_batch(view.app, view.params["task_id"])
    wanted, name = choice(view, "show", Wanted), view.query.get("name", "").strip()
    job, cursor = view.query.get("document", ""), view.query.get("cursor", "")
    documents: Sequence[LookedDocument]
    if view.live:
        # Live is how far the batch is: values stay as they are under the hands of whoever decides them.
        documents, following = (), None
    elif job:
        documents, following = ((await document_of(view.app, str(batch.id), job))[1],), None
    else:
        looked = await look_at(view.app, batch.id, cursor=cursor, limit=DOCUMENTS)
        documents, following = looked.documents, looked.next
    named = [document for document in documents if name.casefold() in document.name.casefold()]
    sections, at = part_of(named, wanted, _at(view))
    chosen = {"show": wanted, "name": name, "document": job}
    more = {"cursor": cursor, "at": at} if at else {"cursor": following} if following else {}
    return {
        "batch": found, "progress": await batch.progress(), "sections": sections, "chosen": chosen, "filters": FILTERS,
        "looked_at": len(documents), "more": chosen | more if more else None,
        "later": "cursor" in view.query or "at" in view.query,
    }  # fmt: skip


def _at(view: View) -> tuple[str, int]:
    """Return the document and the value of it that a part begins with. Raises InvalidInputError."""
    text = view.query.get("at", "")
    job, _, number = text.rpartition(":")
    if text and not (number.isascii() and number.isdigit() and len(number) < 8):
        raise InvalidInputError("at", "must be a place that a page named", text)
    return job, int(number or 0)


def part_of(
    documents: Sequence[LookedDocument], wanted: Wanted | None, at: tuple[str, int]
) -> tuple[list[Section], str]:
    """Return the documents with those values that one page shows, from a place on, and the place of the next part."""
    job, skipped = at
    jobs = [str(document.job) for document in documents]
    begin = jobs.index(job) if job in jobs else 0
    sections, room = list[Section](), VALUES
    for document in documents[begin:]:
        fitting = [value for value in document.values if wanted is None or wanted.fits(value)]
        left = fitting[skipped:] if str(document.job) == job else fitting
        if left and not room:
            return sections, f"{document.job}:0"
        if left or (wanted is None and document.state != EXTRACTED):
            told = tuple(told_value(document, value) for value in left[:room])
            sections.append(Section(document, told))
        if len(left) > room:
            return sections, f"{document.job}:{len(fitting) - len(left) + room}"
        room -= len(left)
    return sections, ""


PAGES = (
    Page(
        "papers", "/papers", papers, title="Papers", group="Applications", query=frozenset({"cursor"}), every=3.0,
        belongs=takes_papers,
    ),
    Page(
        "papers_batch", "/papers/{task_id}", values, every=3.0, belongs=takes_papers,
        query=frozenset({"show", "name", "document", "cursor", "at"}),
    ),
)  # fmt: skip
