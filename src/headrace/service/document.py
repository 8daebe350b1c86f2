"""What the OpenAPI document says of tokens."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from headrace.service.access import Access
from headrace.service.gate import scope_of
from headrace.service.permits import Permits

SCHEME = "token"
ABOUT = (
    "Durable jobs, batches and workflows. What can be asked for is stored before it is answered. "
    "Every refusal is a problem document (RFC 9457) whose `code` is a stable word. Requests that write are JSON, also "
    "without a body; those with an `Idempotency-Key` may be sent again."
)
_DESCRIPTION = "A token of `headrace token create`; each operation names the scope that opens it."
_CONTENT = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
#: An answer to what cannot be done.
PROBLEM: dict[str, Any] = {
    "description": "a problem: `code` is a stable word, `detail` says what to do", "content": _CONTENT,
}  # fmt: skip
_ANSWERS = {
    "401": {"description": "no token, or one that is unknown, expired or revoked", "content": _CONTENT},
    "403": {"description": "the token has not the scope, or the request comes from elsewhere", "content": _CONTENT},
}
#: What one thing of a group of routes is called.
_NOUNS = {
    "jobs": "job", "batches": "batch", "queues": "queue", "schedules": "schedule", "workflows": "workflow",
    "runs": "run", "handles": "handle", "papers": "papers", "details": "details",
    "reports": "report",
}  # fmt: skip


class Fault(BaseModel):
    """One of several fields that break a rule."""

    field: str
    rule: str


class Problem(BaseModel):
    """Why a request was not done; it may have more members."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{
        "type": "about:blank", "title": "Unprocessable Entity", "status": 422, "code": "invalid_input",
        "detail": "count must be at most 1000, got 5000", "field": "count", "rule": "must be at most 1000",
    }]})  # fmt: skip

    type: str
    title: str
    status: int
    code: str = Field(description="a stable word, for programs")
    detail: str = Field(description="which field, rule and value, and what to do, for people")
    field: str = Field("", description="what breaks a rule")
    rule: str = ""
    errors: list[Fault] = Field([], description="all fields that break rules, where there may be several")


def operation_id(route: APIRoute) -> str:
    """Return the name of an operation: what it does, and to what.

    >>> operation_id(APIRoute("/jobs/7/cancel", lambda: None, name="cancel", tags=["jobs"]))
    'cancel_job'
    """
    noun = _NOUNS.get(str(route.tags[0]), "") if route.tags else ""
    return route.name if noun in route.name else f"{route.name}_{noun}"


def add_security(service: FastAPI, permits: Permits, access: Access) -> None:
    """Let the document of a service name the scope of each operation."""
    make = service.openapi

    def openapi() -> dict[str, Any]:
        made = service.openapi_schema is not None
        document = make()
        if not made:
            _secure(document, permits, access)
        return document

    service.openapi = openapi  # type: ignore[method-assign] # as its documentation says


def _secure(document: dict[str, Any], permits: Permits, access: Access) -> None:
    scheme = {"type": "http", "scheme": "bearer", "bearerFormat": "hra_…", "description": _DESCRIPTION}
    components = document.setdefault("components", {})
    components["securitySchemes"] = {SCHEME: scheme}
    schema = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    components.setdefault("schemas", {}).update(schema.pop("$defs"), Problem=schema)
    for permit in permits.all:
        scope = scope_of(permit)
        for method in permit.methods:
            operation = document["paths"].get(permit.path.replace(":path}", "}"), {}).get(method.lower())
            if operation is not None and scope is not None:
                # An empty one beside it: it may be asked for without a token.
                operation["security"] = [{SCHEME: [scope]}] + ([] if access.required else [{}])
                operation["responses"] = _ANSWERS | operation.get("responses", {})
