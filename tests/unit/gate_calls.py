"""A service that asks everybody for a token, and tokens of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx2
from fastapi import FastAPI

from headrace import App
from headrace.engine.tokens import make_token
from headrace.model.api_token import Scope
from headrace.service.access import Access
from headrace.service.application import make_service
from headrace.service.gate import Gate

BEYOND = Access.at("0.0.0.0")
URL = "http://jobs.example.org"


@asynccontextmanager
async def gated(app: App, access: Access = BEYOND) -> AsyncIterator[tuple[httpx2.AsyncClient, FastAPI]]:
    """Open an app with a service that others reach."""
    async with app:
        service = make_service(app, access)
        transport = httpx2.ASGITransport(service, raise_app_exceptions=False, client=("192.0.2.7", 5))
        async with httpx2.AsyncClient(transport=transport, base_url=URL) as client:
            yield client, service
        await gate_of(service).close()


def gate_of(service: FastAPI) -> Gate:
    """Return the gate of a service."""
    gate: Gate = service.state.gate
    return gate


async def login(app: App, *scopes: Scope, lifetime: timedelta | None = None) -> dict[str, str]:
    """Make a token and return the header that sends it."""
    token, _ = await make_token(app.runtime.stores, "test", scopes or Scope, lifetime=lifetime)
    return bearer(token)


def bearer(token: str) -> dict[str, str]:
    """Return the header that sends a token."""
    return {"authorization": f"Bearer {token}", "content-type": "application/json"}
