"""`/memory`: what users say goes in; profiles, events and contexts for prompts come out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query

from headrace.apps.memory.documents import document_of, found_document
from headrace.model.api_token import Scope
from headrace.model.errors import ConfigError, ConflictError, InvalidInputError, NotAllowedError
from headrace.service.auth import needs
from headrace.service.memory_shapes import (
    MOST_USER_ID,
    BufferDocument,
    ChangeProfile,
    ContextDocument,
    ContextQuery,
    EventList,
    EventQuery,
    FiguresDocument,
    FlushList,
    FlushQuery,
    FoundLines,
    InsertBlob,
    InsertedBlob,
    ProfileDocument,
    SearchQuery,
)
from headrace.service.problems import RequestError
from headrace.service.served import Served
from headrace.service.submitting import IdempotencyKey, own_key_of

if TYPE_CHECKING:
    from headrace.apps.memory.memory import Memory

router = APIRouter(prefix="/memory", tags=["memory"])

UserId = Annotated[str, Path(min_length=1, max_length=MOST_USER_ID, description="a name of yours")]


async def served_memory(app: Served) -> AsyncIterator[Any]:
    """Lend memory of the app that is served, and tell what the store has not."""
    from headrace.apps.memory.memory import Memory

    try:
        yield Memory()
    except ConfigError as error:
        raise RequestError(501, error.code, str(error)) from None
    except NotAllowedError as error:
        raise RequestError(503, error.code, str(error)) from None


Lent = Annotated[Any, Depends(served_memory)]


@router.post(
    "/users/{user_id}/blobs", dependencies=[needs(Scope.SUBMIT)], status_code=201, response_model=InsertedBlob,
    operation_id="insert_memory_blob", response_description="it is stored, and waits in the buffer",
)  # fmt: skip
async def insert(memory: Lent, user_id: UserId, body: InsertBlob, key: IdempotencyKey = None) -> dict[str, Any]:
    """Put what a user said into their buffer; it becomes memory when that is full, idle, or flushed.

    The same key with the same messages gives the same blob, once; with others it is a conflict.
    """
    from headrace.apps.memory.keys import keyed_id

    name = own_key_of(body.idempotency_key, key)
    blob_id = None if name is None else keyed_id(user_id, name)
    if (body.messages is None) is (body.summary is None):
        raise InvalidInputError("messages", "must be given, or summary, and not both", None)
    if body.messages is not None:
        said = [one.model_dump(exclude_none=True) for one in body.messages]
        stored = await lent(memory).insert(user_id, said, blob_id=blob_id, created_at=body.created_at)
    else:
        stored = await _insert_summary(lent(memory), user_id, body, blob_id)
    return {"blob_id": str(stored), "user_id": user_id}


async def _insert_summary(memory: Memory, user_id: str, body: InsertBlob, blob_id: UUID | None) -> UUID:
    if not (body.summary or "").strip():
        raise InvalidInputError("summary", "must be a text", body.summary)
    given = {"user_id": user_id, "type": "summary", "data": {"summary": body.summary}, "created_at": body.created_at}
    [stored] = await memory.insert_blobs([given if blob_id is None else given | {"blob_id": blob_id}])
    return stored


@router.post(
    "/users/{user_id}/flush", dependencies=[needs(Scope.SUBMIT)], status_code=202, response_model=FlushList,
    operation_id="flush_memory", response_description="what is to be worked on; `/memory/flushes` says how far it is",
)  # fmt: skip
async def flush(memory: Lent, user_id: UserId) -> dict[str, Any]:
    """Make memory of what waits in a user's buffer, whether it is full or not."""
    return {"flushes": document_of(await lent(memory).flush(user_id))}


@router.post(
    "/users/{user_id}/retry", dependencies=[needs(Scope.OPERATE)], status_code=202, response_model=FlushList,
    operation_id="retry_memory", response_description="what is to be worked on; `/memory/flushes` says how far it is",
)  # fmt: skip
async def retry(memory: Lent, user_id: UserId) -> dict[str, Any]:
    """Take up again what failed for good of a user, however often it did."""
    return {"flushes": document_of(await lent(memory).retry(user_id))}


