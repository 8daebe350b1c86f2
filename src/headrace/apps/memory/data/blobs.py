"""What users say: messages, and the blobs that they come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

#: Types of blobs that may be stored, and those of them that are made memory of.
BLOB_TYPES = ("chat", "summary", "doc", "image", "code", "transcript")
PROCESSED = ("chat", "summary")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    #: "user", "assistant" or "system"
    role: str
    content: str
    #: what the speaker is called, where it is not the user
    alias: str | None = None
    #: when it was said, as it was given
    created_at: str | None = None


@dataclass(frozen=True, slots=True)
class Blob:
    """What one insert brought."""

    id: UUID
    user_id: str
    #: one of BLOB_TYPES
    type: str
    #: of a chat `{"messages": [{"role", "content", "alias"?, "created_at"?}]}`, of a summary `{"summary": text}`
    data: Mapping[str, Any]
    tokens: int
    created_at: datetime
