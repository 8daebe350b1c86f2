"""`/llm/pools`: quotas of models as they stand."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from headrace.engine.llm_queries import list_pools
from headrace.engine.queries import to_json
from headrace.service.served import Served

router = APIRouter(prefix="/llm", tags=["models"])


@router.get("/pools", operation_id="list_pools")
async def pools(app: Served) -> dict[str, Any]:
    """Return the quotas of models: what flows, who waits, what was refused, what was spent today (UTC)."""
    return {"pools": to_json(await list_pools(app.runtime.stores, app.settings.pools()))}
