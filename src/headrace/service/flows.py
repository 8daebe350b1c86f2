"""`/workflows` of apps that run JSON flows: storing flows, and whether schedules and webhooks start them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from headrace.apps.flows.checks import Problem
from headrace.apps.flows.importing import Imported, import_flows
from headrace.apps.flows.naming import workflow_name
from headrace.apps.flows.sources import Sources, sources_in
from headrace.apps.flows.storing import switch_flow
from headrace.model.api_token import Scope
from headrace.model.errors import InvalidInputError
from headrace.service.auth import needs
from headrace.service.problems import InvalidRequestError
from headrace.service.served import Served

#: Flows of one request, and reasons that are told of all of them.
MOST_FLOWS, MOST_FAULTS = 50, 100

router = APIRouter(prefix="/workflows", tags=["workflows"])


class ImportFlows(BaseModel):
    """Flows to store."""

    model_config = ConfigDict(extra="forbid")

    flow: Any = Field(description="a flow, exports of n8n among them; a list of them, or what exports wrap them in")
    activate: bool = Field(False, description="let schedules and webhooks start them; else as their JSON says")
    dry_run: bool = Field(False, description="store nothing, and only tell what would be")


class Triggers(BaseModel):
    """What starts a flow."""

    model_config = ConfigDict(extra="forbid")

    active: bool = Field(description="whether its schedules and webhooks do")


class InvalidFlowsError(InvalidRequestError):
    """Some flows cannot run, and so none was stored. Correct what is named and send them again."""

    code = "invalid_flow"


@router.post("", status_code=201, responses={200: {"description": "nothing has changed, or it is a dry run"}},
             dependencies=[needs(Scope.OPERATE)])  # fmt: skip
async def import_workflows(app: Served, body: ImportFlows, response: Response) -> dict[str, Any]:
    """Store JSON flows, each as another version where it changed, if all of them can run.

    `errors` of a refusal names each field that is wrong, such as `flow.nodes[3].parameters.mode`.
    """
    sources = Sources(tuple(sources_in(body.flow, "flow")))
    if not 1 <= len(sources.flows) <= MOST_FLOWS:
        rule = f"must be a flow, with nodes and connections, or up to {MOST_FLOWS} of them"
        raise InvalidInputError("flow", rule, f"{len(sources.flows)} flows")
    found = await import_flows(app, sources, activate=body.activate, dry=body.dry_run, whole=True)
    faults = _faults(found)
    if faults:
        raise InvalidFlowsError(faults[:MOST_FAULTS])
    response.status_code = 201 if any(one.state == "imported" for one in found) else 200
    return {"workflows": [_told(one) for one in found]}


@router.post("/{name}/triggers", dependencies=[needs(Scope.OPERATE)])
async def set_triggers(app: Served, name: str, body: Triggers) -> dict[str, Any]:
    """Say whether schedules and webhooks start a flow; workers heed it within a minute."""
    flow, version = await switch_flow(app, name, active=body.active)
    return {"workflow": workflow_name(flow.name), "active": body.active, "version": version}


def _told(one: Imported) -> dict[str, Any]:
    told = one.to_json()
    return {name: told[name] for name in ("workflow", "flow", "state", "version", "active", "notes")}


def _faults(found: Sequence[Imported]) -> list[InvalidInputError]:
    """Return why flows cannot be stored; of several flows each field begins with which of them it is of."""
    return [
        InvalidInputError(problem.field.replace("flow", one.source.place, 1), _rule(problem), one.source.name)
        for one in found if not one.stored for problem in one.problems
    ]  # fmt: skip


def _rule(problem: Problem) -> str:
    """Return what is wrong with a field, of which node, and what to use instead."""
    node = f"node {problem.node!r} ({problem.type}) " if problem.node else ""
    return f"{node}{problem.message}" + (f"; {problem.instead}" if problem.instead else "")
