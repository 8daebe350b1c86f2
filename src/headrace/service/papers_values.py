"""`/papers/{task_id}/values`: the values of one document with their evidence, and what people decide of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from headrace.apps.papers.desk import LookedDocument, LookedValue, decide_value, document_of
from headrace.apps.papers.errors import MissingSourceError
from headrace.apps.papers.review.checking import MAX_COMMENT_CHARS
from headrace.apps.papers.review.deciding import Verdict
from headrace.apps.papers.review.errors import ReviewError
from headrace.apps.papers.review.verified import extracted_json
from headrace.apps.papers.values import MAX_VALUE_CHARS
from headrace.model.api_token import Scope
from headrace.model.audit import LOCAL
from headrace.service.auth import caller_of, needs
from headrace.service.problems import RequestError
from headrace.service.served import Served

router = APIRouter(prefix="/papers", tags=["papers"])


WrittenText = Annotated[StrictStr, Field(max_length=MAX_VALUE_CHARS)]


class DecideValue(BaseModel):
    """What a person says of a value, as in the columns of a review sheet: `accept` or `edited_value`."""

    model_config = ConfigDict(extra="forbid")

    accept: StrictStr = Field(
        "", max_length=10, examples=["yes"],
        description="`yes`, `no`, or `open` to take it back; where two extractions differ `first`, `second` or `no`",
    )  # fmt: skip
    edited_value: WrittenText | StrictBool | StrictInt | StrictFloat = Field(
        "", description="the right value in the unit of its field, or such as `[not reported]`"
    )
    comment: StrictStr = Field("", max_length=MAX_COMMENT_CHARS, description="what others should know")


async def _place(task_id: str, job: str, name: str) -> tuple[str, str, str]:
    return task_id, job, name


ValuePlace = Annotated[tuple[str, str, str], Depends(_place)]


class DecisionDocument(BaseModel):
    """What is decided of a value."""

    answer: str = Field(description="`open`, `accepted`, `edited` or `rejected`")
    value: Any = Field(description="the verified value")
    says: str = Field(description="`reported`, or why there is no value; empty while open, and when rejected")
    candidate: str = Field(description="which of two extractions was accepted: `first` or `second`")
    comment: str
    reviewer: str
    decided_at: str | None


class ValueDocument(BaseModel):
    """A value with its evidence, and what is decided of it."""

    name: str = Field(description="`FIELD`, or `GROUP.ROW.FIELD` of a row")
    extracted: dict[str, Any] = Field(
        description="value, status, quote, page, offsets, section, note; both candidates where two extractions differ"
    )
    review: DecisionDocument


class ValuesDocument(BaseModel):
    """The values of one document."""

    job: UUID
    document: str
    state: str = Field(
        description="`extracted`, `unreadable`, `failed`, or `unseen`: its template is not on this machine"
    )
    problem: str
    values: list[ValueDocument]


@router.get("/{task_id}/values/{job}", response_model=ValuesDocument, operation_id="read_papers_values")
async def values(app: Served, task_id: str, job: str) -> dict[str, Any]:
    """Return every value of one document, whose job the results name, with its evidence and what is decided of it."""
    with _told():
        _, document = await document_of(app, task_id, job)
    return _document(document)


@router.put(
    "/{task_id}/values/{job}/{name}", dependencies=[needs(Scope.OPERATE)], response_model=ValueDocument,
    operation_id="decide_papers_value", response_description="the value, with what is decided of it now",
)  # fmt: skip
async def decide(app: Served, request: Request, place: ValuePlace, body: DecideValue) -> dict[str, Any]:
    """Accept, correct or reject a value; whoever owns the token is its reviewer.

    The rules are those of review sheets. It replaces what was decided before, and the log of the run keeps both.
    """
    token = caller_of(request).token
    reviewer = LOCAL if token is None else token.name
    with _told():
        decided = await decide_value(app, place, Verdict(**body.model_dump(), reviewer=reviewer))
    return _value(decided)


@contextmanager
def _told() -> Iterator[None]:
    """Tell what of the files of a run is not as it must be."""
    try:
        yield
    except (MissingSourceError, ReviewError) as error:
        raise RequestError(503, error.code, str(error)) from None
    except OSError as error:
        detail = f"the review log of this run cannot be read or written ({error.strerror}): mend its folder"
        raise RequestError(503, "review_log", detail) from None


def _document(document: LookedDocument) -> dict[str, Any]:
    return {
        "job": document.job, "document": document.name, "state": document.state, "problem": document.problem,
        "values": [_value(value) for value in document.values],
    }  # fmt: skip


def _value(value: LookedValue) -> dict[str, Any]:
    return {"name": value.name, "extracted": extracted_json(value.line), "review": value.decision.to_json()}
