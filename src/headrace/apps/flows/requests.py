"""What is kept of a request to a webhook apart from the input of its run: its headers, and by which name it came.

Senders change headers when they send a request again. A key means the same run for the same input, so they are none of
it: they are metadata of the run, and the webhook puts them into its item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import Context
from headrace.apps.flows.starting import items_of

#: The mode of runs that requests begin.
MODE = "webhook"
_MEMBER = "webhook_request"


def apart(headers: Mapping[str, str], url: str) -> dict[str, Any]:
    """Return the metadata of a run that a request begins."""
    return {_MEMBER: {"headers": dict(headers), "webhookUrl": url}}


def with_request(context: Context, start: Any, node: str) -> Any:
    """Return the input of a run with what is known of its request, for the webhook `node` that it begins."""
    if not isinstance(start, Mapping) or (start.get("mode"), start.get("trigger")) != (MODE, node):
        return start
    metadata = {} if context.run is None else context.run.metadata
    told = metadata.get(_MEMBER)
    kept = told if isinstance(told, dict) else {}
    return {**start, "items": [{**item, "json": {**kept, **item["json"]}} for item in items_of(start.get("items"))]}
