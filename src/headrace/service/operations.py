"""What each route of a service does, by its name in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel

from headrace.service.guard import OPEN_PATHS
from headrace.service.permits import Permit, Permits


@dataclass(frozen=True, slots=True)
class Operation:
    """What a route does."""

    #: Its `operationId`.
    name: str
    #: Names that its body may have; empty: it takes none, or what users write.
    fields: frozenset[str]


def operations_of(service: FastAPI, permits: Permits) -> Mapping[Permit, Operation]:
    """Return what each route of a service does, by what it asks for."""
    contexts = iter_route_contexts(service.routes)
    return {permit: _operation(context) for context, permit in zip(contexts, permits.all, strict=True)}


def _operation(context: Any) -> Operation:
    name = getattr(context, "operation_id", None) or getattr(context, "unique_id", None) or context.name
    if context.path in OPEN_PATHS:
        name = context.path.strip("/")
    body = getattr(context, "body_field", None)
    return Operation(str(name), frozenset() if body is None else _fields(body.field_info.annotation))


def _fields(annotation: Any) -> frozenset[str]:
    """Return the names of the members of a body.

    >>> _fields(dict), sorted(_fields(Operation | None))
    (frozenset(), [])
    """
    kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
    models = [kind for kind in kinds if issubclass(kind, BaseModel)]
    return frozenset(field.alias or name for model in models for name, field in model.model_fields.items())
