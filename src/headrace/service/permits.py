"""Which scope of tokens opens which route."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from headrace.model.api_token import Scope
from headrace.service.auth import Needs

#: Asked by GET and open to everybody: whoever watches the process has no token.
PUBLIC = frozenset({"/healthz", "/readyz"})
_READING = frozenset({"GET", "HEAD"})
_READ = Needs(Scope.READ)
#: Where a request has its permit, once that was looked for.
_PERMIT = "headrace.permit"


@dataclass(frozen=True, slots=True)
class Permit:
    """What a route asks for."""

    path: str
    regex: re.Pattern[str]
    #: Empty: all, for what is behind the route decides.
    methods: frozenset[str]
    #: None: no token opens it.
    needed: Needs | None


class Permits:
    """The routes of a service in their order, with what each asks for."""

    def __init__(self, permits: Iterable[Permit]) -> None:
        self.all = tuple(permits)

    @classmethod
    def of(cls, service: FastAPI) -> Permits:
        """Return those of a service that has all its routes."""
        return cls(_permit(context) for context in iter_route_contexts(service.routes))

    def of_request(self, scope: MutableMapping[str, Any]) -> Permit | None:
        """Return that of the route which a request goes to, which is looked for once; None: to none."""
        if _PERMIT not in scope:
            scope[_PERMIT] = self.find(scope["method"], scope["path"])
        found: Permit | None = scope[_PERMIT]
        return found

    def find(self, method: str, path: str) -> Permit | None:
        """Return that of the route which a request goes to; None: to none."""
        for permit in self.all:
            if permit.regex.match(path) and (method in permit.methods or not permit.methods):
                return permit
        return None


def _permit(context: Any) -> Permit:
    methods = frozenset(context.methods or ())
    return Permit(context.path, context.path_regex, methods, _needed(context, methods))


def _needed(context: Any, methods: frozenset[str]) -> Needs | None:
    """Return what a route says it needs, the last word counting: that of the route is behind those of its group."""
    said = [one.dependency for one in getattr(context, "dependencies", None) or () if isinstance(one.dependency, Needs)]
    if said:
        return said[-1]
    return _READ if methods and methods <= _READING else None


def is_public(request: Mapping[str, Any]) -> bool:
    """Whether a request asks for what everybody may see: written out exactly, and in no other way.

    >>> is_public({"method": "GET", "path": "/healthz", "raw_path": b"/%68ealthz"})
    False
    """
    path = request["path"]
    return request["method"] == "GET" and path in PUBLIC and request.get("raw_path") == path.encode()
