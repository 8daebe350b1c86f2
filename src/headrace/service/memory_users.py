"""`/memory/users/{user_id}`: what is noted of a user, and the end of it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from headrace.apps.memory.documents import document_of
from headrace.model.api_token import Scope
from headrace.service.auth import needs
from headrace.service.memory import Lent, UserId, lent
from headrace.service.memory_shapes import PutUser, UserDocument

router = APIRouter(prefix="/memory", tags=["memory"])


@router.get("/users/{user_id}", response_model=UserDocument, operation_id="get_memory_user")
async def get_user(memory: Lent, user_id: UserId) -> dict[str, Any]:
    """Return what is noted of a user: how urgent their memory is, and their language."""
    found: dict[str, Any] = document_of(await lent(memory).user(user_id))
    return found


@router.put(
    "/users/{user_id}", dependencies=[needs(Scope.OPERATE)], response_model=UserDocument,
    operation_id="put_memory_user", response_description="what is noted now",
)  # fmt: skip
async def put_user(memory: Lent, user_id: UserId, body: PutUser) -> dict[str, Any]:
    """Note how urgent a user's memory is, and their language, if need be before they say anything."""
    await lent(memory).put_user(user_id, level=body.level, language=body.language)
    return await get_user(memory, user_id)


@router.delete(
    "/users/{user_id}", dependencies=[needs(Scope.OPERATE)], status_code=204, operation_id="forget_memory_user",
    response_description="nothing of the user is left", response_class=Response,
)  # fmt: skip
async def forget(memory: Lent, user_id: UserId) -> Response:
    """Delete a user and all that belongs to them: messages, buffer, flushes, profile, events."""
    await lent(memory).delete_user(user_id)
    return Response(status_code=204)
