"""What the OpenAPI document says of tokens."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from headrace.service.access import Access
from headrace.service.gate import scope_of
from headrace.service.permits import Permits

SCHEME = "token"
_DESCRIPTION = "A token of `headrace token create`; each operation names the scope that opens it."
_PROBLEM = {"application/problem+json": {"schema": {"type": "object", "required": ["status", "code", "detail"]}}}
_ANSWERS = {
    "401": {"description": "no token, or one that is unknown, expired or revoked", "content": _PROBLEM},
    "403": {"description": "the token has not the scope, or the request comes from elsewhere", "content": _PROBLEM},
}


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
    document.setdefault("components", {})["securitySchemes"] = {SCHEME: scheme}
    for permit in permits.all:
        scope = scope_of(permit)
        for method in permit.methods:
            operation = document["paths"].get(permit.path, {}).get(method.lower())
            if operation is not None and scope is not None:
                # An empty one beside it: it may be asked for without a token.
                operation["security"] = [{SCHEME: [scope]}] + ([] if access.required else [{}])
                operation["responses"] = _ANSWERS | operation.get("responses", {})
