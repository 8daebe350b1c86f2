"""Records: what change events say of the buffer table, and what a check of a buffer asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Record:
    """One change of a row of the buffer table."""

    user_id: str
    buffer_id: UUID
    #: "c", "u" or "r"
    operation: str
    #: `updated_at` of the row
    timestamp: datetime
    #: tokens of the row
    buffer_size: int
    #: source, position and transaction, as the envelope names them
    metadata: Mapping[str, Any] = field(default_factory=dict)
