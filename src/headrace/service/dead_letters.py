"""`/dead-letters`: failed jobs that were not run again, grouped by their error, and running them again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from headrace.app import App
from headrace.engine.dead_letter_look import Looked, look_for, looked_document
from headrace.engine.dead_letters import LOOK, redrive
from headrace.engine.queries import to_json
from headrace.model.api_token import Scope
from headrace.model.dead_letter import DeadLetterFilter
from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.merge_patch import check_argument_patch
from headrace.model.names import check_name
from headrace.service.auth import needs
from headrace.service.paging import MOST
from headrace.service.served import Served

#: Failed jobs that one request looks at, and runs again, at most.
MOST_LOOKED = 100_000

#: Members of a request that say which are meant.
_CHOOSING = ("queue", "task", "kind", "fingerprint", "since")

router = APIRouter(prefix="/dead-letters", tags=["dead letters"])


class Which(BaseModel):
    """Which dead letters are meant: all that is given must hold; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    queue: str | None = Field(None, max_length=64)
    task: str | None = Field(None, max_length=64)
    kind: str | None = Field(None, max_length=255, description="only this kind of error, such as ValueError")
    fingerprint: str | None = Field(None, max_length=64, description="only this group, or those that begin so")
    since: str | None = Field(None, max_length=40, description="failed since, such as 7d")
    look: int = Field(LOOK, ge=1, le=MOST_LOOKED, description="look at the newest so many failed jobs")


class Redrive(Which):
    """Which dead letters run again, and with what arguments."""

    limit: StrictInt | None = Field(None, ge=1, le=MOST_LOOKED, description="at most so many, the newest")
    patch: dict[str, Any] | None = Field(
        None, description='JSON merge patch of `{"args": […], "kwargs": {…}}`', examples=[{"kwargs": {"model": "x"}}]
    )
    dry_run: StrictBool = Field(False, description="only tell what would run again")
    all: StrictBool = Field(False, description="whatever failed, in place of the names above")


@router.get("")
async def list_dead_letters(app: Served, which: Annotated[Which, Query()]) -> dict[str, Any]:
    """Return dead letters in groups of one fingerprint, the largest first: at most 200 groups."""
    return _document(await _look(app, which))


@router.post("/redrive", dependencies=[needs(Scope.OPERATE)])
async def redrive_dead_letters(app: Served, body: Redrive) -> dict[str, Any]:
    """Run dead letters again, each as a new job; those that failed first are in front.

    It has to be said which: by one of the names at least, or by `all`. With `patch` every job gets changed arguments:
    `args` replaces all positional ones, members of `kwargs` replace keyword arguments, null removes one (RFC 7386).
    With `dry_run` nothing runs: the answer shows what would.
    """
    _check_chosen(body)
    patch = None if body.patch is None else check_argument_patch(body.patch)
    looked = await _look(app, body, limit=body.limit, patch=patch)
    count = 0 if body.dry_run else await redrive(app.runtime.stores, looked.found, patch=patch)
    patched = {} if patch is None else {"patched": [to_json(asdict(one)) for one in looked.patched]}
    return _document(looked) | patched | {"redriven": count}


def _check_chosen(body: Redrive) -> None:
    """Raise InvalidInputError unless a request says which dead letters run again; to look, it need not."""
    chosen = [name for name in _CHOOSING if getattr(body, name) is not None]
    if body.all and chosen:
        raise InvalidInputError("all", f"must not be given together with {chosen[0]}", True)
    if not (body.all or chosen or body.dry_run):
        raise InvalidInputError("all", f"must be true where none of {', '.join(_CHOOSING)} is given", False)


async def _look(app: App, which: Which, *, limit: int | None = None, patch: dict[str, Any] | None = None) -> Looked:
    wanted = DeadLetterFilter(
        queue=None if which.queue is None else check_name("queue", which.queue),
        task=None if which.task is None else check_name("task", which.task),
        kind=which.kind,
        fingerprint=which.fingerprint,
        within=None if which.since is None else parse_duration(which.since, field="since"),
    )
    return await look_for(app.runtime.stores, wanted, look=which.look, limit=limit, patch=patch)


def _document(looked: Looked) -> dict[str, Any]:
    document = looked_document(looked)
    groups = document["groups"]
    return document | {"groups": groups[:MOST], "left_out": max(len(groups) - MOST, 0)}
