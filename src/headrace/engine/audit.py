"""Actions of the audit as documents; the command line and the HTTP service share it."""

from __future__ import annotations

import json
from typing import Any

from headrace.engine.queries import to_json
from headrace.model.audit import Action


def action_document(action: Action) -> dict[str, Any]:
    """Return an action as JSON data."""
    return {
        "id": str(action.id),
        "at": to_json(action.at),
        "who": action.who,
        "token_id": None if action.token_id is None else str(action.token_id),
        "address": action.address,
        "operation": action.operation,
        "subject": dict(action.subject),
        "detail": json.loads(action.detail),
        "status": action.status,
        "via": action.via,
    }