@router.get("/users/{user_id}/buffer", response_model=BufferDocument, operation_id="get_memory_buffer")
async def buffer(memory: Lent, user_id: UserId) -> dict[str, Any]:
    """Return what waits in a user's buffer and belongs to no flush."""
    found: dict[str, Any] = document_of(await lent(memory).buffer(user_id))
    return found


@router.get("/users/{user_id}/profile", response_model=ProfileDocument, operation_id="get_memory_profile")
async def profile(memory: Lent, user_id: UserId) -> dict[str, Any]:
    """Return what is known of a user; an empty list of one who is not known."""
    return {"user_id": user_id, "profile": document_of(await lent(memory).profile(user_id))}


@router.patch(
    "/users/{user_id}/profile", dependencies=[needs(Scope.OPERATE)], response_model=ProfileDocument,
    operation_id="change_memory_profile", response_description="the profile as it is now",
)  # fmt: skip
async def change_profile(memory: Lent, user_id: UserId, body: ChangeProfile) -> dict[str, Any]:
    """Change a profile by hand: all changes, or none, with 409 where an entry has another version by now."""
    from headrace.apps.memory.editing import parse_changes

    changes = parse_changes([one.model_dump(exclude_none=True) for one in body.changes])
    try:
        found = await lent(memory).change_profile(user_id, changes)
    except ConflictError as error:
        raise RequestError(409, "version_conflict", str(error)) from None
    return {"user_id": user_id, "profile": document_of(found)}


@router.get("/users/{user_id}/events", response_model=EventList, operation_id="list_memory_events")
async def events(memory: Lent, user_id: UserId, query: Annotated[EventQuery, Query()]) -> dict[str, Any]:
    """Return events of a user, the newest first."""
    from headrace.apps.memory.tagging import parse_tag

    tag = None if query.tag is None else parse_tag("tag", query.tag)
    found = await lent(memory).events(user_id, limit=query.limit, before=query.before, tag=tag)
    return {"user_id": user_id, "events": document_of(found)}


@router.get("/users/{user_id}/search", response_model=FoundLines, operation_id="search_memory")
async def search(memory: Lent, user_id: UserId, query: Annotated[SearchQuery, Query()]) -> dict[str, Any]:
    """Return lines of a user's events that fit a text, the best first; English and Chinese."""
    found = await lent(memory).search(user_id, query.q, limit=query.limit)
    return {"user_id": user_id, "query": query.q, "gists": [found_document(one) for one in found]}


@router.get("/users/{user_id}/context", response_model=ContextDocument, operation_id="get_memory_context")
async def context(memory: Lent, user_id: UserId, query: Annotated[ContextQuery, Query()]) -> dict[str, Any]:
    """Return what a prompt may be told of a user, within a budget of tokens: the profile, then lines of events."""
    from headrace.apps.memory.writing.tokens import count_tokens

    text = await lent(memory).context(user_id, budget=query.budget, query=query.q)
    return {"user_id": user_id, "budget": query.budget, "tokens": count_tokens(text), "context": text}


@router.get("/flushes", response_model=FlushList, operation_id="list_memory_flushes")
async def flushes(memory: Lent, query: Annotated[FlushQuery, Query()]) -> dict[str, Any]:
    """Return flushes, the newest first."""
    found = await lent(memory).flushes(query.user_id, state=query.state, limit=query.limit)
    return {"flushes": document_of(found)}


@router.get("/figures", response_model=FiguresDocument, operation_id="get_memory_figures")
async def figures(memory: Lent) -> dict[str, Any]:
    """Return figures of each kind of work, of all processes together, and how much waits."""
    from headrace.apps.memory.figures import memory_figures
    from headrace.apps.memory.means import TABLES

    return (await memory_figures(lent(memory).app, TABLES)).to_json()


def lent(memory: Any) -> Memory:
    """Say what is lent: its module is imported with the first request."""
    found: Memory = memory
    return found
