"""Values of memory as documents of JSON: what the command line and the service show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from headrace.apps.memory.tables.values import FoundGist


def document_of(value: Any) -> Any:
    """Return a value as JSON has it: ids and instants are texts, dataclasses are objects.

    >>> from headrace.apps.memory.data.events import Tag
    >>> document_of({"tags": (Tag("mood", "glad"),), "id": UUID(int=7)})["id"][-4:]
    '0007'
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: document_of(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): document_of(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [document_of(one) for one in value]
    return value


def found_document(found: FoundGist) -> dict[str, Any]:
    """Return a line that fits a query, with how well it does."""
    document: dict[str, Any] = document_of(found.gist)
    return document | {"score": round(float(found.score), 6)}
