"""`/healthz` and `/readyz`: whether the process is alive, and whether it can do its work."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from headrace.model.errors import StoreUnavailableError
from headrace.service.document import PROBLEM
from headrace.service.problems import problem, problem_of
from headrace.service.served import Served

#: The store has to answer within this time.
READY_SECONDS = 2.0

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Say that the process is alive."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: PROBLEM | {"description": "the store does not answer"}})
async def readyz(app: Served) -> JSONResponse:
    """Say whether the store answers; 503 where it does not within 2 s."""
    try:
        async with asyncio.timeout(READY_SECONDS):
            await app.runtime.stores.inspect.store_info()
    except StoreUnavailableError as error:
        return problem_of(error)
    except TimeoutError:
        detail = f"the store did not answer within {READY_SECONDS:g} s"
        return problem(503, StoreUnavailableError.code, detail)
    return JSONResponse({"status": "ready"})
