"""What stands in the query of a request: names that its route does not know are refused, whatever route it is."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import BaseModel

from headrace.model.errors import InvalidInputError
from headrace.service.faults import UNKNOWN
from headrace.service.problems import InvalidRequestError


async def check_query(request: Request) -> None:
    """Refuse names that mean nothing here: whoever misspells a filter must not take all there is for what it asked.

    Raises InvalidRequestError.
    """
    if not request.url.query:
        return
    known = _names(request.scope["route"].dependant)
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise InvalidRequestError([InvalidInputError(name, UNKNOWN, request.query_params[name]) for name in unknown])


def _names(dependant: Any) -> set[str]:
    """Return the names that a route takes, by itself and by what it depends on."""
    names = set[str]()
    for field in dependant.query_params:
        kind = field.field_info.annotation
        names |= set(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else {field.alias}
    return names.union(*map(_names, dependant.dependencies))
